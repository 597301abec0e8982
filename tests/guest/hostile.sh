# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# hostile.sh rxe|siw net|dev|one [FLOOD [ROUNDS [WORD]]]: a peer that is not ours does
# what it can to a consumer (tests/interop/peer). FLOOD: requests of the floods, ROUNDS: how
# often everything is done, WORD: do only what has it in its title.
# shellcheck shell=sh disable=SC2154
p=$1 flood=${3:-10000} rounds=${4:-1} word=$5
some=$((flood / 25)) few=$((flood / 100))
exec_in='' source=''
case $2 in
net) two_namespaces "$p"; a=${p}0-1 b=${p}1-1 exec_in="ip netns exec n1" ;;
dev) two_devices "$p"; a=${p}0-1 b=${p}1-1 source=192.0.2.2 ;;
one) loopback_dev "$p"; a=${p}0-1 b=${p}0-1 ;;
esac

# soft-iWARP forgets what is beyond the backlog it has, and its peer breaks its
# listener by closing that; nor does it tell one rejection from the other. It gives
# up, after 10 s, what nobody answers.
case $p in rxe) many=256 ;; siw) many=64 ;; esac
# TCP remembers ports for a minute, and the peer tries one only.
echo 0 >/proc/sys/net/ipv4/tcp_max_tw_buckets
counted() { [ "$p" = siw ] || peer count "$@"; }

peer() { echo "$*" >/sys/kernel/debug/kdpeer/do; }
victim() { echo "$*" >/sys/kernel/debug/kdvictim/do; }
# A request that the victim has given up may reach a busy peer after all that.
as_before() { peer die && peer gone && [ "$(but_cqs)" = "$before" ]; }
stuck() { grep -l '^State:.*D (disk' /proc/[0-9]*/status; }
said() { dmesg | sed -n "s/.*$1: //p" | tail -n 1; }

# both ORDER-OF-PEER -- ORDER-OF-VICTIM: at the same time.
both() {
	kd_peer='' kd_two=''
	for kd_word; do
		case $kd_word in
		--) kd_peer=$kd_two kd_two='' ;;
		*) kd_two="$kd_two $kd_word" ;;
		esac
	done
	# shellcheck disable=SC2086
	peer $kd_peer &
	# shellcheck disable=SC2086
	victim $kd_two
	kd_rc=$?
	wait $! && return $kd_rc
}

empty_house() {
	victim answer reject
	! cat /sys/module/kdvictim/parameters/live /sys/module/kdvictim/parameters/held |
		grep -qv '^0$'
}
# Nothing is left of what has just been done, and the local guest is well.
quiet() {
	peer gone || return
	# When the RDMA CM reads a peer's last word before its first it knows of none.
	until_true 10 empty_house || victim leave pending
	victim drained
}
settled() {
	quiet && victim traffic && victim visit && until_true 60 as_before &&
		until_true 20 refused stuck
}
# saw EVENT COUNT: that became of so many, since the mark.
saw() { quiet && victim saw "$@"; }
scene() {
	kd_title=$1
	shift
	case $kd_title in *"$word"*) ;; *) return ;; esac
	kd_start=$(cut -d. -f1 /proc/uptime)
	step "$kd_title" "$@" && settled && {
		echo "$(($(cut -d. -f1 /proc/uptime) - kd_start)) s"
		return
	}
	echo "kd-test: not ok what is left after: $kd_title"
	said kdpeer
	said kdvictim
	echo "before: $before"
	echo "now: $(resources)"
	rdma resource show cm_id | head
	failed=1
	return 1
}

