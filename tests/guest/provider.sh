# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# provider.sh rxe|siw net|dev|one [traced] [PARAMETER=VALUE...]: the scenarios of kdtest.ko
# between two devices in two network namespaces, or in the same one, or on one device; or
# with all tracepoints on, when everything takes the long way through the code.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2
shift 2
case $where in
net) two_namespaces "$p"; a=${p}0-1 b=${p}1-1 ;;
dev) two_devices "$p"; a=${p}0-1 b=${p}1-1 ;;
one) loopback_dev "$p"; a=${p}0-1 b=${p}0-1 ;;
esac
must "the module loads" insmod "$KO/kdapl.ko"
if [ "${1-}" = traced ]; then
	shift
	tracefs
	echo 1 >$tracing/events/kdapl/enable
fi
if [ "$p" = kdhca ]; then
	case $KDHCA in
	irdma-iw*) set -- traits=unasked "$@" ;;
	*) set -- traits=none "$@" ;;
	esac
fi
must "the scenarios load on $a and $b" insmod "$KO/kdtest.ko" ia_a="$a" ia_b="$b" "$@"
step "the scenarios unload" rmmod kdtest
step "the module unloads" rmmod kdapl
# What soft-RoCE had to send again: in a guest that stands still connections break.
[ "$p" != rxe ] || grep . /sys/class/infiniband/rxe*/ports/1/hw_counters/*_err | grep -v ':0$' || :
step "the device goes away" rdma link delete "${p}0"
finish
