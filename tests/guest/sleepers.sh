# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# sleepers.sh rxe|siw COUNT: a device goes with so many connections whose upcalls sleep, a
# tenth of a second for each completion, and at the end in kdat_ep_drain(). All at a time.
# shellcheck shell=sh disable=SC2154
p=$1 count=$2
loopback_dev "$p"
echo 6 >/proc/sys/net/ipv4/tcp_syn_retries
scale() { echo "$*" >/sys/kernel/debug/kdscale/do; }
# One after the other they would take $((count / 5)) s. On a busy host the rescuer of 6.1 gets many
# of them, and is slow (upcalls.md, "Turns and budgets").
most=20
case $KERNEL in 6.1-*) most=$((count / 6)) ;; esac
all_ended() { timeout $most sh -c 'echo ended >/sys/kernel/debug/kdscale/do'; }

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "kdscale.ko loads" insmod "$KO/kdscale.ko" ia_a="${p}0-1"
must "instances are open" scale open "$count"
step "$((2 * count)) Endpoints, each with EVDs whose upcalls sleep" scale eps own 100
step "$count connections at the same time" scale connect 64
step "EPSM-24: the device goes" timeout 60 rdma link delete "${p}0"
step "EPSM-24,STAT-05: all have heard of it, no upcall waits for those of others" all_ended
step "all is freed" timeout 300 sh -c 'echo free >/sys/kernel/debug/kdscale/do'
step "kdscale.ko unloads" timeout 100 rmmod kdscale
step "kdapl.ko unloads" rmmod kdapl
finish
