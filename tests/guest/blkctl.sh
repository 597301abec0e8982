# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blkctl.sh rxe|siw net|dev|one: kdblkctl, and what user space sees of a disk: sysfs, the rules of
# udev, uevents. What the units run is run here, without systemd.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2
. "$TOP/tests/guest/blk-lib.sh"
there=192.0.2.2
case $where in
net) two_namespaces "$p"; a=${p}0 b=${p}1 ;;
dev) two_devices "$p"; a=${p}0 b=${p}1 ;;
one) loopback_dev "$p"; a=${p}0 b=${p}0 there=192.0.2.1 ;;
esac
tools=$TOP/ulp_example/kdblk/tools
ctl() { "$tools/kdblkctl" "$@" 2>"$TMPDIR/said"; }
# fails_saying WORDS COMMAND...: and nothing but one sentence
fails_saying() {
	kd_words=$1
	shift
	if ctl "$@" >"$TMPDIR/printed"; then
		return 1
	fi
	[ "$(wc -l <"$TMPDIR/said")" = 1 ] && grep -q -e "$kd_words" "$TMPDIR/said" && {
		tell "$(cat "$TMPDIR/said")"
		return
	}
	cat "$TMPDIR/said"
	return 1
}
prints() {	# WORDS COMMAND...
	kd_words=$1
	shift
	ctl "$@" >"$TMPDIR/printed" && grep -q -e "$kd_words" "$TMPDIR/printed" && return
	cat "$TMPDIR/said" "$TMPDIR/printed"
	return 1
}
# Where a route leads is looked up in the first network namespace.
ctl_empty() {
	mkdir $kd_initiator/x && set_to "$a-1" $kd_initiator/x/ia || return
	case $where in
	net) refused ctl connect x ia= address=$there disk=d initiator=me ;;
	*) ctl connect x ia= address=$there disk=d initiator=me ;;
	esac
}
none() { [ "$(find $kd_initiator $kd_target/disks $kd_target/portals -mindepth 1 -maxdepth 1)" = "" ]; }

configfs
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
step "without the module kdblkctl says which" fails_saying "module kdblk is not loaded" \
	connect d ia="$a-1" address=$there
must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
must "a disk of 64 MiB" null_disk 0 64
mp ext4
must "with a file system" mkfs.ext4 -q -L kdlabel /dev/nullb0
uuid=$(blkid -o value -s UUID /dev/nullb0)

# Errors, each with its reason; what could not be made is not left behind.
step "a path that does not exist" fails_saying "does not exist\|cannot open" export d /nonesuch
step "a path that is a directory" fails_saying "directory\|regular file" \
	export d "$TMPDIR"
step "a setting that does not exist" fails_saying "has no setting 'colour'" \
	export d /dev/nullb0 colour=blue
step "nothing is left of these" none
must "exported" ctl export d /dev/nullb0 serial="KD 0001" allow=me
step "a setting that cannot be changed now" fails_saying "can.* be changed" \
	export d read_only=1
step "connecting when nothing listens" fails_saying "no portal listens\|nothing listens" \
	connect d ia="$a-1" address=$there
must "a portal listens" ctl listen t ia="$b-1"
step "an initiator that is not allowed" fails_saying "allow=INITIATOR" \
	connect d ia="$a-1" address=$there initiator=you
step "a disk that the target does not have" fails_saying "has no disk" \
	connect nonesuch ia="$a-1" address=$there initiator=me
step "an adapter that does not exist" fails_saying "adapter.* is not there\|adapter.* does not exist" \
	connect d ia=nonesuch0-1 address=$there initiator=me
step "something that is not an address" fails_saying "not an IPv4 or IPv6 address" \
	connect d ia="$a-1" address=somewhere initiator=me
step "a number out of range" fails_saying "depth=0" \
	connect d ia="$a-1" address=$there initiator=me depth=0
step "disconnecting a disk that does not exist" fails_saying "there is no disk 'd'" disconnect d
step "a name that is a path" fails_saying "a name has" connect a/b ia="$a-1" address=$there
step "a name that is none" fails_saying "a name has" connect "" ia="$a-1" address=$there
step "the directory above" fails_saying "a name has" disconnect ..
step "a name with control characters, which are not printed" fails_saying "'a?b'" \
	connect "$(printf 'a\033b')" ia="$a-1" address=$there
step "bytes that are no text" fails_saying "has no setting" \
	connect d "$(printf 'col\377r')=x"
