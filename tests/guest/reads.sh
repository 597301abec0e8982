# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# reads.sh rxe|siw net|dev|one [ROUNDS [SEED]]: an Endpoint and a queue pair of the verbs connect
# to each other and read from each other, with depths, retries and private data chosen at random
# (tests/interop/peer, kdreads.ko).
# shellcheck shell=sh disable=SC2154
p=$1 rounds=${3:-40} seed=${4:-0}
in='' peer=192.0.2.2
case $2 in
net) two_namespaces "$p" && in="ip netns exec n1" ;;
dev) two_devices "$p" ;;
one) loopback_dev "$p" && peer=192.0.2.1 ;;
esac
# TCP remembers ports for a minute, and a plain user of the RDMA CM tries one only.
echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
step "CONN-11,CR-ACC-09: any read depths, retries, private data: $rounds connections with a queue pair of the verbs" \
	$in insmod "$KO/kdreads.ko" ia="${p}0-1" address=192.0.2.1 peer=$peer rounds="$rounds" seed="$seed"
tell "$(dmesg | sed -n 's/.*kdreads: \(seed=\)/\1/p')"
[ "$failed" = 1 ] || step "it unloads" rmmod kdreads
step "kdapl.ko unloads" rmmod kdapl
step "the device goes away" rdma link delete "${p}0"
finish
