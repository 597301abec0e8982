# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blkstack.sh N: one of two machines joined by two networks. Machine 1 exports two disks on both,
# machine 2 has each by two paths and puts on them what people put on disks: multipath, md (a
# mirror of both), dm-crypt, LVM, ext4. While files are written one network is cut; it is mended
# and the other path is closed; then machine 2 starts all over.
# shellcheck shell=sh disable=SC2154
n=$1
. "$TOP/tests/guest/blk-lib.sh"
tools=$TOP/ulp_example/kdblk/tools
export SYSTEMD_PAGER=cat
ctl() { "$tools/kdblkctl" "$@"; }

# The two networks are tunnels over one cable, so that one can be cut without the other.
two_networks() {
	mp vxlan
	mp sch_netem
	# It would have the addresses of both.
	rdma link delete rxe0
	for kd_i in 1:198.51.100 2:203.0.113; do
		kd_net=${kd_i#*:} kd_i=${kd_i%%:*}
		ip link add "net$kd_i" type vxlan id "$kd_i" dev eth0 remote "192.0.2.$((3 - n))" \
			dstport 4789 &&
			ip addr add "$kd_net.$n/24" dev "net$kd_i" && ip link set "net$kd_i" up &&
			rdma link add "rxe$kd_i" type rxe netdev "net$kd_i" || return
	done
}
cut_second() { tc qdisc replace dev net2 root netem loss 100% limit 10000; }
# What soft-RoCE cannot send takes the queue pair of its connection manager to ERR, which that never
# leaves: then the device is made anew.
mend_second() {
	tc qdisc del dev net2 root || return
	rdma resource show qp | grep -q 'rxe2/1 .*type GSI state ERR' || return 0
	tell "soft-RoCE has lost its connection manager to the cable"
	rdma link delete rxe2 && rdma link add rxe2 type rxe netdev net2
}

must "a network card" wire "$n" rxe
must "two networks and the devices rxe1 and rxe2" two_networks
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
configfs
if [ "$n" = 1 ]; then
	must "two disks" null_disk 0 96
	null_disk 1 96
	must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
	cat >"$TMPDIR/kdblk.conf" <<-END
		[export one]
		path = /dev/nullb0
		serial = KD-0001
		allow_any = 1
		[export two]
		path = /dev/nullb1
		serial = KD-0002
		allow_any = 1
		[portal first]
		ia = rxe1-1
		[portal second]
		ia = rxe2-1
	END
	# What kdblk-target.service runs.
	must "exports and portals are restored" ctl restore --target --retry "$TMPDIR/kdblk.conf"
	ctl list
	meet 1
	meet 1		# files are being written
	must "the second network is cut" cut_second
	tell "the second network is cut"
	meet 1		# they are still being written
	must "the second network is mended" mend_second
	meet 1		# its paths are back
	must "the portal of the first network is closed" ctl unlisten first
	tell "the portal of the first network is closed"
	meet 1		# they are still being written
	must "the portal of the first network listens again" ctl restore --target "$TMPDIR/kdblk.conf"
	meet 1		# the other machine is done
	step "nothing is exported any more" ctl clear --target
	no_null_disk 0
	no_null_disk 1
	step "kdblk_target.ko unloads" rmmod kdblk_target
	step "kdapl.ko unloads" rmmod kdapl
	finish
	return
fi

# Machine 2.
cp "$tools/60-kdblk.rules" /lib/udev/rules.d/
cp "$tools/multipath.conf.example" /etc/multipath.conf
mkdir -p /etc/multipath
# The disk belongs to the host, whose configuration is not for this machine.
echo 'devices { use_devicesfile = 0 }' >"$TMPDIR/lvm.conf"
export LVM_SYSTEM_DIR=$TMPDIR
for kd_i in dm-mod dm-multipath dm-service-time dm-crypt raid1 ext4; do
	mp $kd_i
done
must "udev runs" /lib/systemd/systemd-udevd --daemon
udevadm trigger --subsystem-match=block --action=add
udevadm settle
multipathd -d >"$TMPDIR/multipathd.log" 2>&1 &
daemon=$!
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
# A path that is lost has to fail its commands soon, or the other one is of no use.
soon="reconnect_max = 1"
mkdir $kd_initiator/look
if [ -e $kd_initiator/look/fast_io_fail_ms ]; then
	soon="fast_io_fail_ms = 2000
reconnect_max = 1000000"
fi
rmdir $kd_initiator/look
id=$(echo 1 | md5sum | cut -c1-32)
# After the cut of the second network all commands take the first one, whose portal is closed
# then: so each disk loses the path that it uses.
for kd_i in one two; do
	for kd_j in 2:203.0.113.1:rxe2-1 1:198.51.100.1:rxe1-1; do
		IFS=: read -r kd_path kd_address kd_ia <<-END
			$kd_j
		END
		echo "[disk $kd_i-$kd_path]
disk = $kd_i
address = $kd_address
ia = $kd_ia
keepalive_ms = 4000
reconnect_delay_ms = 500
$soon"
		case $soon in fast*) echo "id = $id
path = $kd_path" ;; esac
	done
