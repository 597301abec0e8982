# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blk.sh rxe|siw net|dev|one PART...: kdblk between two devices. Parts:
#   config	attributes, refusals, many connections one after the other
#   verify	fio writes and looks at what it has written, in many ways
#   ops		flush, FUA, discard, write-zeroes; ro, 4096-byte blocks, files
#   share	a disk that completes nothing stalls no other one
#   paths	a command of a path that was lost ends before it is done on another one
#   admin	two paths, ids, sizes, sessions, addresses, reasons, unloading
#   adapters	a reconnect opens no IA; adapters and addresses that go, come back and move
#   rtnl, swap	a task that has RTNL waits for the disk while it is connected again: for
#		a page of the disk, for one that was swapped out to it
#   faults[:N[:FAULT,...]]	what can go wrong, N times each, under load
#   FILE.ko	soft-iWARP of a stock kernel
# shellcheck shell=sh disable=SC2154
p=$1 where=$2
shift 2
siw_ko=''
for part; do
	case $part in
	*.ko) siw_ko=$part ;;
	esac
done
. "$TOP/tests/guest/blk-lib.sh"
there=192.0.2.2
case $where in
net) two_namespaces "$p"; a=${p}0 b=${p}1 n0="ip netns exec n0" n1="ip netns exec n1"
	wire0="veth0" wire1="veth1" ;;
dev) two_devices "$p" "$siw_ko"; a=${p}0 b=${p}1 n0='' n1='' wire0=lo wire1=lo ;;
one) loopback_dev "$p" "$siw_ko"; a=${p}0 b=${p}0 n0='' n1='' wire0=kd0 wire1=kd0 there=192.0.2.1 ;;
esac
case $KERNEL in
*-kasan | *-lockdep | deb-*) slow=3 ;;
*) slow=1 ;;
esac
all_gone() { [ "$(but_cqs)" = "$empty" ]; }
said() { dmesg | tail -n "${1:-5}"; }

# tried ERROR COMMAND...: the write of attach or so must fail in this way
why() {		# VALUE FILE: the words of the error
	printf %s "$1" | LC_ALL=C dd of="$2" 2>&1 >/dev/null | sed -n "s/^dd: [^:]*: //p" | head -1
}
fails_with() {	# WORDS VALUE FILE
	kd_why=$(why "$2" "$3")
	case $kd_why in
	'') ;;
	*"$1"*) return ;;
	esac
	echo "(writing '$2' to $3: '$kd_why')"
	return 1
}
prepare() {	# NAME DISK [ATTRIBUTE=VALUE...]: all but the connection
	kd_name=$1 kd_disk=$2
	shift 2
	mkdir "$kd_initiator/$kd_name" &&
		attributes "$kd_initiator/$kd_name" ia="$a-1" address=$there disk="$kd_disk" \
			reconnect_delay_ms=500 keepalive_ms=$((1000 * slow)) "$@"
}
have() {	# NAME DISK [ATTRIBUTE=VALUE...]
	prepare "$@" connect=1 && is "$1" live && test -b "$(device "$1")"
}
leave() {	# NAME
	set_to 0 "$kd_initiator/$1/connect" && is "$1" idle && rmdir "$kd_initiator/$1"
}
refused_to() {	# NAME [WORDS]: it does not connect, and says why
	fails_with "${2:-}" 1 "$kd_initiator/$1/connect" || return
	[ -n "$kd_why" ] && ! is "$1" live && [ "$(cat "$kd_initiator/$1/device")" = "" ] &&
		tell "$1: $kd_why: $(cat "$kd_initiator/$1/last_error")"
}
pattern() {	# DEVICE NAME BLOCKS: random bytes that can be told again
	head -c $((4096 * $3)) /dev/urandom >"$TMPDIR/pattern.$2"
	dd if="$TMPDIR/pattern.$2" of="$1" bs=64k oflag=direct conv=notrunc 2>/dev/null
}
matches() {	# DEVICE NAME BLOCKS
	dd if="$1" bs=64k count=$(($3 / 16)) iflag=direct 2>/dev/null |
		cmp -n $((4096 * $3)) - "$TMPDIR/pattern.$2"
}
zero_at() {	# DEVICE OFFSET LENGTH
	dd if="$1" bs=4k skip=$(($2 / 4096)) count=$(($3 / 4096)) iflag=direct 2>/dev/null |
		cmp -n "$3" - /dev/zero
}
queue() { cat "/sys/block/$(cat "$kd_initiator/$1/device")/queue/$2"; }

config() {
	must "a disk of 64 MiB" null_disk 0 64
	must "the target exports it" export_disk d /dev/nullb0
	must "the target listens" portal t "$b-1"
	step "a disk that is enabled keeps its path" fails_with busy /dev/null "$kd_target/disks/d/path"
	step "and whether it is read only" fails_with busy 1 "$kd_target/disks/d/read_only"
	step "and its serial" fails_with busy x "$kd_target/disks/d/serial"
	must "an initiator" prepare d d initiator=me reconnect_max=3
	step "it is idle" is d idle
	step "nobody is allowed unless named" refused_to d
	mkdir "$kd_target/disks/d/allowed/you"
	step "nor is one who is not" refused_to d
	mkdir "$kd_target/disks/d/allowed/me"
	step "one who is named is" set_to 1 "$kd_initiator/d/connect"
	step "it is live" is d live
	step "the target counts one session" grep -qx 1 "$kd_target/disks/d/sessions"
	step "its size is that of the disk" \
		test "$(blockdev --getsize64 "$(device d)")" = $((64 << 20))
	tell "$(cat $kd_initiator/d/stats | tr '\n' ' ')"
	must "a second initiator of the same disk" prepare e d initiator=you
	step "connects" set_to 1 "$kd_initiator/e/connect"
	step "the target counts two" grep -qx 2 "$kd_target/disks/d/sessions"
	step "one writes" pattern "$(device d)" 1 256
	step "the other one reads" matches "$(device e)" 1 256
	step "one leaves" leave e
	step "the other one is not disturbed" matches "$(device d)" 1 256
	rmdir "$kd_target/disks/d/allowed/me"
	step "a permission that is withdrawn does not end a session" matches "$(device d)" 1 256
	step "the other one leaves" set_to 0 "$kd_initiator/d/connect"
	step "its device is gone" test ! -e /dev/kdblk0
	step "the target counts none" until_true $((20 * slow)) grep -qx 0 "$kd_target/disks/d/sessions"
	step "and it does not come back" refused_to d
	set_to 1 "$kd_target/disks/d/allow_any"
	set_to nonesuch "$kd_initiator/d/disk"
	step "no such disk" refused_to d
	attributes "$kd_initiator/d" disk=d port=4999
	step "nobody listens there" refused_to d
	attributes "$kd_initiator/d" port=14420 ia=nonesuch0-1
	step "no such adapter" refused_to d
	attributes "$kd_initiator/d" ia="$a-1" address=somewhere
	step "not an address" refused_to d
	attributes "$kd_initiator/d" address=$there
	for kd_i in depth=0 depth=5000 inline_size=16385 queues=0 queues=1000 keepalive_ms=0 port=0 port=70000 \
		tos=256 tos=x connect=x; do
		step "$kd_i is refused" refused attributes "$kd_initiator/d" $kd_i
	done
	names
	step "all that is undone: it connects" set_to 1 "$kd_initiator/d/connect"
	step "and can be written" pattern "$(device d)" 2 64
	step "what is connected keeps its address" fails_with "" 192.0.2.9 "$kd_initiator/d/address"
	step "and cannot connect twice" fails_with "" 1 "$kd_initiator/d/connect"
	step "reads what it wrote" matches "$(device d)" 2 64
	step "leaves" leave d
	# Routes are looked up in the first network namespace.
	[ "$where" = net ] || {
		must "without the name of an adapter, the one that leads there is taken" have d d ia=
		step "the log says which" logs "kdblk: d: connected to .* through $p[01]"
		step "read" matches "$(device d)" 2 64
		step "leaves" leave d
	}
	must "a type of service" have d d tos=184
	[ "$p-$where" != rxe-net ] || step "is that of its packets" tos_is 184
	step "and can be read" grep -qx 184 "$kd_initiator/d/tos"
	step "leaves" leave d
	step "depth 1, one queue" have d d depth=1 queues=1
	step "written" pattern "$(device d)" 3 256
	step "read" matches "$(device d)" 3 256
	step "leaves" leave d
	# An adapter has one address, that of IPv4 if it is not named by the other.
	[ "$where" = net ] || {
		must "the target listens on its IPv6 address, too" portal t6 "2001:db8::${there##*.}"
		step "connected by IPv6" have d d ia=2001:db8::1 address="2001:db8::${there##*.}"
		step "read" matches "$(device d)" 3 256
		step "leaves" leave d
		step "listens no more" no_portal t6
	}
	kd_n=0
	while [ $kd_n -lt $((20 / slow)) ]; do
		kd_n=$((kd_n + 1))
		have d d queues=$((1 + kd_n % 4)) depth=$((1 + kd_n * 7)) &&
			matches "$(device d)" 3 16 && leave d || break
	done
	step "$((20 / slow)) times connected, read, left" test $kd_n = $((20 / slow))
	step "the disk is withdrawn" no_disk d
	step "the target listens no more" no_portal t
	no_null_disk 0
}

