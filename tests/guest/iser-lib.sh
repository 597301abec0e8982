# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Functions for the scripts that have disks of LIO over iSER in a guest (POSIX sh): the target by
# configfs, the initiator by Debian's open-iscsi, which is unpacked, not installed.
# shellcheck shell=sh disable=SC2154

. "$TOP/tests/guest/blk-lib.sh"
kd_lio=$kd_cfg/target
kd_tpg=$kd_lio/iscsi
portal=192.0.2.1:3260 tpgt=1

# own_etc: /etc and /var/lib of this guest's own.
own_etc() {
	mkdir "$TMPDIR/etc" && cp -a /etc/. "$TMPDIR/etc/" 2>/dev/null
	mount --bind "$TMPDIR/etc" /etc && mount -t tmpfs tmpfs /var/lib &&
		mkdir -p /etc/target /etc/iscsi /run/lock/iscsi
}

# ---- the target ----

lio() {
	configfs
	mp target_core_mod && mp target_core_iblock && mp iscsi_target_mod && mp ib_isert || return
	# Its default is a directory that is not there.
	echo /etc/target >$kd_lio/dbroot 2>/dev/null || :
	mkdir -p "$kd_tpg"
}
# lio_disk N PATH: a backing store of that block device
lio_disk() {
	mkdir -p "$kd_lio/core/iblock_$1/disk$1" &&
		echo "udev_path=$2" >"$kd_lio/core/iblock_$1/disk$1/control" &&
		echo "KD-ISER-$1" >"$kd_lio/core/iblock_$1/disk$1/wwn/vpd_unit_serial" &&
		echo 1 >"$kd_lio/core/iblock_$1/disk$1/enable"
}
# lio_target IQN DISK...: a target with these disks as LUN 0, 1, ..., open to everybody
lio_target() {
	kd_t=$kd_tpg/$1/tpgt_$tpgt
	shift
	mkdir -p "$kd_t" || return
	for kd_i in authentication=0 generate_node_acls=1 demo_mode_write_protect=0 \
		cache_dynamic_acls=1; do
		set_to "${kd_i#*=}" "$kd_t/attrib/${kd_i%%=*}" || return
	done
	kd_n=0
	for kd_i; do
		mkdir "$kd_t/lun/lun_$kd_n" &&
			ln -s "$kd_lio/core/iblock_$kd_i/disk$kd_i" "$kd_t/lun/lun_$kd_n/disk" || return
		kd_n=$((kd_n + 1))
	done
	set_to 1 "$kd_t/enable"
}
# lio_listen IQN [rxe|siw]. LIO listens on TCP first, whose ports soft-iWARP shares, so for that
# one it does so in a namespace of its own; ib_isert always listens in the first one.
lio_listen() {
	kd_np=$kd_tpg/$1/tpgt_$tpgt/np/$portal
	if [ "$2" = siw ]; then
		if [ ! -e /run/netns/lio ]; then
			ip netns add lio 2>/dev/null
			ip -n lio link set lo up
			ip -n lio addr add "${portal%:*}/32" dev lo || return
		fi
		nsenter --net=/run/netns/lio mkdir "$kd_np"
	else
		mkdir "$kd_np"
	fi && set_to 1 "$kd_np/iser"
}
lio_deaf() { rmdir "$kd_tpg/$1/tpgt_$tpgt/np/$portal"; }
no_lio_target() {
	kd_t=$kd_tpg/$1/tpgt_$tpgt
	set_to 0 "$kd_t/enable"
	for kd_i in "$kd_t"/np/* "$kd_t"/acls/*; do
		[ ! -d "$kd_i" ] || rmdir "$kd_i" || return
	done
	for kd_i in "$kd_t"/lun/lun_*; do
		rm "$kd_i/disk" && rmdir "$kd_i" || return
	done
	rmdir "$kd_t" "$kd_tpg/$1"
}
no_lio_disk() { rmdir "$kd_lio/core/iblock_$1/disk$1" "$kd_lio/core/iblock_$1"; }

# ---- the initiator ----

# open_iscsi DIRECTORIES [NAME=VALUE...]: iscsid runs, with these lines instead of those of Debian
open_iscsi() {
	kd_libs='' kd_iscsi=${1%%:*}
	kd_ifs=$IFS
	IFS=:
	for kd_i in $1; do
		kd_libs=$kd_libs:$kd_i/usr/lib/x86_64-linux-gnu:$kd_i/lib/x86_64-linux-gnu:$kd_i/usr/lib
	done
	IFS=$kd_ifs
	kd_libs=${kd_libs#:}
	shift
	grep -v '^iscsid.startup' "$kd_iscsi/etc/iscsi/iscsid.conf" >/etc/iscsi/iscsid.conf
	for kd_i; do
		sed -i "/^${kd_i%%=*} *=/d" /etc/iscsi/iscsid.conf
		echo "${kd_i%%=*} = ${kd_i#*=}" >>/etc/iscsi/iscsid.conf
	done
	echo 'InitiatorName=iqn.2026-11.example.kdapl:initiator' >/etc/iscsi/initiatorname.iscsi
	iscsid_up
}
iscsid_up() {
	# In a process group of its own, which it ends with itself. A child that outlives it has its
	# socket, so the next one could not run.
	[ -z "${iscsid-}" ] || iscsid_killed 2>/dev/null
	LD_LIBRARY_PATH=$kd_libs setsid "$kd_iscsi/sbin/iscsid" -f "$@" >>"$TMPDIR/iscsid.log" 2>&1 &
	iscsid=$!
	until_true 20 iscsid_is_up
}
iscsid_is_up() { kill -0 "$iscsid" 2>/dev/null && grep -q ISCSIADM_ABSTRACT /proc/net/unix; }
iscsid_killed() {
	kill -9 "-$iscsid" && wait "$iscsid" || :
	iscsid=
}
iscsid_down() { kill "$iscsid" && wait "$iscsid" || :; }
adm() { LD_LIBRARY_PATH=$kd_libs "$kd_iscsi/sbin/iscsiadm" "$@"; }

# record IQN [NAME=VALUE...]: the node record, made by hand
record() {
	kd_iqn=$1
	shift
	adm -m node -o new -T "$kd_iqn" -p "$portal,$tpgt" -I iser >/dev/null || return
	for kd_i; do
		adm -m node -T "$kd_iqn" -p "$portal" -I iser -o update -n "${kd_i%%=*}" \
			-v "${kd_i#*=}" || return
	done
}
login() { adm -m node -T "$1" -p "$portal" -I iser --login; }
logout() { adm -m node -T "$1" -p "$portal" -I iser --logout; }
# disk IQN LUN: its node
disk() {
	for kd_s in /sys/class/iscsi_session/session*; do
		[ "$(cat "$kd_s/targetname" 2>/dev/null)" = "$1" ] || continue
		for kd_i in "$kd_s"/device/target*/*:"$2"/block/sd*; do
			[ ! -d "$kd_i" ] || { echo "/dev/${kd_i##*/}"; return; }
		done
	done
	return 1
}
has_disk() { test -b "$(disk "$@")"; }
session_state() { cat /sys/class/iscsi_session/session*/state 2>/dev/null; }
logged_in() { [ "$(session_state | sort -u)" = LOGGED_IN ]; }
