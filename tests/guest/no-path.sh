# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# no-path.sh kdhca net: devices that refuse any path to their own port register memory in
# connections only.
# shellcheck shell=sh disable=SC2154
p=$1
says="${p}0-1: cannot build a registration QP: -[A-Z0-9]* (the device cannot connect a QP to its own port: "
calls() { ip netns exec n0 insmod "$KO/kdping.ko" connect=192.0.2.2; }
two_namespaces "$p"
must "the module loads" insmod "$KO/kdapl.ko"
step "LMR-01: memory is refused outside of a connection" refused calls
step "LMR-01: the log says why, in one line" test "$(dmesg | grep -c "$says")" = 1
step "nothing is left" test "$(objects)" = 0
step "the module unloads" rmmod kdapl
step "the device goes away" rdma link delete "${p}0"
finish
