# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# perf.sh rxe|siw [UNIT]: every mode of the performance example, shortly; or, with a
# unit (ns, cycles, insn), the sweeps, for numbers.
# shellcheck shell=sh disable=SC2154
p=$1 unit=$2
loopback_dev "$p"
dir=/sys/kernel/debug/kdperf
counts() { rdma resource show | sed 's/^[0-9]*: //'; }
all_gone() { [ "$(counts)" = "$empty" ]; }
run() { echo "run $*" >$dir/do; }

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(counts)
must "kdperf.ko loads" insmod "$KO/kdperf.ko" ia="${p}0-1"
short() {
	for ctx in softirq workqueue poll; do
		for op in send write read srq; do
			step "batches of op=$op, ctx=$ctx" run op=$op ctx=$ctx blocks=3 groups=4
		done
	done
}
short
cat $dir/result | sed 's/^/tell: /'
step "kdperf.ko unloads" timeout 100 rmmod kdperf
step "nothing is left" until_true 60 all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
