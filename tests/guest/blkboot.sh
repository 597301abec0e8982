# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blkboot.sh N: one of two machines that are run by their units only. Each boots systemd, in a
# container that has the machine for itself: machine 1 exports a disk, machine 2 has a file system
# on it in fstab, by UUID. Each has another section in its configuration, for a disk that never
# appears, and with a value that is refused. Machine 2 boots first. Then the network is cut until the disk has
# failed, machine 2 is restarted, and machine 1.
# shellcheck shell=sh disable=SC2154
n=$1
. "$TOP/tests/guest/blk-lib.sh"
uuid=6b646170-6c00-4000-8000-000000000001

# What a machine has installed and configured, and no more of the host's than is needed.
install_all() {
	make -s -C "$TOP" install-tools || return
	mount -t cgroup2 cgroup2 /sys/fs/cgroup
	rm -f /etc/systemd/system/*.wants/*
	for kd_i in systemd-udev-trigger systemd-tmpfiles-setup systemd-tmpfiles-setup-dev \
		systemd-update-utmp systemd-journald systemd-journal-flush systemd-sysusers \
		systemd-random-seed systemd-pcrphase systemd-pcrphase-sysinit ldconfig; do
		ln -sf /dev/null /etc/systemd/system/$kd_i.service
	done
	for kd_i in systemd-journald.socket systemd-journald-dev-log.socket \
		systemd-journald-audit.socket; do
		ln -sf /dev/null /etc/systemd/system/$kd_i
	done
	printf '[Unit]\nWants=%s remote-fs.target systemd-udevd.service\n' "$1" \
		>/etc/systemd/system/kd.target
}
boot() {
	env -i PATH="$PATH" container=kd unshare --fork --pid --mount --mount-proc --kill-child \
		/lib/systemd/systemd --system --unit=kd.target --log-target=kmsg \
		--show-status=no --default-standard-output=kmsg --default-standard-error=kmsg &
	outside=$!
	until_true 60 systemd_runs && systemd=$(systemd_runs)
}
systemd_runs() { pgrep -P "$outside" -x systemd; }
in_it() { nsenter -t "$systemd" -m -p -r "$@"; }
halt() {	# and wait until it has stopped all units
	in_it systemctl poweroff --no-block
	wait "$outside" || :
}
unit_is() { [ "$(in_it systemctl show -P ActiveState "$1")" = "$2" ]; }
device_is() { grep -qx "$1" $kd_initiator/data/state; }
mounted() { in_it mountpoint -q /data; }
units() { in_it systemctl --no-pager --all --plain --no-legend list-units 'kdblk*' data.mount; }

must "a network card and the device rxe0" wire "$n" rxe
configfs
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
if [ "$n" = 1 ]; then
	must "installed" install_all kdblk-target.service
	must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
	must "a disk" null_disk 0 64
	mp ext4
	must "with a file system" mkfs.ext4 -q -U $uuid /dev/nullb0
	cat >/etc/kdblk.conf <<-END
		[export data]
		path = /dev/nullb0
		serial = KD-0001
		allow_any = 1
		[export later]
		path = /dev/later
		[portal p]
		ia = rxe0-1
	END
	listening() { grep -qx listening $kd_target/portals/p/state; }
	meet 1		# the other machine is up, and tries
	must "the machine boots" boot
	step "kdblk-target.service exports the disk" until_true 120 listening
	meet 1
	meet 1		# the other machine has been restarted
	halt
	step "halted: nothing is exported any more" test -z "$(ls $kd_target/disks $kd_target/portals | grep -v :)"
	meet 1
	must "the machine boots again" boot
	step "the disk is exported again" until_true 120 listening
	meet 1
	meet 1		# the other machine has written
	halt
	no_null_disk 0
	step "kdblk_target.ko unloads" rmmod kdblk_target
	step "kdapl.ko unloads" rmmod kdapl
	finish
	return
fi

must "installed" install_all kdblk.service
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
mp ext4
mp sch_netem
cat >/etc/kdblk.conf <<-END
	[disk data]
	ia = rxe0-1
	address = 192.0.2.1
	keepalive_ms = 1000
	reconnect_max = 2
	reconnect_delay_ms = 200
	[disk wrong]
	ia = rxe0-1
	address = 192.0.2.1
	queues = 100000
END
echo "UUID=$uuid /data ext4 _netdev,nofail,x-systemd.device-timeout=600 0 0" >/etc/fstab
mkdir -p /data
must "the machine boots" boot
step "kdblk.service is active before the target is there" until_true 120 unit_is kdblk.service active
meet 2
meet 2		# the target is up
step "the disk is connected" until_true 120 device_is live
step "UUID= in fstab: the file system is mounted" until_true 120 mounted
units
head -c 1M /dev/urandom >"$TMPDIR/pattern"
put() { in_it dd of="/data/$1" bs=64k conv=fsync <"$TMPDIR/pattern" 2>/dev/null; }
same() { in_it cat "/data/$1" | cmp - "$TMPDIR/pattern"; }
step "a file is written" put one

tc qdisc replace dev eth0 root netem loss 100% limit 10000
tell "the network is cut"
step "the disk fails" until_true 120 device_is failed
step "udev has the unit started that connects it again" until_true 60 \
	unit_is kdblk-reconnect@data.service active
tc qdisc del dev eth0 root
step "mended: the disk is connected again" until_true 120 device_is live
step "that unit is done" until_true 60 unit_is kdblk-reconnect@data.service inactive
# ext4 has noticed the failure, and writes no more until it is mounted again.
step "the file system is mounted again" in_it systemctl restart data.mount
step "a file is written" put two
units

halt
step "halted: nothing is connected any more" test -z "$(ls $kd_initiator)"
must "the machine boots again" boot
step "the disk is connected" until_true 120 device_is live
step "the file system is mounted" until_true 120 mounted
step "the first file is there" same one
step "and the second one" same two
meet 2		# now the other machine
meet 2		# has halted
meet 2		# and is up again
step "the target restarted: the disk is connected again" until_true 120 device_is live
step "the file system is mounted again" in_it systemctl restart data.mount
step "a file is written" put three
step "the first file is there" same one
halt
meet 2
step "kdblk.ko unloads" rmmod kdblk
step "kdapl.ko unloads" rmmod kdapl
finish
