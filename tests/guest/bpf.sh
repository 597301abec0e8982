# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# bpf.sh: the lines for bpftrace in Documentation/observing.md do what they are said to.
# shellcheck shell=sh disable=SC2154
work=$TMPDIR/work

tracefs
must "a device" loopback_dev rxe
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "kdapl_dat12.ko loads" insmod "$KO/kdapl_dat12.ko"
must "kdping serves" insmod "$KO/kdping.ko" listen=192.0.2.1
echo "insmod $KO/kdold.ko test=ping ia=rxe0-1 address=192.0.2.1 && rmmod kdold" >"$work"
sed -n 's/^    \(bpftrace .*\)$/\1/p' "$TOP/Documentation/observing.md" >"$TMPDIR/lines"
must "the manual has four such lines" test "$(wc -l <"$TMPDIR/lines")" = 4
# said LINE: what it says while somebody connects, moves data and leaves
said() {
	eval "timeout 300 $1 -c '/bin/sh $work'" </dev/null >"$TMPDIR/said" 2>&1 && grep -qE "$2" "$TMPDIR/said" && return
	cat "$TMPDIR/said"
	return 1
}
while read -r kd_line; do
	case $kd_line in
	*@upcalls*)	kd_what="upcalls by CPU" kd_want='^@upcalls\[[0-9]+\]: [1-9]' ;;
	*@us*)		kd_what="from post to event" kd_want='^@us\[[0-9]+\]:' ;;
	*@bytes*)	kd_what="lengths" kd_want='^@bytes\[[0-9]+\]:' ;;
	*conn_end*)	kd_what="ends of connections" kd_want='ep=[0-9]+ qpn=[0-9]+ reason=[0-9]+' ;;
	*)		kd_what="a line this test does not know" kd_want='^nothing' ;;
	esac
	step "bpftrace says: $kd_what" said "$kd_line" "$kd_want"
done <"$TMPDIR/lines"
step "kdping.ko unloads" rmmod kdping
step "kdapl_dat12.ko unloads" rmmod kdapl_dat12
step "kdapl.ko unloads" rmmod kdapl
finish