# The requests of a flood that nobody answers fill the backlog; all others are refused.
full() {
	victim backlog 16 && victim stop && peer start flood "$flood" 64 && peer answered 16 &&
		counted refused $((flood - 16)) && tell "$(said kdpeer)" &&
		victim traffic && victim visit && victim policy reject && victim go &&
		peer answered && counted rejected 16
}
floods() { victim backlog 16 && victim policy mix && peer start flood "$flood" $many && answers; }
# Whatever is held is answered, until all have their answer.
answers() {
	peer answered &
	kd_job=$!
	while kill -0 $kd_job 2>/dev/null; do
		victim answer mix || break
		victim traffic || break
	done
	wait $kd_job
}
given_up() {	# KIND COUNT POLICY [EVENT]: which each of them must end with
	victim backlog 512 && victim policy "$3" && victim mark && peer start "$1" "$2" 64 && answers &&
		victim answer mix && peer die && { [ $# = 3 ] || saw "$4" "$2"; }
}
connected() {	# COUNT
	victim backlog 512 && victim policy accept && peer start hold "$1" "$1" && peer answered && peer up "$1"
}
ends() { connected "$1" && shift && "$@"; }
# Requests are there, and answered while those who asked are dying.
race() {	# COUNT HOW
	victim backlog 512 && victim policy hold && victim mark && peer start hold "$1" "$1" && victim heard "$1" &&
		both die -- answer "$2"
}
mute() {	# COUNT
	victim backlog 512 && victim policy accept && victim mark && peer start mute "$1" "$1" && peer answered &&
		victim leave && victim drained && peer die && saw DISCONNECTED "$1"
}

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(resources)
# shellcheck disable=SC2086
must "the peer is there" $exec_in insmod "$KO/kdpeer.ko" address=192.0.2.1 \
	${source:+source=$source}
must "the local guest is there" insmod "$KO/kdvictim.ko" ia_a="$a" ia_b="$b"
must "a visitor is served" victim visit
tell "$(said kdpeer), $(said kdvictim)"
before=$(but_cqs)

round=0
while [ $round -lt "$rounds" ] && [ $failed = 0 ]; do
	round=$((round + 1))
	case $p in
	rxe)
		scene "EVD-OVF-05,PSP-02: $flood requests, backlog 16: each has one answer, NON_PEER_REJECTED for those beyond it" full
		scene "CR-ACC-08,EPSM-12: peers gone once they were accepted" \
			given_up die-rep "$some" accept ACCEPT_COMPLETION_ERROR
		scene "EPSM-12: peers that reject their acceptance" \
			given_up reject-rep "$some" accept ACCEPT_COMPLETION_ERROR
		scene "EPSM-13: peers that never say that they are connected: we give up" mute "$few" ;;
	siw)
		scene "EVD-OVF-05,PSP-02: $flood requests, backlog 16: each has one answer" full
		scene "EPSM-15: peers that say nothing once they are connected: we leave" mute "$few" ;;
	esac
	scene "$flood requests, accepted, rejected, left to wait; connections at once given up" floods
	scene "CR-LIFE-01,CR-ACC-08: peers gone once they have asked" given_up die-connect "$some" mix
	scene "EPSM-14: peers gone once they were connected" given_up die-est "$some" mix
	scene "CR-LIFE-01,CR-ACC-08: requests accepted while their peers die" race "$few" accept
	scene "CR-LIFE-01,CR-REJ-01: requests rejected while their peers die" race "$few" reject
	scene "EPSM-15,EPSM-31: both sides leave as soon as they are connected" given_up leave "$some" accept
	scene "EPSM-15,EPSM-31: both sides leave at the same time" ends "$few" both leave -- leave
	scene "EPSM-14,EPSM-31: all peers die while we leave" ends "$few" both die -- leave
	[ "$p" = siw ] ||
		scene "CR-ACC-09: more RDMA Reads than there are" given_up depths "$few" accept
done
step "the local guest was never disturbed, and leaves" timeout 100 rmmod kdvictim
step "the peer unloads" timeout 100 rmmod kdpeer
tell "$(said kdvictim)"
step "queue pairs, completion queues, memory, ids: all as before" until_true 60 all_gone
step "kdapl.ko unloads" timeout 60 rmmod kdapl
step "the device goes away" rdma link delete "${p}0"
finish
