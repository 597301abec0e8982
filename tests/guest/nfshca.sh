# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# nfshca.sh kdhca dev|net PROGRAMS: NFS over a device of tests/hca, iWARP (dev) or RoCE. No packet
# of such a device leaves the machine, so server and client are the same one, and the client is in a
# network namespace. The server's device is a plain one. By hca.sh only.
# shellcheck shell=sh disable=SC2086,SC2154
n=1 p=$1
. "$TOP/tests/guest/nfs-lib.sh"

provider "$p" && mp veth
ip netns add n0
ip link add veth0 netns n0 type veth peer name veth1
ip -n n0 link set lo up
ip -n n0 addr add 192.0.2.2/24 dev veth0 && ip -n n0 link set veth0 up
ip addr add $server/24 dev veth1 && ip link set veth1 up
must "the client's device" ip netns exec n0 rdma link add "${p}0" type "$p" netdev veth0
plain=plain
[ "$2" = net ] || plain=plain-iw
printf %s "$plain" >/sys/module/kdhca/parameters/profile
must "the server's device" rdma link add "${p}1" type "$p" netdev veth1
all_cpus
must "places for the programs" places
must "the server serves" serve
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "server and client in one kernel" insmod "$KO/kdnfsboth.ko"
must "kdat_xprtrdma.ko loads" insmod "$KO/kdat_xprtrdma.ko"
mp nfs && mp nfsv3 && mp nfsv4
kd_inside="nsenter --net=/run/netns/n0"
must "a mount" mount_it 4.2
step "it is over RDMA" is_rdma
must "a directory" fresh
step "files are right" check --ops 100 lengths fsx direct
step "data was read by the server (Read chunks)" some 11
step "data was written by it (Write chunks)" some 12
step "whole replies were written by it (Reply chunks)" some 13
step "files are right while connections end" while_ending check --ops 300 fsx direct
step "connections have come again" some 3
step "unmounted" unmount
step "every transport ends" until_true 60 unused
step "nothing is left" until_true 30 test "$(objects)" = 0
step "kdat_xprtrdma unloads" rmmod kdat_xprtrdma
rpc.nfsd 0
step "kdnfsboth unloads" rmmod kdnfsboth
step "kdapl unloads" rmmod kdapl
[ $failed = 0 ] || cat "$log"
finish
