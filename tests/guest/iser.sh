# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# iser.sh rxe|siw PART... OPEN-ISCSI: disks of LIO over kdat_iser, both in this guest. Parts:
#   name	the transport's name is taken
#   chap	a login in several rounds
#   basic	discovery, login, what the disk says of itself, what is written is read
#   verify	fio with sums, of many sizes
#   limits	a command that cannot be sent
#   files	ext4 and xfs
#   links	the names that udev gives
#   resize	a disk grows
#   paths	multipath, and a link that flaps
#   abort	the backing store stalls: aborts, and a reset of the unit
#   giveup	whoever asked for a reset does not wait for the answer
#   hostile	a target that breaks the rules
#   faults	the target is disabled, the device removed, iscsid killed
#   dead	a portal that does not answer
#   unload	the module goes the moment its last session does
#   starve	allocations fail, one in each login
#   chaos-SECONDS	all of it in any order and at the same time
# OPEN-ISCSI is what tests/open-iscsi prints.
# shellcheck shell=sh disable=SC2154
p=$1
shift
for kit; do :; done
. "$TOP/tests/guest/iser-lib.sh"
iqn=iqn.2026-11.example.kdapl:one
case $KERNEL in
*-kasan | *-lockdep | deb-*) slow=4 ;;
*) slow=1 ;;
esac

initiator() { mp libiscsi && mp sd_mod && insmod "$KO/kdat_iser.ko" "$@"; }
same() {	# DISK FILE: the disk begins with what is in the file
	dd if="$1" bs=64k iflag=direct count=256 2>/dev/null | cmp -n "$(stat -c %s "$2")" - "$2"
}

name_part() {
	mp ib_iser
	step "kdat_iser refuses to load beside ib_iser" refused insmod "$KO/kdat_iser.ko"
	step "and says in one sentence why" logs "unload that one first"
	step "without a trace" refused logged "Call Trace"
	rmmod ib_iser
	step "the example for modprobe.d has ib_iser replaced" replaced
}
replaced() {
	mp -C "$TOP/ulp_example/iser/modprobe.conf.example" -n -v ib_iser |
		grep -q "modprobe kdat_iser"
}

# After a logout udev may have a file of the host open for a moment, which keeps the module.
unloaded() { until_true 30 rmmod kdat_iser; }

# A login in several rounds, with a password on each side.
chap_part() {
	kd_t=$kd_tpg/$iqn/tpgt_1
	must "kdat_iser.ko loads" initiator
	must "the target wants CHAP" attributes "$kd_t" attrib/authentication=1 auth/userid=kd \
		auth/password=correct-horse auth/userid_mutual=target auth/password_mutual=battery-staple
	must "a record with a wrong password" record "$iqn" node.session.auth.authmethod=CHAP \
		node.session.auth.username=kd node.session.auth.password=wrong-horse-1 \
		node.session.auth.username_in=target node.session.auth.password_in=battery-staple \
		node.session.initial_login_retry_max=1
	step "is refused" refused login "$iqn"
	must "the right one" adm -m node -T "$iqn" -p "$portal" -I iser -o update \
		-n node.session.auth.password -v correct-horse
	# What the target answers at once may be wrong: see tests/run, iscsi_target_do_tx_login_io.
	must "and some patience" adm -m node -T "$iqn" -p "$portal" -I iser -o update \
		-n node.session.initial_login_retry_max -v 4
	must "is let in" login "$iqn"
	step "a disk is there" until_true 30 has_disk "$iqn" 0
	step "logout" logged_out
	set_to 0 "$kd_t/attrib/authentication"
	step "kdat_iser.ko unloads" unloaded
}

basic_part() {
	must "kdat_iser.ko loads" initiator
	step "the transport is there" test -d /sys/class/iscsi_transport/iser
	step "discovery finds the target" discovered
	step "and does so ten times more" repeat 10 discovered
	must "login" login "$iqn"
	must "LUN 0 is a disk" until_true 30 has_disk "$iqn" 0
	must "LUN 1 is a disk" until_true 30 has_disk "$iqn" 1
	d=$(disk "$iqn" 0)
	adm -m session -P 3
	step "INQUIRY: it is of LIO" grep -q LIO-ORG "/sys/block/${d##*/}/device/vendor"
	step "its size is that of the other side" \
		test "$(blockdev --getsize64 "$d")" = "$(blockdev --getsize64 /dev/nullb0)"
	step "unloading is refused while there are sessions" refused rmmod kdat_iser
	head -c 16M /dev/urandom >"$TMPDIR/pattern"
	step "16 MiB are written" dd if="$TMPDIR/pattern" of="$d" bs=1M oflag=direct
	step "the other side has them" same /dev/nullb0 "$TMPDIR/pattern"
	step "and they are read" same "$d" "$TMPDIR/pattern"
	adm -m session -s
	step "logout" logout "$iqn"
	step "the disks are gone" refused has_disk "$iqn" 0
	step "twenty times login and logout" repeat 20 in_and_out
	step "kdat_iser.ko unloads" unloaded
	step "nothing is left in kDAPL" test "$(objects)" = 0
}
# iscsiadm loses an answer that comes before it knows that its PDU is sent.
discovered() {
	found=$(adm -m discovery -t st -p "$portal" -I iser) && echo "$found" &&
		[ "${found##* }" = "$iqn" ]
}
in_and_out() { login "$iqn" >/dev/null && logout "$iqn" >/dev/null; }
repeat() {	# N COMMAND...
	kd_k=$1
	shift
	while [ "$kd_k" -gt 0 ]; do
		"$@" || return
		kd_k=$((kd_k - 1))
	done
}