# What appears in the log, in sysfs and in lists has no control characters, and names no spaces.
names() {
	kd_bad=$(printf 'a\033b')
	kd_long=$(printf '%064d' 0)
	for kd_i in "a b" "$kd_bad" "$kd_long"; do
		for kd_x in "$kd_initiator" $kd_target/disks $kd_target/portals \
			$kd_target/disks/d/allowed; do
			step "a bad name in ${kd_x#"$kd_cfg"/}" refused mkdir "$kd_x/$kd_i"
		done
		for kd_x in disk initiator; do
			step "a bad name of the $kd_x" refused set_to "$kd_i" "$kd_initiator/d/$kd_x"
		done
	done
	step "last_error says what a name is" says d "without spaces"
	step "the name of a disk has no /" refused set_to a/b "$kd_initiator/d/disk"
	for kd_x in "$kd_initiator/d/ia" "$kd_initiator/d/address" $kd_target/portals/t/ia \
		$kd_target/disks/d/serial $kd_target/disks/d/path; do
		step "a control character in ${kd_x#"$kd_cfg"/}" refused set_to "$kd_bad" "$kd_x"
	done
	step "as last_error says" grep -q "control characters" $kd_target/disks/d/last_error
	step "the log has no control characters" refused logged 'a.x1bb'
}
tos_is() {	# TOS: of the packets to the target
	# a keepalive at least
	$n0 python3 - "$wire0" >"$TMPDIR/tos" <<-'END'
		import socket, sys
		card = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.ntohs(3))
		card.bind((sys.argv[1], 0))
		card.settimeout(30)
		while True:
		    packet = card.recv(2048)
		    if packet[12:14] == b"\x08\x00" and packet[26:30] == bytes([192, 0, 2, 1]) and \
		            packet[36:38] == b"\x12\xb7":
		        print(packet[15])
		        break
	END
	grep -qx "$1" "$TMPDIR/tos"
}

# With its map of random blocks, the default, no two writes of fio overlap. With
# random_generator=lfsr those of bsrange do, and which of two in flight is last is chance.
fio_verify() {	# TITLE DEVICE WORDS...
	kd_title=$1 kd_dev=$2
	shift 2
	step "$kd_title" fio_run --filename="$kd_dev" --verify=crc32c --verify_fatal=1 \
		--do_verify=1 --randrepeat=0 "$@"
}
fio_run() {
	(cd "$TMPDIR" && fio --name=v --direct=1 --thread --group_reporting --ioengine=io_uring \
		--output-format=normal --verify_state_save=0 --allow_mounted_write=1 "$@") \
		>"$TMPDIR/fio.log" 2>&1 && return
	grep -v '^$' "$TMPDIR/fio.log" | head -30
	return 1
}
# A task that submits a polled read, and looks for its end only when the block layer has waited for
# it too long. That read and its data are there, and no session was lost.
polls_late() {	# NAME
	set_to 1000 "/sys/block/$(cat "$kd_initiator/$1/device")/queue/io_timeout"
	timeout 60 python3 - "$(device "$1")" <<-'END'
		import ctypes, mmap, os, struct, sys, time
		libc = ctypes.CDLL(None, use_errno=True)
		def call(*words):
		    n = libc.syscall(*[ctypes.c_long(word) for word in words])
		    if n < 0:
		        sys.exit("system call %d: %s" % (words[0], os.strerror(ctypes.get_errno())))
		    return n
		def address(memory):
		    return ctypes.addressof(ctypes.c_char.from_buffer(memory))
		setup, enter, iopoll, read, getevents = 425, 426, 1, 22, 1
		params = bytearray(120)
		struct.pack_into("<I", params, 8, iopoll)
		ring = call(setup, 4, address(params))
		entries, = struct.unpack_from("<I", params, 0)
		cq_entries, = struct.unpack_from("<I", params, 4)
		sq = struct.unpack_from("<8I", params, 40)
		cq = struct.unpack_from("<8I", params, 80)
		submit = mmap.mmap(ring, sq[6] + 4 * entries)
		done = mmap.mmap(ring, cq[5] + 16 * cq_entries, offset=0x8000000)
		sqes = mmap.mmap(ring, 64 * entries, offset=0x10000000)
		disk = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
		data, same = mmap.mmap(-1, 4096), mmap.mmap(-1, 4096)
		struct.pack_into("<BBHiQQIIQ", sqes, 0, read, 0, 0, disk, 0, address(data), 4096, 0, 7)
		struct.pack_into("<I", submit, sq[6], 0)
		struct.pack_into("<I", submit, sq[1], 1)
		if call(enter, ring, 1, 0, 0, 0, 0) != 1:
		    sys.exit("nothing was submitted")
		time.sleep(5)
		call(enter, ring, 0, 1, getevents, 0, 0)
		if struct.unpack_from("<Qi", done, cq[5]) != (7, 4096):
		    sys.exit("the read failed: %d, %d" % struct.unpack_from("<Qi", done, cq[5]))
		os.preadv(disk, [same], 0)
		sys.exit(data[:] != same[:])
	END
}
verify() {
	must "a disk of 128 MiB" null_disk 0 128
	must "the target exports it" export_disk d /dev/nullb0 allow_any=1
	must "the target listens" portal t "$b-1"
	must "an initiator with 4 queues and one that is polled" have d d queues=4 poll_queues=1
	m=$((8 / slow))
	fio_verify "random writes of 4 KiB, one at a time" "$(device d)" \
		--rw=randwrite --bs=4k --iodepth=1 --size=${m}m
	fio_verify "random writes of 512 bytes to 256 KiB, 32 at a time" "$(device d)" \
		--rw=randwrite --bsrange=512-256k --iodepth=32 --size=$((4 * m))m
	fio_verify "4 jobs, mixed reads and writes of 512 bytes to 256 KiB, 128 at a time" \
		"$(device d)" --rw=randrw --bsrange=512-256k --iodepth=128 --numjobs=4 \
		--size=${m}m --offset_increment=32m --verify_backlog=64
	fio_verify "writes of 1 MiB in order, 8 at a time" "$(device d)" \
		--rw=write --bs=1m --iodepth=8 --size=$((4 * m))m
	fio_verify "polled, one at a time" "$(device d)" --ioengine=pvsync2 --hipri=1 \
		--rw=randwrite --bsrange=4k-64k --size=${m}m
	fio_verify "polled, 16 at a time" "$(device d)" --hipri=1 --iodepth=16 \
		--rw=randwrite --bsrange=4k-64k --size=${m}m
	kd_n=$(stat_of d losses)
	step "polled too late" polls_late d
	step "that ended no session" lost d "$kd_n"
	step "leaves" leave d
	must "a portal for transfers of 1 MiB" portal u "$b-1" port=14421 max_io=1048576 buffers=4 \
		inline_size=16384
	must "is used" have d d port=14421 queues=1 inline_size=16384
	kd_n=$(queue d max_hw_sectors_kb)
	tell "requests of up to $kd_n KiB"
	step "more than 128 KiB in one request" test "$kd_n" -gt 128
	echo "$kd_n" >"/sys/block/$(cat $kd_initiator/d/device)/queue/max_sectors_kb"
	fio_verify "writes of 256 KiB to 1 MiB, 8 at a time" "$(device d)" \
		--rw=randwrite --bsrange=256k-1m --iodepth=8 --size=$((4 * m))m
	fio_verify "blocks of 512 bytes to 32 KiB, 32 at a time" "$(device d)" \
		--rw=randrw --bsrange=512-32k --iodepth=32 --size=${m}m --verify_backlog=64
	step "leaves" leave d
	step "that portal listens no more" no_portal u
	must "one queue, one command at a time" have d d queues=1 depth=1
	fio_verify "16 asked of it at a time" "$(device d)" --iodepth=16 --rw=randwrite \
		--bsrange=512-256k --size=${m}m
	step "leaves" leave d
	for kd_i in 0 512 16384; do
		must "messages take up to $kd_i bytes of data" have d d inline_size=$kd_i
		fio_verify "blocks of 512 bytes to 32 KiB, 32 at a time" "$(device d)" \
			--rw=randrw --bsrange=512-32k --iodepth=32 --size=${m}m --verify_backlog=64
		step "leaves" leave d
	done
	must "a disk that completes in interrupts" null_disk 1 64 irqmode=2 completion_nsec=10000
	must "the target exports it" export_disk e /dev/nullb1 allow_any=1
	must "two queues" have e e queues=2
	fio_verify "random writes of 4 KiB, one at a time" "$(device e)" \
		--rw=randwrite --bs=4k --iodepth=1 --size=$((m / 2))m
	fio_verify "2 jobs, mixed reads and writes of 512 bytes to 256 KiB, 64 at a time" \
		"$(device e)" --rw=randrw --bsrange=512-256k --iodepth=64 --numjobs=2 \
		--size=${m}m --offset_increment=32m --verify_backlog=64
	step "leaves" leave e
	step "it is withdrawn" no_disk e
	no_null_disk 1
	step "the disk is withdrawn" no_disk d
	step "the target listens no more" no_portal t
	no_null_disk 0
}

