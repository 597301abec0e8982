# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# scale.sh rxe|siw net|dev|one MODE COUNT: so many connections between two devices, or on one.
#	many	at the same time, closed from both ends at once
#	short	all of a side complete on an EVD that is one event long
#	sleep	a device goes, and the upcalls sleep: a tenth of a second for each completion,
#		and at the end in kdat_ep_drain(); all at a time
# shellcheck shell=sh disable=SC2154
p=$1 mode=$3 count=$4
topology "$2" "$p"
# A busy listener may miss a SYN, and nobody here calls one who is not there.
echo 6 >/proc/sys/net/ipv4/tcp_syn_retries
scale() { echo "$*" >/sys/kernel/debug/kdscale/do; }
field() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" /proc/meminfo; }
available() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	field MemAvailable
}
# took WHAT BEFORE AFTER: kB each
took() { tell "$1: $((($2 - $3) * 1024 / count / 2)) bytes each"; }
talk() {
	step "$count connections at the same time" scale connect 64
	step "a message each way on each of them" scale data
}
# listed N: by netlink, so many connections, each once; more than one buffer of a dump has.
listed() {
	timeout 60 "$TOP/tools/kdapl" conn >"$TMPDIR/conn" &&
		[ "$(awk 'NR > 1 { print $1 }' "$TMPDIR/conn" | sort -u | wc -l)" = "$1" ] &&
		[ "$(wc -l <"$TMPDIR/conn")" = $(($1 + 1)) ] && return
	head -5 "$TMPDIR/conn"
	return 1
}
many() {
	before=$(available)
	step "$((2 * count)) Endpoints of the usual attributes" scale eps
	took "memory of an idle Endpoint" "$before" "$(available)"
	step "netlink: none of them was connected" listed 0
	talk
	step "netlink: all of them are connected" listed $((2 * count))
	took "memory of an idle Endpoint and its share of a connection" "$before" "$(available)"
	tell "$(resources | tr '\n' ' ')"
	step "EPSM-15,EPSM-31: dat_ep_disconnect of all from both ends at once, reset" scale disconnect
	step "netlink: none of them is connected any more" listed 0
	talk
	step "both instances are closed abruptly, at once" scale close
}
cqs() { resources | sed -n 's/.* cq \([0-9]*\).*/\1/p'; }
# CQs for so many Endpoints of each side: as the logarithm of their number
few() {
	n=$count most=2
	while [ "$n" -gt 1 ]; do
		n=$((n / 2)) most=$((most + 1))
	done
	[ "$(cqs)" -le $((before + 2 * most)) ]
}
short() {
	before=$(cqs)
	step "$((2 * count)) Endpoints on two EVDs for one event" scale eps
	tell "$count Endpoints on an EVD for one event: $((($(cqs) - before) / 2 + 1)) CQs"
	step "EVD-CQ-01: they share a few completion queues" few
	talk
	step "all is freed" scale free
}
# One after the other they would take $((count / 5)) s. On a busy host the rescuer of 6.1 gets many
# of them, and is slow (upcalls.md, "Turns and budgets").
most=$((count / 10))
case $KERNEL in 6.1-*) most=$((count / 6)) ;; esac
within() { timeout "$1" sh -c "echo $2 >/sys/kernel/debug/kdscale/do"; }
asleep() {
	step "$((2 * count)) Endpoints, each with EVDs whose upcalls sleep" scale eps own 100
	step "$count connections at the same time" scale connect 64
	step "EPSM-24: the device goes" timeout 60 rdma link delete "$a"
	step "EPSM-24,STAT-05: all have heard of it, no upcall waits for those of others" \
		within $most ended
	step "all is freed" within 300 free
}

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(resources)
# shellcheck disable=SC2086
must "kdscale.ko loads" $in0 insmod "$KO/kdscale.ko" ia_a="$a-1" ia_b="$b-1"
case $mode in
many) length='' run=many ;;
short) length=1 run=short ;;
sleep) length='' run=asleep empty='' ;;
esac
# shellcheck disable=SC2086
must "instances are open" scale open "$count" $length
$run
dmesg | sed -n 's/.*kdscale: \([A-Z]*[a-z].*ms\)$/tell: \1/p'
step "kdscale.ko unloads" timeout 100 rmmod kdscale
step "nothing is left" until_true 60 all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
