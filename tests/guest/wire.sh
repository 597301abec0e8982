# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# wire.sh N rxe|siw SCENE...: machine N of the two that tools/uml-pair joins by a cable, with a
# scenario of kdwire.ko in each. The scenes are the functions below, without 'scene_'; all but
# 'destroyed', which is the last one, begin and end without a connection.
# shellcheck shell=sh disable=SC2086,SC2154,SC2317
n=$1 p=$2 own=192.0.2.$1 peer=192.0.2.$((3 - $1))
shift 2
order() {
	echo "$*" >/sys/kernel/debug/kdwire/do || {
		kd_rc=$?
		rdma resource show qp
		rdma statistic show link "${p}0/1"
		return $kd_rc
	}
}
# only N COMMAND...: on one of the machines
only() { [ "$n" != "$1" ] || { shift; "$@"; }; }
carrier() { until_true 60 grep -qx "$1" /sys/class/net/eth0/carrier; }
# TCP (soft-iWARP) gives up after 15 retries, a quarter of an hour: not here.
impatient() { echo "$1" >/proc/sys/net/ipv4/tcp_retries2; }
renew() {
	rmmod kdwire && rdma link delete "${p}0" && rdma link add "${p}0" type "$p" netdev eth0 &&
		insmod "$KO/kdwire.ko" "ia=${p}0-1" && order listen
}
# exchange SIZES: traffic that may need another connection: soft-RoCE gives up after
# six retries, which now and then are too few. Only that is forgiven, twice for each size.
exchange() {
	for kd_size in $1; do
		kd_try=1
		dmesg -C
		until order traffic "$kd_size"; do
			[ "$p" = rxe ] && [ $kd_try -lt 3 ] || return
			! dmesg | grep -E 'FAIL.*( wrong| touched|complains|, not | message of )' || return
			tell "$kd_size bytes, try $kd_try: the connection gave up"
			order over && order reset && order connect "$peer" || return
			kd_try=$((kd_try + 1))
		done
	done
}
# met FAULT: what the cable has done to this machine's packets, and does no more.
met() {
	cable clean || return
	echo "$1: $cable_said"
	echo "$cable_said" | grep -q " $1=[1-9]"
}
fresh() { [ -z "$used" ] || order reset; used=1; }
used=''
# begin: machine 2 connects, or both machines, if 'begin both'.
begin() {
	meet
	if [ "$1" = both ] || [ "$n" = 2 ]; then
		must "the endpoint is fresh" fresh
		must "a connection to the other machine" order connect "$peer"
	fi
	meet
}
# end: and machine 2 leaves.
end() {
	only 2 step "FLUSH-09,EP-DIS-08: a graceful disconnect" order disconnect
	only 1 step "EPSM-14,FLUSH-01: the peer has left, every Receive comes back once" order ended
	meet
}

# soft-RoCE waits half a second for each lost packet that nothing reveals, and a packet out of order
# costs it one of six retries of a message; soft-iWARP is told of a peer that is gone by TCP, as
# of one that has left.
case $p in
rxe) lossy="1025 4097" large=16385 late="3 3" gone="" ;;
siw) lossy="0 64 1025 4097 65537" large=65537 late="10 3" gone=or-disconnected ;;
esac
small="0 1 7 64 1023 1024 1025 1460 1461 4095 4096 4097"

scene_clean() {
	begin
	only 2 step "SEND-01,RECV-01,RDMAW-01,RDMAR-01: messages, Writes, Reads of 0 to 4097 bytes arrive intact, nothing beside them is touched" \
		order traffic "$small"
	only 2 step "RDMAW-17,RDMAR-02: messages, Writes, Reads of 64 KiB + 1 and 1 MiB" \
		order traffic 65537 1048576
	end
}

