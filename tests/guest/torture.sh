# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# torture.sh rxe|siw SECONDS [PARAMETER=VALUE...]: kdapl_torture.ko, random calls from all CPUs,
# while one of two devices goes and comes back.
# shellcheck shell=sh disable=SC2154
p=$1 seconds=$2
shift 2
report=/sys/kernel/debug/kdapl_torture/report
# Two devices which reach themselves only.
devices() {
	loopback_dev "$p"
	ip link add kd1 type dummy
	ip addr add 198.51.100.1/24 dev kd1
	ip link set kd1 up
	rdma link add "${p}1" type "$p" netdev kd1
}
running() { head -1 $report | grep -q ^running; }
ended() { ! running; }
as_before() { [ "$(resources)" = "$before" ]; }
again() {
	timeout 120 rdma link delete "${p}0" && timeout 120 rdma link add "${p}0" type "$p" netdev kd0
}
# What there is when an end takes half a minute and more, for who wonders why it never came.
watch_ends() {
	: >"$TMPDIR/ending"
	while sleep 30; do
		mv "$TMPDIR/ending" "$TMPDIR/ending.before"
		awk '/ DISCONNECT_PENDING / { print $1 }' /sys/kernel/debug/kdapl/eps |
			sort >"$TMPDIR/ending"
		kd_both=$(comm -12 "$TMPDIR/ending" "$TMPDIR/ending.before" | tr '\n' ' ')
		[ -n "$kd_both" ] || continue
		echo "at $(cut -d. -f1 /proc/uptime) s these are disconnecting for long: $kd_both"
		cat /sys/kernel/debug/kdapl/eps
		rdma resource show qp
	done
}
fine() { logged 'kdapl_torture: PASS' && ! logged 'kdapl_torture: FA'; }
# Where verbs fail, calls and attempts to connect may, and a device may not become an IA; the model
# does not know that.
fine_or_refused() {
	! dmesg | grep 'kdapl_torture: FAULT' |
		grep -v -e DAT_INSUFFICIENT_RESOURCES -e 'there is no ' \
			-e ACCEPT_COMPLETION_ERROR -e NON_PEER_REJECTED -e UNREACHABLE \
			-e 'ended with FLUSHED'
}

devices
before=$(resources)
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
dmesg -C
must "kdapl_torture.ko loads" insmod "$KO/kdapl_torture.ko" \
	ia_a="${p}0-1" ia_b="${p}1-1" removable=1 seconds="$seconds" "$@"
watch_ends &
watcher=$!
unplugged=0
while running; do
	again || break
	unplugged=$((unplugged + 1))
	sleep 0.$((unplugged % 10))	# a pace, nothing waits for it
done
kill $watcher
step "EPSM-24,SIL-27: a device goes and comes back under all of that ($unplugged times)" ended
shown="GEN-07,SIL-02,SIL-03,SIL-27,CTX-04,FLUSH-06,FLUSH-07: every return and every event is one that the model allows"
case ${KDHCA-} in
*_fail=*) fine=fine_or_refused shown="GEN-07: what verbs refuse is DAT_INSUFFICIENT_RESOURCES" ;;
*) fine=fine ;;
esac
cat $report
step "kdapl_torture.ko unloads" timeout 300 rmmod kdapl_torture
dmesg | sed -n 's/.*kdapl_torture: //p' | grep -e '^seed' -e '^PASS' -e '^FAIL' -e '^FAULT' -e '^calls'
step "$shown" $fine
step "nothing is left of it" none
step "kdapl.ko unloads" rmmod kdapl
step "GEN-07: the devices have what they had before" until_true 60 as_before
finish
