# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# wire.sh N rxe|siw [SIW.KO]: one of two machines (1 and 2) joined by a wire that
# loses packets, is pulled out and put back; in the end machine 1 is destroyed.
# The lines 'wire: cut|mend|kill' are for whoever has the machines in hand: the
# first two count when both machines have said them.
# shellcheck shell=sh disable=SC2154
n=$1 p=$2 own=192.0.2.$1 peer=192.0.2.$((3 - $1))
order() {
	echo "$*" >/sys/kernel/debug/kdwire/do || {
		kd_rc=$?
		rdma resource show qp
		rdma statistic show link "${p}0/1"
		return $kd_rc
	}
}
outside() { echo "wire: $1"; }
carrier() { until_true 60 grep -qx "$1" /sys/class/net/eth0/carrier; }
# Two bands: what meet() says is never lost, of the rest that share is.
lose() {
	tc qdisc add dev eth0 root handle 1: prio bands 2 priomap 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 &&
		tc qdisc add dev eth0 parent 1:2 netem loss "$1" &&
		tc filter add dev eth0 parent 1: protocol ip u32 match ip dport 6000 0xffff flowid 1:1 &&
		tc filter add dev eth0 parent 1: protocol ip u32 match ip sport 6000 0xffff flowid 1:1
}
lossless() {
	tc -s qdisc show dev eth0 | grep -A1 netem | tail -n 1
	tc qdisc del dev eth0 root
}
# TCP (soft-iWARP) gives up after 15 retries, a quarter of an hour: not here.
impatient() { echo "$1" >/proc/sys/net/ipv4/tcp_retries2; }
# What soft-RoCE of newer kernels sends while there is no carrier may take the queue
# pair to ERR, that of the connection manager too. It never leaves that.
cm_is_dead() { rdma resource show qp | grep -q 'type GSI state ERR'; }
renew() {
	rmmod kdwire && rdma link delete "${p}0" && rdma link add "${p}0" type "$p" netdev eth0 &&
		insmod "$KO/kdwire.ko" "ia=${p}0-1" && order listen
}
# exchange SIZES: traffic that may need another connection: soft-RoCE gives up after
# seven retries, which now and then are too few. Only that is forgiven.
exchange() {
	for kd_try in 1 2 3; do
		dmesg -C
		order traffic "$*" && return
		[ "$p" = rxe ] || return
		dmesg | grep -E 'FAIL.*( wrong| touched|complains|, not | message of )' && return 1
		tell "try $kd_try: the connection gave up"
		order over || return
		order reset || return
		order connect "$peer" || return
	done
	return 1
}
# only N COMMAND...: on one of the machines
only() { [ "$n" != "$1" ] || { shift; "$@"; }; }
# soft-RoCE waits 2 s for each lost packet that nothing reveals; soft-iWARP is told
# of a peer that is gone by TCP, as of one that has left.
case $p in
rxe) lossy="1025 4097" gone="" ;;
siw) lossy="0 64 1025 4097 65537" gone=or-disconnected ;;
esac
small="0 1 7 64 1023 1024 1025 1460 1461 4095 4096 4097"

must "a network card and the device ${p}0" wire "$n" "$p" "$3"
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "kdwire.ko loads" insmod "$KO/kdwire.ko" "ia=${p}0-1"
must "the scenario listens" order listen

# Clean wire.
meet "$n"
only 2 must "a connection to the other machine" order connect "$peer"
only 2 step "SEND-01,RECV-01,RDMAW-01,RDMAR-01: messages, Writes, Reads of 0 to 4097 bytes arrive intact, nothing beside them is touched" \
	order traffic "$small"
only 2 step "RDMAW-17,RDMAR-02: messages, Writes, Reads of 64 KiB + 1 and 1 MiB" \
	order traffic 65537 1048576
only 2 step "FLUSH-09,EP-DIS-08: a graceful disconnect" order disconnect
only 1 step "EPSM-14,FLUSH-01: the peer has left, every Receive comes back once" order ended

# 20 % of the packets of one machine are lost, then of the other.
only 2 must "the endpoint is reset" order reset
meet "$n"
only 2 must "a connection again" order connect "$peer"
for loser in 2 1; do
	only "$loser" must "20 % of the packets that machine $loser sends are lost" lose 20%
	meet "$n"
	only 2 step "SEND-01,RECV-20,RDMAW-17,RDMAR-01: nothing is lost, doubled or out of order" \
		exchange "$lossy"
	meet "$n"
	only "$loser" lossless
done
only 2 step "FLUSH-09,EP-DIS-08: a graceful disconnect" order disconnect
only 1 step "EPSM-14,FLUSH-01: the peer has left" order ended

# The cable is pulled while each machine writes to the other one.
short_tcp
only 2 must "the endpoint is reset" order reset
meet "$n"
must "a connection to the other machine" order connect "$peer"
meet "$n"
must "Writes flow" order flood wwww
meet "$n"
impatient 4
outside cut
must "the cable is pulled" carrier 0
step "EPSM-17,EPSM-31,STAT-01,FLUSH-01: the side that sends hears of it once, all that was posted comes back once" \
	order broken $gone
step "EPSM-31: the side that only receives notices nothing" order quiet
step "EP-DIS-01,FLUSH-01: and can leave without its peer" order leave
outside mend
must "the cable is back" carrier 1
impatient 15
meet "$n"
if cm_is_dead; then
	must "soft-RoCE has lost its connection manager to the cable: the device is made anew" renew
else
	step "EP-RST-03: the endpoint is reset" order reset
fi
meet "$n"
only 2 step "EP-RST-03: it connects again" order connect "$peer"
only 2 step "data flows again" order traffic 1 4097 65537
only 2 step "FLUSH-09: a graceful disconnect" order disconnect
only 1 step "EPSM-14: the peer has left" order ended

# Machine 1 is destroyed while machine 2 sends, writes and reads.
only 2 must "the endpoint is reset" order reset
meet "$n"
if [ "$n" = 1 ]; then
	tell "waiting for the end"
	sleep 1000
fi
must "a connection to the other machine" order connect "$peer"
must "Sends, Writes and Reads flow" order flood sssswwwrrr
impatient 4
outside kill
step "EPSM-17,EPSM-31,STAT-01,FLUSH-01: the peer is destroyed: one end, all that was posted comes back once" \
	order broken $gone
step "EP-RST-03: the endpoint is reset" order reset
step "EPSM-30: nobody answers" order refuse "$peer"
step "EP-RST-01: the endpoint is reset" order reset
step "the same endpoint connects to its own machine" order connect "$own"
step "data flows" order traffic 1 4097 65537
step "FLUSH-09: a graceful disconnect" order disconnect
step "EPSM-14: on both ends" order ended
step "nothing is left: kdwire.ko unloads" rmmod kdwire
step "kdapl.ko unloads" rmmod kdapl
step "the device goes away" rdma link delete "${p}0"
finish
