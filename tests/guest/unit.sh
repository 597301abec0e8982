# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# unit.sh [SUITE...]: the KUnit suites inside kdapl.ko, and that of the NFS/RDMA client; or those of
# kdapl.ko with these names: they run when it is loaded, and it is loaded once for each name.
# shellcheck shell=sh disable=SC2154
mp rdma_cm
nfs=
[ $# -gt 0 ] || { set -- ''; nfs=$KO/kdnfs_test.ko; }
for suite; do
	[ -z "$suite" ] || printf %s "$suite" >/sys/module/kunit/parameters/filter_glob
	must "the module loads" insmod "$KO/kdapl.ko"
	step "the module unloads" rmmod kdapl
done
if [ -n "$nfs" ]; then
	must "kdnfs_test loads" insmod "$nfs"
	step "kdnfs_test unloads" rmmod kdnfs_test
fi
finish
