# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# iserpair.sh N rxe|siw OPEN-ISCSI: one of two machines joined by a cable. Machine 1 is the target,
# LIO; machine 2 has a file system on its disk over kdat_iser. The cable is cut for 2 seconds, which
# nobody notices, and for a minute, which costs the session while much of a small memory waits to be
# written. Nothing is lost, nothing hangs.
# shellcheck shell=sh disable=SC2154
n=$1 p=$2 kit=$3
. "$TOP/tests/guest/iser-lib.sh"
iqn=iqn.2026-11.example.kdapl:pair

must "a network card and the device ${p}0" wire "$n" "$p"
must "a writable /etc" own_etc
if [ "$n" = 1 ]; then
	must "a disk, most of which stays empty" null_disk 0 384
	must "LIO" lio
	must "with that disk" lio_disk 0 /dev/nullb0
	must "and a target" lio_target "$iqn" 0
	must "that listens" lio_listen "$iqn" "$p"
	meet 1
	for kd_i in short long; do
		meet 1		# files are written
		must "the cable is cut" cable cut
		must "the cable is mended" cable mend
		meet 1		# they are again
	done
	meet 1		# the other machine is done
	step "the target goes" no_lio_target "$iqn"
	step "and its disk" no_lio_disk 0
	finish
	return
fi

meet 2
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
mp libiscsi
mp sd_mod
mp ext4
must "kdat_iser.ko loads" insmod "$KO/kdat_iser.ko"
must "iscsid runs" open_iscsi "$kit"
must "a record" record "$iqn"
must "login" login "$iqn"
must "a disk" until_true 30 has_disk "$iqn" 0
d=$(disk "$iqn" 0)
dir=$TMPDIR/mnt
mkdir "$dir"
must "ext4 on it" mkfs.ext4 -q "$d"
must "mounted" mount -t ext4 "$d" "$dir"
head -c 1M /dev/urandom >"$TMPDIR/pattern"
echo 0 >"$TMPDIR/count"
(
	i=0
	until [ -e "$TMPDIR/stop" ]; do
		dd if="$TMPDIR/pattern" of="$dir/f$((i % 20))" bs=64k conv=fsync 2>/dev/null || exit
		i=$((i + 1))
		echo $i >"$TMPDIR/count.new"
		mv "$TMPDIR/count.new" "$TMPDIR/count"
	done
) &
writer=$!
more() { [ "$(cat "$TMPDIR/count")" -gt "$before" ]; }
goes_on() {
	before=$(($(cat "$TMPDIR/count") + $1))
	until_true 240 more
}
step "files are written" goes_on 3
meet 2
must "the cable is cut" cable cut
sleep 2		# for so long
must "the cable is mended" cable mend
step "files are written" goes_on 3
step "by the same session" logged_in
meet 2
# 90 MiB of 256 are dirty when the session has to come back.
big_file() { megabytes 90 >"$dir/big"; }
mostly_dirty() { [ "$(sed -n 's/^Dirty: *\([0-9]*\) kB/\1/p' /proc/meminfo)" -gt 61440 ]; }
echo 70 >/proc/sys/vm/dirty_ratio
echo 60 >/proc/sys/vm/dirty_background_ratio
must "a large file is written" big_file
step "much of the memory is dirty" mostly_dirty
grep -E 'MemTotal|Dirty' /proc/meminfo
meet 2
must "the cable is cut" cable cut
begun=$(date +%s)
sync &
sync=$!
step "the session is lost" until_true 240 refused logged_in
a_minute() { [ "$(date +%s)" -ge $((begun + 60)) ]; }
must "a minute passes" until_true 120 a_minute
must "the cable is mended" cable mend
step "the session comes back" until_true 240 logged_in
step "files are written" goes_on 3
step "and so is what was dirty" wait $sync
meet 2
: >"$TMPDIR/stop"
step "no write has failed" wait $writer
whole() {
	megabytes 90 | cmp - "$dir/big" || return
	for f in "$dir"/f*; do
		cmp "$TMPDIR/pattern" "$f" || return
	done
}
echo 3 >/proc/sys/vm/drop_caches
step "every file is as it was written" whole
step "unmounted" umount "$dir"
step "ext4 has no fault" e2fsck -fn "$d"
step "logout" logout "$iqn"
step "kdat_iser.ko unloads" until_true 30 rmmod kdat_iser
step "nothing is left in kDAPL" test "$(objects)" = 0
meet 2
iscsid_down
finish