# fio writes a part of LUN 0 by requests of many sizes, and looks at all of it.
verify_part() {
	must "kdat_iser.ko loads" initiator
	for kd_params in "$@"; do
		# shellcheck disable=SC2086
		must "login with $kd_params" login_with $kd_params
		d=$(disk "$iqn" 0)
		for kd_i in 4k:1:24m 512-8k:16:8m 512-64k:32:48m 512k:8:64m 4k:32:24m; do
			kd_bs=${kd_i%%:*} kd_qd=${kd_i#*:}
			kd_size=${kd_qd#*:} kd_qd=${kd_qd%:*}
			before=$(moved "$d")
			step "blocks of $kd_bs, $kd_qd at a time, are read as written ($kd_params)" \
				verified "$d" "$kd_bs" "$kd_qd" "$kd_size"
			[ "$kd_bs" != 512k ] ||
				step "each in one command, as long as there may be" in_commands_of 1024
		done
		negotiated
		adm -m session -s | grep -i pdu
		step "logout" logged_out
	done
	step "kdat_iser.ko unloads" unloaded
}
verified() {	# DISK BLOCKSIZES DEPTH SIZE
	case $2 in
	*-*) kd_range=bsrange=$2 ;;
	*) kd_range=bs=$2 ;;
	esac
	fio --name=v --filename="$1" --direct=1 --ioengine=libaio --rw=randwrite --"$kd_range" \
		--bs_unaligned=0 --iodepth="$3" --size=$((slow == 1 ? ${4%m} : ${4%m} / 4))m \
		--verify=crc32c --verify_fatal=1 --do_verify=1 --minimal >"$TMPDIR/fio" 2>&1 ||
		{ cat "$TMPDIR/fio"; return 1; }
}
moved() { awk '{ print $1 + $5, $3 + $7 }' "/sys/block/${1##*/}/stat"; }	# commands, sectors
in_commands_of() {	# SECTORS, on the average, since $before
	# shellcheck disable=SC2046
	set -- "$1" $before $(moved "$d")
	echo "$(($5 - $3)) sectors in $(($4 - $2)) commands"
	[ $((($5 - $3) * 100)) -ge $((($4 - $2) * $1 * 99)) ]
}
login_with() {	# NAME=VALUE of the target...
	for kd_i; do
		set_to "${kd_i#*=}" "$kd_tpg/$iqn/tpgt_1/param/${kd_i%%=*}" || return
	done
	record "$iqn" && login "$iqn" && until_true 30 has_disk "$iqn" 0
}
logged_out_of() { logout "$1" && adm -m node -T "$1" -p "$portal" -o delete; }
logged_out() { logged_out_of "$iqn"; }
negotiated() {
	for kd_i in immediate_data initial_r2t first_burst_len; do
		echo "$kd_i $(cat /sys/class/iscsi_session/session*/$kd_i)"
	done
	echo "max_xmit_dlength $(cat /sys/class/iscsi_connection/connection*/max_xmit_dlength)"
}

# A WRITE takes more Data-Out PDUs than there are, which needs somebody who changes their length
# behind the back of iscsid. It fails, and the ones after it do not miss its number.
limits_part() {
	must "kdat_iser.ko loads" initiator
	must "login" login_with InitialR2T=No ImmediateData=Yes FirstBurstLength=65536
	d=$(disk "$iqn" 0)
	session=$(adm -m session) ended=$(ends)
	xmit=$(cat /sys/class/iscsi_connection/connection*/max_xmit_dlength)
	must "PDUs become short" max_xmit_dlength 512
	dd if=/dev/zero of="$d" bs=64k count=1 oflag=direct &
	writer=$!
	step "a command that takes too many of them ends" until_true 20 refused kill -0 $writer
	step "and so do others" dd if="$d" of=/dev/null bs=64k count=40 iflag=direct
	must "PDUs are as before" max_xmit_dlength "$xmit"
	step "it has failed" refused wait $writer
	step "and the log says so" logged "a command of 65536 bytes in .* cannot be sent"
	step "in the same session" test "$(adm -m session)" = "$session"
	step "by the same connection" test "$(ends)" = "$ended"
	step "the disk goes on" verified "$d" 64k 8 8m
	step "logout" logged_out
	step "kdat_iser.ko unloads" unloaded
}
# How many connections have ended, and how often iscsid was told so.
ends() { dmesg | grep -c "the connection has ended" || :; }
told() { dmesg | grep -c "detected conn error" || :; }
max_xmit_dlength() {	# BYTES of the only session, by what iscsid tells the kernel before it starts
	python3 - "$1" <<-'E'
		import glob, re, socket, struct, sys
		value = sys.argv[1].encode() + b"\0"
		with open("/sys/class/iscsi_transport/iser/handle") as f:
		    handle = int(f.read())
		sid = int(re.search(r"\d+$", glob.glob("/sys/class/iscsi_session/session*")[0])[0])
		event = struct.pack("=IIQIIII24x", 16, 0, handle, sid, 0, 1, len(value)) + value
		s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 8)
		s.send(struct.pack("=IHHII", 16 + len(event), 16, 0, 0, 0) + event)
		sys.exit(struct.unpack_from("=i", s.recv(4096), 16 + 4)[0] != 0)
	E
}

# File systems, and what fsck says of them.
files_part() {
	must "kdat_iser.ko loads" initiator
	must "login" login_with InitialR2T=Yes ImmediateData=Yes
	mkdir "$TMPDIR/mnt"
	must "LUN 1 is a disk" until_true 30 has_disk "$iqn" 1
	for kd_fs in ext4 xfs; do
		mp $kd_fs
		kd_i=0
		[ $kd_fs = ext4 ] || kd_i=1
		d=$(disk "$iqn" $kd_i)
		case $kd_fs in
		ext4) must "ext4" mkfs.ext4 -q -F "$d" ;;
		xfs) must "xfs" mkfs.xfs -q -f "$d" ;;
		esac
		must "$kd_fs is mounted" mount -t $kd_fs "$d" "$TMPDIR/mnt"
		step "files are copied to $kd_fs" cp -r "$TOP/kdapl" "$TOP/Documentation" "$TMPDIR/mnt/"
		must "unmounted" umount "$TMPDIR/mnt"
		case $kd_fs in
		ext4) step "fsck has nothing to say" e2fsck -fn "$d" ;;
		xfs) step "xfs_repair has nothing to say" xfs_repair -n "$d" ;;
		esac
		must "mounted again" mount -t $kd_fs "$d" "$TMPDIR/mnt"
		step "the files are as they were" diff -r "$TOP/kdapl" "$TMPDIR/mnt/kdapl"
		must "unmounted again" umount "$TMPDIR/mnt"
	done
	step "logout" logged_out
	step "kdat_iser.ko unloads" unloaded
}

