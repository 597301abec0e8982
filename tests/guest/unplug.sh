# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# unplug.sh rxe|siw net|dev|one: a device goes away in each of the ways a device
# can go, while endpoints are connected and busy, and while there is something in
# every state; and comes back.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2
# Which ways cannot be shown on this kernel.
possible() {	# WAY
	case $1$p-$KERNEL in
	# rmmod siw with traffic hangs inside siw, whatever a consumer does.
	rmmodsiw-*) return 1 ;;
	# With lockdep the sockets of rxe's QPs hold the module.
	rmmodrxe-*lockdep) return 1 ;;
	# Now and then rxe of 6.1 never completes the CM's last message once its
	# network interface has gone, and the CM waits for it for ever.
	netdevrxe-6.1*) return 1 ;;
	esac
}
devices() { topology "$where" "$p"; }
# shellcheck disable=SC2086
unplug() {	# WAY, WORDS
	case $1 in
	link) step "EPSM-24,SIL-27: rdma link delete returns, $2" timeout 60 rdma link delete "$a" ;;
	netdev)
		step "EPSM-24,SIL-27: deleting the network interface returns, $2" \
			timeout 60 ip $ns link del "$dev"
		until_true 60 refused rdma link show "$a/1" ;;
	rmmod)
		step "EPSM-24,SIL-27: rmmod of the provider returns, $2" \
			timeout 60 rmmod "$(provider_module "$p")" ;;
	esac
	step "the device is gone" refused rdma link show "$a/1"
}
# Each has moved messages when the module is there; this many more keep them moving.
heard() {
	# A port that goes down first lets siw of 6.1 end its connections in order:
	# DISCONNECTED on both sides, before the device goes. The first fault is the one
	# that is reported, and what is missed here is looked at after all others but
	# those of calls on what has gone.
	case $how$p-$KERNEL in
	netdevsiw-6.1*) logged 'kdtest-hold: FAIL endpoints .* not BROKEN' && return ;;
	esac
	logged 'kdtest-hold: PASS' && ! logged 'kdtest-hold: FAIL'
}
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
# Busy in upcalls of each kind, and with upcalls disabled.
for how in link link-many link-notify link-disable netdev rmmod; do
	way=${how%%-*}
	possible "$way" || continue
	devices
	case $how in
	link-*) policy=${how#link-} ;;
	netdev) policy=many ;;
	*) policy=single ;;
	esac
	dmesg -C
	must "connections with traffic on $a and $b" \
		insmod "$KO/kdtest.ko" mode=hold ia_a="$a-1" ia_b="$b-1" policy="$policy"
	step "all of them are busy" busy
	unplug "$way" "connections are busy, upcalls: $policy"
	step "the consumer unloads" timeout 200 rmmod kdtest
	step "EPSM-24,ASY-03: the consumer heard of it on every endpoint" heard
	no_devices "$p"
done

# Something in every state, and three consumers: one that frees everything later,
# one that only closes its adapters in the end, one that frees in its upcalls.
fine() { logged 'kdtest-states: PASS' && ! logged 'kdtest-states: FAIL'; }
# shellcheck disable=SC2086
cut() {		# between the request and the answer to it; RoCE only
	$in0 tc qdisc replace dev veth0 root netem loss 100% &&
		ip netns exec n1 tc qdisc replace dev veth1 root netem loss 100%
}
# shellcheck disable=SC2086
replug() {
	if [ "$way" = link ]; then
		[ "$where" != net ] || {
			$in0 tc qdisc del dev veth0 root
			ip netns exec n1 tc qdisc del dev veth1 root
		}
		$in0 rdma link add "$a" type "$p" netdev "$dev"
	else
		no_devices "$p"
		devices
	fi
}
# soft-iWARP takes 10 s to give up what it has asked and nobody has answered.
case $p-$KERNEL in
*-lockdep) ways="link-upcall" ;;
*-kasan) ways="link-upcall link-close" ;;
rxe-*) ways="link-free link-close link-upcall netdev-upcall rmmod-close" ;;
siw-*) ways="link-free link-upcall netdev-close" ;;
esac
for how in $ways; do
	way=${how%-*} finish=${how#*-}
	possible "$way" || continue
	devices
	dmesg -C
	must "EPSM-24: endpoints in every state on $a and $b" \
		insmod "$KO/kdtest.ko" mode=states ia_a="$a-1" ia_b="$b-1" finish="$finish"
	[ "$where" != net ] || {
		cut
		step "EPSM-24: endpoints wait for the last word of their peers" parameter accept 1
	}
	unplug "$way" "something is in every state, the consumer: $finish"
	case $way$where in
	linknet | linkdev) parameter gone a ;;
	*) parameter gone ab ;;
	esac
	case $how in
	link-close) ;;
	*)
		step "the device comes back" replug
		parameter again 1 ;;
	esac
	step "the consumer unloads" timeout 200 rmmod kdtest
	step "EPSM-24,ASY-03,ASY-22,SIL-27: each object does what it must" fine
	dmesg | grep 'kdtest-states: [PF]A'
	no_devices "$p"
done
step "kdapl.ko unloads" rmmod kdapl
finish