# zeroes DEVICE: what makes a range zero, and nothing beside it
zeroes() {
	step "$2: written" pattern "$1" 5 1024
	[ "$(cat "/sys/block/${1#/dev/}/queue/discard_max_bytes")" = 0 ] ||
		step "$2: discard" blkdiscard -o 2097152 -l 1048576 "$1"
	step "$2: write-zeroes" blkdiscard -z -o 65536 -l 131072 "$1"
	step "$2: reads as zero" zero_at "$1" 65536 131072
	dd if=/dev/zero of="$TMPDIR/pattern.5" bs=4k seek=16 count=32 conv=notrunc 2>/dev/null
	step "$2: nothing beside it was touched" matches "$1" 5 512
	step "$2: flush" dd if=/dev/zero of="$1" bs=4k count=1 conv=fsync,notrunc 2>/dev/null
	step "$2: FUA" fio_run --filename="$1" --rw=randwrite --bs=4k --size=1m --sync=dsync \
		--number_ios=64
}
ops() {
	must "the target listens" portal t "$b-1"
	must "a disk with a cache that discards" null_disk 0 64 cache_size=8 discard=1
	must "exported" export_disk d /dev/nullb0 allow_any=1 serial=KD-0001
	must "connected" have d d
	step "it has the cache of the disk below" grep -q "write back" \
		"/sys/block/$(cat $kd_initiator/d/device)/queue/write_cache"
	step "and discards" test "$(queue d discard_max_bytes)" -gt 0
	zeroes "$(device d)" "disk"
	step "leaves" leave d
	step "withdrawn" no_disk d
	no_null_disk 0

	must "a disk of 4096-byte blocks, without a cache" null_disk 1 64 blocksize=4096
	must "exported" export_disk d /dev/nullb1 allow_any=1
	must "connected" have d d
	step "its blocks have 4096 bytes" test "$(queue d logical_block_size)" = 4096
	step "it has no cache" grep -q "write through" \
		"/sys/block/$(cat $kd_initiator/d/device)/queue/write_cache"
	fio_verify "4 KiB to 256 KiB, 16 at a time" "$(device d)" --rw=randwrite \
		--bsrange=4k-256k --iodepth=16 --size=8m
	step "leaves" leave d
	step "disabled" set_to 0 $kd_target/disks/d/enable
	step "read only" attributes $kd_target/disks/d read_only=1 enable=1
	must "connected" have d d
	step "it is read only" test "$(blockdev --getro "$(device d)")" = 1
	step "cannot be written" refused dd if=/dev/zero of="$(device d)" bs=4k count=1 oflag=direct
	step "can be read" dd if="$(device d)" of=/dev/null bs=64k count=16 iflag=direct 2>/dev/null
	step "leaves" leave d
	step "withdrawn" no_disk d
	no_null_disk 1

	must "a disk with a bad block" null_disk 2 64 "badblocks=+2048-2055"
	must "exported" export_disk d /dev/nullb2 allow_any=1
	must "connected" have d d
	step "what is there cannot be read" refused dd if="$(device d)" of=/dev/null bs=4k skip=256 \
		count=1 iflag=direct
	step "what is beside it can" dd if="$(device d)" of=/dev/null bs=4k skip=257 count=1 \
		iflag=direct 2>/dev/null
	step "it stays live" is d live
	step "leaves" leave d
	step "withdrawn" no_disk d
	no_null_disk 2

	must "a file" truncate -s 64M "$TMPDIR/file"
	must "exported" export_disk d "$TMPDIR/file" allow_any=1
	must "connected" have d d
	fio_verify "512 bytes to 256 KiB, 16 at a time" "$(device d)" --rw=randwrite \
		--bsrange=512-256k --iodepth=16 --size=$((16 / slow))m
	zeroes "$(device d)" "file"
	step "leaves" leave d
	step "withdrawn" no_disk d
	step "a file that is not there" refused export_disk d "$TMPDIR/nonesuch" allow_any=1
	rmdir $kd_target/disks/d
	step "a directory" refused export_disk d "$TMPDIR" allow_any=1
	rmdir $kd_target/disks/d
	step "the target listens no more" no_portal t
	rm "$TMPDIR/file"
}

# The portal does not wait for the disk that hangs when its adapter goes and comes back.
flaps() {
	must "the target's adapter goes" timeout 60 rdma link delete "$b"
	must "it is back" plug 1
	step "the portal listens, while commands of its first adapter hang" \
		until_true $((20 * slow)) grep -qx listening $kd_target/portals/t/state
	step "the disk is live again" until_true $((40 * slow)) is g live
	step "and is read" reads
	step "the one that hangs is not" not_live f
}
# A disk that completes nothing: a file in a file system that is frozen. The other one has to
# be served meanwhile, which is not a matter of time.
inflight() { awk '{ print $1 + $2 }' "/sys/block/$(cat "$kd_initiator/$1/device")/inflight"; }
stuck() { [ "$(inflight f)" -ge "$1" ]; }
reads() {
	timeout $((100 * slow)) dd if="$(device g)" of=/dev/null bs=128k count=64 iflag=direct \
		2>/dev/null
}
share() {
	mp ext4
	must "two disks" null_disk 0 64
	null_disk 1 64
	mkdir "$TMPDIR/back"
	mkfs.ext4 -q /dev/nullb1
	mount -t ext4 /dev/nullb1 "$TMPDIR/back"
	must "and a file" truncate -s 32M "$TMPDIR/back/file"
	must "the target exports a disk" export_disk g /dev/nullb0 allow_any=1
	must "and the file" export_disk f "$TMPDIR/back/file" allow_any=1
	must "the target listens" portal t "$b-1"
	must "connected to the disk" have g g
	must "and to the file" have f f
	must "the file takes no writes any more" fsfreeze -f "$TMPDIR/back"
	fio_run --filename="$(device f)" --rw=write --bs=128k --iodepth=120 --size=16m &
	kd_fio=$!
	step "120 writes of 128 KiB wait there" until_true $((20 * slow)) stuck 120
	step "reads of 128 KiB from the other disk are served" reads
	step "zeroes are written there" timeout $((100 * slow)) blkdiscard -z -l 1048576 "$(device g)"
	step "another initiator of the disk connects" have h g
	step "no session of the disk was lost" grep -qx "losses 0" $kd_initiator/g/stats
	[ "$where" = one ] || flaps
	fsfreeze -u "$TMPDIR/back"
	step "the writes end" wait $kd_fio
	for kd_d in f g h; do
		step "$kd_d leaves" leave $kd_d
	done
	step "the file is withdrawn" no_disk f
	step "the disk is withdrawn" no_disk g
	step "the target listens no more" no_portal t
	umount "$TMPDIR/back"
	rmdir "$TMPDIR/back"
	no_null_disk 0
	no_null_disk 1
}

# A write that hangs at the target, of a path whose connection is lost: it must not fail, and be
# sent on the other path, while the target may still do it.
hangs() {
	fsfreeze -f "$TMPDIR/back" || return
	dd if=/dev/zero of="$(device a)" bs=4k count=1 oflag=direct 2>/dev/null &
	kd_write=$!
	until_true $((20 * slow)) one_waits && sleep 1
}
one_waits() { [ "$(inflight a)" = 1 ]; }
# asked PATH TIMES: the target has said so often that commands of this path are not finished
asked() {
	case $1 in a) kd_x=0 ;; b) kd_x=1 ;; esac
	[ "$(traced_times "kdblk_fence: .* path=$kd_x err=-11")" -ge "$2" ]
}
# Disconnecting a path that is lost lets its commands fail, but no sooner than the target ends them.
leaves_lost() {
	must "what the target is asked is traced anew" trace_on kdblk/kdblk_fence
	must "a write hangs at the target" hangs
	set_to 0 $kd_target/portals/t/enable &
	kd_portal=$!
	step "its path is lost" until_true $((20 * slow)) not_live a
	set_to 0 $kd_initiator/a/connect &
	kd_leave=$!
	step "it is disconnected, and the target is asked to end the write" \
		until_true $((20 * slow)) asked a 5
	step "the write does not fail before the target has ended it" kill -0 $kd_write
	fsfreeze -u "$TMPDIR/back"
	step "then it fails" refused wait $kd_write
	step "and the path is disconnected" wait $kd_leave
	wait $kd_portal
	step "the target listens" set_to 1 $kd_target/portals/t/enable
	step "the path is connected again" set_to 1 $kd_initiator/a/connect
	step "the other one was not lost" lost b 0
}
# no_path_left [leaves]: without another path commands fail at once. The next path that connects
# waits for them, also if that of theirs has been disconnected.
no_path_left() {
	must "what the target is asked is traced anew" trace_on kdblk/kdblk_fence
	must "a write hangs at the target" hangs
	set_to 0 $kd_target/portals/u/enable
	set_to 0 $kd_target/portals/t/enable &
	kd_portal=$!
	step "no path is left" until_true $((20 * slow)) not_live b
	step "the write fails, as no other path can take it" refused wait $kd_write
	[ "$1" != leaves ] || step "its path is disconnected" set_to 0 $kd_initiator/a/connect
	step "the target listens for the second one" set_to 1 $kd_target/portals/u/enable
	step "that asks for the end of the write" until_true $((20 * slow)) asked a 5
	step "and waits for it" not_live b
	fsfreeze -u "$TMPDIR/back"
	step "then it is used" until_true $((40 * slow)) is b live
	wait $kd_portal
}
not_live() { ! is "$1" live; }
paths() {
	mp ext4
	must "a disk" null_disk 1 64
	mkdir "$TMPDIR/back"
	mkfs.ext4 -q /dev/nullb1
	mount -t ext4 /dev/nullb1 "$TMPDIR/back"
	must "and a file" truncate -s 32M "$TMPDIR/back/file"
	must "the target exports it" export_disk f "$TMPDIR/back/file" allow_any=1 serial=f
	must "the target listens" portal t "$b-1"
	must "at two ports" portal u "$b-1" port=14421
	must "one path" have a f fast_io_fail_ms=300 reconnect_max=1000000
	must "another path" have b f fast_io_fail_ms=300 reconnect_max=1000000 port=14421 \
		path=1 id="$(cat $kd_initiator/a/id)"
	must "what the target is asked is traced" trace_on kdblk/kdblk_fence
	must "a write hangs at the target" hangs
	set_to 0 $kd_target/portals/t/enable &
	kd_portal=$!
	step "its path is lost" until_true $((20 * slow)) not_live a
	step "the target is asked to end it" until_true $((20 * slow)) asked a 5
	step "the write does not fail before the target has ended it" kill -0 $kd_write
	step "the other path is not disturbed" reads_one b
	fsfreeze -u "$TMPDIR/back"
	step "then it fails, and would be sent on the other path" refused wait $kd_write
	step "which was not lost" lost b 0
	wait $kd_portal
	step "the target listens" set_to 1 $kd_target/portals/t/enable
	step "the first path is back" until_true $((40 * slow)) is a live
	leaves_lost
	no_path_left
	step "the target listens for the first one" set_to 1 $kd_target/portals/t/enable
	step "the first path is back" until_true $((40 * slow)) is a live
	no_path_left leaves
	step "one leaves" leave a
	step "the other one, too" leave b
	step "the disk is withdrawn" no_disk f
	step "the target listens no more" no_portal t
	no_portal u
	umount "$TMPDIR/back"
	rmdir "$TMPDIR/back"
	no_null_disk 1
}

