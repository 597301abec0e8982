# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# unit.sh [SUITE...]: the KUnit suites inside kdapl.ko, or those of these names: they run
# when it is loaded, and it is loaded once for each name.
# shellcheck shell=sh disable=SC2154
mp rdma_cm
[ $# -gt 0 ] || set -- ''
for suite; do
	[ -z "$suite" ] || printf %s "$suite" >/sys/module/kunit/parameters/filter_glob
	must "the module loads" insmod "$KO/kdapl.ko"
	step "the module unloads" rmmod kdapl
done
finish
