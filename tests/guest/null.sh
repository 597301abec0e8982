# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# null.sh [SUITE...]: the device without a wire. Connections come and go on it, and, with KUnit,
# the scenarios that do not look at bytes pass.
# shellcheck shell=sh disable=SC2154
for i in 0 1; do
	ip link add kd$i type dummy
	ip addr add 192.0.2.$((i + 1))/24 dev kd$i
	ip addr add 2001:db8::$((i + 1))/64 dev kd$i nodad
	ip link set kd$i up
done
mp rdma_cm
no_devices_left() { ! ls /sys/class/infiniband/kdnull* >/dev/null 2>&1; }
scale() { echo "$*" >/sys/kernel/debug/kdscale/do; }

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
step "kdnull.ko wants to be told network devices" refused insmod "$KO/kdnull.ko"
step "all of which are there" refused insmod "$KO/kdnull.ko" netdev=kd0,kd9
step "otherwise nothing is left" no_devices_left
must "kdnull.ko loads" insmod "$KO/kdnull.ko" netdev=kd0,kd1
empty=$(resources)
must "kdscale.ko loads" insmod "$KO/kdscale.ko" ia_a=kdnull0-1 ia_b=kdnull1-1
must "instances are open" scale open 100
must "with their Endpoints" scale eps
step "100 connections, 8 at a time" scale connect 8
step "disconnected" scale disconnect
step "all is freed" scale free
step "kdscale.ko unloads" timeout 100 rmmod kdscale
for suite in "$@"; do
	step "the scenarios $suite load" insmod "$KO/kdtest.ko" ia_a=kdnull0-1 ia_b=kdnull1-1 \
		suite="kdtest-$suite"
	step "and unload" rmmod kdtest
done
step "nothing is left on the devices" until_true 60 all_gone
step "kdnull.ko unloads" rmmod kdnull
step "no device is left" no_devices_left
step "kdapl.ko unloads" rmmod kdapl
finish
