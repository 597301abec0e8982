# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# The KUnit suites inside kdapl.ko: they run when it is loaded.
# shellcheck shell=sh disable=SC2154
mp rdma_cm
must "the module loads" insmod "$KO/kdapl.ko"
step "the module unloads" rmmod kdapl
finish