stat_of() { sed -n "s/^$2 //p" "$kd_initiator/$1/stats"; }	# DISK NAME
says() { grep -q -e "$2" "$kd_initiator/$1/last_error"; }	# DISK WORDS
size_is() { [ "$(blockdev --getsize64 "$(device "$1")")" = "$2" ]; }	# DISK BYTES
reads_one() { dd if="$(device "$1")" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; }
lost() { [ "$(stat_of "$1" losses)" = "$2" ]; }	# DISK TIMES
tried() { [ "$(stat_of "$1" attempts)" -ge "$2" ]; }	# DISK TIMES
listed() {	# COLUMN: of the target's sessions
	awk -v n="$1" '{ print $n }' $kd_target/disks/d/session_list | sort | tr '\n' ' '
}
one_listed() { [ "$(listed 1 | wc -w)" = 1 ]; }
session() {	# the only one's number: one that has ended may be listed a moment longer
	until_true $((20 * slow)) one_listed
	listed 1 | tr -d ' '
}
identity() {
	must "an initiator" have d d
	step "it has a name, even if the machine has none" refused grep -q none \
		$kd_initiator/d/initiator
	prepare e d id="$(cat $kd_initiator/d/id)"
	step "another one with its id is refused" refused_to e "not unique"
	step "and told why" says e "our id"
	step "the target logs it" logs "same id is alive"
	set_to 1 $kd_initiator/e/path
	kd_name=$(cat $kd_initiator/e/initiator)
	set_to stranger $kd_initiator/e/initiator
	step "with another name it is another machine" refused_to e "not unique"
	set_to "$kd_name" $kd_initiator/e/initiator
	step "with another path it is the same machine" set_to 1 $kd_initiator/e/connect
	step "one path is served" reads_one d
	step "the other one, too" reads_one e
	step "nobody was evicted" lost d 0
	step "the target lists both" test "$(listed 5)" = "0 1 "
	step "one path leaves" leave e
	kd_n=$(session)
	step "no session has this number" refused set_to 4711 $kd_target/disks/d/kick
	step "a session is kicked" set_to "$kd_n" $kd_target/disks/d/kick
	step "it is gone" until_true $((20 * slow)) lost d 1
	step "it comes back" until_true $((20 * slow)) is d live
	step "with another number" test "$kd_n" != "$(session)"
	must "a portal for one session" portal u "$b-1" port=14421 max_sessions=1
	must "is used" have e d port=14421
	prepare f d port=14421
	step "a second session is refused" refused_to f
	step "and told why" says f "no more sessions"
	for kd_d in e d f; do
		set_to 0 $kd_initiator/$kd_d/connect
		rmdir $kd_initiator/$kd_d
	done
	step "that portal listens no more" no_portal u
}
resize() {
	must "a file of 32 MiB" truncate -s 32M "$TMPDIR/file"
	must "exported" export_disk r "$TMPDIR/file" allow_any=1 serial=r
	must "connected" have d r reconnect_max=1000000
	truncate -s 64M "$TMPDIR/file"
	step "the target looks at its size" set_to 1 $kd_target/disks/r/rescan
	step "the disk grows" until_true $((20 * slow)) size_is d $((64 << 20))
	step "what is new is used" dd if=/dev/zero of="$(device d)" bs=4k seek=16383 count=1 \
		oflag=direct 2>/dev/null
	step "no session was lost" lost d 0
	truncate -s 48M "$TMPDIR/file"
	step "it does not shrink" refused set_to 1 $kd_target/disks/r/rescan
	step "the target says so" grep -q "has shrunk" $kd_target/disks/r/last_error
	step "the session goes on" reads_one d
	set_to 0 $kd_target/disks/r/enable
	set_to 1 $kd_target/disks/r/enable
	step "a disk that was shrunk while disabled is not used" \
		until_true $((20 * slow)) says d "has shrunk"
	truncate -s 96M "$TMPDIR/file"
	set_to 1 $kd_target/disks/r/rescan
	step "it is when it has all again" until_true $((20 * slow)) is d live
	step "and it has grown" until_true $((20 * slow)) size_is d $((96 << 20))
	step "leaves" leave d
	step "withdrawn" no_disk r
	rm "$TMPDIR/file"
}
losses_told() {
	kd_n=$(dmesg | grep -c 'kdblk: d: attempt' || :)
	must "connected" have d d fast_io_fail_ms=300 reconnect_max=1000000 reconnect_delay_ms=10
	step "the target listens no more" set_to 0 $kd_target/portals/t/enable
	step "commands fail after a while" refused reads_one d
	step "attempts go on" is d recovering
	step "last_error says why they fail" until_true 20 says d .
	tell "$(cat $kd_initiator/d/last_error)"
	step "40 attempts fail" until_true $((60 * slow)) tried d 40
	step "few of them are logged" \
		test $(($(dmesg | grep -c 'kdblk: d: attempt') - kd_n)) -lt 12
	step "the target listens" set_to 1 $kd_target/portals/t/enable
	step "the disk is live again" until_true $((40 * slow)) is d live
	step "and is read" reads_one d
	step "leaves" leave d
	must "connected" have d d reconnect_max=2 reconnect_delay_ms=10
	step "its address is fixed" fails_with "" 192.0.2.9 $kd_initiator/d/address
	step "which last_error says" says d "only while"
	step "the target moves to another port" set_to 0 $kd_target/portals/t/enable
	step "a port that is none is refused" refused set_to 65536 $kd_target/portals/t/port
	step "which last_error says" grep -q "from 1 to 65535" $kd_target/portals/t/last_error
	step "the port is set" set_to 14421 $kd_target/portals/t/port
	step "last_error is about nothing earlier" refused grep -q . $kd_target/portals/t/last_error
	set_to 1 $kd_target/portals/t/enable
	step "the disk fails" until_true $((60 * slow)) is d failed
	step "it can be told the other port" attributes $kd_initiator/d port=14421
	step "but not another disk" fails_with busy x $kd_initiator/d/disk
	step "it connects there" set_to 1 $kd_initiator/d/connect
	step "and is read" reads_one d
}
traced() {
	tracefs
	echo 1 >$tracing/events/kdblk/enable
	echo 1 >$tracing/events/kdblk_target/enable
	reads_one d
	step "leaves" leave d
	for kd_i in kdblk_done kdt_done kdt_session_end; do
		step "the tracepoint $kd_i tells of it" until_true 10 \
			grep -q "$kd_i: " $tracing/trace
	done
	echo 0 >$tracing/events/kdblk/enable
	echo 0 >$tracing/events/kdblk_target/enable
}
# Proof of identity, by both sides; not where the kernel has no HMAC-SHA256.
secret() {
	kd_allowed="$kd_target/disks/d/allowed/me" kd_key=swordfish-0123456789
	mkdir "$kd_allowed"
	if ! set_to $kd_key "$kd_allowed/secret"; then
		step "a kernel without HMAC-SHA256 says so" \
			grep -q "no HMAC-SHA256" "$kd_target/disks/d/last_error"
		rmdir "$kd_allowed"
		return
	fi
	step "a secret that is too short is refused" refused set_to short "$kd_allowed/secret"
	step "the secret is not shown" grep -qx set "$kd_allowed/secret"
	must "an initiator that is to prove who it is" \
		prepare d d initiator=me reconnect_max=3 keepalive_ms=200
	step "without a secret it is denied" refused_to d
	step "it says why" grep -q "wants a proof" "$kd_initiator/d/last_error"
	set_to wrong-wrong-wrong-wrong "$kd_initiator/d/secret"
	step "nor with a wrong one" refused_to d
	set_to $kd_key "$kd_initiator/d/secret"
	step "with the right one it connects" set_to 1 "$kd_initiator/d/connect"
	step "reads and writes" pattern "$(device d)" 1 16
	step "what is connected keeps its secret" fails_with busy $kd_key "$kd_initiator/d/secret"
	set_to 0 "$kd_target/portals/t/enable"
	set_to 1 "$kd_target/portals/t/enable"
	step "and again after a loss" until_true 30 is d live
	step "reads what it has written" matches "$(device d)" 1 16
	set_to 0 "$kd_initiator/d/connect"
	echo >"$kd_allowed/secret"
	step "a target that cannot prove itself is left" refused_to d
	step "it says why, too" grep -q "did not prove" "$kd_initiator/d/last_error"
	echo >"$kd_initiator/d/secret"
	step "neither asks the other one" set_to 1 "$kd_initiator/d/connect"
	set_to $kd_key "$kd_allowed/secret"
	step "who has not proven anything is left when there is a secret" \
		until_true 30 is d failed
	step "leaves" leave d
	rmdir "$kd_allowed"
}

