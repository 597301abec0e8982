# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blkchaos.sh rxe|siw net|dev SECONDS: everything that may be done to kdblk, in any order and at
# the same time: five initiators come and go with odd transfers, kdblkctl is killed in the middle,
# disks and portals of the target are disabled, removed and made again, modules are unloaded.
# Whatever fails, nothing may hang, be left behind, or make the kernel complain.
# shellcheck shell=sh disable=SC2154
set +e
p=$1 where=$2 seconds=$3
. "$TOP/tests/guest/blk-lib.sh"
case $where in
net) two_namespaces "$p" ;;
dev) two_devices "$p" ;;
esac
a=${p}0-1 b=${p}1-1 there=192.0.2.2
now() { cut -d. -f1 /proc/uptime; }
chaos_end=$(($(now) + seconds))
on() { [ "$(now)" -lt "$chaos_end" ]; }
below() { echo $(($(od -An -N2 -tu2 /dev/urandom) % $1)); }
odd() { dd "$@" 2>/dev/null; }

# initiator N: one of the disks, some transfers of odd sizes, and away in one way or another
initiator() {
	while on; do
		mkdir "$kd_initiator/x$1"
		attributes "$kd_initiator/x$1" ia="$a" address=$there disk="d$((1 + $(below 4)))" \
			initiator=me path="$1" id="$(printf %032x "$1")" reconnect_delay_ms=100 \
			keepalive_ms=1000 reconnect_max=5
		set_to 1 "$kd_initiator/x$1/connect" && kd_dev=$(device "x$1") && {
			odd if=/dev/urandom of="$kd_dev" bs=$((512 * (1 + $(below 300)))) \
				count="$(below 8)" seek="$(below 50)" oflag=direct conv=notrunc
			odd if="$kd_dev" of=/dev/null bs=$((512 * (1 + $(below 1000)))) count=3 \
				skip="$(below 9)" iflag=direct
			blkdiscard -o $((4096 * $(below 1000))) -l 65536 "$kd_dev"
		}
		[ "$(below 3)" != 0 ] || set_to 0 "$kd_initiator/x$1/connect"
		rmdir "$kd_initiator/x$1"
	done 2>/dev/null
}
# tool N: kdblkctl, killed at any moment
tool() {
	kd_ctl="python3 $TOP/ulp_example/kdblk/tools/kdblkctl"
	while on; do
		timeout -s KILL "0.$(below 9)1" $kd_ctl connect "y$1" ia="$a" address=$there \
			disk="d$((1 + $(below 4)))" initiator=y path="$1"
		timeout -s KILL 0.3 $kd_ctl list
		timeout -s KILL "0.$(below 9)1" $kd_ctl disconnect "y$1"
	done >/dev/null 2>&1
}
target() {
	while on; do
		n=$((1 + $(below 4)))
		case $(below 5) in
		0) rmdir "$kd_target/disks/d$n" ;;
		1) set_to 0 "$kd_target/disks/d$n/enable"; set_to 1 "$kd_target/disks/d$n/enable" ;;
		2) set_to 0 "$kd_target/portals/t/enable"; set_to 1 "$kd_target/portals/t/enable" ;;
		3) rmmod kdblk_target; rmmod kdblk; rmdir "$kd_target/portals/t" ;;
		4) cat "$kd_target"/*/*/* "$kd_initiator"/*/* ;;
		esac >/dev/null
		[ -d "$kd_target" ] || insmod "$KO/kdblk_target.ko"
		[ -d "$kd_initiator" ] || insmod "$KO/kdblk.ko"
		[ -d "$kd_target/disks/d$n" ] || export_disk "d$n" "/dev/nullb$n" allow_any=1
		[ -d "$kd_target/portals/t" ] || portal t "$b"
	done 2>/dev/null
}
emptied() {	# DIRECTORY: no item is left
	for kd_d in "$1"/*/; do
		[ ! -d "$kd_d" ] || rmdir "$kd_d" 2>/dev/null || return
	done
}
all_gone() { [ "$(but_cqs)" = "$empty" ]; }

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(but_cqs)
must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
for n in 1 2 3 4; do
	must "a disk" null_disk $n 64
	must "is exported" export_disk d$n /dev/nullb$n allow_any=1
done
must "the target listens" portal t "$b"
for n in 1 2 3 4 5; do initiator $n & done
tool 1 &
tool 2 &
target &
wait
step "the initiator's items go" until_true 30 emptied "$kd_initiator"
step "the target's disks go" until_true 30 emptied "$kd_target/disks"
step "and its portal" until_true 30 emptied "$kd_target/portals"
step "kdblk unloads" until_true 30 rmmod kdblk
step "kdblk_target unloads" until_true 30 rmmod kdblk_target
step "nothing is left" until_true 30 all_gone
step "kdapl unloads" rmmod kdapl
finish
