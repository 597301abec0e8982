# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# canary.sh BUG: plant a bug; the harness looks for the kernel's report.
# shellcheck shell=sh disable=SC2154
all_cpus
insmod "$KO/canary.ko" bug="$1"
rmmod canary	# what is leaked shows then
