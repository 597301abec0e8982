# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blkhostile.sh rxe|siw net|dev|one MESSAGES [ROUNDS [SEED]]: peers of kdblk that mean no good
# (tests/fuzz/blk), MESSAGES of them at random, everything so many times.
# An initiator does to kdblk_target what must not be, while another one works on the same disk
# and a third one on another disk; then a target does so to kdblk.
# shellcheck shell=sh disable=SC2154
p=$1 where=$2 messages=${3:-2000} rounds=${4:-1} seed=${5:-0} only=$6
. "$TOP/tests/guest/blk-lib.sh"
# Connections take longer than messages.
few=$((messages / 2))
[ $few -le 1000 ] || few=1000
there=192.0.2.2
case $where in
net) two_namespaces "$p"; a=${p}0 b=${p}1 ;;
dev) two_devices "$p"; a=${p}0 b=${p}1 ;;
one) loopback_dev "$p"; a=${p}0 b=${p}0 there=192.0.2.1 ;;
esac
case $KERNEL in
*-kasan | *-lockdep) slow=3 ;;
*) slow=1 ;;
esac
# TCP remembers ports for a minute.
echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets

fuzzer=/sys/kernel/debug/kdblkfuzz
all_gone() { [ "$(but_cqs)" = "$empty" ]; }
said() { dmesg | grep -E 'kdblk' | tail -n "${1:-5}"; }
# within SECONDS COMMAND...: it comes back, with a status or another; what hangs is shown.
within() {
	kd_left=$(($1 * slow * 10))
	shift
	"$@" &
	kd_pid=$!
	while kill -0 $kd_pid 2>/dev/null; do
		kd_left=$((kd_left - 1))
		[ $kd_left -gt 0 ] || {
			echo "(it hangs: $*)"
			cat /proc/$kd_pid/stack 2>/dev/null
			return 99
		}
		sleep 0.1
	done
	wait $kd_pid
}
order() { echo "$*" >$fuzzer/do; }
# Why sessions ended: trace events are not rate-limited, as the log is.
since() { : >$tracing/trace; }
because() {	# EVENT REASON
	until_true $((20 * slow)) grep -qE "$1: .*: ($2)\$" $tracing/trace && return
	echo "(not because of: $2)"
	grep "$1: " $tracing/trace
	return 1
}
fuzz() { within 100 order "$@" || { kd_rc=$?; said 4; return $kd_rc; }; }
wanted() {	# TITLE: of a scene
	case $1 in *"$only"*) ;; *) return 1 ;; esac
}

