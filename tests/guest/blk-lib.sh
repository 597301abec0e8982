# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Functions for the scripts that have a disk of kdblk in a guest (POSIX sh).
# shellcheck shell=sh disable=SC2154

kd_cfg=/sys/kernel/config
kd_target=$kd_cfg/kdblk_target
kd_initiator=$kd_cfg/kdblk

configfs() { mountpoint -q $kd_cfg || mount -t configfs configfs $kd_cfg; }

# set_to VALUE FILE: with the error of the write as its status.
# Without the end of a line, which LIO takes for a part of a name; nothing at all is no write.
set_to() {
	if [ -n "$1" ]; then printf '%s' "$1"; else echo; fi 2>/dev/null >"$2"
}

# null_disk N MEGABYTES [ATTRIBUTE=VALUE...]: /dev/nullbN in memory, no interrupts.
null_disk() {
	configfs
	[ -d $kd_cfg/nullb ] || mp null_blk nr_devices=0 || return
	kd_null=$kd_cfg/nullb/nullb$1
	mkdir "$kd_null" || return
	for kd_i in size="$2" memory_backed=1 irqmode=0 queue_mode=2 hw_queue_depth=256; do
		set_to "${kd_i#*=}" "$kd_null/${kd_i%%=*}" || return
	done
	shift 2
	for kd_i; do
		set_to "${kd_i#*=}" "$kd_null/${kd_i%%=*}" || return
	done
	set_to 1 "$kd_null/power"
}
no_null_disk() { set_to 0 $kd_cfg/nullb/nullb"$1"/power && rmdir $kd_cfg/nullb/nullb"$1"; }

# What was never written is read without being copied: one to be measured.
written_disk() {
	null_disk "$@" || return
	dd if=/dev/zero of="/dev/nullb$1" bs=1M oflag=direct 2>/dev/null || :
}
attributes() {	# DIRECTORY NAME=VALUE...
	kd_dir=$1
	shift
	for kd_i; do
		set_to "${kd_i#*=}" "$kd_dir/${kd_i%%=*}" || return
	done
}

# Of the target: export NAME PATH [ATTRIBUTE=VALUE...], portal NAME IA [ATTRIBUTE=VALUE...]
export_disk() {
	kd_name=$1 kd_path=$2
	shift 2
	mkdir "$kd_target/disks/$kd_name" &&
		attributes "$kd_target/disks/$kd_name" path="$kd_path" "$@" enable=1
}
portal() {
	kd_name=$1 kd_ia=$2
	shift 2
	mkdir "$kd_target/portals/$kd_name" &&
		attributes "$kd_target/portals/$kd_name" ia="$kd_ia" "$@" enable=1 &&
		until_true 10 grep -qx listening "$kd_target/portals/$kd_name/state"
}
no_disk() {
	for kd_i in "$kd_target/disks/$1"/allowed/*; do
		[ ! -d "$kd_i" ] || rmdir "$kd_i" || return
	done
	rmdir "$kd_target/disks/$1"
}
no_portal() { rmdir "$kd_target/portals/$1"; }

# Of the initiator: attach NAME IA ADDRESS DISK [ATTRIBUTE=VALUE...]; device NAME: its node
attach() {
	kd_name=$1 kd_ia=$2 kd_address=$3 kd_disk=$4
	shift 4
	mkdir "$kd_initiator/$kd_name" &&
		attributes "$kd_initiator/$kd_name" ia="$kd_ia" address="$kd_address" \
			disk="$kd_disk" "$@" connect=1
}
device() { echo "/dev/$(cat "$kd_initiator/$1/device")"; }
state() { cat "$kd_initiator/$1/state"; }
is() { [ "$(state "$1")" = "$2" ]; }	# NAME STATE
detach() { rmdir "$kd_initiator/$1"; }
