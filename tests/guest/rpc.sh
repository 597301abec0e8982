# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# rpc.sh rxe|siw net|one PART...: the examples that are copied from: kdping, and the skeleton of a
# protocol (ulp_example/rpc). Parts:
#   ping	kdping, both roles in one machine
#   calls	echo, put and get, every answer looked at; with and without invalidation by answers
#   few		more calls than the server has Receives
#   early	a client that is there before its server, and before its device
#   flaps	a port goes down and comes up, more often than an EVD has room for; not of soft-RoCE,
#		whose queue pair for management does not survive that
#   server	the server goes while calls wait, and comes back
#   plug	a device goes under load, and comes back
#   address	an adapter without an address
#   rubbish	peers that break the protocol (tests/fuzz/rpc)
# shellcheck shell=sh disable=SC2086,SC2154
p=$1 where=$2
shift 2
topology "$where" "$p"
there=192.0.2.2
[ "$where" = net ] || there=192.0.2.1
calls() { cat /sys/module/kdrpc/parameters/calls; }
more() { [ "$(calls)" -ge $((from + 32)) ]; }
go_on() {
	from=$(calls)
	until_true 60 more || { dmesg | tail -20; return 1; }
}
serve() { insmod "$KO/kdrpc_server.ko" "$@"; }
call() { $in0 insmod "$KO/kdrpc.ko" connect=$there "$@"; }
once() { call "$@" && rmmod kdrpc; }
right() { ! logged 'kdrpc: FAIL'; }
stopped() { timeout 60 rmmod kdrpc && right; }
no_server() { timeout 60 rmmod kdrpc_server; }
grown() { logged 'kdrpc_server: .*: 8 Receives'; }
plug() {	# DEVICE NUMBER
	kd_in=''
	[ "$where" != net ] || kd_in="ip netns exec n$2"
	kd_dev=kd0
	[ "$where" != net ] || kd_dev=veth$2
	$kd_in rdma link add "$1" type "$p" netdev $kd_dev
}

part_ping() {
	step "kdping serves and calls itself" $in0 insmod "$KO/kdping.ko" listen=any connect=192.0.2.1
	step "it has served" logs "kdping: SERVED"
	step "it unloads" rmmod kdping
	step "it serves on one address" $in0 insmod "$KO/kdping.ko" listen=192.0.2.1 connect=192.0.2.1
	step "it unloads" rmmod kdping
	step "an address of no adapter is refused" \
		refused $in0 insmod "$KO/kdping.ko" listen=192.0.2.99
	must "it serves" insmod "$KO/kdping.ko" listen=any
	step "it wants no more than it has, and something" insmod "$KO/kdrpcfuzz.ko" \
		ia="$a-1" connect=192.0.2.1 port=4711 ping=Y
	step "and says so each time" test "$(dmesg | grep -c 'kdping: FAIL .*error -\(71\|EPROTO\)')" = 3
	step "the hostile client unloads" rmmod kdrpcfuzz
	step "it unloads" rmmod kdping
	step "a port where nobody listens is refused" \
		refused $in0 insmod "$KO/kdping.ko" connect=192.0.2.1
}

part_calls() {
	must "the server loads" serve
	step "calls: echo, put, get" once clients=4 threads=4 count=60
	step "one byte, some, all but a few" once size=1 count=9
	step "an odd number" once size=4097 count=9
	echo N >/sys/module/kdrpc_server/parameters/invalidate
	step "a server that takes back no memory by its answers" once threads=20 size=1500 count=30
	step "wrong parameters are refused" refused call size=0
	step "an address that is none is refused" refused insmod "$KO/kdrpc.ko" connect=nobody
	step "the server unloads" no_server
}

part_few() {
	must "a server with few Receives loads" serve batch=4
	step "more calls at a time than it has Receives" once clients=4 threads=16 size=100 count=30
	step "it has posted more of them" grown
	step "the server unloads" no_server
}

part_early() {
	must "a client without a server" call count=0
	step "it hears that there is none" logs "kdrpc: .*cannot connect"
	must "the server loads" serve
	step "calls are answered" go_on
	step "the client unloads" stopped
	step "the server unloads" no_server
}

part_flaps() {
	must "the server loads" serve
	must "a client" call count=0
	step "calls are answered" go_on
	step "the link goes down and comes up, 12 times" flaps
	step "calls are answered" go_on
	step "no event of the port was lost" refused logged "asynchronous EVD is full"
	step "the client unloads" stopped
	step "the server unloads" no_server
}
flaps() {
	for kd_i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		$in0 ip link set "$dev" down && $in0 ip link set "$dev" up || return
	done
}