step "two lines" fails_saying "one line" connect d "$(printf 'ia=a\nb')"
step "an initiator that is not a name" fails_saying "not a name" export e /dev/nullb0 allow=a/b
step "a portal that allows" fails_saying "'allow' is for exports" listen u ia="$b-1" allow=me
step "a file that cannot be written" fails_saying "No such file" save "$TMPDIR/nonesuch/x"
step "a file that is not there" fails_saying "No such file" restore "$TMPDIR/nonesuch"
step "no initiator is left of these" test -z "$(ls $kd_initiator)"
step "nor an export or portal" test "$(ls $kd_target/disks $kd_target/portals | wc -w)" = 4

# What user space sees.
must "connected, its device is printed" prints '^kdblk0$' connect d ia="$a-1" address=$there \
	initiator=me reconnect_max=2 reconnect_delay_ms=200 keepalive_ms=5000
step "it cannot be connected twice" fails_saying "it is connected" connect d
must "another one, of the adapter that leads there" ctl_empty
step "a setting of which nothing is given is cleared" test "$(cat $kd_initiator/x/ia)" = ""
step "it leaves" ctl disconnect x
parent=/sys/block/kdblk0/device
step "its parent in sysfs has the name of the disk here" \
	test "$(readlink -f $parent)" = "$(readlink -f /sys/class/kdblk/d)"
step "serial" grep -qx KD_0001 $parent/serial
step "wwid" grep -qx kdblk.KD_0001 $parent/wwid
step "model" grep -qx d $parent/model
step "address" grep -qx "$there:[0-9]*" $parent/address
device_of() { readlink -f "/sys/class/infiniband/$1/device"; }
has_adapter() { [ "$(readlink -f $parent/adapter)" = "$(device_of "$a")" ]; }
if [ -e "/sys/class/infiniband/$a/device" ]; then
	step "the link to the adapter" until_true 10 has_adapter
fi
lsblk -dno SERIAL,MODEL,VENDOR /dev/kdblk0 >"$TMPDIR/lsblk"
step "lsblk shows serial and model" grep -q '^KD_0001 *d *kDAPL' "$TMPDIR/lsblk"
if [ -d /usr/lib/udev ]; then
	mkdir -p /run/udev/rules.d
	cp "$tools/60-kdblk.rules" /run/udev/rules.d/
	# later versions indent the properties
	udevadm test --action=add /sys/block/kdblk0 2>&1 | sed 's/^ *//' >"$TMPDIR/udev"
	for kd_i in disk/by-id/kdblk-KD_0001 "disk/by-path/ip-$there:4420-kdblk-d" \
		"disk/by-uuid/$uuid" disk/by-label/kdlabel; do
		kd_i=$(echo "$kd_i" | sed "s/:4420/:$(sed 's/.*://' $parent/address)/")
		step "udev: ${kd_i%/*}" grep -q "^DEVLINKS=.*/dev/$kd_i\( \|$\)" "$TMPDIR/udev" ||
			tail -n 40 "$TMPDIR/udev"
	done
	for kd_i in ID_SERIAL_SHORT=KD_0001 ID_WWN=kdblk.KD_0001 ID_MODEL=d ID_FS_TYPE=ext4; do
		step "udev: $kd_i" grep -qx "$kd_i" "$TMPDIR/udev"
	done
fi

# A uevent when the connection is lost, when it is back, when recovery gives up.
told() { grep -qx "KDBLK_STATE=$1" "$TMPDIR/uevents"; }
udevadm monitor --kernel --property --subsystem-match=kdblk >"$TMPDIR/uevents" 2>&1 &
monitor=$!
must "the monitor of uevents listens" until_true 20 grep -q KERNEL "$TMPDIR/uevents"
set_to 0 $kd_target/portals/t/enable
step "uevent of the loss" until_true 20 told recovering
step "it has the name of the disk" grep -qx KDBLK_NAME=d "$TMPDIR/uevents"
step "and of its device" grep -qx KDBLK_DEVICE=kdblk0 "$TMPDIR/uevents"
step "uevent when recovery gives up" until_true 60 told failed
step "kdblkctl list shows it" prints '^d  *kdblk0  *failed' list
# For the next loss; an attribute of the connection may be changed now.
set_to 100 $kd_initiator/d/fast_io_fail_ms
# What kdblk-reconnect@d.service runs.
"$tools/kdblkctl" connect --retry -- d >"$TMPDIR/again" 2>&1 &
again=$!
step "connecting again is tried until it succeeds" until_true 20 grep -q "trying again" "$TMPDIR/again"
tell "$(cat "$TMPDIR/again")"
set_to 1 $kd_target/portals/t/enable
step "and does" wait $again
step "uevent of the return" until_true 20 told live
told_again() { [ "$(grep -cx "KDBLK_STATE=$1" "$TMPDIR/uevents")" = 2 ]; }
fails_commands() { grep -qx "failing 1" $kd_initiator/d/stats; }
set_to 0 $kd_target/portals/t/enable
step "commands fail soon, attempts go on" until_true 20 fails_commands
step "uevent when recovery gives up then" until_true 60 told_again failed
set_to 0 $kd_initiator/d/fast_io_fail_ms
set_to 1 $kd_target/portals/t/enable
step "it is connected again" ctl connect --retry -- d
kill $monitor
wait $monitor || :