# ---- what works meanwhile ----
bystander() {	# NAME DISK: an initiator that does nothing wrong
	attach "$1" "$a-1" $there "$2" queues=2 depth=32 keepalive_ms=$((2000 * slow)) reconnect_delay_ms=200 &&
		is "$1" live || return
	mkdir -p "$TMPDIR/$1"
	rm -f "$TMPDIR/$1"/*
	python3 "$TOP/tests/blkcheck" --threads 4 "$(device "$1")" "$TMPDIR/$1" \
		>"$TMPDIR/$1.log" 2>&1 &
	eval "kd_$1=$!"
}
done_by() { cat "$TMPDIR/$1/done" 2>/dev/null || echo 0; }
more_done() { [ "$(done_by "$1")" -gt "$2" ]; }
works() {	# NAME: it goes on
	until_true $((20 * slow)) more_done "$1" "$(done_by "$1")" && return
	echo "($1 does not go on: $(state "$1"))"
	said 5
	return 1
}
both_work() { works one && works two; }
undisturbed() {	# NAME
	works "$1" || return
	touch "$TMPDIR/$1/stop"
	eval "wait \$kd_$1" || { cat "$TMPDIR/$1.log"; return 1; }
	tell "$1: $(head -1 "$TMPDIR/$1.log"), $(tr '\n' ' ' <"$kd_initiator/$1/stats")"
	is "$1" live || return
	grep -qx "losses 0" "$kd_initiator/$1/stats" && return
	# soft-RoCE breaks a connection whose requests it repeats, and it repeats when an answer is
	# late (deviations.md, Memory): on a machine that stands still for a second. Then all was
	# done again; but nobody else may have ended it. Each loss has to be found in the log, as
	# one of those.
	[ "$p" = rxe ] && grep -qx "losses $(dmesg | grep "kdblk: $1: connection lost" |
		grep -cE ': the connection broke$|did not answer a keepalive$')" "$kd_initiator/$1/stats"
}

# ---- the hostile initiator ----
# A message that is wrong is refused as such; only what is wrong about memory of the initiator, or
# does not fit into a Receive, the transport has to find out.
ends() {	# ORDER NAME
	since
	fuzz "$1" "$2" || return
	case "$1 $2" in
	"hello "* | "bad "*-key-* | "bad read-address" | "bad write-address") ;;
	"bad "*-memory-too-small | "bad invalidation" | "bad size-beyond-inline") ;;
	"login unknown-disk") because kdt_session_end "login refused" ;;
	*) because kdt_session_end "protocol error" ;;
	esac
}
each() {	# ORDER TITLE: with each name there is
	for kd_name in $(cat "$fuzzer/$1"); do
		wanted "$1 $kd_name" || continue
		step "$2: $kd_name" ends "$1" "$kd_name" || said 6
	done
	step "$2: others are not disturbed" both_work || :
}
scene() {	# TITLE ORDER...
	wanted "$1" || return
	kd_title=$1
	shift
	step "$kd_title" fuzz "$@" || said 6
	step "$kd_title: others are not disturbed" both_work || :
}
read_only() {
	wanted "a disk that is read-only" || return 0
	must "a disk" null_disk 2 4
	head -c 4194304 /dev/urandom >"$TMPDIR/as-it-was"
	dd if="$TMPDIR/as-it-was" of=/dev/nullb2 bs=1M oflag=direct 2>/dev/null
	must "is exported read-only" export_disk r /dev/nullb2 allow_any=1 read_only=1
	printf %s r >/sys/module/kdblkfuzz/parameters/disk
	step "a disk that is read-only refuses what writes" fuzz read-only || said 4
	printf %s d >/sys/module/kdblkfuzz/parameters/disk
	step "it is withdrawn" no_disk r
	step "and is as it was" cmp /dev/nullb2 "$TMPDIR/as-it-was"
	no_null_disk 2
}
proof() {
	wanted "proof of a secret" || return 0
	mkdir $kd_target/disks/d/allowed/kdblkfuzz
	# not where the kernel has no HMAC-SHA256
	if set_to swordfish-0123456789 $kd_target/disks/d/allowed/kdblkfuzz/secret; then
		step "a proof is for one login of one connection, or one of its queues" \
			fuzz prove swordfish-0123456789 || said 4
	fi
	rmdir $kd_target/disks/d/allowed/kdblkfuzz
}
initiator() {
	# larger than what one DISCARD may have
	must "two disks" null_disk 0 128
	null_disk 1 64 discard=1
	must "are exported" export_disk d /dev/nullb0 allow_any=1
	must "are exported, the other one, too" export_disk h /dev/nullb1 allow_any=1
	must "the target listens" portal t "$b-1" queues=2 buffers=8
	must "an initiator works on the disk" bystander one d
	must "another one on another disk" bystander two h
	order clean
	step "one that does nothing wrong is served" fuzz good
	each hello "a connection is refused"
	each login "a login is not accepted"
	for kd_op in 2 16 17 18 19 20; do
		wanted "before-login" || continue
		step "a command before the login ends the connection: $kd_op" \
			ends bad "before-login $kd_op"
	done
	each bad "a message ends its session"
	scene "two initiators with one id" identity h
	if wanted "queues that were not granted"; then
		must "another portal" portal u "$b-1" port=14421
		scene "queues that were not granted" queues 14421
		step "it listens no more" no_portal u
	fi
	read_only
	proof
	scene "without a keepalive the session ends" keepalive
	scene "an initiator without Receives holds up nobody" deaf
	scene "RDMA at the target's memory" attack $((few / 25))
	scene "gone with commands in flight" inflight $((few / 25))
	scene "connections without a login end" silent 80
	scene "private data and logins at random" random-connect $((few / 5))
	# What is right in what is at random is done: on the other disk, which is checked no more.
	step "the other disk: nothing was lost, nobody ended the session" undisturbed two
	detach two
	printf %s h >/sys/module/kdblkfuzz/parameters/disk
	if wanted "messages at random"; then
		step "$messages messages at random" fuzz random "$messages"
		step "messages at random: others are not disturbed" works one
	fi
	printf %s d >/sys/module/kdblkfuzz/parameters/disk
	step "one that does nothing wrong is served" fuzz good
	step "the disk: nothing was lost, doubled or torn, nobody ended the session" undisturbed one
	detach one
	step "no session is left" until_true 20 grep -qx 0 $kd_target/disks/d/sessions
	step "the disks are withdrawn" no_disk d
	no_disk h
	step "the target listens no more" no_portal t
	no_null_disk 0
	no_null_disk 1
}

# ---- the hostile target ----
# The hostile side is where the first device is.
prepare() {	# ATTRIBUTE=VALUE...
	mkdir $kd_initiator/v &&
		attributes $kd_initiator/v ia="$b-1" address=192.0.2.1 port=4800 disk=x queues=2 \
			depth=16 keepalive_ms=500 reconnect_delay_ms=100 reconnect_max=3 "$@"
}
connects() { within 60 set_to 1 $kd_initiator/v/connect && is v live; }
# A failure is one, not that of all that follow.
alive_again() { is v live >/dev/null || { fuzz serve good && connects; }; }
leaves() {
	within 100 set_to 0 $kd_initiator/v/connect && is v idle &&
		[ "$(cat $kd_initiator/v/device)" = "" ]
}
losses() { sed -n 's/^losses //p' $kd_initiator/v/stats; }
lost_more() { [ "$(losses)" -gt "$1" ]; }
rights() {	# NAME: as it should be, and not because nothing was done
	kd_rc=0
	fuzz served || kd_rc=1
	fuzz clean || kd_rc=1
	fuzz serve good && return $kd_rc
}
says() {	# WORDS: the reason of the last failure
	grep -qE "$1" $kd_initiator/v/last_error && return
	echo "(not '$1', but: $(cat $kd_initiator/v/last_error))"
	return 1
}
why_none() {	# NAME: what the error has to say
	case $1 in
	accept-leave | login-leave) says "the connection ended at once" ;;
	accept-*) says "is not a kdblk target" ;;
	geo-*) says "sent invalid properties of its disk" ;;
	login-status-7) says "has no memory for a session" ;;
	login-status-64) says "has no disk 'x'" ;;
	login-status-65) says "denies disk 'x'" ;;
	login-status-*) says "refused the login with status ${1##*-}\$" ;;
	login-silent) says "did not answer the login" ;;
	login-invalidate) ;;	# of a key that nobody has
	login-*) says "ended at once: the target broke the protocol" ;;
	esac
}
# What is wrong before there is a disk: no disk, an error, and another attempt is welcome.
stillborn() {	# NAME
	fuzz serve "$1" || return
	kd_rc=0
	within 100 set_to 1 $kd_initiator/v/connect || kd_rc=$?
	case $kd_rc in
	0) echo "(it connects)"; leaves; return 1 ;;
	99) return 1 ;;
	esac
	! is v live && [ "$(cat $kd_initiator/v/device)" = "" ] && [ ! -e /dev/kdblk0 ] &&
		why_none "$1" && rights "$1"
}
# What is strange only: nothing hangs or breaks.
odd() {	# NAME
	fuzz serve "$1" || return
	kd_rc=0
	within 200 set_to 1 $kd_initiator/v/connect || kd_rc=$?
	[ $kd_rc != 99 ] || return
	[ $kd_rc != 0 ] || within 60 dd if=/dev/kdblk0 of=/dev/null bs=64k count=4 iflag=direct \
		2>/dev/null || [ $? != 99 ] || return
	# The block layer does not split a DISCARD whose granularity does not fit into its limit.
	case $1 in
	odd-granularity-*)
		kd_n=$(losses)
		within 60 blkdiscard /dev/kdblk0 2>/dev/null || [ $? != 99 ] || return
		if lost_more "$kd_n"; then
			said 4
			leaves
			return 1
		fi ;;
	esac
	leaves && rights "$1"
}
pattern() {	# [BYTES]: in blocks of so many
	head -c 1048576 /dev/urandom >"$TMPDIR/pattern"
	within 120 dd if="$TMPDIR/pattern" of="$(device v)" bs="${1:-64k}" oflag=direct conv=notrunc,fsync \
		2>/dev/null
}
matches() {	# [BYTES COUNT]: in blocks of so many bytes
	within 120 dd if="$(device v)" of="$TMPDIR/back" bs="${1:-64k}" count="${2:-16}" \
		iflag=direct 2>/dev/null &&
		cmp -n 1048576 "$TMPDIR/back" "$TMPDIR/pattern"
}
# Once: the session ends, everything is done again, and right.
once() {	# NAME
	kd_n=$(losses)
	since
	fuzz serve "$1" 1 || return
	case $1 in
	# two commands with memory that is lent, one with its data, all at a time
	answer-*-key*) pattern 132k ;;
	*) pattern ;;
	esac || return
	case $1 in
	answer-data-*) matches 4k 256 ;;	# the data of small READs comes in the answer
	*) matches ;;
	esac || return
	is v live || return
	case $1 in
	*-status-*) ;;
	*-mute) because kdblk_lost "the target did not answer a command in time" ;;
	# What is not lent, or no longer so, and what does not fit, the transport finds out.
	*-leave | *-late-* | *-wrong-way | *-beyond | *-steal | *-flood | *-other-key | \
		*-size-60000) ;;
	*) because kdblk_lost "the target broke the protocol" ;;
	esac || return
	case $1 in
	*-status-*) ;;
	*) lost_more "$kd_n" || { echo "(the session was not ended)"; return 1; } ;;
	esac
	rights "$1"
}
# Always: requests fail at some time; none hangs.
always() {	# NAME
	fuzz serve "$1" || return
	kd_rc=0
	within 300 dd if="$(device v)" of=/dev/null bs=64k count=2 iflag=direct 2>/dev/null || kd_rc=$?
	[ $kd_rc != 99 ] || return
	tell "$1: dd ended with $kd_rc, state $(state v), $(tr '\n' ' ' <$kd_initiator/v/stats)"
	leaves || return
	# And if it does so from the beginning.
	within 300 set_to 1 $kd_initiator/v/connect || [ $? != 99 ] || return
	leaves && rights "$1"
}
keepalive() {	# NAME
	kd_n=$(losses)
	since
	# A session in which nothing was answered counts as a failed attempt.
	within 60 dd if="$(device v)" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null &&
		fuzz serve "$1" 1 || return
	case $1 in
	# A command is under way whose memory is lent.
	*-invalidate) within 60 dd if="$(device v)" of=/dev/null bs=64k count=1 iflag=direct \
		2>/dev/null ;;
	esac && until_true $((20 * slow)) lost_more "$kd_n" &&
		until_true $((20 * slow)) is v live || return
	case $1 in
	*-mute) because kdblk_lost "the target did not answer a keepalive" ;;
	*) because kdblk_lost "the target broke the protocol" ;;
	esac && rights "$1"
}
# Whose disk is another one after the loss of a session gets none of the commands that were lost.
differs() {	# NAME
	fuzz serve "$1" && refused reads v && until_true $((20 * slow)) is v failed || return
	case $1 in
	*-capacity) says "has shrunk" ;;
	*-queues) says "now grants 1 queues, before 2" ;;
	*-depth) says "now grants a depth of 8, before 16" ;;
	*) says "differs from the one before" ;;
	esac && rights "$1" && connects
}
# A machine that crashes loses what it had not flushed; the next flush says so, once.
restarted() {
	kd_n=$(losses)
	fuzz serve restart 1 && within 60 dd if="$(device v)" of=/dev/null bs=4k count=1 \
		iflag=direct 2>/dev/null && lost_more "$kd_n" && is v live
}
flushed() { within 60 sync "$(device v)"; }
restart() {
	wanted "target restart" || return 0
	step "a write that is not flushed" dd if=/dev/zero of="$(device v)" bs=4k count=1 \
		oflag=direct 2>/dev/null
	step "the target's machine restarts, the session goes on" restarted
	step "the next flush fails" refused flushed
	step "and the log says why" logs "kdblk: v: the target's machine has restarted"
	step "the one after it does not" flushed
	step "the machine restarts when all is flushed" restarted
	step "no flush fails" flushed
}
# Several paths to a disk share the cache of the target.
writes() { within 60 dd if=/dev/zero of="$(device "$1")" bs=4k count=1 oflag=direct 2>/dev/null; }
flushes() { within 60 sync "$(device "$1")"; }
both_live() { is v live && is w live; }
all_restarted() {
	kd_n=$(losses)
	fuzz serve restart 1 && within 60 dd if="$(device v)" of=/dev/null bs=4k count=1 \
		iflag=direct 2>/dev/null && lost_more "$kd_n" && until_true $((20 * slow)) both_live
}
cache_of_paths() {
	wanted "target cache of paths" || return 0
	must "another path to the disk" second_path
	step "a write on the first path" writes v
	step "the machine restarts" all_restarted
	step "a flush on the other path fails" refused flushes w
	step "and none after it, on either path: the first one" flushes v
	step "the other one" flushes w
	step "a write on both" writes v
	step "on the other one, too" writes w
	step "the machine restarts" all_restarted
	step "the flush fails" refused flushes v
	step "but not twice" flushes w
	step "a write on the first path" writes v
	step "flushed on the other one" flushes w
	step "the machine restarts" all_restarted
	step "no flush fails: on the first path" flushes v
	step "on the other one" flushes w
	step "a write on the other path" writes w
	step "which is disconnected" set_to 0 $kd_initiator/w/connect
	step "the machine restarts" restarted
	step "the flush on the first one fails" refused flushes v
	rmdir $kd_initiator/w
}
# One path notices the restart late, when the other one has logged in again. Its flush is not
# answered, and has to fail where it is sent next.
reads() { within 60 dd if="$(device "$1")" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null; }
late_path() {
	wanted "target late path" || return 0
	step "it leaves" leaves
	attributes $kd_initiator/v fast_io_fail_ms=300 reconnect_max=1000 \
		keepalive_ms=$((5000 * slow))
	step "a path whose commands are to fail soon" connects
	echo $((15000 * slow)) >"/sys/block/$(cat $kd_initiator/v/device)/queue/io_timeout"
	must "another path to the disk" second_path
	step "a write on the first path" writes v
	fuzz serve answer-mute 1
	within 60 sync "$(device v)" &
	kd_sync=$!
	step "a flush on it is not answered" until_true $((20 * slow)) \
		logs "kdblkfuzz: a FLUSH is not answered"
	fuzz serve restart-unseen 1
	step "the machine restarts" reads w
	fuzz serve answer-leave 1
	step "the other path notices it" reads w
	step "the first one does not" kill -0 $kd_sync
	step "a flush on the other path fails, while that of the first one hangs" refused flushes w
	fuzz serve reject-again
	step "that path is lost, and its flush fails" refused wait $kd_sync
	step "no other flush does" flushes w
	fuzz serve good
	step "the first path is back" until_true $((20 * slow)) is v live
	step "no flush fails there" flushes v
	step "a write on it" writes v
	step "the other path leaves" set_to 0 $kd_initiator/w/connect
	fuzz serve restart-unseen 1
	step "the machine restarts, and the first path does not notice" reads v
	step "the other path comes back" set_to 1 $kd_initiator/w/connect
	step "the flush there fails" refused flushes w
	step "but not twice" flushes w
	fuzz serve restart-unseen 1
	step "the machine restarts" reads v
	fuzz serve answer-leave 1
	step "the other path notices it" reads w
	step "a write on it" writes w
	fuzz serve restart-unseen 1
	step "the machine restarts once more" reads w
	fuzz serve answer-leave 1
	step "now the first path notices" reads v
	step "the flush there fails" refused flushes v
	step "but not twice" flushes v
	step "the other path leaves" set_to 0 $kd_initiator/w/connect
	rmdir $kd_initiator/w
	fuzz serve good
	step "it leaves" leaves
	attributes $kd_initiator/v fast_io_fail_ms=0 reconnect_max=3 keepalive_ms=500
	step "it connects again" connects
}
# Connecting waits for the target, and then the kernel looks for partitions: both can be given up.
over() { ! kill -0 "$1" 2>/dev/null; }
stop_unit() {	# PID: what the unit runs before it disconnects all disks
	sed -n "s/^ExecStop=-\/bin\/sh -c '\(.*\)'\$/\1/p" \
		"$TOP/ulp_example/kdblk/tools/kdblk.service" | sed 's/\$\$/$/g' >"$TMPDIR/stop"
	grep -q MAINPID "$TMPDIR/stop" || return 99
	MAINPID=$1 sh "$TMPDIR/stop" || :
}
stuck() {
	wanted "target stuck" || return 0
	step "it leaves" leaves
	attributes $kd_initiator/v reconnect_max=1000000
	kd_n=$(losses)
	fuzz serve answer-leave
	set_to 1 $kd_initiator/v/connect &
	kd_connect=$!
	step "it is lost again and again before it can be read" \
		until_true $((40 * slow)) lost_more $((kd_n + 3))
	step "connecting has not ended" kill -0 $kd_connect
	step "what stops the unit of it does not wait for ever" within 30 stop_unit $kd_connect
	step "it leaves all the same" leaves
	step "connecting has ended" until_true 10 over $kd_connect
	fuzz serve login-silent
	set_to 1 $kd_initiator/v/connect &
	kd_connect=$!
	step "it waits for the answer to its login" until_true 10 is v connecting
	step "it leaves without that" within 15 set_to 0 $kd_initiator/v/connect
	step "connecting fails" refused wait $kd_connect
	fuzz serve good
	attributes $kd_initiator/v reconnect_max=3
	step "it connects again" connects
}
second_path() {	# ATTRIBUTE=VALUE...
	mkdir $kd_initiator/w &&
		attributes $kd_initiator/w ia="$b-1" address=192.0.2.1 port=4800 disk=x queues=1 \
			depth=16 keepalive_ms=500 reconnect_delay_ms=100 reconnect_max=1000 path=1 \
			id="$(cat $kd_initiator/v/id)" "$@" connect=1 && is w live
}
# A path that does not answer what it is asked about another one holds up no other disk.
mute_path() {
	wanted "target fence-mute" || return 0
	must "a disk" null_disk 0 64
	must "is exported by a target that is good" export_disk d /dev/nullb0 allow_any=1
	must "which listens" portal t "$b-1"
	must "another path to the hostile one" second_path keepalive_ms=600000
	step "it leaves" leaves
	attributes $kd_initiator/v fast_io_fail_ms=1 reconnect_max=1000
	step "the first path connects, with commands that are to fail soon" connects
	for kd_name in fence-long fence-status-777; do
		since
		fuzz serve $kd_name 1
		reads v
		step "the path that is asked about it is lost: $kd_name" because kdblk_lost \
			"the target (broke the protocol|refused to end another path)"
		fuzz serve good
		step "both come back" until_true $((20 * slow)) both_live
	done
	fuzz serve fence-mute 1
	dd if="$(device v)" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null &
	kd_read=$!
	step "it is lost, and the target is asked about it" until_true $((20 * slow)) \
		logs "kdblkfuzz: a FENCE is not answered"
	fuzz serve good
	step "it comes back before there is an answer" until_true $((20 * slow)) is v live
	step "the command does not fail" wait $kd_read
	step "the path that was asked leaves" within 30 detach w
	must "it comes back" second_path keepalive_ms=600000
	dmesg -c >/dev/null
	fuzz serve fence-mute 1
	dd if="$(device v)" of=/dev/null bs=4k count=1 iflag=direct 2>/dev/null &
	kd_read=$!
	step "it is lost" until_true $((20 * slow)) refused is v live
	step "the target is asked about it" until_true $((20 * slow)) \
		logs "kdblkfuzz: a FENCE is not answered"
	step "a disk of another target connects meanwhile" \
		within 30 attach z "$a-1" $there d queues=1
	step "and leaves" within 30 detach z
	step "the command does not fail" kill -0 $kd_read
	step "the path that was asked leaves" within 30 detach w
	step "then it does" refused wait $kd_read
	fuzz serve good
	step "it leaves" leaves
	attributes $kd_initiator/v fast_io_fail_ms=0 reconnect_max=3
	step "the disk is withdrawn" no_disk d
	step "the good target listens no more" no_portal t
	no_null_disk 0
	step "it connects again" connects
}
target() {
	step "the hostile target listens" fuzz listen
	order clean
	must "an initiator of it" prepare
	for kd_name in $(grep -E '^(accept|reject|login|geo)-' $fuzzer/serve) silence; do
		wanted "target $kd_name" || continue
		step "no disk comes of it: $kd_name" stillborn "$kd_name" || said 4
	done
	for kd_name in $(grep -E '^odd-' $fuzzer/serve) odd-junk odd-junk odd-junk odd-junk; do
		wanted "target $kd_name" || continue
		step "nothing breaks: $kd_name" odd "$kd_name" || said 4
	done
	step "it connects to one that is good" connects
	restart
	cache_of_paths
	late_path
	mute_path
	stuck
	for kd_name in $(grep -E '^answer-' $fuzzer/serve); do
		wanted "target $kd_name" || continue
		case $kd_name in
		*-random) ;;
		*-status-777)
			step "the request fails: $kd_name" refused once "$kd_name"
			fuzz serve good
			step "the next one does not" pattern
			step "and what it wrote is there" matches ;;
		*)	step "the session ends, and goes on: $kd_name" once "$kd_name" || said 4 ;;
		esac
		alive_again
	done
	for kd_name in $(grep -E '^differs-' $fuzzer/serve); do
		wanted "target $kd_name" || continue
		step "a disk that is another one is not used: $kd_name" differs "$kd_name" || said 4
		alive_again
	done
	for kd_name in $(grep -E '^alive-' $fuzzer/serve); do
		wanted "target $kd_name" || continue
		step "a keepalive that is not right ends the session: $kd_name" keepalive "$kd_name" ||
			said 4
		alive_again
	done
	step "it leaves" leaves
	# The last one takes minutes.
	for kd_name in tag-unknown twice leave without-invalidation size-8 late-write status-again \
		$([ "$rounds" = 1 ] || echo mute); do
		wanted "target always $kd_name" || continue
		is v live || step "it connects" connects
		step "for ever, and nothing hangs: answer-$kd_name" always "answer-$kd_name" || said 8
	done
	if wanted "target at random"; then
		is v live && leaves
		attributes $kd_initiator/v reconnect_max=1000 reconnect_delay_ms=10
		step "it connects" connects
		step "answers at random" fuzz serve answer-random
		within $((60 + messages / 50)) fio --name=v --filename="$(device v)" --direct=1 --thread \
			--rw=randrw --bsrange=512-64k --iodepth=16 --ioengine=io_uring --size=16m \
			--continue_on_error=all --time_based --runtime=$((messages / 100 + 2)) \
			>"$TMPDIR/fio.log" 2>&1
		step "answers at random: requests come back" test $? != 99
		tell "$(tr '\n' ' ' <$kd_initiator/v/stats)"
		step "answers at random: they were" fuzz served 3
		fuzz serve good
		is v live || { leaves; connects; }
		step "answers at random: afterwards it writes" pattern
		step "answers at random: and reads" matches
		step "it leaves" leaves
	fi
	step "nothing was done to it that must not be" fuzz clean
	rmdir $kd_initiator/v
}

# What fails is told, and what comes after it done all the same.
set +e
configfs
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(but_cqs)
must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
must "kdblkfuzz.ko loads" insmod "$KO/kdblkfuzz.ko" ia="$a-1" address=$there seed="$seed"
tracefs
echo 1 >$tracing/events/kdblk_target/kdt_session_end/enable
echo 1 >$tracing/events/kdblk/kdblk_lost/enable
tell "$(dmesg | sed -n 's/.*kdblkfuzz: on/on/p' | tail -1)"
round=0
while [ $round -lt "$rounds" ] && [ $failed = 0 ]; do
	round=$((round + 1))
	initiator
	target
	# It plays a target once in its life.
	step "kdblkfuzz.ko unloads" within 100 rmmod kdblkfuzz
	[ $round = "$rounds" ] || must "kdblkfuzz.ko loads again" insmod "$KO/kdblkfuzz.ko" \
		ia="$a-1" address=$there seed=$((seed ? seed + round : 0))
done
step "kdblk.ko unloads" within 100 rmmod kdblk
step "kdblk_target.ko unloads" within 100 rmmod kdblk_target
step "queue pairs, memory, ids: all as before" until_true 60 all_gone
step "kdapl.ko unloads" within 60 rmmod kdapl
finish