admin() {
	must "a disk of 64 MiB" null_disk 0 64
	must "the target exports it" export_disk d /dev/nullb0 allow_any=1
	must "the target listens" portal t "$b-1"
	identity
	secret
	resize
	losses_told
	traced
	must "connected" have d d port=14421
	exec 8<"$(device d)"
	sleep 1 &
	exec 8<&-
	step "leaves while something has it open" leave d
	step "kdblk.ko is not in use any more" rmmod kdblk
	must "kdblk.ko loads" insmod "$KO/kdblk.ko"
	step "the disk is withdrawn" no_disk d
	step "the target listens no more" no_portal t
	no_null_disk 0
}

# An adapter is opened once, and given up when it goes. Neither side polls for one: here the next
# attempt after a failed one is never due.
traced_times() { grep -c "$1" $tracing/trace || :; }
trace_on() {	# EVENT...
	tracefs || return
	echo 0 >$tracing/events/enable
	echo >$tracing/trace
	for kd_i; do
		echo 1 >"$tracing/events/$kd_i/enable" || return
	done
}
kicked() {	# DISK TIMES: sessions that the target has ended
	for kd_x in $(seq "$2"); do
		reads_one "$1" && set_to "$(session)" $kd_target/disks/d/kick &&
			until_true $((20 * slow)) lost "$1" "$kd_x" &&
			until_true $((20 * slow)) is "$1" live || return
	done
}
adapters() {	# two adapters are needed
	must "a disk of 64 MiB" null_disk 0 64
	must "the target exports it" export_disk d /dev/nullb0 allow_any=1
	must "the target listens" portal t "$b-1"
	must "connected" have d d reconnect_delay_ms=600000 reconnect_max=2
	case ${KDHCA:-} in
	strict*) step "its queues have the depth that the adapter can do, and the log says so" \
		logs "kdblk: d: adapter .* can do a depth of [0-9]*, not 128" ;;
	esac
	must "opened adapters are traced" trace_on kdapl/kdapl_ia_opened
	step "five sessions end, and begin again" kicked d 5
	step "no adapter was opened for that" test "$(traced_times kdapl_ia_opened:)" = 0
	step "the disk has taken one" test "$(stat_of d adapters)" = 1

	step "its adapter goes" timeout 60 rdma link delete "$a"
	step "an attempt to connect fails" until_true $((20 * slow)) tried d 1
	ip link add kd8 type dummy
	ip link set kd8 up
	must "another adapter appears" rdma link add "${p}8" type "$p" netdev kd8
	step "and goes" timeout 60 rdma link delete "${p}8"
	ip link delete kd8
	must "the adapter is back" plug 0
	step "which is enough: the disk is live again" until_true $((40 * slow)) is d live
	step "it has taken another one" test "$(stat_of d adapters)" = 2
	step "and is read" reads_one d
	step "leaves" leave d

	must "connected, with more attempts" have d d reconnect_delay_ms=500 reconnect_max=1000000
	step "the target's adapter goes" timeout 60 rdma link delete "$b"
	step "its portal waits" until_true $((20 * slow)) grep -qx waiting $kd_target/portals/t/state
	tell "$(cat $kd_target/portals/t/last_error)"
	must "works are traced" trace_on workqueue/workqueue_queue_work
	sleep 3
	step "nothing looks for it meanwhile" test "$(traced_times kdt_portal_look)" = 0
	must "the adapter is back" plug 1
	step "the portal listens" until_true $((20 * slow)) grep -qx listening \
		$kd_target/portals/t/state
	step "the disk is live again" until_true $((40 * slow)) is d live
	echo 0 >$tracing/events/enable

	step "its addresses are taken away" $n1 ip addr flush dev veth1
	step "the portal does not listen" until_true $((20 * slow)) grep -qx waiting \
		$kd_target/portals/t/state
	step "as its adapter has no address" grep -q "no address" $kd_target/portals/t/last_error
	step "the address is given back" $n1 ip addr add $there/24 dev veth1
	step "the portal listens" until_true $((20 * slow)) grep -qx listening \
		$kd_target/portals/t/state
	step "the disk is live" until_true $((40 * slow)) is d live
	step "and is read" reads_one d
	step "the target listens no more" no_portal t
	[ "$where" = net ] || moves
	step "leaves" leave d
	step "the disk is withdrawn" no_disk d
	no_null_disk 0
}
# A portal, and a disk, of an address that moves to another adapter. Names of adapters are looked
# up in the first network namespace.
moves() {
	must "the target listens on an address" portal t $there
	step "the disk is live" until_true $((40 * slow)) is d live
	ip link add kd9 type dummy
	ip link set kd9 up
	must "there is another adapter" rdma link add "${p}9" type "$p" netdev kd9
	step "the address goes" ip addr del $there/24 dev veth1
	step "the portal does not listen" until_true $((20 * slow)) grep -qx waiting \
		$kd_target/portals/t/state
	step "the address is at the other adapter now" ip addr add $there/24 dev kd9
	step "where the portal listens" until_true $((20 * slow)) grep -qx listening \
		$kd_target/portals/t/state
	step "the log tells" logs "the address has moved to another adapter"
	step "the disk is live" until_true $((40 * slow)) is d live
	step "and is read" reads_one d
	step "the target listens no more" no_portal t
	ip addr del $there/24 dev kd9
	ip addr add $there/24 dev veth1
	must "it listens where it did" portal t "$b-1"
	step "leaves" leave d
	must "a disk through the adapter of an address" have d d ia=192.0.2.1 reconnect_max=1000000
	step "is read" reads_one d
	ip addr del 192.0.2.1/24 dev veth0
	step "that address is at another adapter now" ip addr add 192.0.2.1/24 dev kd9
	step "its session ends" set_to "$(session)" $kd_target/disks/d/kick
	step "it is connected again" until_true $((40 * slow)) lost d 1
	step "through the other adapter" until_true $((40 * slow)) is d live
	step "which it has taken" test "$(stat_of d adapters)" = 2
	step "and is read" reads_one d
	step "the target listens no more" no_portal t
	ip addr del 192.0.2.1/24 dev kd9
	ip addr add 192.0.2.1/24 dev veth0
	rdma link delete "${p}9"
	ip link delete kd9
}

