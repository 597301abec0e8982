# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# rping.sh rxe|siw net|dev|one [ROUNDS [SIW.KO]]: kdrping.ko and rping, a user-space
# tool of rdma-core, each the server and the client of the other. ROUNDS: how
# often an rping is killed, of each kind; with 1 there are only two sizes, too.
# shellcheck shell=sh disable=SC2086,SC2154
p=$1 rounds=${3:-3} own=192.0.2.1 peer=192.0.2.2 in='' from=''
case $2 in
net) two_namespaces "$p"; in="ip netns exec n1" ;;
dev) two_devices "$p" "$4"; from="-I $peer" ;;
one) loopback_dev "$p" "$4"; peer=$own ;;
esac
mp rdma_ucm
sizes="64 65535"
[ "$rounds" = 1 ] || sizes="23 64 100 1000 4096 4097 65535"
log=$TMPDIR/rping k=0

# Ours: load PARAMETER...; then what it counts.
load() {
	dmesg -C
	insmod "$KO/kdrping.ko" ia="${p}0-1" "$@"
}
unload() { timeout 60 rmmod kdrping && ! logged 'kdrping: FAULT'; }
value() { cat "/sys/module/kdrping/parameters/$1"; }
is() { [ "$(value "$1")" -eq "$2" ]; }
least() { [ "$(value "$1")" -ge "$2" ]; }
counts() {
	while [ $# -gt 0 ]; do
		is "$1" "$2" || { echo "$1 is $(value "$1"), not $2"; return 1; }
		shift 2
	done
}
# Nothing but this has happened; or what is true of peers that were killed, too.
orderly() { until_true 60 is running 0 && counts refused 0 broken 0 cut 0 errors 0 "$@"; }
sums() {
	is running 0 && is requests $(($(value established) + $(value refused))) &&
		is established $(($(value ended) + $(value broken)))
}
sane() { until_true 60 sums && counts "$@"; }

# Theirs, to be run in the background; what becomes of that.
client() { exec $in rping -c $from -a $own "$@" >"$log.$k" 2>&1; }
server() { exec $in rping -s -a $peer "$@" >"$log" 2>&1; }
listens() { until_true 60 sh -c 'rdma resource show cm_id | grep -q "state LISTEN.*comm rping"'; }
kill_it() { kill -9 "$1"; wait "$1" || :; }
is_dead() { ! grep -q '^State:.[RSD]' "/proc/$1/status"; }
# One of its threads may still wait for an event when the other closes the channel, and then
# ends the program (rping of Debian 12); what it was to do is looked at anyway.
content() {
	wait "$1" || grep -q "^rdma_get_cm_event: Bad file descriptor" "${2:-$log}" ||
		{ cat "$log"*; return 1; }
}
pinged() { [ "$(grep -c 'ping data: rdma-ping-' "$log$1")" = "$2" ]; }
# That it then ends by itself cannot be relied on: its threads forget what has
# happened when that happens at the wrong time.
hears() { until_true 60 grep -q "DISCONNECT EVENT" "$log.$k" && kill_it "$1"; }

# soft-iWARP may never read the first message of a connection: it looks away while it
# accepts. The peer, which waits for the answer, sends nothing more. Then the bytes
# are still in the socket of the listening side.
unread() { [ "$p" = siw ] && ss -Htn state established sport = :7174 | grep -q '^[1-9]'; }
# within COMMAND...: true before long; 75 when it cannot become true because of that.
within() {
	until_true 10 "$@" && return
	! unread || return 75
	until_true 90 "$@"
}
# again COMMAND...: once more after that
again() {
	for _ in 1 2 3; do
		kd_rc=0
		"$@" || kd_rc=$?
		[ $kd_rc = 75 ] || return $kd_rc
		tell "a first message was not read: once more"
		rmmod kdrping
		kill_it $pid
	done
	return $kd_rc
}
flows() {
	kd_rc=0
	within least pings $(($(value pings) + 8)) || kd_rc=$?
	[ $kd_rc = 0 ] || [ $kd_rc = 75 ]
}

must "rping is there" command -v rping
must "kdapl.ko loads" insmod "$KO/kdapl.ko"

# Its clients, our server.
serve() {
	load mode=server && { client -C 10 -S "$1" -v -V & pid=$!; } &&
		within is_dead $pid && content $pid "$log.0" && pinged .0 10 &&
		orderly requests 1 established 1 ended 1 pings 10 && unload
}
serve_eight() {
	pids=''
	load mode=server
	for k in 1 2 3 4 5 6 7 8; do
		client -C 20 -S 5000 -V & pid=$!
		pids="$pids $pid"
	done
	for pid in $pids; do
		within is_dead $pid || return
	done
	k=0
	for pid in $pids; do
		k=$((k + 1))
		content $pid "$log.$k" || return
	done
	orderly requests 8 established 8 ended 8 pings 160 && unload
}
serve_three() {
	load mode=server count=3 && { client -C 0 -S 1000 & pid=$!; } &&
		within is ended 1 && hears $pid &&
		orderly requests 1 established 1 ended 1 pings 3 && unload
}
serve_nobody() {
	load mode=server reject=Y && { client -C 1 & pid=$!; } && refused wait $pid &&
		grep -q REJECTED "$log.$k" && within is refused 1 && counts requests 1 && unload
}
for size in $sizes; do
	step "RDMAR-01,RDMAW-01,EPSM-14,EPSM-31: ten pings of rping -c -S $size come back right, and one end" \
		again serve $size
done
step "CR-ACC-01,EPSM-14,EPSM-31: eight rping -c at the same time, 160 pings, an end each" \
	again serve_eight
k=0
step "EP-DIS-08,EPSM-18,FLUSH-09: rping -c, which would go on, hears of it when we leave after three" \
	again serve_three
step "CR-REJ-01: rping -c knows that it is rejected" serve_nobody

clients_killed() {
	for k in $(seq "$rounds"); do
		client -C 0 -S 4096 & pid=$!
		client -C 0 -S 10000 -V & pid2=$!
		until_true 60 least established $((2 * k)) && flows || return
		kill_it $pid
		flows || return
		kill_it $pid2
	done
}
# The first two of three at any time, the third one when its request is there, unless soft-iWARP
# has not read it.
clients_killed_early() {
	for k in $(seq $((rounds * 3))); do
		kd_n=$(value requests)
		client -C 0 & pid=$!
		if [ $((k % 3)) = 0 ]; then
			within least requests $((kd_n + 1)) || [ $? = 75 ] || return
		else
			sleep 0.0$k
		fi
		kill_it $pid
	done
}
leave() {
	client -C 0 & pid=$!
	k=1
	client -C 0 & pid2=$!
	until_true 60 least established $(($1 + 2)) && flows && kill -STOP $pid &&
		unload && hears $pid2 && kill_it $pid
}
must "a server again" load mode=server
step "two rping -c at a time are killed in the middle of it, $rounds times" clients_killed
step "EPSM-17,EPSM-31,STAT-05,FLUSH-01: an end each, every operation back once" \
	sane established $((2 * rounds)) refused 0
step "rping -c is killed anywhere, before or while it connects, $((3 * rounds)) times" \
	clients_killed_early
step "CR-ACC-08,EPSM-12,EPSM-30,EPSM-31: an outcome for each, an end if it was established" sane
[ "$p" = rxe ] ||
	step "bytes that are no request are sent to the listener" \
		bash -c 'head -c 5000 /dev/urandom >/dev/tcp/192.0.2.1/7174 || :' 2>/dev/null
step "EP-FREE-02,EPSM-15: it unloads under two clients, one of them stopped; the other one hears of it" \
	leave "$(value established)"

# Our clients, its server.
call() {
	server -S "$1" -v & pid=$!
	k=0
	listens && load mode=client addr=$peer size="$1" count=10 &&
		within is running 0 && orderly requests 1 established 1 ended 1 pings 10 &&
		unload && content $pid && pinged '' 10
}
call_eight() {
	server -P -S 5000 & pid=$!
	listens && load mode=client addr=$peer connections=8 size=5000 count=20 &&
		within is running 0 && orderly requests 8 established 8 ended 8 pings 160 &&
		unload && kill_it $pid
}
call_and_leave() {
	server -P & pid=$!
	listens && load mode=client addr=$peer connections=4 &&
		until_true 60 least established 4 && flows && kill -STOP $pid &&
		unload && kill_it $pid
}
servers_killed() {
	for _ in $(seq "$rounds"); do
		server -P & pid=$!
		listens && load mode=client addr=$peer connections=4 &&
			until_true 60 least established "$1" && flows || return
		kill_it $pid
		sane $2 && unload || return
	done
}
call_nobody() {
	load mode=client addr=$peer && sane requests 1 refused 1 &&
		logged 'kdrping: 0: NON_PEER_REJECTED' && unload
}
for size in $sizes; do
	step "RDMAR-01,RDMAW-01,EPSM-05,EPSM-15: rping -s reads and writes our $size bytes ten times" \
		again call $size
done
step "EPSM-05,EPSM-15,EPSM-31: rping -s -P has eight clients at a time, 160 pings, an end each" \
	again call_eight
step "EP-FREE-02,EPSM-15: four clients unload though the server is stopped" call_and_leave
step "EPSM-17,EPSM-31,STAT-05,FLUSH-01: rping -s is killed with four clients, $rounds times: an end each, every operation back once" \
	servers_killed 4 "refused 0"
step "EPSM-30,EPSM-31: and while they connect: an outcome each, an end if it was established" \
	servers_killed 1 ""
step "EPSM-07,FLUSH-02: nobody listens any more" call_nobody
step "kdapl.ko unloads" rmmod kdapl
step "the device goes away" rdma link delete "${p}0"
finish