# systemd's udevd, but for the rule that renames devices of RDMA.
udev_up() {
	mkdir -p /run/udev /etc/udev/rules.d &&
		ln -sf /dev/null /etc/udev/rules.d/60-rdma-persistent-naming.rules || return
	setsid /lib/systemd/systemd-udevd >>"$TMPDIR/udevd.log" 2>&1 &
	udevd=$!
	until_true 20 test -S /run/udev/control && udevadm trigger --subsystem-match=block &&
		udevadm settle --timeout=60
}
udev_down() { kill "$udevd" && wait "$udevd" || :; }
naa_of() { sed 's/^naa\.//' "/sys/block/${1##*/}/device/wwid"; }
links_to() { [ "$(readlink -f "$1")" = "$2" ]; }

links_part() {
	must "kdat_iser.ko loads" initiator
	must "udevd runs" udev_up
	must "login" login_with InitialR2T=Yes ImmediateData=Yes
	must "LUN 1 is a disk" until_true 30 has_disk "$iqn" 1
	for kd_i in 0 1; do
		d=$(disk "$iqn" $kd_i)
		step "by-path names portal, target and LUN $kd_i" until_true 30 links_to \
			"/dev/disk/by-path/ip-$portal-iscsi-$iqn-lun-$kd_i" "$d"
		step "by-id has the name that the target gives LUN $kd_i" until_true 30 links_to \
			"/dev/disk/by-id/wwn-0x$(naa_of "$d")" "$d"
	done
	step "logout" logged_out
	step "the links are gone" until_true 30 refused test -e \
		"/dev/disk/by-path/ip-$portal-iscsi-$iqn-lun-0"
	udev_down
	step "kdat_iser.ko unloads" unloaded
}

# The third disk is the first two thirds of its device; then all of it.
resize_part() {
	must "kdat_iser.ko loads" initiator
	mp ext4
	must "login" login_with InitialR2T=Yes ImmediateData=Yes
	must "LUN 2 is a disk" until_true 30 has_disk "$iqn" 2
	d=$(disk "$iqn" 2)
	must "ext4 on it" mkfs.ext4 -q -F "$d"
	mkdir -p "$TMPDIR/mnt"
	must "mounted" mount -t ext4 "$d" "$TMPDIR/mnt"
	must "files are copied" cp -r "$TOP/kdapl" "$TMPDIR/mnt/"
	must "the store grows" slow_disk 196608
	step "unseen by the initiator" test "$(blockdev --getsz "$d")" = 131072
	step "iscsiadm looks again" adm -m session --rescan
	step "the disk has grown" until_true 30 has_size "$d" 196608
	step "and so does the file system" resize2fs "$d"
	step "what is more is used" dd if=/dev/zero of="$TMPDIR/mnt/more" bs=1M count=60 conv=fsync
	must "unmounted" umount "$TMPDIR/mnt"
	step "fsck has nothing to say" e2fsck -fn "$d"
	must "mounted again" mount -t ext4 "$d" "$TMPDIR/mnt"
	step "the files are as they were" diff -r "$TOP/kdapl" "$TMPDIR/mnt/kdapl"
	must "unmounted again" umount "$TMPDIR/mnt"
	step "logout" logged_out
	must "the store is as it was" slow_disk 131072
	step "kdat_iser.ko unloads" unloaded
}
slow_disk() {	# SECTORS: the third disk of LIO has so many
	dmsetup reload kdslow --table "0 $1 linear /dev/nullb2 0" &&
		dmsetup resume --noudevsync kdslow
}
has_size() { test "$(blockdev --getsz "$1")" = "$2"; }

# Two portal groups of the target, each of which is lost once. The disk above goes on.
paths_part() {
	must "kdat_iser.ko loads" initiator
	must "dm-multipath loads" mp dm_multipath
	must "udevd runs" udev_up
	cat >/etc/multipath.conf <<-'E'
		defaults {
			find_multipaths no
			user_friendly_names no
			path_grouping_policy multibus
			polling_interval 1
			max_polling_interval 1
			no_path_retry queue
		}
		blacklist {
			devnode ".*"
		}
		blacklist_exceptions {
			devnode "^sd"
		}
	E
	multipathd -d -s -v 2 >>"$TMPDIR/multipathd.log" 2>&1 &
	multipathd=$!
	in_group 1
	must "a record, which gives up soon" record "$iqn" node.session.timeo.replacement_timeout=1
	must "login" login "$iqn"
	must "LUN 0 is a disk" until_true 30 has_disk "$iqn" 0
	wwid=3$(naa_of "$(disk "$iqn" 0)")
	in_group 2
	must "another portal group" lio_target "$iqn" 0
	must "that listens" lio_listen "$iqn" "$p"
	must "a record" record "$iqn" node.session.timeo.replacement_timeout=1
	must "login" login "$iqn"
	must "two paths are active" until_true 60 active_paths 2
	d=/dev/mapper/$wwid
	must "they are one disk" until_true 30 test -b "$d"
	start_writing "$d"
	step "it is written and read" goes_on 3
	for kd_i in 1 2; do
		must "portal group $kd_i is disabled" set_to 0 "$kd_tpg/$iqn/tpgt_$kd_i/enable"
		step "one path is active" until_true 60 active_paths 1
		step "the disk goes on" goes_on 3
		must "portal group $kd_i is enabled" set_to 1 "$kd_tpg/$iqn/tpgt_$kd_i/enable"
		step "two paths are active" until_true 120 active_paths 2
		step "and the disk goes on" goes_on 3
	done
	stop_writing
	for kd_i in 1 2; do
		step "the maps are flushed" until_true 30 multipath -F
		in_group $kd_i
		step "logout" logged_out
	done
	in_group 2
	must "the second group goes" lio_deaf "$iqn"
	in_group 1
	kill "$multipathd"
	wait "$multipathd" || :
	udev_down
	step "kdat_iser.ko unloads" unloaded
}
in_group() { tpgt=$1 portal=192.0.2.1:$((3259 + $1)); }
active_paths() {
	[ "$(multipathd show paths format "%w %t %T" | grep -c "^$wwid active ready")" = "$1" ]
}

