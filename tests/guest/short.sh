# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# short.sh null|rxe|siw COUNT...: so many Endpoints of a side complete on one EVD that is one
# event long: how many completion queues that takes, and what an event of it costs.
# shellcheck shell=sh disable=SC2154
p=$1
shift
if [ "$p" = null ]; then
	ip link add kd0 type dummy
	ip addr add 192.0.2.1/24 dev kd0
	ip link set kd0 up
	mp rdma_cm
else
	loopback_dev "$p"
fi
echo 6 >/proc/sys/net/ipv4/tcp_syn_retries
scale() { echo "$*" >/sys/kernel/debug/kdscale/do; }
cqs() { resources | sed -n 's/.* cq \([0-9]*\).*/\1/p'; }
all_gone() { [ "$(resources)" = "$empty" ]; }
# few COUNT: CQs for so many Endpoints of each side: as the logarithm of their number
few() {
	n=$1 most=2
	while [ "$n" -gt 1 ]; do
		n=$((n / 2)) most=$((most + 1))
	done
	[ "$(cqs)" -le $((before + 2 * most)) ]
}

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
[ "$p" != null ] || must "kdnull.ko loads" insmod "$KO/kdnull.ko" netdev=kd0
ia=${p}0-1
[ "$p" != null ] || ia=kdnull0-1
empty=$(resources)
must "kdscale.ko loads" insmod "$KO/kdscale.ko" ia_a="$ia"
for count in "$@"; do
	must "instances are open" scale open "$count" 1
	before=$(cqs)
	dmesg -C
	step "$((2 * count)) Endpoints on two EVDs for one event" scale eps
	tell "$count Endpoints on an EVD for one event: $((($(cqs) - before) / 2 + 1)) CQs"
	step "EVD-CQ-01: they share a few completion queues" few "$count"
	step "$count connections at the same time" scale connect 32
	step "their events, dequeued and by upcall" scale cost
	step "all is freed" scale free
	dmesg | sed -n 's/.*kdscale: \(cost: .*\|Endpoints .* ms\)$/tell: \1/p'
done
step "kdscale.ko unloads" timeout 100 rmmod kdscale
step "nothing is left" until_true 60 all_gone
[ "$p" != null ] || step "kdnull.ko unloads" rmmod kdnull
step "kdapl.ko unloads" rmmod kdapl
finish
