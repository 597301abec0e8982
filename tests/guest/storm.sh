# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# storm.sh rxe|siw net|dev|one [PARAMETER=VALUE...]: kdstorm.ko, events from all
# CPUs while policies change, between two devices or on one. The parameters are
# the module's: events=, dto=, seed=, limit=.
# shellcheck shell=sh disable=SC2154
p=$1
topology "$2" "$p"
shift 2
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
dmesg -C
step "the storm is over and nothing was wrong" \
	insmod "$KO/kdstorm.ko" ia_a="$a-1" ia_b="$b-1" "$@"
dmesg | sed -n 's/.*kdstorm: //p' | grep -e '^PASS' -e '^FAIL' -e '^seed' -e '^FAULT' -e '^check'
said() { logged "kdstorm: check $1 ok"; }
events=$(dmesg | sed -n 's/.*kdstorm: check once ok //p')
step "EVD-DQ-03,EVD-MOD-06,EVD-UP-07,SIL-38: each of ${events:-no} events is seen exactly once, whatever the policy" said once
step "EVD-DQ-06,EVD-UP-04,EVD-MOD-03: none of them stays behind without an upcall" said wake
step "EVD-DQ-04,EVD-SE-04,EVD-UP-12: events of a stream are in order, those dequeued in upcalls too" said order
step "EVD-UP-06,SIL-41: SINGLE_INSTANCE is one upcall at a time, whatever was before; MANY is one per CPU" said single
step "EVD-UP-08,EVD-MOD-05: no upcall after TEARDOWN, which waits for those that run" said teardown
step "EVD-UP-01: more_events is exact" said more
step "EVD-UP-09: one notification, then none until the EVD was found empty" said notify
step "CTX-04: upcalls run in the context that was asked for" said context
step "EVD-OVF-04,EVD-SE-03: DAT_QUEUE_FULL, only when it is full" said full
step "EVD-UP-11: the right message in the right buffer, posted again in upcalls" said data
step "EVD-FREE-02,EVD-FREE-03: freed under fire, and no upcall after that" said free
lsmod | grep -q '^kdstorm ' && step "kdstorm.ko unloads" rmmod kdstorm
step "kdapl.ko unloads" rmmod kdapl
finish
