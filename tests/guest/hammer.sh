# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# hammer.sh rxe|siw net|dev|one [ROUNDS [PARAMETER=VALUE...]]: kdhammer.ko, a peer that uses keys
# while they are taken away; then registering while the network under the registration queue
# pair changes.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2 n=${3:-10}
shift 2
[ $# = 0 ] || shift
order() { echo "$*" >/sys/kernel/debug/kdhammer/do; }
fine() { logged 'kdhammer: PASS seed' && ! logged 'kdhammer: FA'; }
as_before() { [ "$(but_cqs)" = "$before" ]; }
# shellcheck disable=SC2086
net() { ip $ns "$@"; }
# Queue pairs that are connected to themselves: ours, of RoCE.
own_qps() {
	${ns:+ip netns exec n0} rdma resource show qp link "$a/1" |
		sed -n 's/.* lqpn \([0-9]*\) rqpn \([0-9]*\) .*/\1 \2/p' | awk '$1 == $2' | wc -l
}
registers() { order registered 20; }

topology "$where" "$p"
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
dmesg -C
must "kdhammer.ko loads on $a and $b" insmod "$KO/kdhammer.ko" ia_a="$a-1" ia_b="$b-1" "$@"
order register 1
before=$(but_cqs)
step "LMR-FREE-03,FMR-10,FMR-11,FMR-15: not a byte moves after an invalidate, nor ever beyond the window" \
	order invalidate "$n"
step "LMR-FREE-02,LMR-FREE-03,LMR-FREE-04,FMR-13: nor after dat_lmr_free(): the memory can go" \
	order free "$n"
step "RMR-06,RMR-13,RMR-14: nor through the old key of an RMR, and the new window is untouched before" \
	order rebind "$n"
step "SINV-01,SINV-02,SINV-03: nor after the peer itself has invalidated the key" order remote "$n"
step "all that was registered has gone" until_true 60 as_before

# On RoCE nothing of that matters; on iWARP there must be an address to connect to.
case $p in rxe) how=strict own=$(own_qps) ;; siw) how='' ;; esac
[ "$p" != rxe ] ||
	step "LMR-01: the queue pair that registers is connected to nobody else" [ "$own" -gt 0 ]
step "LMR-01: registrations, in new PZs too" order register 20 new
[ "$p" != rxe ] || step "the queue pairs for that are gone again" [ "$(own_qps)" = "$own" ]
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
step "LMR-01: and registers with that one" registers
step "LMR-08: none was refused for another reason" order registered
step "LMR-01: nor is one now" order register 20 new
step "it unloads" timeout 100 rmmod kdhammer
dmesg | sed -n 's/.*kdhammer: //p' | grep -e '^seed' -e '^PASS' -e '^FA' -e '^reg'
step "it has seen no fault" fine
step "kdapl.ko unloads" rmmod kdapl
finish