# A task that waits for the disk has RTNL: nothing that connects the disk may wait for that.
asleep() { grep -q '^State:.D' "/proc/$1/status"; }
swap_on() {	# DEVICE: swap, and $group, a cgroup whose memory can be pushed out
	mkdir "$control/cgroup" && mount -t cgroup2 cgroup2 "$control/cgroup" &&
		echo +memory >"$control/cgroup/cgroup.subtree_control" &&
		group=$control/cgroup/kd && mkdir "$group" && mkswap -q "$1" && swapon "$1"
}
swap_off() { swapoff "$1" && rmdir "$group" && umount "$control/cgroup"; }
holds_rtnl() {	# rtnl|swap
	control=$TMPDIR/rtnl group=''
	mkdir "$control"
	must "a disk of 64 MiB" null_disk 0 64
	must "the target exports it" export_disk d /dev/nullb0 allow_any=1
	must "the target listens" portal t "$b-1"
	must "connected" have d d reconnect_max=1000000
	page=$(device d)
	if [ "$1" = swap ]; then
		must "swap on it" swap_on "$page"
		page=swap
	fi
	# shellcheck disable=SC2086
	python3 "$TOP/tests/blkrtnl" "$page" "$control" $group &
	holder=$!
	must "a page of a task is there, and not in memory" until_true $((30 * slow)) \
		[ -e "$control/ready" ]
	step "the target listens no more" set_to 0 $kd_target/portals/t/enable
	step "the connection is lost" until_true $((20 * slow)) refused is d live
	echo >"$control/go"
	step "the task waits for its page" until_true $((20 * slow)) asleep $holder
	ip link set lo up &
	other=$!
	step "and has RTNL: another one waits for that" until_true $((20 * slow)) asleep $other
	set_to 1 $kd_target/portals/t/enable &
	target=$!
	step "CTX-05: the target listens, and the disk is connected again, meanwhile" \
		until_true $((40 * slow)) is d live || kill -KILL $holder
	step "the target listens" wait $target
	step "CTX-05: the task goes on" wait $holder
	wait $other
	[ "$1" != swap ] || step "swap is given back" swap_off "$(device d)"
	step "leaves" leave d
	step "the disk is withdrawn" no_disk d
	step "the target listens no more" no_portal t
	no_null_disk 0
	rm -r "$control"
}
rtnl() { holds_rtnl rtnl; }
swap() { holds_rtnl swap; }

