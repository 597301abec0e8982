# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# iserbench.sh rxe|siw ROUNDS SECONDS OPEN-ISCSI: kdat_iser beside the kernel's own ib_iser, with the
# same target, disk, device and boot, in turns: there is one transport of that name at a time.
# Printed as by blkbench.sh.
# shellcheck shell=sh disable=SC2154
p=$1 rounds=$2 seconds=$3 kit=$4
. "$TOP/tests/guest/iser-lib.sh"
iqn=iqn.2026-11.example.kdapl:bench

must "a device" loopback_dev "$p"
must "a writable /etc" own_etc
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
# LIO takes commands as long as its disk does.
must "a disk of 256 MiB in memory" written_disk 0 256 max_sectors=2048
must "LIO" lio
must "with that disk" lio_disk 0 /dev/nullb0
must "and a target" lio_target "$iqn" 0
must "that listens" lio_listen "$iqn" "$p"
must "iscsid runs" open_iscsi "$kit"
must "libiscsi" mp libiscsi
must "disks of SCSI" mp sd_mod
must "a record" record "$iqn"

turn() {	# MODULE
	case $1 in
	ib_iser) mp ib_iser ;;
	*) insmod "$KO/$1.ko" ;;
	esac && login "$iqn" >/dev/null && until_true 30 has_disk "$iqn" 0 || return
	d=$(disk "$iqn" 0)
	echo none >"/sys/block/${d##*/}/queue/scheduler"
	python3 "$TOP/tests/blkbench" --turn "$TMPDIR/found" "$seconds" "$1=${d##*/}" || return
	logout "$iqn" >/dev/null && until_true 30 rmmod "$1"
}
must "what the disk can do" python3 "$TOP/tests/blkbench" --turn "$TMPDIR/found" "$seconds" \
	nullb0=nullb0
step "$rounds rounds of $seconds s each, in turns" in_turns "$rounds" ib_iser kdat_iser
step "what they have found" python3 "$TOP/tests/blkbench" --tell "$TMPDIR/found" "$seconds" \
	nullb0 ib_iser kdat_iser
finish
