# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# orders.sh kdhca net|dev: queue pairs, queues, ports and devices fail under traffic, or tell
# something that means little (orders of tests/hca/README.md): connections end or go on, as they
# must, on the one device and on the other. By hca.sh only.
# shellcheck shell=sh disable=SC2154
p=$1
case $2 in
net) two_namespaces "$p"; a=${p}0-1 b=${p}1-1 ;;
dev) two_devices "$p"; a=${p}0-1 b=${p}1-1 ;;
esac
order() {	# NUMBER-OF-DEVICE WORDS
	kd_do=/sys/kernel/debug/kdhca/$p$1/do
	shift
	echo "$*" >"$kd_do"
}
# Of connections, and those of kDAPL that register memory.
qps() { rdma resource show qp | sed -n "s/^.*link $p$1\/.* lqpn \([0-9]*\) .*type RC .*/\1/p"; }
each() {	# NUMBER-OF-DEVICE ORDER
	kd_qps=$(qps "$1")
	[ -n "$kd_qps" ] || return
	for kd_qp in $kd_qps; do
		order "$1" "$2" "$kd_qp" || return
	done
}
once() { order "$1" "$2" 0; }
down_and_up() { order "$1" port-down && order "$1" port-up; }
# The peer of what has failed may be BROKEN, or hear a farewell: mode=hold takes that for wrong.
heard() {
	dmesg | grep 'kdtest-hold: [PF]A'
	! logged 'kdtest-hold: FAIL' ||
		{ [ "$1" = ended ] && logged 'kdtest-hold: FAIL endpoint [0-9]*: not BROKEN'; }
}
as_before() { [ "$(resources)" = "$before" ]; }

before=$(resources) gone=none
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
begin() {	# WANT
	dmesg -C
	must "connections with traffic on $a and $b" \
		insmod "$KO/kdtest.ko" mode=hold ia_a="$a" ia_b="$b" want="$1" gone="$gone"
	step "all of them are busy" busy
}
end() {	# WANT
	step "the consumer unloads" timeout 200 rmmod kdtest
	step "what it has heard is right" heard "$1"
}
fails() {	# WANT WHAT COMMAND...
	begin "$1"
	kd_want=$1 kd_title=$2
	shift 2
	step "$kd_title" "$@"
	end "$kd_want"
}
begin alive
for n in 0 1; do
	step "COMM_EST on each queue pair of device $n" each $n comm-est
	step "GID_CHANGE" once $n gid-change
	step "the port goes down and comes up" down_and_up $n
	step "all go on" busy
done
end alive
fails ended "each queue pair of a device fails" each 0 qp-fatal
fails ended "each completion queue of a device fails" each 1 cq-err
fails '' "a shared receive queue fails" once 0 srq-err
gone=b	# its IA is lost
fails '' "a device fails" once 1 fatal
step "nothing is left of it" none
step "kdapl.ko unloads" rmmod kdapl
step "the devices have what they had before" until_true 60 as_before
finish