# Faults. Four disks are in use all the time: one that tests/blkcheck writes to and knows the
# contents of, one with ext4, one with xfs; and one that is a file, which takes no write while
# the file system that it is in is frozen.
all="raw ext4 xfs file"
links() {	# up|down
	# shellcheck disable=SC2086
	$n0 ip link set "$wire0" "$1"
}
lose() {	# PERCENT, 0: none
	for kd_i in 0 1; do
		eval "kd_n=\$n$kd_i kd_w=\$wire$kd_i"
		if [ "$1" = 0 ]; then
			$kd_n tc qdisc del dev "$kd_w" root 2>/dev/null || :
		else
			$kd_n tc qdisc replace dev "$kd_w" root netem loss "$1%" limit 10000
		fi
	done
}
plug() {	# SIDE
	eval "kd_n=\$n$1"
	case $where in one) kd_w=kd0 ;; *) kd_w=veth$1 ;; esac
	# shellcheck disable=SC2154
	$kd_n rdma link add "$p$1" type "$p" netdev "$kd_w"
}
disks_up() {
	export_disk raw /dev/nullb0 allow_any=1 serial=raw &&
		export_disk ext4 /dev/nullb1 allow_any=1 serial=ext4 &&
		export_disk xfs /dev/nullb2 allow_any=1 serial=xfs &&
		export_disk file "$TMPDIR/back/file" allow_any=1 serial=file
}
target_up() { disks_up && portal t "$b-1"; }
target_down() { no_portal t && each no_disk; }
on() { mountpoint -q "$TMPDIR/$1"; }
each() {	# COMMAND...: with the name of each disk
	for kd_d in $all; do
		"$@" $kd_d || return
	done
}
all_live() {
	for kd_d in $all; do
		is $kd_d live || return
	done
}
count_done() { cat "$TMPDIR/check/done" 2>/dev/null || echo 0; }
more_done() { [ "$(count_done)" -ge "$kd_goal" ]; }
goes_on() {	# COUNT SECONDS
	kd_goal=$(($(count_done) + $1))
	until_true $(($2 * slow)) more_done
}
# A file system's load: files come, are synced, and some go; a list of what must be there.
fs_load() {	# NAME
	cd "$TMPDIR/$1" || return
	kd_k=0
	while [ ! -e "$TMPDIR/check/stop" ]; do
		kd_k=$((kd_k + 1))
		mkdir -p d$((kd_k % 7))
		head -c $((kd_k * 7919 % 150000 + 1)) /dev/urandom >d$((kd_k % 7))/f$kd_k || return
		sync -f . || return
		md5sum d$((kd_k % 7))/f$kd_k >>"$TMPDIR/$1.sums" || return
		[ $((kd_k % 5)) != 0 ] || {
			grep -v "/f$((kd_k - 3))\$" "$TMPDIR/$1.sums" >"$TMPDIR/$1.new"
			mv "$TMPDIR/$1.new" "$TMPDIR/$1.sums"
			rm -f d*/f$((kd_k - 3))
		}
	done
}
fs_check() {	# NAME: after umount
	case $1 in
	ext4) e2fsck -fn "$(device ext4)" >"$TMPDIR/fsck" 2>&1 ;;
	xfs) xfs_repair -n "$(device xfs)" >"$TMPDIR/fsck" 2>&1 ;;
	esac && return
	tail -20 "$TMPDIR/fsck"
	return 1
}
fs_sums() { [ ! -s "$TMPDIR/$1.sums" ] || (cd "$TMPDIR/$1" && md5sum -c --quiet "$TMPDIR/$1.sums"); }
fs_mount() { mount -t "$1" "$(device "$1")" "$TMPDIR/$1"; }

# What soft-RoCE of newer kernels cannot send takes its queue pair to ERR, and that of the
# connection manager never leaves it: without a carrier, or in the moment in which the queueing
# discipline changes.
cm_again() {
	cm_is_dead || return 0
	tell "soft-RoCE has lost its connection manager to the cable"
	rdma link delete "$a" && plug 0 || return
	[ "$a" = "$b" ] || { rdma link delete "$b" && plug 1; }
}

