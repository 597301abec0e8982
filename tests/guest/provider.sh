# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# provider.sh rxe|siw two|one: the scenarios of kdtest.ko between two devices
# of real providers in two network namespaces, or on one device.
# shellcheck shell=sh disable=SC2154
p=$1
case $2 in
two) two_namespaces "$p"; a=${p}0-1 b=${p}1-1 ;;
one) loopback_dev "$p"; a=${p}0-1 b=${p}0-1 ;;
esac
must "the module loads" insmod "$KO/kdapl.ko"
must "the scenarios load on $a and $b" insmod "$KO/kdtest.ko" ia_a="$a" ia_b="$b"
step "the scenarios unload" rmmod kdtest
step "the module unloads" rmmod kdapl
step "the devices go away" rdma link delete "${p}0"
finish