# A backing store that does not answer. (For no longer than an abort may take: if a connection ends
# while LIO waits for a command to abort, it takes no login any more, of ib_iser neither.)
abort_part() {
	must "kdat_iser.ko loads" initiator
	must "login" login_with InitialR2T=Yes ImmediateData=Yes
	must "LUN 2 is a disk" until_true 30 has_disk "$iqn" 2
	d=$(disk "$iqn" 2)
	echo 3 >"/sys/block/${d##*/}/device/timeout"
	start_writing "$d"
	step "it is written and read" goes_on 3
	for kd_i in 1 2 3; do
		before_tm=$(stat_of tmfcmd_pdus)
		must "the store stalls" dmsetup suspend --noflush --nolockfs kdslow
		step "commands are aborted" until_true 60 more_tm
		must "the store goes on" dmsetup resume kdslow
		step "and so does the disk" goes_on 3
	done
	before_tm=$(stat_of tmfcmd_pdus)
	step "the unit is reset under load" sg_reset -d "$d"
	step "by task management" more_tm
	step "it is written and read" goes_on 3
	stop_writing
	step "logout" logged_out
	step "kdat_iser.ko unloads" unloaded
}

# A disk of the hostile target, which is kind so far.
hostile_disk() {
	must "a hostile target" insmod "$KO/kdiserfuzz.ko" ia="${p}0-1"
	portal=192.0.2.1:3261
	bad=iqn.2026-11.example.kdapl:hostile
	must "a record" record "$bad"
	must "login" login "$bad"
	must "a disk" until_true 30 has_disk "$bad" 0
	d=$(disk "$bad" 0)
}

stat_of() { adm -m session -s | sed -n "s/.*$1: //p" | head -1; }
more_tm() { [ "$(stat_of tmfcmd_pdus)" -gt "$before_tm" ]; }

# Half of the third disk stalls, then the other half. A reset, which nobody waits for any more, is
# answered in between: that is about commands sent before it, not about those sent since.
giveup_part() {
	must "kdat_iser.ko loads" initiator
	must "the third disk is two halves" halves
	must "login" login_with InitialR2T=Yes ImmediateData=Yes
	must "LUN 2 is a disk" until_true 30 has_disk "$iqn" 2
	d=$(disk "$iqn" 2)
	head -c 64k /dev/urandom >"$TMPDIR/pattern"
	must "the second half is written" \
		dd if="$TMPDIR/pattern" of="$d" bs=64k seek=512 oflag=direct
	ended=$(ends) answered=$(stat_of tmfrsp_pdus)
	echo $((3 * slow)) >"/sys/block/${d##*/}/device/timeout"
	must "the first half stalls" stalls kdfirst
	dd if="$d" of=/dev/null bs=64k count=1 iflag=direct &
	first=$!
	kd_n=0
	must "it waits there" until_true 60 more_in_flight
	step "somebody asks for a reset, and gives up" gives_up
	must "the second half stalls" stalls kdsecond
	kd_n=$(in_flight)
	dd if="$d" of="$TMPDIR/r" bs=64k skip=512 count=1 iflag=direct &
	second=$!
	must "it waits there, too" until_true 60 more_in_flight
	must "the first half goes on" dmsetup resume --noudevsync kdfirst
	step "the reset is answered" until_true 20 answered
	must "the second half goes on" dmsetup resume --noudevsync kdsecond
	step "a command sent since then ends" wait $second
	step "what it has read is right" cmp "$TMPDIR/pattern" "$TMPDIR/r"
	step "so does the one before, after another reset" wait $first
	step "all by the same connection" test "$(ends)" = "$ended"
	step "logout" logged_out
	must "the third disk is one again" one_half

	# The answer to what was given up comes after the next one was sent.
	hostile_disk
	ended=$(ends)
	must "it answers task management late" set_to Y /sys/module/kdiserfuzz/parameters/hold
	for kd_i in 1 2 3; do
		step "somebody asks for a reset, and gives up" gives_up
		step "another one is made" timeout 60 sg_reset -N -d "$d"
	done
	step "the disk goes on" dd if="$d" of=/dev/null bs=64k iflag=direct count=2
	step "by the same connection" test "$(ends)" = "$ended"
	step "logout" logged_out_of "$bad"
	step "kdat_iser.ko unloads" unloaded
	step "the target unloads" rmmod kdiserfuzz
	portal=192.0.2.1:3260
}
answered() { [ "$(stat_of tmfrsp_pdus)" -gt "$answered" ]; }
in_flight() { awk '{ print $1 }' "/sys/block/${d##*/}/inflight"; }
more_in_flight() { [ "$(in_flight)" -gt "$kd_n" ]; }
gives_up() {	# when the target has been asked
	before_tm=$(stat_of tmfcmd_pdus)
	sg_reset -N -d "$d" &
	kd_reset=$!
	until_true 60 more_tm && kill $kd_reset && refused wait $kd_reset
}
stalls() { dmsetup suspend --noflush --nolockfs "$1"; }
mapped() { echo "/dev/$(dmsetup info -c --noheadings -o blkdevname "$1")"; }
halves() {
	dmsetup create --noudevsync kdfirst --table "0 65536 linear /dev/nullb2 0" &&
		dmsetup create --noudevsync kdsecond --table "0 65536 linear /dev/nullb2 65536" &&
		printf '0 65536 linear %s 0\n65536 65536 linear %s 0\n' "$(mapped kdfirst)" \
			"$(mapped kdsecond)" | dmsetup reload kdslow &&
		dmsetup resume --noudevsync kdslow
}
one_half() {
	slow_disk 131072 && dmsetup remove --noudevsync kdfirst &&
		dmsetup remove --noudevsync kdsecond
}

# Blocks are written, read and compared until it is told to stop, or an error.
start_writing() {
	rm -f "$TMPDIR/stop"
	echo 0 >"$TMPDIR/count"
	(
		i=0
		until [ -e "$TMPDIR/stop" ]; do
			i=$((i + 1))
			head -c 128k /dev/urandom >"$TMPDIR/w"
			dd if="$TMPDIR/w" of="$1" bs=32k seek=$((i % 50 * 4)) oflag=direct \
				conv=notrunc 2>"$TMPDIR/w.err" || exit
			dd if="$1" of="$TMPDIR/r" bs=16k skip=$((i % 50 * 8)) count=8 \
				iflag=direct 2>"$TMPDIR/w.err" || exit
			cmp "$TMPDIR/w" "$TMPDIR/r" || exit
			echo $i >"$TMPDIR/count.new"
			mv "$TMPDIR/count.new" "$TMPDIR/count"
		done
	) &
	writer=$!
}
stop_writing() {
	: >"$TMPDIR/stop"
	step "nothing was lost" wait "$writer" || cat "$TMPDIR/w.err"
}
more() { [ "$(cat "$TMPDIR/count")" -gt "$before" ]; }
goes_on() {	# ROUNDS from now on
	before=$(($(cat "$TMPDIR/count") + $1))
	until_true 120 more
}

