# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# unplug.sh rxe|siw net|dev|one: a device goes away while endpoints are connected
# and busy, in each of the ways a device can go.
# shellcheck shell=sh disable=SC2154
p=$1
heard() {
	# A port that goes down first lets siw of 6.1 end its connections in order:
	# DISCONNECTED on both sides, before the device goes.
	[ "$how$p" = netdevsiw ] && logged 'hold: FAIL endpoints .* not BROKEN' && return
	logged 'kdtest-hold: PASS' && ! logged 'kdtest-hold: FAIL'
}
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
# Busy in upcalls of each kind, and with upcalls disabled.
for how in link link-many link-notify link-disable netdev rmmod; do
	# rmmod siw with traffic hangs inside siw, whatever a consumer does.
	[ "$how$p" = rmmodsiw ] && continue
	# With lockdep the sockets of rxe's QPs hold the module.
	case $how-$KERNEL in rmmod-*lockdep) continue ;; esac
	# Now and then rxe of 6.1 never completes the CM's last message once its
	# network interface has gone, and the CM waits for it for ever.
	case $how$p-$KERNEL in netdevrxe-6.1*) continue ;; esac
	case $2 in
	net) two_namespaces "$p"; a=${p}0 b=${p}1 dev=veth0 ns="-n n0" ;;
	dev) two_devices "$p"; a=${p}0 b=${p}1 dev=veth0 ns='' ;;
	one) loopback_dev "$p"; a=${p}0 b=${p}0 dev=kd0 ns='' ;;
	esac
	case $how in
	link-*) policy=${how#link-} ;;
	netdev) policy=many ;;
	*) policy=single ;;
	esac
	dmesg -C
	must "connections with traffic on $a and $b" \
		insmod "$KO/kdtest.ko" mode=hold ia_a="$a-1" ia_b="$b-1" policy="$policy"
	sleep 0.5
	# shellcheck disable=SC2086
	case $how in
	link*)
		step "EPSM-24,SIL-27: rdma link delete of a busy device returns, upcalls: $policy" \
			timeout 20 rdma link delete "$a" ;;
	netdev)
		step "EPSM-24,SIL-27: deleting the network interface of a busy device returns" \
			timeout 20 ip $ns link del "$dev"
		until_true 20 refused rdma link show "$a/1" ;;
	rmmod)
		step "EPSM-24,SIL-27: rmmod of the provider of busy devices returns" \
			timeout 20 rmmod "$(provider_module "$p")" ;;
	esac
	step "the device is gone" refused rdma link show "$a/1"
	step "the consumer unloads" timeout 20 rmmod kdtest
	step "EPSM-24,ASY-03: the consumer heard of it on every endpoint" heard
	no_devices "$p"
done
step "kdapl.ko unloads" rmmod kdapl
finish
