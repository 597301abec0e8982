# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# register.sh rxe|siw net|dev|one [ROUNDS [PARAMETER=VALUE...]]: kdhammer.ko, registering
# while the network under the registration queue pair changes, and
# when the device goes away with everything bound and under fire.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2 n=${3:-1}
shift 2
[ $# = 0 ] || shift
devices() { topology "$where" "$p"; }
order() { echo "$*" >/sys/kernel/debug/kdhammer/do; }
said() {
	dmesg | sed -n 's/.*kdhammer: //p' |
		grep -e '^seed' -e '^PASS' -e '^FAIL' -e '^FAULT' -e '^reg'
}
fine() { logged 'kdhammer: PASS seed' && ! logged 'kdhammer: FA'; }
load() {
	dmesg -C
	must "kdhammer.ko loads on $a and $b" insmod "$KO/kdhammer.ko" ia_a="$a-1" ia_b="$b-1" "$@"
}
unload() {
	step "it unloads" timeout 100 rmmod kdhammer
	said
	step "it has seen no fault" fine
}
# shellcheck disable=SC2086
net() { ip $ns "$@"; }

# Queue pairs that are connected to themselves: ours, of RoCE.
# shellcheck disable=SC2086
own_qps() {
	${ns:+ip netns exec n0} rdma resource show qp link "$a/1" |
		sed -n 's/.* lqpn \([0-9]*\) rqpn \([0-9]*\) .*/\1 \2/p' | awk '$1 == $2' | wc -l
}
registers() { order registered 20; }
ends() { order registered; }

devices
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
load "$@"
[ "$p" != rxe ] || {
	own=$(own_qps)
	step "LMR-01: the queue pair that registers is connected to nobody else" [ "$own" -gt 0 ]
}
step "LMR-01: registrations, in new PZs too" order register 20 new
[ "$p" != rxe ] || step "the queue pairs for that are gone again" [ "$(own_qps)" = "$own" ]

# On RoCE nothing of that matters; on iWARP there must be an address to connect to.
case $p in rxe) how=strict ;; siw) how='' ;; esac
round=0
while [ $round -lt "$n" ] && [ "$failed" = 0 ]; do
	round=$((round + 1))
	# shellcheck disable=SC2086
	step "registering all the time" order registering $how
	step "LMR-01: it works" registers
	step "the link goes down" net link set "$dev" down
	[ "$p" = siw ] || step "LMR-01: RoCE registers without a link" registers
	step "the link comes up" net link set "$dev" up
	step "LMR-01: and registers with it" registers
	case $where in net | one) net addr add 2001:db8::1/64 dev "$dev" nodad ;; esac
	step "the address goes" net addr del 192.0.2.1/24 dev "$dev"
	[ "$p" = siw ] || step "LMR-01: RoCE registers without that" registers
	step "the address is back" net addr add 192.0.2.1/24 dev "$dev"
	step "LMR-01: and registers with it" registers
	step "LMR-08: none was refused for another reason" ends
	step "LMR-01: nor is one now" order register 20 new
done
unload
no_devices "$p"

round=0
while [ $round -lt "$n" ] && [ "$failed" = 0 ]; do
	round=$((round + 1))
	for how in ordered left; do
		devices
		load "$@"
		step "LMRs and RMRs are bound, under fire, others under way" order crowd
		step "EPSM-24: the device goes" timeout 60 rdma link delete "$a"
		[ $how = left ] || step "EPSM-24,LMR-FREE-01,RMR-14: both connections end, all can be freed" \
			order crowded
		unload
		no_devices "$p"
	done
done
step "kdapl.ko unloads" rmmod kdapl
finish