# The connection ends, in every way, while the disk is used.
faults_part() {
	must "kdat_iser.ko loads" initiator
	must "login" login_with InitialR2T=Yes ImmediateData=Yes
	d=$(disk "$iqn" 0)
	start_writing "$d"
	step "it is written and read" goes_on 3
	for kd_i in 1 2 3; do
		must "the target is disabled" set_to 0 "$kd_tpg/$iqn/tpgt_1/enable"
		step "the session is lost" until_true 60 refused logged_in
		must "the target is enabled" set_to 1 "$kd_tpg/$iqn/tpgt_1/enable"
		step "the session comes back" until_true 120 logged_in
		step "and the disk goes on" goes_on 3
	done
	must "the device is removed" rdma link delete "${p}0"
	step "the session is lost" until_true 60 refused logged_in
	must "the device comes back" rdma link add "${p}0" type "$p" netdev kd0
	must "the target forgets its portal" lio_deaf "$iqn"
	must "and has it again" lio_listen "$iqn" "$p"
	step "the session comes back" until_true 120 logged_in
	step "and the disk goes on" goes_on 3
	iscsid_down
	must "without iscsid the target is disabled" set_to 0 "$kd_tpg/$iqn/tpgt_1/enable"
	step "the session is lost" until_true 60 refused logged_in
	must "the target is enabled" set_to 1 "$kd_tpg/$iqn/tpgt_1/enable"
	must "iscsid runs again" iscsid_up
	step "the session comes back" until_true 120 logged_in
	step "and the disk goes on" goes_on 3
	stop_writing
	adm -m node -T "$iqn" -p "$portal" -I iser -o update \
		-n node.session.timeo.replacement_timeout -v 2
	echo 2 >/sys/class/iscsi_session/session*/recovery_tmo 2>/dev/null || :
	must "the target is disabled" set_to 0 "$kd_tpg/$iqn/tpgt_1/enable"
	step "the session is lost" until_true 60 refused logged_in
	step "after replacement_timeout reads fail" \
		refused dd if="$d" of=/dev/null bs=4k count=1 iflag=direct
	must "the target is enabled" set_to 1 "$kd_tpg/$iqn/tpgt_1/enable"
	step "the session comes back" until_true 120 logged_in
	step "and so does the disk" until_true 60 dd if="$d" of=/dev/null bs=4k count=1 iflag=direct
	step "logout" logged_out
	step "kdat_iser.ko unloads" unloaded
	step "nothing is left in kDAPL" test "$(objects)" = 0
}

# Whoever connects to a portal that does not answer costs the others nothing: the iSCSI class does
# one thing at a time, for all sessions.
dead_part() {
	must "kdat_iser.ko loads" initiator
	must "login" login_with InitialR2T=Yes ImmediateData=Yes
	must "nobody answers at other addresses" ip link set kd0 arp on
	portal=192.0.2.77:3260
	must "a record of one of those" record iqn.2026-11.example.kdapl:dead \
		node.session.initial_login_retry_max=2
	login iqn.2026-11.example.kdapl:dead &
	dead=$!
	longest=0 slowly=0
	for kd_i in 1 2 3 4 5 6 7 8; do
		kd_begun=$(date +%s%N)
		adm -m session -s >/dev/null || break
		kd_took=$((($(date +%s%N) - kd_begun) / 1000000))
		[ $kd_took -le $longest ] || longest=$kd_took
		[ $kd_took -lt 1500 ] || slowly=$((slowly + 1))
		sleep 0.3
	done
	echo "iscsid has taken up to $longest ms for others"
	# Once the whole machine may have stood still.
	step "iscsid serves others meanwhile" test "$kd_i$((slowly < 2))" = 81
	step "the login fails" refused wait $dead
	step "and the log says why" logged "192.0.2.77:3260: cannot connect: -\(113\|EHOSTUNREACH\)"
	ip link set kd0 arp off
	adm -m node -T iqn.2026-11.example.kdapl:dead -p "$portal" -o delete
	portal=192.0.2.1:3260
	step "logout" logged_out
	step "kdat_iser.ko unloads" unloaded
}

# A session can be destroyed in a work item, which has no reference to the module but that of the
# session. (iscsid of Debian waits for the end; others do not.)
unload_part() {
	for kd_i in 1 2 3 4 5; do
		must "kdat_iser.ko loads" initiator
		must "login" login_with InitialR2T=Yes ImmediateData=Yes
		iscsid_down
		step "the module goes the moment its session does" timeout 60 python3 - <<-'E'
			import ctypes, errno, glob, os, re, socket, struct, sys
			c = ctypes.CDLL(None, use_errno=True)
			with open("/sys/class/iscsi_transport/iser/handle") as f:
			    handle = int(f.read())
			sid = int(re.search(r"\d+$", glob.glob("/sys/class/iscsi_session/session*")[0])[0])
			s = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 8)
			# stop and destroy the connection, destroy the session, do not wait for that
			for what, *args in (18, sid, 0, 0, 0, 1), (14, sid, 0), (43, sid):
			    event = struct.pack("=IIQ%dI" % len(args), what, 0, handle, *args).ljust(56, b"\0")
			    s.send(struct.pack("=IHHII", 16 + len(event), what, 0, 0, 0) + event)
			while c.syscall(176, b"kdat_iser", os.O_NONBLOCK):	# delete_module()
			    if ctypes.get_errno() not in (errno.EWOULDBLOCK, errno.EBUSY):
			        sys.exit(os.strerror(ctypes.get_errno()))
			    os.sched_yield()
		E
		must "iscsid runs again" iscsid_up
		adm -m node -T "$iqn" -p "$portal" -o delete
	done
	step "nothing is left in kDAPL" test "$(objects)" = 0
}

