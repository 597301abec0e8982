# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# scale.sh rxe|siw net|dev|one COUNT [BLOCKS]: so many connections between two devices
# at the same time, closed from both ends at once; or, with BLOCKS, how fast they
# come and go, compared with the RDMA CM and the verbs alone.
# shellcheck shell=sh disable=SC2154
p=$1 count=$3 blocks=$4
topology "$2" "$p"
# A busy listener may miss a SYN, and nobody here calls one who is not there.
echo 6 >/proc/sys/net/ipv4/tcp_syn_retries
scale() { echo "$*" >/sys/kernel/debug/kdscale/do; }
all_gone() { [ "$(resources)" = "$empty" ]; }
field() { sed -n "s/^$1: *\([0-9]*\).*/\1/p" /proc/meminfo; }
available() {
	sync
	echo 3 >/proc/sys/vm/drop_caches
	field MemAvailable
}
# took WHAT BEFORE AFTER: kB each
took() {
	tell "$1: $((($2 - $3) * 1024 / count / 2)) bytes each"
}

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(resources)
# shellcheck disable=SC2086
must "kdscale.ko loads" $in0 insmod "$KO/kdscale.ko" ia_a="$a-1" ia_b="$b-1"
if [ -n "$blocks" ]; then
	# TCP remembers ports for a minute, and the side without kDAPL tries one only.
	echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
	must "instances are open" scale open "$count"
	for window in 1 16; do
		step "$count connections, $window at a time, $blocks blocks with kDAPL and as many without, in turn" \
			scale bench "$blocks" "$window"
	done
	dmesg | sed -n 's/.*kdscale: bench/tell: bench/p'
	step "all is freed" scale free
else
	must "instances are open" scale open "$count"
	before=$(available)
	step "$((2 * count)) Endpoints of the usual attributes" scale eps
	after=$(available)
	took "memory of an idle Endpoint" "$before" "$after"
	step "$count connections at the same time" scale connect 64
	took "memory of an idle Endpoint and its share of a connection" "$before" "$(available)"
	tell "$(resources | tr '\n' ' ')"
	step "a message each way on each of them" scale data
	step "EPSM-15,EPSM-31: dat_ep_disconnect of all from both ends at once, reset" scale disconnect
	step "$count connections with the same Endpoints" scale connect 64
	step "a message each way on each of them" scale data
	step "both instances are closed abruptly, at once" scale close
	step "nothing is left of them" until_true 60 all_gone
	dmesg | sed -n 's/.*kdscale: \([A-Z]*[a-z].*ms\)$/tell: \1/p'
fi
step "kdscale.ko unloads" timeout 100 rmmod kdscale
step "nothing is left" until_true 60 all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
