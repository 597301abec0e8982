# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# faults.sh rxe|siw net|dev: what goes wrong between two devices: packets that get
# lost, a cable that is pulled, a peer that is no longer there. On siw both are in
# one namespace, so that their packets take the way through lo.
# shellcheck shell=sh disable=SC2154
p=$1
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
moved() { [ "$(messages)" -ge "$1" ]; }
heard() { logged 'kdtest-hold: PASS' && ! logged 'kdtest-hold: FAIL'; }

begin() {	# WANT TOPOLOGY BYTES
	case $2 in
	net) two_namespaces "$p"; n0="ip netns exec n0" n1="ip netns exec n1" wire=veth ;;
	dev) two_devices "$p"; n0='' n1='' wire=lo ;;
	esac
	dmesg -C
	must "connections with traffic" insmod "$KO/kdtest.ko" mode=hold want="$1" bytes="$3" \
		ia_a="${p}0-1" ia_b="${p}1-1"
}

end() {		# SECONDS
	step "the consumer unloads" timeout "$1" rmmod kdtest
	dmesg | grep 'kdtest-hold: [PF]A'
	no_devices "$p"
	ip link set lo up
}

# shellcheck disable=SC2086
loss() {	# PERCENT END
	case $wire in
	lo) tc qdisc replace dev lo root netem loss "$1%" limit 10000 ;;
	*) ip netns exec "n$2" tc qdisc replace dev "$wire$2" root netem loss "$1%" limit 10000 ;;
	esac
}

# Packets of one direction and messages of one packet, so that RoCE's retries,
# seven in all, are too few only once in thousands of messages. Then there is
# another try. TCP does not mind.
case $p in rxe) bytes=1000 ;; *) bytes=4096 ;; esac
for try in 1 2 3; do
	begin alive "$2" "$bytes"
	step "every fifth packet is lost" loss 20 0
	until_true 100 moved $(($(messages) + 200))
	loss 0 0
	end 100
	heard && break
	step "a connection that gave up did so in order" logged 'FAIL.* its connection has ended'
done
step "STAT-05,RECV-20,EP-POST-21: with 20 % packet loss nothing is lost, doubled, damaged" heard

# TCP gives up after minutes otherwise.
echo 3 >/proc/sys/net/ipv4/tcp_retries2
begin ended "$2" 4096
case $wire in lo) cable=lo ;; *) cable=veth0 ;; esac
# shellcheck disable=SC2086
step "the cable is pulled" $n0 ip link set "$cable" down
end 100
step "EPSM-17,STAT-01,STAT-05: a cable that is pulled ends every connection, once" heard

begin ended "$2" 4096
loss 100 0
loss 100 1
# shellcheck disable=SC2086
step "the peer's device vanishes without a word" $n1 timeout 20 rdma link delete "${p}1"
end 100
step "EPSM-17,EPSM-24,STAT-05: so does a peer that is gone" heard
step "kdapl.ko unloads" rmmod kdapl
finish