done >"$TMPDIR/kdblk.conf"
restore() { ctl restore --initiator --retry "$TMPDIR/kdblk.conf"; }	# as kdblk.service does
all_paths() { [ "$(multipathd show paths format '%d %t %T' | grep -c '^kdblk.* active ready')" = 4 ]; }
paths_of() { multipathd show paths format '%d %t %T' | grep -c "^kdblk.* $1"; }
on_two_networks() { [ "$(paths_of 'active ready')" = 2 ] && [ "$(paths_of failed)" = 2 ]; }
mpath() { ls "/dev/disk/by-id/dm-uuid-mpath-kdblk.$1"; }
meet 2
must "four paths are connected" restore
ctl list
step "multipath has all four" until_true 120 all_paths || multipath -ll
step "and the first disk" until_true 30 mpath KD-0001
step "and the second one" until_true 30 mpath KD-0002
step "lsblk shows serial, wwn and model" \
	grep -q 'KD-0001 *kdblk.KD-0001 *one' <<-END
		$(lsblk -dno SERIAL,WWN,MODEL "$(device one-1)")
	END
lsblk -o NAME,SERIAL,WWN,MODEL,TYPE,SIZE

# The recipe of the README.
key=$TMPDIR/key
dir=$TMPDIR/mnt
head -c 32 /dev/urandom >"$key"
mkdir "$dir"
# shellcheck disable=SC2046
md_up() {
	mdadm --create /dev/md0 --run --level=1 --raid-devices=2 --assume-clean --metadata=1.2 \
		$(mpath KD-0001) $(mpath KD-0002)
}
crypt_new() {
	cryptsetup luksFormat -q --pbkdf pbkdf2 --pbkdf-force-iterations 1000 --key-file "$key" /dev/md0
}
crypt_up() { cryptsetup open --key-file "$key" /dev/md0 kd; }
lvm_new() { pvcreate -q -y /dev/mapper/kd && vgcreate -q kdvg /dev/mapper/kd && lvcreate -q -y -n data -l 100%FREE kdvg; }
lvm_up() { vgchange -q -ay kdvg; }
mount_it() { mount -t ext4 /dev/kdvg/data "$dir"; }
down() {
	umount "$dir" && vgchange -q -an kdvg && cryptsetup close kd && mdadm --stop /dev/md0 &&
		until_true 30 multipath -F
}
must "md mirrors both" md_up
must "dm-crypt on it" crypt_new
must "opened" crypt_up
must "LVM on that" lvm_new
must "ext4 on that" mkfs.ext4 -q /dev/kdvg/data
must "mounted" mount_it
lsblk -s -o NAME,TYPE /dev/kdvg/data

head -c 1M /dev/urandom >"$TMPDIR/pattern"
count() { cat "$TMPDIR/count" 2>/dev/null || echo 0; }
more() { [ "$(count)" -gt "$before" ]; }
goes_on() {	# COUNT: so many files are written from now on
	before=$(($(count) + $1))
	until_true 240 more
}
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
step "files are written" goes_on 3
meet 2
must "the second network is cut" cut_second
step "multipath has failed its two paths" until_true 120 on_two_networks || multipath -ll
step "files are written over the other network" goes_on 3
ctl list
meet 2
must "the second network is mended" mend_second
# What kdblk-reconnect@.service does, which udev starts where there is systemd.
case $soon in
reconnect*)
	for kd_i in one-2 two-2; do
		if is $kd_i failed; then
			step "$kd_i is connected again" ctl connect --retry $kd_i
		fi
	done ;;
esac
step "multipath has all four paths again" until_true 120 all_paths || multipath -ll
meet 2
step "the other two paths fail" until_true 120 on_two_networks || multipath -ll
step "files are written over the second network" goes_on 3
ctl list
meet 2
: >"$TMPDIR/stop"
step "the writer ends without an error" wait $writer
tell "$(count) files of 1 MiB written"
mirror_whole() { mdadm --detail /dev/md0 | grep -q 'State : \(clean\|active\) *$'; }
step "the mirror has lost neither disk" until_true 30 mirror_whole || mdadm --detail /dev/md0

# The machine starts anew: all is taken apart, kdblk is unloaded, and the units run.
must "all is taken apart" down
must "nothing is connected any more" ctl clear --initiator
must "kdblk.ko unloads" rmmod kdblk
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
must "connected by what the unit runs" restore
step "multipath has all four paths" until_true 120 all_paths || multipath -ll
until_true 30 mpath KD-0001
until_true 30 mpath KD-0002
# shellcheck disable=SC2046
md_again() { [ -e /sys/block/md0 ] || mdadm --assemble /dev/md0 $(mpath KD-0001) $(mpath KD-0002); }
must "md finds its disks" md_again
must "dm-crypt opens" crypt_up
must "LVM finds its volume" lvm_up
udevadm settle
step "ext4 has no fault" e2fsck -fn /dev/kdvg/data
must "mounted" mount_it
whole() {
	for f in "$dir"/f*; do
		cmp "$TMPDIR/pattern" "$f" || return
	done
}
step "every file is as it was written" whole
must "all is taken apart" down
kill $daemon
wait $daemon || :
step "disconnected" ctl clear --initiator
udevadm settle
udevadm control --exit
step "kdblk.ko unloads" rmmod kdblk
step "kdapl.ko unloads" rmmod kdapl
meet 2
finish