part_server() {
	must "the server loads" serve
	must "clients call" call clients=4 count=0
	step "calls are answered" go_on
	step "the server unloads while clients call" no_server
	must "the server loads again" serve
	step "the same clients go on" go_on
	step "the server unloads while clients call" no_server
	step "clients whose calls wait unload" stopped
}

part_plug() {
	must "the server loads" serve
	must "clients call" call clients=4 count=0
	step "calls are answered" go_on
	for kd_round in 1 2; do
		step "the device of the clients goes" timeout 60 rdma link delete "$a"
		must "and comes back" plug "$a" 0
		step "the same clients go on" go_on
		[ "$where" = net ] || continue
		step "the device of the server goes" timeout 60 rdma link delete "$b"
		must "and comes back" plug "$b" 1
		step "the same clients go on" go_on
	done
	[ "$where" != net ] || step "the server has listened once on each device of its name" \
		test "$(dmesg | grep -c "kdrpc_server: $b-1: serving")" = 3
	step "the device of the clients goes" timeout 60 rdma link delete "$a"
	step "clients without a device unload" stopped
	must "the device comes back" plug "$a" 0
	step "the server unloads" no_server
}

# An adapter without an address is opened once, and listened on when it has one.
part_address() {
	tracefs
	ip $ns addr flush dev $dev
	step "kdping does not serve without an address" refused insmod "$KO/kdping.ko" listen="$a"
	step "and says why" logged "kdping: .*$a.* has no IP address"
	echo 1 >$tracing/events/kdapl/kdapl_ia_opened/enable
	must "the server loads" serve
	step "it cannot serve there, and says why" logs \
		"kdrpc_server: $a-1: cannot serve.*it has no address"
	sleep 3		# without an address for so long
	ip $ns addr add 192.0.2.1/24 dev $dev
	step "with an address it serves" logs "kdrpc_server: $a-1: serving"
	kd_count=$(grep -c "kdapl_ia_opened: .*$a-1" $tracing/trace)
	echo 0 >$tracing/events/kdapl/kdapl_ia_opened/enable
	step "it has opened the adapter once" test "$kd_count" = 1
	step "calls are answered" once count=9
	step "the server unloads" no_server
	ip $ns addr add 2001:db8::1/64 dev $dev nodad
}

# None of them has had to connect again, unless soft-RoCE has broken the connection: when a machine
# stands still it repeats requests, and registrations with them (deviations.md).
undisturbed() {	# CLIENTS
	kd_broke=0
	[ "$p" != rxe ] || kd_broke=$(dmesg | grep -c 'kdrpc: .*: BROKEN' || :)
	[ "$(dmesg | grep -c 'kdrpc: .*: connected')" -le $(($1 + kd_broke)) ] ||
		{ dmesg | grep -w kdrpc; return 1; }
}
wrong_answers() { [ "$(cat /sys/module/kdrpcfuzz/parameters/faults)" -ge 2 ]; }
hostile() { insmod "$KO/kdrpcfuzz.ko" ia="$a-1" connect=$there "$@"; }
part_rubbish() {
	must "the server loads" serve
	# Two calls at a time, for the hostile server. With many threads a connect under lockdep
	# takes longer than soft-iWARP waits, 10 s.
	must "clients call" call clients=4 threads=2 count=0
	step "calls are answered" go_on
	step "a hostile client: there are too many of it; each connection ends" hostile crowd=Y
	step "the other clients go on" go_on
	step "the hostile client unloads" rmmod kdrpcfuzz
	echo N >/sys/module/kdrpc_server/parameters/invalidate
	step "the same for a server that takes back no memory by its answers" hostile seed=2
	step "the other clients go on" go_on
	step "and were not disturbed" undisturbed 4
	step "the hostile client unloads" rmmod kdrpcfuzz
	step "the server unloads" no_server
	must "a hostile server takes its place" insmod "$KO/kdrpcfuzz.ko" ia="$b-1"
	step "clients give up each connection" until_true 120 wrong_answers
	step "at once, and not because nothing more comes" refused logged 'given up: no answer'
	step "the hostile server unloads" rmmod kdrpcfuzz
	must "the server loads" serve
	step "the same clients go on" go_on
	step "the clients unload" stopped
	step "the server unloads" no_server
}

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(resources)
for part; do
	dmesg -C
	part_$part
	step "all answers were right" right
	step "nothing is left" test "$(objects)" = 0
done
# What the server frees in upcalls has a QP for a moment longer: the reaper waits for the peer.
step "nothing is left on the devices" until_true 60 all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