# Sessions of an export; a disk that grows.
list_number() { ctl sessions d | awk '{ print $1 }'; }
losses() { sed -n 's/^losses //p' $kd_initiator/d/stats; }
must "the session is listed" prints '^[0-9]* me t ' sessions d
step "sessions of an export that does not exist" fails_saying "there is no export 'e'" sessions e
step "a session that does not exist" fails_saying "no session has the number 4711" kick d 4711
step "something that is no number" fails_saying "the number of a session is needed" kick d x
dd if=/dev/kdblk0 of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null
number=$(list_number)
before=$(losses)
step "it is kicked" ctl kick d "$number"
lost_one() { [ "$(losses)" != "$before" ]; }
other_number() { [ -n "$(list_number)" ] && [ "$(list_number)" != "$number" ]; }
step "and comes back as another one" until_true 20 other_number
step "the disk has noticed" lost_one
truncate -s 16M "$TMPDIR/file"
must "a file is exported" ctl export f "$TMPDIR/file" allow=me serial=f
must "connected" ctl connect f ia="$a-1" address=$there initiator=me keepalive_ms=500
truncate -s 32M "$TMPDIR/file"
step "the target looks at its size" ctl rescan f
grown() { [ "$(blockdev --getsize64 "/dev/$(cat $kd_initiator/f/device)")" = $((32 << 20)) ]; }
step "the disk grows" until_true 20 grown
truncate -s 24M "$TMPDIR/file"
step "a disk that has shrunk" fails_saying "has shrunk" rescan f
step "rescan of an export that does not exist" fails_saying "there is no export 'e'" rescan e
step "disconnected" ctl disconnect f
step "not exported any more" ctl unexport f

# What is configured is saved, and restored by what the units run.
step "list" prints '^d  *kdblk0  *live' list
step "list, as JSON" prints '"device": "kdblk0"' list -j
step "without the files that only take orders" refused grep -Eq '"(kick|rescan)"' "$TMPDIR/printed"
step "show" prints '^address = ' show d
mkdir $kd_target/disks/kdblkctl-defaults.999999
must "saved" ctl save "$TMPDIR/kdblk.conf"
step "what an earlier one left when it was killed is gone" \
	test ! -d $kd_target/disks/kdblkctl-defaults.999999
