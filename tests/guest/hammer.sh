# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# hammer.sh rxe|siw net|dev|one [ROUNDS [PARAMETER=VALUE...]]: kdhammer.ko, a peer that
# uses keys while they are taken away, and registering under trouble.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2 n=${3:-10}
shift 2
[ $# = 0 ] || shift
devices() { topology "$where" "$p"; }
order() { echo "$*" >/sys/kernel/debug/kdhammer/do; }
said() { dmesg | sed -n 's/.*kdhammer: //p' | grep -e '^seed' -e '^PASS' -e '^FAIL' -e '^FAULT' -e '^keys' -e '^reg'; }
fine() { logged 'kdhammer: PASS seed' && ! logged 'kdhammer: FA'; }
load() {
	dmesg -C
	# shellcheck disable=SC2086
	must "kdhammer.ko loads on $a and $b" insmod "$KO/kdhammer.ko" ia_a="$a-1" ia_b="$b-1" "$@"
}
unload() {
	step "it unloads" timeout 100 rmmod kdhammer
	said
	step "it has seen no fault" fine
}
as_before() { [ "$(but_cqs)" = "$before" ]; }

devices
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
load "$@"
order register 1
before=$(but_cqs)
step "LMR-FREE-03,FMR-10,FMR-11,FMR-15: not a byte moves after an invalidate, nor ever beyond the window" \
	order invalidate "$n"
step "LMR-FREE-02,LMR-FREE-03,LMR-FREE-04,FMR-13: nor after dat_lmr_free(): the memory can go" \
	order free "$n"
step "RMR-06,RMR-13,RMR-14: nor through the old key of an RMR, and the new window is untouched before" \
	order rebind "$n"
step "SINV-01,SINV-02,SINV-03: nor after the peer itself has invalidated the key" order remote "$n"
step "FMR-04,SIL-17: keys do not come again, and do not follow from the last one" \
	order keys $((n * 8 < 64 ? 64 : n * 8))
step "RDMAW-14,RDMAR-13: keys nobody has given out break the peer's connection, and do no other harm" \
	order stale "$n"
step "all that was registered has gone" until_true 5 as_before
unload
step "kdapl.ko unloads" rmmod kdapl
finish