# Each login has one allocation fail that kdat_iser has asked for, or kDAPL for it: another one each
# time. iscsid tries again.
starve_part() {
	kd_fail=/sys/kernel/debug/failslab
	must "kdat_iser.ko loads" initiator
	must "a record" record "$iqn" node.session.initial_login_retry_max=4
	kd_text=$(($(cat /sys/module/kdat_iser/sections/.text)))
	must "allocations can fail" attributes $kd_fail verbose=0 task-filter=N ignore-gfp-wait=N \
		require-start="$(printf %#x $kd_text)" \
		require-end="$(printf %#x $((kd_text + 32768)))" probability=100
	kd_hits=0 kd_logins=0
	for kd_nth in 1 2 3 4 5 6 7 8 9 10 12 14 16 18 20 23 26 29 33 40 60 90 140 200 280; do
		set_to $kd_nth $kd_fail/interval
		set_to 1 $kd_fail/times
		! login "$iqn" >/dev/null 2>&1 || kd_logins=$((kd_logins + 1))
		[ "$(cat $kd_fail/times)" != 0 ] || kd_hits=$((kd_hits + 1))
		set_to 0 $kd_fail/times
		logout "$iqn" >/dev/null 2>&1 || :
	done
	set_to 0 $kd_fail/probability
	echo "$kd_hits allocations have failed, $kd_logins logins have not"
	step "most of them have failed" test $kd_hits -ge 15
	step "a login" login "$iqn"
	step "a disk" until_true 30 has_disk "$iqn" 0
	step "logout" logged_out
	step "no session is left" test -z "$(session_state)"
	step "kdat_iser.ko unloads" unloaded
	step "nothing is left in kDAPL" test "$(objects)" = 0
}