cp "$TMPDIR/kdblk.conf" "$TMPDIR/saved"
step "only what is not the default is saved" refused grep -q '^depth' "$TMPDIR/saved"
step "all is cleared" ctl clear
step "nothing is left" none
# kdblk.service starts before the target does.
"$tools/kdblkctl" restore --initiator --retry "$TMPDIR/saved" >"$TMPDIR/again" 2>&1 &
again=$!
step "the first connect is tried again" until_true 20 grep -q "trying again" "$TMPDIR/again"
step "the target is restored" ctl restore --target --retry "$TMPDIR/saved"
step "then the initiator is" wait $again
cat "$TMPDIR/again"
step "saved again it is the same" ctl save "$TMPDIR/kdblk.conf"
step "in each line" cmp "$TMPDIR/saved" "$TMPDIR/kdblk.conf"
step "the file system is there" test "$(blkid -o value -s UUID /dev/kdblk0)" = "$uuid"
step "restored once more it stays connected" ctl restore "$TMPDIR/saved"
# Secrets: the kernel does not tell them, so what is saved says where they are.
export KDBLKCTL_ETC="$TMPDIR/etc"
mkdir "$KDBLKCTL_ETC"
if set_to swordfish-0123456789 $kd_target/disks/d/allowed/me/secret; then
	echo >$kd_target/disks/d/allowed/me/secret
	step "disconnected" ctl disconnect d
	step "a secret for an initiator that is not allowed" fails_saying "not allowed" \
		export d secret.you=swordfish-0123456789
	step "a secret that is too short" fails_saying "secret.me: .*16 to 128" \
		export d secret.me=swordfish
	step "a secret in a file that is not there" fails_saying "me.secret: No such file" \
		export d secret.me=@"$KDBLKCTL_ETC/me.secret"
	mkdir -p "$KDBLKCTL_ETC"
	: >"$KDBLKCTL_ETC/empty.secret"
	chmod 600 "$KDBLKCTL_ETC/empty.secret"
	step "a file without a secret is not taken for none" fails_saying "the file is empty" \
		export d secret.me=@"$KDBLKCTL_ETC/empty.secret"
	step "who should have a secret is not allowed without it" fails_saying "secret.eve: .*16 to 128" \
		export d allow=eve secret.eve=swordfish
	step "at all" test ! -e $kd_target/disks/d/allowed/eve
	step "a secret" ctl export d secret.me=swordfish-0123456789
	step "show does not tell it" prints '^secret.me = set$' show d
	step "without it the disk is not connected" fails_saying "wants a proof" \
		connect d ia="$a-1" address=$there initiator=me
	step "a wrong one, which no message tells" fails_saying "secret=\.\.\.: .*16 to 128" \
		connect d ia="$a-1" address=$there initiator=me secret=swordfish
	step "with it the disk is" ctl connect d ia="$a-1" address=$there initiator=me \
		secret=swordfish-0123456789
	step "saved" ctl save "$TMPDIR/secret.conf"
	step "what is not there is said" grep -q \
		"secret.me is not saved: put it into $KDBLKCTL_ETC/exports/d/me.secret" "$TMPDIR/said"
	must "an initiator with an = in its name" ctl export d allow=a=b
	must "has a secret" set_to swordfish-0123456789 "$kd_target/disks/d/allowed/a=b/secret"
	must "this is saved" ctl save "$TMPDIR/equals.conf"
	step "save tells that it cannot be restored" grep -qF \
		"restoring will fail: the name in secret.a=b has a '='" "$TMPDIR/said"
	rmdir "$kd_target/disks/d/allowed/a=b"
	step "no secret is in the file" refused grep -q 'swordfish\|= set' "$TMPDIR/secret.conf"
	step "but where that of the disk is" grep -qx "secret = @$KDBLKCTL_ETC/disks/d.secret" \
		"$TMPDIR/secret.conf"
	step "and that of the export" grep -qx "secret.me = @$KDBLKCTL_ETC/exports/d/me.secret" \
		"$TMPDIR/secret.conf"
	step "all is cleared" ctl clear
	step "without the file nothing is exported without a proof" \
		refused ctl restore --target "$TMPDIR/secret.conf"
	step "and no disk is" test ! -d $kd_target/disks/d
	mkdir -p "$KDBLKCTL_ETC/exports/d" "$KDBLKCTL_ETC/disks"
	echo swordfish-0123456789 >"$KDBLKCTL_ETC/exports/d/me.secret"
	echo swordfish-0123456789 >"$KDBLKCTL_ETC/disks/d.secret"
	chmod 600 "$KDBLKCTL_ETC/exports/d/me.secret"
	step "with the file all is restored" ctl restore "$TMPDIR/secret.conf"
	step "a file that others may read is reported" grep -q \
		"disks/d.secret: others than root may use" "$TMPDIR/said"
	step "another one is not" refused grep -q "me.secret: others" "$TMPDIR/said"
	step "the disk is connected, by the secret" prints '^d  *kdblk0  *live' list
	step "the target asks for it" grep -qx set $kd_target/disks/d/allowed/me/secret
	echo >$kd_target/disks/d/allowed/me/secret
fi
echo '[disc d]' >"$TMPDIR/bad.conf"
step "an unknown section" fails_saying "a section is" restore "$TMPDIR/bad.conf"
step "disconnected" ctl disconnect d
step "not exported any more" ctl unexport d
step "the portal is removed" ctl unlisten t
step "nothing is left" none
no_null_disk 0
step "kdblk.ko unloads" rmmod kdblk
step "kdblk_target.ko unloads" rmmod kdblk_target
step "kdapl.ko unloads" rmmod kdapl
finish
