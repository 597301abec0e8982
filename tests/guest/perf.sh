# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# perf.sh rxe|siw|null [short | UNIT [SWEEP...]] [as-siw] [SIW.KO]: the performance example. Short:
# every mode, so that it stays right. With a unit (ns, cycles, insn): the named sweeps, or all,
# for numbers. Printed: what was found, with "tell:" before it, and in JSON, with "json:";
# what the guest is, with "fact:".
# shellcheck shell=sh disable=SC2154,SC2086
p=$1 unit=${2:-short} kd_perf=/sys/kernel/debug/kdperf sweeps='' siw='' driver=''
[ $# -lt 2 ] || shift
shift
build=usual pings=groups=4
for word in "$@"; do
	case $word in
	*.ko) siw=$word ;;
	as-siw) driver=driver=18 ;;	# null: what kDAPL does on soft-iWARP
	unchecked) build=$word sweeps="$sweeps $word" ;;
	*) sweeps="$sweeps $word" ;;
	esac
done
all="modes ctx segs size lmrs eps suppressed serial posters refuse short_evd srq_eps ias conns"

# What the numbers depend on.
matter="SMP|HZ|PREEMPT|MITIGATION_|RETPOLINE|RETHUNK|SLS|X86_KERNEL_IBT|INIT_|CC_|FORTIFY_|"
matter="$matter""STACKPROTECTOR|CFI_|FUNCTION_TRACER|PARAVIRT|JUMP_LABEL|KASAN|UBSAN|LOCKDEP|"
matter="$matter""PROVE_|DEBUG_|SLUB_DEBUG|KUNIT"
facts() {
	echo "fact: guest: $ACCEL"
	echo "fact: kernel: $(uname -r)"
	echo "fact: kernel name: $KERNEL"
	echo "fact: provider: $p"
	echo "fact: build: $build"
	echo "fact: unit tests: $(grep -qa kunit_ "$KO/kdapl.ko" && echo yes || echo no)"
	echo "fact: cpus: $(nproc)"
	echo "fact: cpu: $(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
	for f in /sys/devices/system/cpu/vulnerabilities/*; do
		[ ! -r "$f" ] || echo "fact: vulnerability ${f##*/}: $(cat "$f")"
	done
	config="${MODBIND%/lib/modules}/boot/config-$(uname -r)"
	if [ -r /proc/config.gz ]; then
		zcat /proc/config.gz
	elif [ -r "$config" ]; then
		cat "$config"
	fi | sed -n -E "s/^CONFIG_(($matter)[A-Z_0-9]*)=(.*)/fact: config \1: \3/p"
}

if [ "$p" = null ]; then
	null_dev $driver
	ia=kdnull0-1
else
	loopback_dev "$p" "$siw"
	ia=${p}0-1
fi
# On soft-iWARP the port that rdma_cm has chosen may be in use by TCP. kDAPL tries another one; with
# the verbs the run fails, and is made again.
port_in_use() { dmesg | tail -n 50 | grep -q 'kdperf: raw: FAIL route resolved *: -99'; }
perf() { echo "run $*" >$kd_perf/do || { port_in_use && echo "run $*" >$kd_perf/do; }; }
measure() { step "$*" perf unit=$unit $length "$@"; }	# the last word counts
measure_both() { measure ctx=softirq "$@"; measure ctx=poll "$@"; }
# A block of a stream is one sample: more of them, and shorter.
stream() { step "stream $*" perf unit=$unit $streams mode=stream "$@"; }

modes() {
	for op in send write read srq; do
		measure op=$op
		measure mode=pingpong op=$op $pings
		stream op=$op
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
		measure mode=pingpong size=$n $pings
		stream size=$n
	done
}
bare() { measure ctx=poll; measure ctx=poll bare=1; }
lmrs() {
	for n in $most_lmrs; do
		measure ctx=poll op=write lmrs=$n
		[ "$n" = 1 ] || measure ctx=poll op=write lmrs=$n random=1
	done
	measure ctx=poll bare=1
}
eps() {
	for n in $most_eps; do
		measure_both op=write eps=$n
	done
}
suppressed() {
	for n in 1 2 32; do
		measure_both op=write signal=$n
	done
}
serial() {
	measure ctx=poll serial=1
	measure ctx=poll op=write serial=1
	measure ctx=poll serial=1 segs=4
}
# With a module that checks nothing: make bench builds it, nobody ships it.
unchecked() {
	for n in 1 4; do
		measure ctx=poll segs=$n
	done
	measure ctx=poll op=write
	measure ctx=poll op=write lmrs=4096 random=1
}
posters() {
	n=2
	while [ $n -le "$(nproc)" ]; do
		measure op=write posters=$n
		measure op=write posters=$n shared=1
		n=$((2 * n))
	done
}
# An EVD for one event, whatever its EPs may have outstanding.
short_evd() {
	for n in $most_eps; do
		measure_both op=write eps=$n evd=1
	done
}
srq_eps() {
	for n in $most_eps; do
		measure_both op=srq eps=$n
	done
}
ias() {
	for n in $most_ias; do
		measure_both op=write ias=$n
	done
}
# What a port was used for does not keep it: 10,000 of them are soon used up.
conns() {
	echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
	for n in $most_conns; do
		step "conns eps=$n" perf unit=$unit mode=conns $conns eps=$n
		[ "$n" -lt 64 ] || step "conns eps=$n evd=1" perf unit=$unit mode=conns $conns eps=$n evd=1
	done
}
# One poster, and as many as there are CPUs, each on EPs of its own. Interrupts are off meanwhile:
# in User Mode Linux with SMP to switch them takes longer than all the rest.
scaling() {
	for op in write send; do
		for n in 1 "$(nproc)"; do
			measure ctx=poll op=$op irqs=0 posters="$n"
		done
	done
}
refuse() {
	for bad in nothing garbage null stale type lkey range; do
		measure mode=refuse ctx=poll bad=$bad
	done
}

facts
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(resources)
must "kdperf.ko loads" insmod "$KO/kdperf.ko" ia="$ia"
most_lmrs="1 64 4096 65536" most_eps="1 64 256" most_conns="1 8 64 512" most_ias="1 16 256"
[ "$p" != null ] || most_eps="1 64 1024 4096 16384" most_conns="1 8 64 512 5000"
conns="blocks=7"
case $unit in
short)	# the few that show that it works: a soft provider takes seconds for a MiB
	unit=ns length="blocks=3 groups=2" streams=$length pings=groups=1
	most_lmrs="1 64" most_eps="1 16" most_conns="1 64" most_ias="1 4" conns="blocks=3"
	;;
insn)	# connecting so many takes too long there
	length="blocks=5 groups=16" streams=$length
	[ "$p" != null ] || most_eps="1 64 4096"
	conns="blocks=3" most_conns="1 8 64 512"
	;;
*)	length="blocks=21 groups=64" streams="blocks=61 groups=16" ;;
esac
for sweep in ${sweeps:-$all}; do
	$sweep
done
sed 's/^/tell: /' $kd_perf/result
sed 's/^/json: /' $kd_perf/json
step "kdperf.ko unloads" timeout 100 rmmod kdperf
step "nothing is left" until_true 60 all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
