# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# nth.sh rxe|siw [ROUNDS]: kdfail.ko, each call with its first, second, ... allocation failing.
# shellcheck shell=sh disable=SC2154
p=$1 rounds=${2:-1}
as_before() { [ "$(resources)" = "$before" ]; }
loopback_dev "$p"
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "kdapl_dat12.ko loads" insmod "$KO/kdapl_dat12.ko"
before=$(resources)
# Nothing fails but for the task that says which one of its own.
for f in failslab fail_page_alloc; do
	must "there is $f" cd "/sys/kernel/debug/$f"
	echo 0 >verbose
	echo N >ignore-gfp-wait
	[ ! -e min-order ] || echo 0 >min-order
done
cd /
dmesg -C
step "GEN-07,LMR-08,FMR-01,RMR-16,EP-CREATE-09: with any allocation failing a call says so and changes nothing; what frees does not fail" \
	insmod "$KO/kdfail.ko" ia="${p}0-1" rounds="$rounds"
dmesg | sed -n 's/.*kdfail: //p'
lsmod | grep -q '^kdfail ' && step "kdfail.ko unloads" rmmod kdfail
step "no object is left" none
step "nothing is left on the device" until_true 60 as_before
step "kdapl_dat12.ko unloads" rmmod kdapl_dat12
step "kdapl.ko unloads" rmmod kdapl
finish