# faulty SIDES TITLE SIZES FAULT [WORDS]: of what machine 1 sends, 2, or both (12).
faulty() {
	kd_sides=$1 kd_title=$2 kd_sizes=$3 kd_fault=$4
	shift 3
	for kd_side in $kd_sides; do
		kd_mine=''
		case $kd_side in *"$n"*) kd_mine=1 ;; esac
		[ -z "$kd_mine" ] || must "the cable is told '$*' for machine $n" cable "$@"
		meet
		only 2 step "SEND-01,RECV-20,RDMAW-17,RDMAR-01: packets are $kd_title, all data arrive, once and in order" \
			exchange "$kd_sizes"
		meet
		[ -z "$kd_mine" ] || step "packets were $kd_title" met "$kd_fault"
	done
	meet
}
# The same, and connecting, disconnecting and kdping meet it, too.
all_faulty() {
	begin
	faulty "2 1 12" "$@"
	end
	kd_title=$1 kd_fault=$3
	shift 2
	must "the cable is told '$*' for both machines" cable "$@"
	begin
	only 2 step "SEND-01,RDMAW-17,RDMAR-01: packets are $kd_title on a connection from its beginning to its end" \
		exchange "$small"
	end
	# Out of order answers end a longer Read of soft-RoCE without its data (deviations.md).
	case $p-$kd_fault in
	rxe-reorder) kd_size=1024 ;;
	*) kd_size=$large ;;
	esac
	only 1 must "kdping serves" insmod "$KO/kdping.ko"
	meet
	only 2 step "kdping moves data there and back" \
		insmod "$KO/kdping.ko" connect="$peer" size="$kd_size" count=4
	only 2 step "kdping unloads" rmmod kdping
	meet
	only 1 step "kdping unloads" rmmod kdping
	step "packets were $kd_title" met "$kd_fault"
	meet
}
# What loses packets is for one side at a time and spares connecting: else TCP waits for minutes.
scene_lossy() {
	begin
	faulty "2 1" "lost" "$lossy" drop 20
	end
}
scene_damaged() {
	begin
	faulty "2 1" "damaged" "$lossy" damage 20
	end
}
scene_reordered() { all_faulty "reordered" "$small $large" reorder $late; }
scene_duplicated() { all_faulty "duplicated" "$small 65537" duplicate 20; }
scene_delayed() { all_faulty "delayed" "1 1025 65537" delay 20; }

# severed HOW-IT-GOES HOW-IT-COMES-BACK: while each machine writes to the other one.
severed() {
	begin both
	must "Writes flow" order flood wwww
	meet
	impatient 4
	must "nothing passes any more" "$1"
	step "EPSM-17,EPSM-31,STAT-01,FLUSH-01: the side that sends hears of it once, all that was posted comes back once" \
		order broken $gone
	step "EPSM-31: the side that only receives notices nothing" order quiet
	step "EP-DIS-01,FLUSH-01: and can leave without its peer" order leave
	must "everything passes again" "$2"
	impatient 15
	meet
	if cm_is_dead; then
		must "soft-RoCE has lost its connection manager to the cable: the device is made anew" renew
		used=''
	fi
	begin
	only 2 step "EP-RST-03: data flow again" order traffic 1 4097 65537
	end
}
# The cable is cut somewhere: the cards notice nothing.
scene_cut() {
	cut_it() { cable cut; }
	mend_it() { cable mend; }
	severed cut_it mend_it
}
# The plug is pulled: no carrier.
scene_unplugged() {
	pull_it() { ip link set vec0 nomaster && carrier 0; }
	plug_it() { ip link set vec0 master eth0 && carrier 1; }
	severed pull_it plug_it
}

# Machine 1 is destroyed while machine 2 sends, writes and reads.
scene_destroyed() {
	meet
	if [ "$n" = 1 ]; then
		tell "waiting for the end"
		read -r kd_answer <&9	# for ever
	fi
	must "the endpoint is fresh" fresh
	must "a connection to the other machine" order connect "$peer"
	must "Sends, Writes and Reads flow" order flood sssswwwrrr
	impatient 4
	must "machine 1 is switched off" cable kill
	step "EPSM-17,EPSM-31,STAT-01,FLUSH-01: the peer is destroyed: one end, all that was posted comes back once" \
		order broken $gone
	step "EP-RST-03: the endpoint is reset" order reset
	step "EPSM-30: nobody answers" order refuse "$peer"
	step "EP-RST-01: the endpoint is reset" order reset
	step "the same endpoint connects to its own machine" order connect "$own"
	step "data flow" order traffic 1 4097 65537
	step "FLUSH-09: a graceful disconnect" order disconnect
	step "EPSM-14: on both ends" order ended
}

must "a network card and the device ${p}0" wire "$n" "$p"
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "kdwire.ko loads" insmod "$KO/kdwire.ko" "ia=${p}0-1"
must "the scenario listens" order listen
short_tcp
for scene; do
	scene_$scene
done
step "nothing is left: kdwire.ko unloads" rmmod kdwire
step "kdapl.ko unloads" rmmod kdapl
step "the device goes away" rdma link delete "${p}0"
finish
