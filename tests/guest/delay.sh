# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# delay.sh rxe|siw net|dev SUITE TIME [RATE [CASE]]: scenarios over a slow link, where what has
# been sent has not arrived yet, and what was not answered in time is sent again; RATE: and of
# which little arrives at a time.
# shellcheck shell=sh disable=SC2154
p=$1 suite=$3 time=$4 rate=$5 case=$6
slow() { "$@" root netem delay "$time" ${rate:+rate "$rate"} limit 10000; }
case $2 in
net)
	two_namespaces "$p"
	slow ip netns exec n0 tc qdisc replace dev veth0
	slow ip netns exec n1 tc qdisc replace dev veth1
	;;
dev)
	two_devices "$p"
	slow tc qdisc replace dev lo
	;;
esac
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "the scenarios load" insmod "$KO/kdtest.ko" ia_a="${p}0-1" ia_b="${p}1-1" suite="$suite" \
	${case:+case="$case"}
step "they unload" rmmod kdtest
step "kdapl.ko unloads" rmmod kdapl
finish
