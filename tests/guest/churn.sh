# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# churn.sh rxe|siw net|dev|one LOADS UNPLUGS: the modules are loaded and unloaded that many
# times, then a device goes that many times under connections with traffic and comes back;
# afterwards there is as much memory as before. UNPLUGS 0: only the former.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2 loads=$3 unplugs=$4
devices() { topology "$where" "$p"; }
as_before() { [ "$(resources)" = "$before" ]; }
# KiB of slab that are in use: what is only kept for the next time is given back first.
slab() {
	echo 3 >/proc/sys/vm/drop_caches
	for kd_s in /sys/kernel/slab/*/shrink; do
		[ ! -w "$kd_s" ] || echo 1 >"$kd_s"
	done
	sed -n 's/^Slab: *\([0-9]*\) kB/\1/p' /proc/meminfo
}
# A megabyte is what the kernel itself differs by, two after devices with all their traffic; a
# leak of two kilobytes each time is as much after a thousand times.
kept() {	# BEFORE DIFFERENCE
	case $KERNEL in *-fast) ;; *) return 0 ;; esac	# the others keep freed memory to look at it
	now=$(slab)
	echo "slab: $1 KiB before, $now KiB after"
	[ "$now" -le $(($1 + $2)) ]
}
insert() { insmod "$KO/$1.ko"; }
cycle() {
	insert kdapl && insert kdblk_target && insert kdblk && insert kdnet && none &&
		rmmod kdnet && rmmod kdblk && rmmod kdblk_target && rmmod kdapl
}
cycles() {
	kd_n=0
	while [ $kd_n -lt "$1" ]; do
		cycle || return
		kd_n=$((kd_n + 1))
	done
}
unplug() {	# POLICY
	insmod "$KO/kdtest.ko" mode=hold ia_a="$a-1" ia_b="$b-1" policy="$1" || return
	from=$(messages)
	until_true 60 more && timeout 60 rdma link delete "$a" &&
		timeout 200 rmmod kdtest && none || return
	no_devices "$p"
	devices
}
all_unplugs() {
	kd_u=0
	while [ $kd_u -lt "$1" ]; do
		for kd_policy in single many notify disable; do
			unplug $kd_policy || return
			kd_u=$((kd_u + 1))
		done
	done
}
heard() { ! logged 'kdtest-hold: FAIL'; }

devices
before=$(resources)
cycles 3
first=$(slab)
step "GEN-07: kdapl, kdblk, its target and kdnet are loaded and unloaded $loads times" cycles "$loads"
step "nothing is left on the devices" as_before
step "nothing is left in memory" kept "$first" 1024
[ "$unplugs" != 0 ] || { finish; exit; }
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "a device goes under load, and comes back" all_unplugs $((unplugs < 100 ? 4 : 40))
first=$(slab)
step "a device goes under load and comes back $unplugs times, and no object is left" \
	all_unplugs "$unplugs"
step "the consumer heard of it on every endpoint each time" heard
step "nothing is left in memory" kept "$first" 2048
step "kdapl.ko unloads" rmmod kdapl
finish