fault() {	# NAME
	case $1 in
	flap) links down && sleep 3 && links up && cm_again ;;
	cut) lose 100 && sleep 4 && lose 0 && cm_again ;;
	loss) lose 5 && sleep 5 && lose 0 && cm_again ;;
	portal) set_to 0 $kd_target/portals/t/enable && sleep 1 && set_to 1 $kd_target/portals/t/enable ;;
	disk) set_to 0 $kd_target/disks/raw/enable && sleep 1 && set_to 1 $kd_target/disks/raw/enable ;;
	reload) target_down && rmmod kdblk_target && sleep 1 && insmod "$KO/kdblk_target.ko" && target_up ;;
	unplug-initiator) rdma link delete "$a" && sleep 1 && plug 0 ;;
	# A write is at the target and does not end. The session does, and no other one begins
	# before that write has ended, or it would overwrite what is newer.
	frozen)
		fsfreeze -f "$TMPDIR/back" && sleep 1 && rdma link delete "$a" && sleep 1 &&
			plug 0 && until_true $((40 * slow)) is raw live && sleep 2 && refused is file live
		kd_rc=$?
		fsfreeze -u "$TMPDIR/back" && return $kd_rc ;;
	unplug-target) rdma link delete "$b" && sleep 1 && plug $((${#where} == 3 && 1)) ;;
	esac
}
possible() {	# FAULT
	case $1-$p-$where in
	# What soft-RoCE sends to itself does not pass the wire.
	cut-rxe-one | loss-rxe-one | flap-rxe-one) return 1 ;;
	# There is one device; a target that lost it listens again when all its sessions have ended.
	unplug-target-*-one | frozen-*-one) return 1 ;;
	esac
}
round() {	# FAULT NUMBER
	case $1 in frozen) kd_disk=file ;; *) kd_disk=raw ;; esac
	rm -rf "$TMPDIR/check"
	mkdir "$TMPDIR/check"
	for kd_f in ext4 xfs; do
		fs_load $kd_f >"$TMPDIR/$kd_f.log" 2>&1 &
		eval "kd_$kd_f=$!"
	done
	python3 "$TOP/tests/blkcheck" --threads 8 "$(device $kd_disk)" "$TMPDIR/check" \
		>"$TMPDIR/check.log" 2>&1 &
	kd_check=$!
	goes_on 50 20 || echo "(no load before the fault)"
	kd_start=$(date +%s)
	kd_ok=0
	fault "$1" || { kd_ok=1; echo "(the fault itself failed)"; }
	until_true $((40 * slow)) all_live || { kd_ok=1; echo "(not live again)"; }
	goes_on 50 40 || { kd_ok=1; echo "(no load after the fault)"; }
	touch "$TMPDIR/check/stop"
	wait $kd_check || kd_ok=1
	# shellcheck disable=SC2154
	wait "$kd_ext4" || { kd_ok=1; cat "$TMPDIR/ext4.log"; }
	# shellcheck disable=SC2154
	wait "$kd_xfs" || { kd_ok=1; cat "$TMPDIR/xfs.log"; }
	cat "$TMPDIR/check.log"
	tell "$1: $(head -1 "$TMPDIR/check.log"); files: $(wc -l <"$TMPDIR/ext4.sums") ext4, $(wc -l <"$TMPDIR/xfs.sums") xfs; $(stat_of $kd_disk replayed) commands replayed; $(($(date +%s) - kd_start)) s"
	[ $kd_ok = 0 ] || { said 20; for kd_d in $all; do echo "$kd_d: $(state $kd_d)"; done; }
	return $kd_ok
}
whole() {	# FAULT: the file systems after it
	for kd_f in ext4 xfs; do
		step "$1: $kd_f is unmounted" timeout 100 umount "$TMPDIR/$kd_f" &&
			step "$1: $kd_f has no fault" fs_check $kd_f &&
			step "$1: $kd_f mounts" fs_mount $kd_f &&
			step "$1: what was synced is there" fs_sums $kd_f || return
	done
}
# The limit: attempts are used up, requests fail, what is mounted can be unmounted.
limit() {
	rm -rf "$TMPDIR/check"
	mkdir "$TMPDIR/check"
	attach_many reconnect_max=3 reconnect_delay_ms=200 || return
	python3 "$TOP/tests/blkcheck" --errors "$(device raw)" "$TMPDIR/check" \
		>"$TMPDIR/check.log" 2>&1 &
	kd_check=$!
	goes_on 50 20
	step "limit: the target listens no more" set_to 0 $kd_target/portals/t/enable
	for kd_d in $all; do
		step "limit: $kd_d has failed" until_true $((60 * slow)) is $kd_d failed
	done
	tell "last error: $(cat $kd_initiator/raw/last_error)"
	step "limit: requests fail at once" refused timeout 10 dd if="$(device raw)" of=/dev/null bs=4k count=1 iflag=direct
	dd if=/dev/zero of="$TMPDIR/ext4/x" bs=4k count=1 2>/dev/null || :
	step "limit: a sync fails" refused timeout 20 dd if=/dev/zero of="$TMPDIR/ext4/y" bs=4k count=1 conv=fsync
	for kd_f in ext4 xfs; do
		step "limit: $kd_f can be unmounted" timeout 60 umount "$TMPDIR/$kd_f"
	done
	step "limit: the target listens again" set_to 1 $kd_target/portals/t/enable
	until_true 10 grep -qx listening $kd_target/portals/t/state
	for kd_d in $all; do
		step "limit: $kd_d connects again" set_to 1 $kd_initiator/$kd_d/connect
	done
	step "limit: the load goes on" goes_on 10 20 || :
	touch "$TMPDIR/check/stop"
	step "limit: each write is there, or is not if it failed" wait $kd_check
	tell "limit: $(cat "$TMPDIR/check.log")"
	for kd_f in ext4 xfs; do
		step "limit: $kd_f mounts and replays its journal" fs_mount $kd_f &&
			step "limit: and is unmounted" umount "$TMPDIR/$kd_f" &&
			step "limit: and has no fault" fs_check $kd_f &&
			step "limit: mounts" fs_mount $kd_f &&
			step "limit: what was synced is there" fs_sums $kd_f || return
	done
}
attach_many() {	# the same disks with other words; file systems are mounted afterwards
	for kd_f in ext4 xfs; do
		! on $kd_f || umount "$TMPDIR/$kd_f" || return
	done
	for kd_d in $all; do
		[ ! -d $kd_initiator/$kd_d ] || leave $kd_d || return
		have $kd_d $kd_d queues=2 "$@" || return
	done
	for kd_f in ext4 xfs; do
		[ ! -e "$TMPDIR/$kd_f.sums" ] || fs_mount $kd_f || return
	done
}
faults() {	# ROUNDS [FAULT,FAULT...]
	kd_rounds=${1:-1} kd_faults=$(echo "${2:-flap,cut,loss,portal,disk,reload,unplug-initiator,unplug-target,frozen,limit}" | tr , ' ')
	mp ext4
	mp xfs
	must "three disks" null_disk 0 64
	null_disk 1 64 discard=1 irqmode=2 completion_nsec=20000
	null_disk 2 96 cache_size=8
	null_disk 3 64
	mkdir "$TMPDIR/back"
	mkfs.ext4 -q /dev/nullb3
	mount -t ext4 /dev/nullb3 "$TMPDIR/back"
	must "and a file" truncate -s 32M "$TMPDIR/back/file"
	must "are exported" target_up
	must "and connected" attach_many
	mkdir -p "$TMPDIR/ext4" "$TMPDIR/xfs"
	step "mkfs.ext4" mkfs.ext4 -q "$(device ext4)"
	# That small it is for tests only, says mkfs.xfs.
	step "mkfs.xfs" env TEST_DIR=/x TEST_DEV=/x QA_CHECK_FS=1 mkfs.xfs -q "$(device xfs)"
	for kd_f in ext4 xfs; do
		must "$kd_f mounts" fs_mount $kd_f
		: >"$TMPDIR/$kd_f.sums"
	done
	kd_round=0
	while [ $kd_round -lt "$kd_rounds" ] && [ "$failed" = 0 ]; do
		kd_round=$((kd_round + 1))
		for kd_fault in $kd_faults; do
			possible "$kd_fault" || continue
			if [ "$kd_fault" = limit ]; then
				limit
				attach_many
			else
				step "$kd_fault, round $kd_round: nothing was lost, doubled or torn" \
					round "$kd_fault" "$kd_round" && whole "$kd_fault"
			fi
			[ "$failed" = 0 ] || break
			# The disks do not fill.
			for kd_f in ext4 xfs; do
				rm -rf "$TMPDIR/$kd_f"/d*
				: >"$TMPDIR/$kd_f.sums"
			done
		done
	done
	for kd_f in ext4 xfs; do
		umount "$TMPDIR/$kd_f"
	done
	tell "$(cat $kd_initiator/raw/stats | tr '\n' ' ')"
	each leave
	step "the target is empty" target_down
	umount "$TMPDIR/back"
	for kd_i in 0 1 2 3; do no_null_disk $kd_i; done
}

configfs
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(but_cqs)
must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
for part; do
	case $part in
	*.ko) ;;
	faults*) IFS=: read -r _ kd_x kd_y <<-END
		$part
		END
		faults "$kd_x" "$kd_y" ;;
	*) $part ;;
	esac
done
step "kdblk.ko unloads" timeout 100 rmmod kdblk
step "kdblk_target.ko unloads" timeout 100 rmmod kdblk_target
until_true 60 all_gone || { echo "before: $empty"; echo "now: $(but_cqs)"; }
step "queue pairs, memory, ids: all as before" all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