# A target that breaks the rules: each fault costs it the connection, and the disk goes on.
hostile_part() {
	kd_param=/sys/module/kdiserfuzz/parameters
	must "kdat_iser.ko loads" initiator
	ended=$(ends)
	hostile_disk
	step "sense data of the greatest length end no connection" test "$(ends)" = "$ended"
	# Two faults are answers that never come.
	must "commands time out soon" set_to $((2 * slow)) "/sys/block/${d##*/}/device/timeout"
	# Data in the command, in Data-Outs, and read by the target.
	must "it refuses to be written" set_to Y $kd_param/protect
	for kd_i in 512 4k 64k; do
		step "a WRITE of $kd_i fails before its data are there" \
			refused dd if=/dev/zero of="$d" bs=$kd_i count=4 oflag=direct
	done
	must "it refuses no more" set_to N $kd_param/protect
	head -c 256k /dev/urandom >"$TMPDIR/pattern"
	for kd_i in 64k:0:3 4k:48:12 512:480:32; do
		must "it is written, by ${kd_i%%:*}" written $kd_i
	done
	negotiated
	step "WRITEs of 4 KiB are sent" test "$(cat $kd_param/sent)" -ge 12
	step "no data is sent from memory that is lent" test "$(cat $kd_param/mixed)" = 0
	step "all by the same connection" test "$(ends)" = "$ended"
	step "each fault is committed, and what is read is right" read_through
	echo "$(cat $kd_param/faults) faults, $(cat $kd_param/ended) connections ended"
	step "each has ended the connection" until_true 60 all_ended
	step "data came too late twice" test "$(cat $kd_param/late)" -ge 2
	must "the session is there" until_true 60 logged_in
	kd_told=$(told)
	must "six logins get a bad answer" set_to 6 $kd_param/bad_logins
	# On busy CPUs what comes second for iscsid has the time to come.
	for kd_i in 1 2; do
		(while :; do :; done) &
		kd_busy="${kd_busy-} $!"
	done
	must "the connection ends" end_one
	step "one after the other" until_true 60 sh -c "[ \$(cat $kd_param/bad_logins) = 0 ]"
	step "the session is there again" until_true 60 logged_in
	# shellcheck disable=SC2086
	kill $kd_busy
	echo "iscsid was told $(($(told) - kd_told)) times"
	step "each of the seven ends was told once" test $(($(told) - kd_told)) = 7
	dmesg | sed -n 's/.*\(connection given up: .*\)/\1/p' | sort | uniq -c
	step "logout" logged_out_of "$bad"
	step "kdat_iser.ko unloads" unloaded
	step "the target unloads" rmmod kdiserfuzz
	portal=192.0.2.1:3260
}
written() {	# BLOCKSIZE:FIRST:COUNT of the pattern
	kd_bs=${1%%:*} kd_count=${1##*:}
	kd_at=${1#*:} kd_at=${kd_at%:*}
	dd if="$TMPDIR/pattern" of="$d" bs="$kd_bs" skip="$kd_at" seek="$kd_at" count="$kd_count" \
		oflag=direct
}
read_through() {
	while [ "$(cat $kd_param/faults)" -lt "$(cat $kd_param/kinds)" ]; do
		dd if="$d" of="$TMPDIR/r" bs=32k iflag=direct count=8 2>"$TMPDIR/r.err" ||
			{ cat "$TMPDIR/r.err"; return 1; }
		cmp "$TMPDIR/pattern" "$TMPDIR/r" || return
	done
}
all_ended() { [ "$(cat $kd_param/ended)" -ge "$(cat $kd_param/kinds)" ]; }

now() { cut -d. -f1 /proc/uptime; }
below() { echo $(($(od -An -N2 -tu2 /dev/urandom) % $1)); }
on() { [ "$(now)" -lt "$chaos_end" ]; }

# Three targets of LIO, and the hostile one. The first has sessions that nobody ends on purpose: no
# write of theirs may fail or be lost, whatever happens. Those of the others come and go, under load
# or killed; nothing may be read there that was not written.
chaos_part() {
	must "kdat_iser.ko loads" initiator
	come=iqn.2026-11.example.kdapl:come gone=iqn.2026-11.example.kdapl:gone
	bad=iqn.2026-11.example.kdapl:hostile
	must "one more disk" null_disk 3 64
	must "of LIO" lio_disk 3 /dev/nullb3
	must "and another one" null_disk 4 64
	must "of LIO" lio_disk 4 /dev/nullb4
	must "a target for sessions that come and go" lio_target $come 3
	must "which listens" lio_listen $come "$p"
	must "one for logins that are killed" lio_target $gone 4
	must "which listens" lio_listen $gone "$p"
	must "a hostile one" insmod "$KO/kdiserfuzz.ko" ia="${p}0-1"
	for kd_t in $come $gone; do
		must "a record" record $kd_t node.session.initial_login_retry_max=2 \
			node.session.timeo.replacement_timeout=10
	done
	(portal=192.0.2.1:3261 && record "$bad" node.session.initial_login_retry_max=2 \
		node.session.timeo.replacement_timeout=10)
	# LIO does not count a command that it has aborted as done, so its window shrinks by each.
	for kd_t in "$iqn" $come; do
		must "a window for many resets" set_to 512 "$kd_tpg/$kd_t/tpgt_1/attrib/default_cmdsn_depth"
	done
	must "login" login_with InitialR2T=No ImmediateData=Yes FirstBurstLength=65536
	lasting 3600
	for kd_lun in 0 2; do
		must "LUN $kd_lun is a disk" until_true 30 has_disk "$iqn" $kd_lun
		d=$(disk "$iqn" $kd_lun)
		echo $((2 * slow)) >"/sys/block/${d##*/}/device/timeout"
		# Each session that ends is a retry.
		echo -1 >"$(echo "/sys/block/${d##*/}"/device/scsi_disk/*/max_retries)"
		mkdir "$TMPDIR/io$kd_lun"
		"$TOP/tests/blkcheck" --threads $((8 / slow + 2)) --blocks 96 "$d" "$TMPDIR/io$kd_lun" \
			>"$TMPDIR/io$kd_lun/log" 2>&1 &
		eval "io$kd_lun=$!"
	done
	chaos_end=$(($(now) + $1))
	set +e
	coming >"$TMPDIR/coming" 2>&1 &
	kd_loops=$!
	killed >/dev/null 2>&1 &
	kd_loops="$kd_loops $!"
	hostile_load >/dev/null 2>&1 &
	kd_loops="$kd_loops $!"
	storm
	wait $kd_loops
	iscsid_is_up || iscsid_up
	set_to 1 "$kd_tpg/$iqn/tpgt_1/enable"
	set_to 1 "$kd_tpg/$come/tpgt_1/enable"
	set -e
	step "its session is there" until_true 200 lasts || iscsid_tells
	for kd_lun in 0 2; do
		step "LUN $kd_lun goes on" io_goes_on $kd_lun
	done
	for kd_lun in 0 2; do
		: >"$TMPDIR/io$kd_lun/stop"
		eval "kd_pid=\$io$kd_lun"
		step "LUN $kd_lun: nothing has failed, nothing was lost" wait "$kd_pid"
		cat "$TMPDIR/io$kd_lun/log"
	done
	grep -e "^come" -e "FAIL" -A 2 "$TMPDIR/coming" | tail -20
	step "nothing was read that was not written" refused grep holds "$TMPDIR/coming"
	step "every session ends" all_out || {
		! all_unbound || void "iscsid missed the end of a session's disks and waits for it"
		iscsid_tells
	}
	step "kdat_iser.ko unloads" unloaded
	step "the hostile target unloads" timeout 60 rmmod kdiserfuzz
	step "nothing is left in kDAPL" test "$(objects)" = 0
}
# What it waits for.
iscsid_tells() {
	for kd_s in /sys/class/iscsi_session/session*; do
		echo "${kd_s##*/}: $(cat "$kd_s/targetname" "$kd_s/state" "$kd_s/target_state" \
			"$kd_s"/device/connection*/iscsi_connection/*/state | tr '\n' ' ')"
	done
	grep -E "^(Name|State|Pid)" "/proc/$iscsid/status"
	cat /proc/"$iscsid"/task/*/stack "/proc/$iscsid/wchan"
	tail -n 30 "$TMPDIR/iscsid.log"
	return 1
}
# Has every session lost its disks, but not its connection? An iscsid that is killed, or has no memory
# for what the kernel tells it, misses that they are gone; the kernel does not say it again, and the
# next one waits for that before it sends a logout ("in invalid state for logout"). The same with
# ib_iser. A connection that is not up has had its logout, or more: if it does not end, that is ours.
all_unbound() {
	[ "$(cat /sys/class/iscsi_session/session*/target_state | sort -u)" = UNBOUND ] &&
		[ "$(cat /sys/class/iscsi_connection/connection*/state | sort -u)" = up ]
}
# The session of the first target.
lasts() {
	for kd_s in /sys/class/iscsi_session/session*; do
		[ "$(cat "$kd_s/targetname")" != "$iqn" ] || [ "$(cat "$kd_s/state")" != LOGGED_IN ] ||
			return 0
	done
	return 1
}
lasting() {
	for kd_s in /sys/class/iscsi_session/session*; do
		echo "$1" >"$kd_s/recovery_tmo"
	done
}
io_goes_on() {
	kd_done=$(cat "$TMPDIR/io$1/done")
	until_true 200 io_further "$1"
}
io_further() { [ "$(cat "$TMPDIR/io$1/done")" -gt $((kd_done + 20)) ]; }
killed_adm() {	# SECONDS ARGUMENTS
	kd_s=$1
	shift
	LD_LIBRARY_PATH=$kd_libs timeout -s KILL "$kd_s" "$kd_iscsi/sbin/iscsiadm" "$@"
	rm -f /run/lock/iscsi/lock.write
}
patiently() { killed_adm 40 "$@"; }
coming() {
	mkdir "$TMPDIR/come"
	kd_rounds=0
	while on; do
		patiently -m node -T $come -p "$portal" -I iser --login
		until_true 10 has_disk $come 0 || continue
		kd_rounds=$((kd_rounds + 1))
		kd_d=$(disk $come 0)
		rm -f "$TMPDIR/come/stop"
		# It passes on the signal that ends it: two at a time would read what the other wrote.
		timeout 60 "$TOP/tests/blkcheck" --errors --threads 3 --blocks 64 "$kd_d" \
			"$TMPDIR/come" &
		kd_io=$!
		sleep "$(below 3).$(below 10)"
		case $(below 4) in
		0) : >"$TMPDIR/come/stop" ;;
		1) echo 1 >"/sys/block/${kd_d##*/}/device/delete" ;;
		2) timeout -s INT 0.5 sg_reset -N -d "$kd_d" ;;
		esac
		[ "$(below 2)" = 0 ] || kill $kd_io
		patiently -m node -T $come -p "$portal" -I iser --logout
		kill $kd_io
		wait $kd_io
	done
	echo "come and gone: $kd_rounds times"
}
killed() {
	while on; do
		killed_adm "0.$(below 9)1" -m node -T $gone -p "$portal" -I iser --login
		sleep "0.$(below 10)"
		killed_adm "0.$(below 9)1" -m node -T $gone -p "$portal" -I iser --logout
		patiently -m node -T $gone -p "$portal" -I iser --logout
	done
}
hostile_load() {
	while on; do
		patiently -m node -T "$bad" -p 192.0.2.1:3261 -I iser --login
		if until_true 5 has_disk "$bad" 0; then
			kd_d=$(disk "$bad" 0)
			echo 1 >"/sys/block/${kd_d##*/}/device/timeout"
			timeout -s KILL 5 dd if=/dev/zero of="$kd_d" bs=64k count=8 oflag=direct
			timeout -s KILL "$(below 8)" dd if="$kd_d" of=/dev/null bs=32k iflag=direct
		fi
		[ "$(below 3)" = 0 ] || patiently -m node -T "$bad" -p 192.0.2.1:3261 -I iser --logout
	done
}
storm() {
	while on; do
		kd_order=$(below 10)
		echo "storm: $(now) $kd_order"
		case $kd_order in
		0) tpg_goes "$iqn" ;;
		1) tpg_goes $come ;;
		2 | 3) end_one ;;
		4) device_goes ;;
		5) store_stalls ;;
		6) reset_one ;;
		7) iscsid_dies ;;
		8) memory_is_short ;;
		9) allocations_fail ;;
		esac >/dev/null 2>&1
		rmmod kdat_iser 2>/dev/null && { echo "it was unloaded"; return 1; }
		sleep 0.$(below 10)
	done
}
tpg_goes() {
	set_to 0 "$kd_tpg/$1/tpgt_1/enable"
	sleep "0.$(below 10)"
	set_to 1 "$kd_tpg/$1/tpgt_1/enable"
}
end_one() {
	"$TOP/tools/kdapl" conn state=CONNECTED | sed -n 's/^ *\([0-9][0-9]*\) .*/\1/p' | shuf -n 1 |
		xargs -r -n 1 "$TOP/tools/kdapl" end
}
device_goes() {
	rdma link delete "${p}0"
	sleep "0.$(below 10)"
	rdma link add "${p}0" type "$p" netdev kd0
	for kd_t in "$iqn" $come $gone; do lio_deaf "$kd_t"; done
	for kd_t in "$iqn" $come $gone; do lio_listen "$kd_t" "$p"; done
	timeout 60 rmmod kdiserfuzz
	insmod "$KO/kdiserfuzz.ko" ia="${p}0-1"
}
# Not while the session is away: see abort_part.
store_stalls() {
	until_true 10 lasts || return
	stalls kdslow
	sleep $((4 + 2 * slow))
	dmsetup resume --noudevsync kdslow
}
reset_one() {
	kd_d=$(disk "$iqn" "$(below 3)")
	case $(below 3) in
	0) timeout -s INT "0.$(below 9)1" sg_reset -N -d "$kd_d" ;;
	1) timeout -s INT 20 sg_reset -N -d "$kd_d" ;;
	2) timeout -s INT 20 sg_reset -N -t "$kd_d" ;;
	esac
}
iscsid_dies() {
	iscsid_killed
	sleep "$(below 3).$(below 10)"
	iscsid_up
}
memory_is_short() {
	echo 3 >/proc/sys/vm/drop_caches
	echo 1 >/proc/sys/vm/compact_memory
	timeout -s KILL 3 python3 -c "
import mmap, re
free = int(re.search(r'MemAvailable: *(\d+)', open('/proc/meminfo').read())[1]) << 10
with mmap.mmap(-1, free - (24 << 20)) as m:
    for i in range(0, len(m), 4096):
        m[i] = 1"
}
# Those of iscsid, a few at random.
allocations_fail() {
	cd /sys/kernel/debug/failslab || return
	echo Y >task-filter && echo N >ignore-gfp-wait && echo 0 >verbose && echo 5 >probability &&
		echo -1 >times && echo 1 >"/proc/$iscsid/make-it-fail"
	sleep "$(below 3).$(below 10)"
	echo 0 >probability
	echo 0 >"/proc/$iscsid/make-it-fail"
	cd /
	iscsid_is_up || iscsid_up
}
# What a killed login or a killed iscsid has left needs a hand.
all_out() {
	iscsid_dies
	adm -m node --logoutall=all >/dev/null 2>&1
	kd_tries=20
	while [ $kd_tries -gt 0 ] && [ "$(session_state)" ]; do
		for kd_s in /sys/class/iscsi_session/session*; do
			patiently -m session -r "${kd_s##*session}" -u
		done
		kd_tries=$((kd_tries - 1))
		sleep 1
	done
	[ -z "$(session_state)" ]
}

