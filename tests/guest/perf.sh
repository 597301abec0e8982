# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# perf.sh rxe|siw|null [short | UNIT [SWEEP...]]: the performance example. Short: every mode,
# so that it stays right. With a unit (ns, cycles, insn): the named sweeps, or all, for
# numbers. Printed: what was found, with "tell:" before it, and in JSON, with "json:".
# shellcheck shell=sh disable=SC2154,SC2086
p=$1 unit=${2:-short} kd_perf=/sys/kernel/debug/kdperf
[ $# -lt 2 ] || shift
shift
all="modes ctx segs size lmrs eps suppressed posters refuse"

if [ "$p" = null ]; then
	ip link add kd0 type dummy
	ip addr add 192.0.2.1/24 dev kd0
	ip link set kd0 up
	mp rdma_cm
	insmod "$KO/kdnull.ko" netdev=kd0
	ia=kdnull0-1
else
	loopback_dev "$p"
	ia=${p}0-1
fi
counts() { rdma resource show | sed 's/^[0-9]*: //'; }
all_gone() { [ "$(counts)" = "$empty" ]; }
perf() { echo "run $*" >$kd_perf/do; }
measure() { step "$*" perf "$@" unit=$unit $length; }

modes() {
	for op in send write read srq; do
		measure op=$op
		measure mode=pingpong op=$op groups=4
		measure mode=stream op=$op
	done
}
ctx() {
	for ctx in softirq workqueue poll; do
		for op in send write read srq; do
			measure op=$op ctx=$ctx
		done
	done
}
segs() {
	for n in 0 1 2 4 max; do
		measure ctx=poll segs=$n
	done
	measure ctx=poll op=write segs=4
}
size() {
	for n in 0 64 1024 16384 65536; do
		measure mode=pingpong size=$n groups=4
		measure mode=stream size=$n
	done
}
lmrs() {
	for n in $most_lmrs; do
		measure ctx=poll op=write lmrs=$n
		measure ctx=poll op=write lmrs=$n random=1
	done
}
eps() {
	for n in $most_eps; do
		measure ctx=softirq op=write eps=$n
		measure ctx=poll op=write eps=$n
	done
}
suppressed() {
	for n in 1 2 32; do
		measure ctx=softirq op=write signal=$n
		measure ctx=poll op=write signal=$n
	done
}
posters() {
	n=2
	while [ $n -le "$(nproc)" ]; do
		measure op=write posters=$n
		measure op=write posters=$n shared=1
		n=$((2 * n))
	done
}
refuse() {
	for bad in nothing garbage null stale type lkey range; do
		measure mode=refuse ctx=poll bad=$bad
	done
}

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(counts)
must "kdperf.ko loads" insmod "$KO/kdperf.ko" ia="$ia"
most_lmrs="1 64 4096 65536" most_eps="1 64 256"
[ "$p" != null ] || most_eps="1 64 4096"
case $unit in
short)	unit=ns length="blocks=3 groups=2" most_lmrs="1 64" most_eps="1 16" ;;
insn)	length="blocks=5 groups=16" ;;
*)	length="blocks=21 groups=64" ;;
esac
sweeps="$*"
for sweep in ${sweeps:-$all}; do
	$sweep
done
sed 's/^/tell: /' $kd_perf/result
sed 's/^/json: /' $kd_perf/json
step "kdperf.ko unloads" timeout 100 rmmod kdperf
step "nothing is left" until_true 60 all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
