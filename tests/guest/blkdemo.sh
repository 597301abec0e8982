# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blkdemo.sh N [SECONDS [rxe|siw]]: one of two machines joined by a cable. Machine 1 exports a
# disk with kdblk_target, machine 2 has a file system on it, and the cable is cut while it is
# written. fio runs for so many seconds for each figure; 0: there are none.
# shellcheck shell=sh disable=SC2154
n=$1 seconds=${2:-3} p=${3:-rxe}
. "$TOP/tests/guest/blk-lib.sh"
renew() {
	! cm_is_dead || {
		tell "soft-RoCE has lost its connection manager to the cable: device rxe0 made anew"
		rdma link delete "${p}0" && rdma link add "${p}0" type "$p" netdev eth0
	}
}
size() { echo "$(($(cat "/sys/block/$1/size") / 2048)) MiB"; }

rdma link show "${p}0/1" >/dev/null 2>&1 ||
	must "a network card and the device ${p}0" wire "$n" "$p"
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
configfs
if [ "$n" = 1 ]; then
	mp brd rd_nr=1 rd_size=131072
	must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
	must "a portal listens" portal p "${p}0-1"
	must "a disk is exported" export_disk tank /dev/ram0 allow_any=1
	tell "kdblk_target exports /dev/ram0 ($(size ram0)) as disk 'tank' on ${p}0-1 port 14420"
	meet 1
	meet 1		# the other machine writes
	must "the cable is cut" cable cut
	must "the cable is mended" cable mend
	step "the device is well" renew
	meet 1		# the other machine is done
	step "the disk is withdrawn" no_disk tank
	step "the portal is closed" no_portal p
	step "kdblk_target.ko unloads" rmmod kdblk_target
	step "kdapl.ko unloads" rmmod kdapl
	tell "modules unloaded"
	return 0
fi

dir=$TMPDIR/mnt
figures=$TMPDIR/figures
mkdir "$dir"
sums() { (cd "$1" && find . -type f ! -path './lost+found/*' -print0 | sort -z | xargs -0 sha256sum); }
again() { umount "$dir" && mount -t ext4 "$disk" "$dir"; }	# so that all is read from the disk
correct() { (cd "$dir" && sha256sum -c --quiet "$TMPDIR/sums"); }
checked() { e2fsck -fn "$disk" >"$TMPDIR/fsck" 2>&1; }
recovers() { is d recovering; }
live() { is d live; }
line() { dmesg | sed -n 's/.*\(kdblk: d: [a-z].*\)/\1/p' | tail -n 1; }
row() { printf '%-38s %s\n' "$1" "$2" >>"$figures"; }
fio_figure() {	# TITLE WORDS...
	kd_title=$1
	shift
	fio --name=demo --filename="$dir/fio" --size=16m --direct=1 --ioengine=io_uring --thread \
		--time_based --runtime="$seconds" --randrepeat=0 --gtod_reduce=1 \
		--output-format=json "$@" >"$TMPDIR/fio" || return
	row "$kd_title" "$(python3 -c '
import json, sys
text = open(sys.argv[1]).read()
job = json.loads(text[text.index("{"):])["jobs"][0]
side = max(job["read"], job["write"], key=lambda s: s["io_bytes"])
print("%7.0f IOPS  %6.1f MB/s" % (side["iops"], side["bw_bytes"] / 1e6))' "$TMPDIR/fio")"
}

mp ext4
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
meet 2
must "kdblk connects" attach d "${p}0-1" 192.0.2.1 tank keepalive_ms=1000 reconnect_delay_ms=1000
disk=$(device d)
tell "$(line)"
tell "$disk is there: $(size "${disk#/dev/}")"
must "mkfs.ext4" mkfs.ext4 -q "$disk"
must "mount" mount -t ext4 "$disk" "$dir"
tell "mkfs.ext4, mounted"
cp -r "$TOP/kdapl" "$TOP/include" "$TOP/Documentation" "$TOP/ulp_example" "$dir/"
sums "$dir" >"$TMPDIR/sums"
files=$(wc -l <"$TMPDIR/sums")
must "unmounted and mounted" again
must "what was copied is there" correct
tell "a tree of $files files copied, unmounted, mounted: every checksum right"
row "files copied, checksums right" "$files"

# A writer does not notice the cut but for the time it takes.
head -c 8M /dev/urandom >"$TMPDIR/big"
start=$(date +%s)
tell "writing files of 8 MiB, and cutting the cable meanwhile"
meet 2
writes() { awk '{ print $5 }' "/sys/block/${disk#/dev/}/stat"; }
more_writes() { [ "$(writes)" -gt "$before" ]; }
before=$(writes)
(
	i=0
	until [ -e "$TMPDIR/mended" ]; do
		dd if="$TMPDIR/big" of="$dir/big$((i % 10))" bs=64k oflag=direct conv=fsync 2>/dev/null || exit
		i=$((i + 1))
	done
) &
writer=$!
must "the disk is written" until_true 60 more_writes
must "the cable is cut" cable cut
step "kdblk notices" until_true 60 recovers
tell "$(line)"
step "it tries to connect" logs 'kdblk: d: attempt '
tell "$(line)"
step "and the writer waits" kill -0 $writer
must "the cable is mended" cable mend
step "the device is well" renew
step "kdblk is connected again" until_true 60 live
: >"$TMPDIR/mended"
tell "cable mended: $(line)"
step "the writer ends without an error" wait $writer
took=$(($(date +%s) - start))
replayed=$(sed -n 's/^replayed //p' $kd_initiator/d/stats)
step "commands were under way" test "$replayed" -gt 0
tell "written, after $took s; $replayed commands were sent again, none failed"
row "commands sent again after the cable" "$replayed"
step "unmounted and mounted" again
step "what was copied is there" correct
for f in "$dir"/big*; do
	step "what was written meanwhile is there" cmp "$TMPDIR/big" "$f"
done
rm "$dir"/big*
tell "unmounted, mounted: every checksum right"
if [ "$seconds" != 0 ]; then
	fio_figure "4 KiB random read, QD 1" --rw=randread --bs=4k
	fio_figure "4 KiB random write, QD 1" --rw=randwrite --bs=4k
	fio_figure "4 KiB random read, QD 32" --rw=randread --bs=4k --iodepth=32
	fio_figure "4 KiB random write, QD 32" --rw=randwrite --bs=4k --iodepth=32
	fio_figure "128 KiB read, QD 8" --rw=read --bs=128k --iodepth=8
	fio_figure "128 KiB write, QD 8" --rw=write --bs=128k --iodepth=8
fi
step "unmounted" umount "$dir"
step "fsck finds no fault" checked
tell "unmounted; fsck finds no fault"
row "file system check" "clean"
step "kdblk disconnects" set_to 0 $kd_initiator/d/connect
step "and is empty" rmdir $kd_initiator/d
step "kdblk.ko unloads" rmmod kdblk
step "kdapl.ko unloads" rmmod kdapl
sed 's/^/table: /' "$figures"
tell "kdblk: PASS"
meet 2