must "a device" loopback_dev "$p"
must "a writable /etc" own_etc
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
# LIO takes commands as long as its disk does: 124 KiB of one that does not say.
must "a disk" null_disk 0 256 max_sectors=2048
must "another one" null_disk 1 320
must "LIO" lio
must "with the first disk" lio_disk 0 /dev/nullb0
must "and the second one" lio_disk 1 /dev/nullb1
must "a third one, which can stall" null_disk 2 96
mp dm_mod
must "by the device mapper" dmsetup create --noudevsync kdslow --table "0 131072 linear /dev/nullb2 0"
must "it is the third one" lio_disk 2 /dev/dm-0
must "and a target" lio_target "$iqn" 0 1 2
must "that listens" lio_listen "$iqn" "$p"
must "iscsid runs" open_iscsi "$kit"
for part; do
	case $part in
	name) name_part ;;
	chap) chap_part ;;
	basic) basic_part ;;
	verify)
		verify_part "InitialR2T=Yes ImmediateData=Yes" \
			"InitialR2T=No ImmediateData=Yes FirstBurstLength=65536" \
			"InitialR2T=No ImmediateData=No FirstBurstLength=32768" \
			"InitialR2T=Yes ImmediateData=No" ;;
	limits) limits_part ;;
	files) files_part ;;
	links) links_part ;;
	resize) resize_part ;;
	paths) paths_part ;;
	abort) abort_part ;;
	giveup) giveup_part ;;
	hostile) hostile_part ;;
	faults) faults_part ;;
	dead) dead_part ;;
	unload) unload_part ;;
	starve) starve_part ;;
	chaos-*) chaos_part "${part#chaos-}" ;;
	esac
done
finish
