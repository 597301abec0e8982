# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# A kernel with kDAPL built in: its KUnit suites have run at boot. Devices come later, and
# modules that use it load.
# shellcheck shell=sh disable=SC2154
must "kDAPL is a part of the kernel" [ -d /sys/module/kdapl ]
step "nothing is loaded" refused grep -q kdapl /proc/modules
step "its parameters are in sysfs" [ -e /sys/module/kdapl/parameters ]
step "its debugfs directory is there" [ -d /sys/kernel/debug/kdapl ]
two_namespaces rxe
must "the scenarios load" insmod "$KO/kdtest.ko" ia_a=rxe0-1 ia_b=rxe1-1
step "the scenarios unload" rmmod kdtest
step "nothing is left" [ "$(objects)" = 0 ]
step "the device goes away" rdma link delete rxe0
finish
