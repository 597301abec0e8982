# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# reads.sh rxe|siw net|dev|one [ROUNDS [LOSS [SEED]]]: an Endpoint and a queue pair of the
# verbs connect to each other and read from each other, with depths, retries and private data
# chosen at random (tests/interop/peer, kdreads.ko). LOSS: percent of packets of each direction.
# shellcheck shell=sh disable=SC2154
p=$1 rounds=${3:-40} loss=${4:-0} seed=${5:-0}
in='' peer=192.0.2.2
lose() { "$@" root netem loss "$loss%" limit 10000; }
case $2 in
net)
	two_namespaces "$p"
	in="ip netns exec n1"
	;;
dev) two_devices "$p" ;;
one) loopback_dev "$p" && peer=192.0.2.1 ;;
esac
# TCP remembers ports for a minute, and a plain user of the RDMA CM tries one only.
echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
lossy=N title="CONN-11,CR-ACC-09: any read depths, retries, private data"
if [ "$loss" != 0 ]; then
	lossy=Y title="CONN-11,CR-ACC-09: unequal read depths, and $loss % of the packets lost"
	case $2 in
	net)
		lose ip netns exec n0 tc qdisc replace dev veth0
		lose ip netns exec n1 tc qdisc replace dev veth1
		;;
	dev) lose tc qdisc replace dev lo ;;
	esac
fi
reads() {
	$in insmod "$KO/kdreads.ko" ia="${p}0-1" address=192.0.2.1 peer=$peer rounds="$rounds" \
		seed="$seed" lossy=$lossy
}
step "$title: $rounds connections with a queue pair of the verbs" reads
tell "$(dmesg | sed -n 's/.*kdreads: \(seed=\)/\1/p')"
[ "$failed" = 1 ] || step "it unloads" rmmod kdreads
step "kdapl.ko unloads" rmmod kdapl
step "the device goes away" rdma link delete "${p}0"
finish
