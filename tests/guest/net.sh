# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# net.sh rxe|siw net|dev|one: names and addresses of IAs, while devices, interfaces,
# addresses and network namespaces come, go and change. kdnet.ko is the consumer
# (tests/net/README.md); sides 0 and 1 are two devices, or twice the same one.
# shellcheck shell=sh disable=SC2154
p=$1 topology=$2
wrong=0 ns=''

# order WORDS: what comes of it; in the network namespace $ns.
order() {
	if [ -z "$ns" ]; then
		echo "$*" 2>/dev/null >/sys/kernel/debug/kdnet/do
	else
		# shellcheck disable=SC2016
		nsenter --net="/run/netns/$ns" sh -c 'echo "$1" >/sys/kernel/debug/kdnet/do' - "$*" \
			2>/dev/null
	fi && cat /sys/kernel/debug/kdnet/result && echo
}
# like PATTERN[|PATTERN] TEXT
like() (
	set -f
	IFS='|'
	for kd_i in $1; do
		# shellcheck disable=SC2254
		case $2 in $kd_i) return 0 ;; esac
	done
	return 1
)
# is PATTERN[|PATTERN] ORDER: one of these is what comes of it.
is() {
	kd_is=$1
	shift
	kd_got=$(order "$@") || kd_got="no such order"
	like "$kd_is" "$kd_got" && return
	echo "(${ns:+in $ns: }$*: '$kd_got', not '$kd_is')"
	wrong=$((wrong + 1))
}
# becomes PATTERN[|PATTERN] ORDER: the same, after some time.
same() {
	kd_is=$1
	shift
	like "$kd_is" "$(order "$@")"
}
becomes() {
	until_true 30 same "$@" || is "$@"
}
ok() { is SUCCESS "$@"; }
# try COMMAND: something the scenario needs.
try() {
	"$@" && return
	echo "('$*' failed: $?)"
	wrong=$((wrong + 1))
}
# verdict IDS: all since the last one was right.
verdict() {
	step "$@" [ $wrong = 0 ] || :
	wrong=0
}
# works N A ADDRESS PORT [LOCAL]: a connection, data both ways; from this address.
works() {
	is ESTABLISHED connect "$1" "$2" "$3" "$4"
	is data talk "$1"
	[ -z "$5" ] || is "$5>$3 $3>$5 ?" addresses "$1"
}
over() { is "DISCONNECTED DISCONNECTED" drop "$1"; }
# put LETTERS: listeners (l and on) and adapters are given back, and had nothing left.
put() {
	for kd_p; do
		case $kd_p in [l-z]) ok unlisten "$kd_p" ;; *) ok close "$kd_p" graceful ;; esac
	done
}
# pair NAME NAME: adapters a and b, which listens as l.
pair() {
	ok open a "$1"
	ok open b "$2"
	ok listen l b 7
}
gone() { is "PROVIDER_NOT_FOUND NAME_NOT_REGISTERED" open "$1" "$2"; }

NO_ADDRESS="INVALID_ADDRESS INVALID_ADDRESS_UNREACHABLE"
NO_FAMILY="INVALID_ADDRESS INVALID_ADDRESS_UNSUPPORTED"
# What is reported depends on who finds out.
FAILED="UNREACHABLE|TIMED_OUT|$NO_ADDRESS"
A=192.0.2 B=198.51.100 A6=2001:db8: B6=2001:db8:5:

n0='' n1='' d0=veth0 d1=veth1 r0=${p}0 r1=${p}1 i=2 sides="0 1" home=''
case $topology in
net) two_namespaces "$p"; n0="-n n0" n1="-n n1" home=n0 ;;
dev) two_devices "$p" ;;
one) loopback_dev "$p"; d0=kd0 d1=kd0 r1=${p}0 i=1 sides=0 ;;
esac
# on 0|1 WORDS: ip, in the namespace of a side.
on() {
	kd_on=$1
	shift
	# shellcheck disable=SC2086
	case $kd_on in 0) ip $n0 "$@" ;; 1) ip $n1 "$@" ;; esac
}
# from 0|1 WORDS: with the network namespace of a side as the caller's.
from() {
	case $topology-$1 in net-*) ns=n$1 ;; esac
	shift
	"$@"
	ns=''
}
# address add|del 0|1 ADDRESS/LENGTH [INTERFACE]
address() {
	case $2-$topology in 1-one) return ;; esac
	eval "kd_dev=\${4:-\$d$2}"
	case $1-$3 in
	add-*:*) on "$2" addr add "$3" dev "$kd_dev" nodad ;;
	*) on "$2" addr "$1" "$3" dev "$kd_dev" ;;
	esac
}
# local_address 0|1 INTERFACE: its link-local address, once it may be used.
local_address() {
	on "$1" -6 -o addr show dev "$2" scope link -tentative |
		sed -n 's/.*inet6 \([^/]*\).*/\1/p' | grep .
}
# settled 0|1 INTERFACE: rdma_cm asks for IPv6 neighbours with the link-local address, and
# asks nobody before that one may be used.
settled() { try until_true 30 local_address "$1" "$2"; }
a0=$A.1 a1=$A.$i s0=$A6:1 s1=$A6:$i
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "kdnet.ko loads" insmod "$KO/kdnet.ko"

# opened_as NAME NAME ADDRESS ADDRESS: each side by its name, and they connect.
opened_as() {
	from 0 ok open a "$1"
	from 1 ok open b "$2"
	is "$1 $3" query a
	is "$2 $4" query b
	ok listen l b 7
	works 0 a "$4" 7 "$3"
	over 0
	put l a b
}

names() {
	[ "$topology" != net ] || { settled 0 $d0 && settled 1 $d1; }
	for kd_n in "$r0-1 $r1-1 $a0 $a1" "$r0 $r1 $a0 $a1" "$d0 $d1 $a0 $a1" "$a0 $a1 $a0 $a1" \
		"$s0 $s1 $s0 $s1"; do
		# shellcheck disable=SC2086
		set -- $kd_n
		opened_as "$@"
		verdict "IA-OPEN-01,IA-QRY-02,SIL-30: an IA opened as $1 has this name, its address is $3, it connects from there"
	done
	ip link add other0 type dummy
	ip addr add 203.0.113.1/24 dev other0
	for kd_n in nobody "$r0-2" "$r0-0" "$r0-01" "$r0-" "$r0-1x" "${r0}x" "$d0-1" lo other0 203.0.113.1 \
		203.0.113.2 127.0.0.1 0.0.0.0 :: ::1 ff02::1 $A.255 $A.99 ${A6}99 192.0.2 "$a0/24"; do
		gone a "$kd_n"
	done
	ip link del other0
	[ "$topology" != net ] || for kd_n in $d0 "$a0" "$s0"; do
		gone a "$kd_n"
		from 1 gone a "$kd_n"
	done
	verdict "IA-OPEN-02,IA-OPEN-07,SIL-30: unknown names and addresses, and those of interfaces without RDMA, are refused"
}

rename() {
	pair "$r0-1" "$r1-1"
	works 0 a "$a1" 7 "$a0"
	try rdma dev set "$r0" name kdnew
	is "*kdnew-1*" ias
	is data talk 0
	is "$r0-1 $a0" query a
	ok listen m a 8
	works 1 b "$a0" 8
	works 2 a "$a1" 7
	gone c "$r0-1"
	gone c "$r0"
	ok open c kdnew-1
	ok open d kdnew
	is "kdnew-1 $a0" query c
	ok listen n c 9
	works 3 d "$a0" 9
	try rdma dev set kdnew name "$r0"
	is "kdnew-1 $a0" query c
	for kd_n in 0 1 2 3; do
		is data talk $kd_n
		over $kd_n
	done
	put l m n
	gone e kdnew-1
	put a b c d
	verdict "SIL-30: a device is renamed: open IAs work on and keep their names, the new name opens, the old one does not"
}

families() {
	pair "$r0-1" "$r1-1"
	ok common m b "$s1" 7
	is "NON_PEER_REJECTED" connect 0 a "$s1" 8
	works 0 a "$a1" 7 "$a0"
	works 1 a "$s1" 7 "$s0"
	is "*l" addresses 0
	is "*m" addresses 1
	ok common n a "$a0" 9
	ok common o a "$s0" 9
	works 2 b "$a0" 9 "$a1"
	works 3 b "$s0" 9 "$s1"
	for kd_n in 0 1 2 3; do
		is data talk $kd_n
		over $kd_n
	done
	put l m n o a b
	verdict "SIL-30,CSP-01: a port with IPv4 and IPv6 connects by either; a CSP listens on its IPv6 address"

	address del 0 $a0/24
	address del 1 $a1/24
	ok open a "$r0-1"
	ok open b "$r1"
	is "$r0-1 $s0" query a
	ok listen l b 7
	works 0 a "$s1" 7 "$s0"
	is "$NO_FAMILY" connect 1 a 192.0.2.77 7
	over 0
	put l
	from 0 gone c "$a0"
	address add 0 $a0/24
	address add 1 $a1/24
	is "$r0-1 $a0" query a
	ok listen l b 7
	works 0 a "$a1" 7 "$a0"
	over 0
	put l a b
	verdict "SIL-30: a port with IPv6 only connects by it, IPv4 is refused until there is an address"
}

# Where no way leads, and where nobody is.
nowhere() {
	ok open a "$r0-1"
	is "$NO_ADDRESS" connect 0 a 2001:db8:77::9 7 0
	verdict "CONN-03,SIL-30: there is no route to an IPv6 address: INVALID_ADDRESS at once, the Endpoint stays UNCONNECTED"
	# Nobody answers ARP, or what TCP begins with. IPv4 asks for what there is no route to
	# on the interface that the address of the IA belongs to.
	[ "$topology" = one ] || {
		is UNREACHABLE connect 0 a "$A.77" 7 0
		is UNREACHABLE connect 0 a 203.0.113.9 7 0
		verdict "EPSM-08: nobody has this address: UNREACHABLE"
	}
	put a
}

# range FIRST LAST: the ports that are given out, in the namespace of side 0.
range() {
	# shellcheck disable=SC2016
	set -- sh -c 'echo "$*" >/proc/sys/net/ipv4/ip_local_port_range' - "$@"
	if [ -n "$home" ]; then ip netns exec "$home" "$@"; else "$@"; fi
}
ports() {
	ok open a "$r0-1"
	try range 40000 40001
	ok any l a
	ok any m a
	is CONN_QUAL_UNAVAILABLE any n a
	put l
	ok any n a
	is CONN_QUAL_UNAVAILABLE any o a
	try range 32768 60999
	ok any o a
	put m n o a
	verdict "PSP-07: all qualifiers are taken: CONN_QUAL_UNAVAILABLE, until one is freed or there are more"
}

# Link-local addresses have a scope, and are not what an IA is known by.
link_local() {
	case $topology in
	net) kd_side=1 kd_dev=$d1 kd_ns=n1 ;;
	*) kd_side=0 kd_dev=$d0 kd_ns='' ;;
	esac
	settled 0 $d0
	settled $kd_side $kd_dev
	kd_local=$(local_address $kd_side $kd_dev)
	ok open a "$r0-1"
	ok open b "${p}$kd_side-1"
	ns=$kd_ns
	ok common l b "$kd_local%$kd_dev" 7
	ns=$home
	works 0 a "$kd_local%$d0" 7
	is "*>$kd_local $kd_local>* l" addresses 0
	ns=''
	over 0
	ns=$home
	ok to c "$kd_local%$d0"
	is "$r0-1 fe80:*" query c
	works 1 c "$kd_local%$d0" 7
	over 1
	is "INVALID_ADDRESS INVALID_ADDRESS_MALFORMED" to d "$kd_local"
	ns=''
	put l a b c
	verdict "SIL-30,CSP-01,D-100: link-local addresses connect: the scope says which interface"
}

# An address of the bridge that the interface belongs to.
bridge() {
	ip link add bv0 type veth peer name bv1
	ip link add br0 type bridge
	ip link set bv0 master br0
	ip addr add $B.1/24 dev br0
	for kd_n in bv0 bv1 br0; do ip link set $kd_n up; done
	until_true 30 grep -qx up /sys/class/net/br0/operstate
	try rdma link add "${p}br" type "$p" netdev bv0
	ok open a "${p}br-1"
	is "${p}br-1 $B.1" query a
	ok open b br0
	is "br0 $B.1" query b
	case $p-$KERNEL in
	siw-7*)	# takes addresses of its very own interface only
		is "$NO_ADDRESS" listen l b 7
		is "$FAILED" connect 0 a $B.1 7 ;;
	*)
		ok listen l b 7
		works 0 a $B.1 7 $B.1
		over 0
		ok unlisten l ;;
	esac
	put a b
	verdict "IA-QRY-02,SIL-30: the interface is in a bridge: the name and the address of that open the IA"
	rdma link delete "${p}br"
	ip link del br0
	ip link del bv0
}

# A VLAN interface: part of the RoCE device below it; soft-iWARP wants its own.
vlans() {
	for kd_n in $sides; do
		eval "kd_dev=\$d$kd_n"
		on "$kd_n" link add link "$kd_dev" name "vl$kd_n" type vlan id 5
		address add "$kd_n" $B.$((kd_n + 1))/24 "vl$kd_n"
		address add "$kd_n" $B6:$((kd_n + 1))/64 "vl$kd_n"
		case $topology in dev) on "$kd_n" link set "vl$kd_n" arp off ;; esac
		on "$kd_n" link set "vl$kd_n" up
	done
	# Where nobody is asked for addresses nothing has to be ready for it.
	[ "$topology" != net ] || for kd_n in $sides; do
		settled "$kd_n" "vl$kd_n"
	done
	v1=vl$((i - 1)) b0=$B.1 b1=$B.$i t0=$B6:1 t1=$B6:$i
	[ "$p" = rxe ] || for kd_n in $sides; do
		try rdma link add "${p}v$kd_n" type "$p" netdev "vl$kd_n"
	done
	for kd_n in "vl0 $v1 $b0 $b1" "$b0 $b1 $b0 $b1" "$t0 $t1 $t0 $t1"; do
		# shellcheck disable=SC2086
		set -- $kd_n
		opened_as "$@"
		verdict "IA-QRY-02,SIL-30: an IA opened as $1, of a VLAN, connects from $3"
	done
	# What the routes say of an address on the VLAN; within one machine the source does. The
	# VLAN interface has the hardware address of the one below it, by which the connection
	# manager finds a device of soft-iWARP: it takes either.
	kd_dev=$r0
	[ "$p" = rxe ] || kd_dev="$p*"
	for kd_n in "$b1 $b0" "$t1 $t0"; do
		# shellcheck disable=SC2086
		set -- $kd_n
		from 1 ok open b "$1"
		ok listen l b 7
		case $topology in
		net) from 0 ok to a "$1" ;;
		*) ok to a "$1" "$2" ;;
		esac
		is "$kd_dev-1 $2" query a
		works 0 a "$1" 7 "$2"
		over 0
		put l a b
		verdict "D-100: the adapter that leads to $1, over a VLAN"
	done
	[ "$p" = rxe ] || for kd_n in $sides; do
		try rdma link delete "${p}v$kd_n"
	done
	# The VLAN goes while the IA is open.
	if [ "$p" = rxe ]; then
		from 0 ok open a vl0
		is "vl0 $b0" query a
		on 0 link del vl0
		is "vl0 none" query a
		is "$NO_ADDRESS" connect 0 a "$B.$i" 7
		is "$NO_ADDRESS" listen l a 7
		put a
		from 0 gone a vl0
		verdict "SIL-30: the VLAN interface an IA was opened by goes: it has no address any more"
	fi
	for kd_n in $sides; do on "$kd_n" link del "vl$kd_n" 2>/dev/null || :; done
}

# leads NAME ADDRESS: the adapter that leads there, opened as c, is this one.
leads() {
	order close c >/dev/null
	like SUCCESS "$(order to c "$2" "$2")" && like "$1 $2" "$(order query c)"
}
# A bond of two interfaces, each with a device; the address is that of the active one's device.
bond() {
	try mp bonding max_bonds=0
	try ip link add bd0 type bond mode active-backup fail_over_mac active
	for kd_n in 0 1; do
		try ip link add "sl$kd_n" type dummy
		try ip link set "sl$kd_n" master bd0
	done
	try ip link set bd0 type bond active_slave sl0
	try ip addr add $B.1/24 dev bd0
	try ip link set bd0 up
	for kd_n in 0 1; do try rdma link add "${p}b$kd_n" type "$p" netdev "sl$kd_n"; done
	try until_true 30 leads "${p}b0-1" $B.1
	ok listen l c 7
	works 0 c $B.1 7 $B.1
	verdict "D-100: the adapter that leads to the address of a bond is the active one's"
	put l
	try ip link set bd0 type bond active_slave sl1
	becomes "DISCONNECTED DISCONNECTED" state 0
	ok free 0
	try until_true 30 leads "${p}b1-1" $B.1
	ok listen l c 7
	works 0 c $B.1 7 $B.1
	over 0
	put l c
	verdict "D-100,EPSM-17: a bond fails over: the connection ends, the other adapter leads there"
	for kd_n in 0 1; do try rdma link delete "${p}b$kd_n"; done
	for kd_n in bd0 sl0 sl1; do try ip link del $kd_n; done
}

# Addresses go and come while an IA, a PSP and a connection are there.
addresses() {
	pair "$r0-1" "$r1-1"
	works 0 a "$a1" 7 "$a0"
	# IPv6 would do otherwise.
	address del 0 $s0/64
	address del 1 $s1/64
	address del 0 "$a0/24"
	is "$r0-1 none" query a
	is "CONNECTED CONNECTED" state 0
	is "$NO_ADDRESS" connect 1 a $A.$i 7
	is "$NO_ADDRESS" listen m a 8
	is "$NO_ADDRESS" common m a "$a0" 8
	ok open c "$r0-1"
	is "$r0-1 none" query c
	verdict "SIL-30: the address goes: the connection stays, connecting and listening are INVALID_ADDRESS, an IA still opens"
	address add 0 "$a0/24"
	is "$r0-1 $a0" query a
	# An address that comes back is another entry of soft-RoCE's table.
	case $p in
	rxe) is "FLUSHED|LOCAL_EP" talk 0 && ok free 0 ;;
	siw) is data talk 0 && over 0 ;;
	esac
	works 1 c "$a1" 7 "$a0"
	ok listen m a 8
	works 2 b "$a0" 8
	over 1
	over 2
	verdict "SIL-30: the address comes back: connecting and listening work again"
	# Another one; what listens on the old one does not hear of it.
	address del 0 "$a0/24"
	address add 0 $A.11/24
	is "$r0-1 $A.11" query a
	is "$r0-1 $A.11" query c
	[ "$topology" = one ] || works 0 a "$a1" 7 $A.11
	ok listen n a 9
	works 1 b $A.11 9
	# That somebody listens there on another address is PEER_REJECTED on soft-RoCE.
	is "PEER_REJECTED|NON_PEER_REJECTED" connect 2 b $A.11 8
	[ "$topology" = one ] || over 0
	over 1
	address del 0 $A.11/24
	address add 0 "$a0/24"
	put n
	works 2 b "$a0" 8
	over 2
	verdict "SIL-30: the address changes: new connections and listeners use the new one, an old listener waits for the old one"
	put l m a b c
	# Opened by an address: it uses this one as long as it is there.
	address add 0 $A.11/24
	from 0 ok open a $A.11
	ok open b "$r1-1"
	ok listen l b 7
	is "$A.11 $A.11" query a
	works 0 a "$a1" 7 $A.11
	address del 0 $A.11/24
	is "$A.11 none" query a
	is "$NO_ADDRESS" connect 1 a "$a1" 7
	is "$NO_ADDRESS" listen m a 8
	address add 0 $A.11/24
	is "$A.11 $A.11" query a
	works 1 a "$a1" 7 $A.11
	over 1
	address del 0 $A.11/24
	ok free 0
	put a
	from 0 gone a $A.11
	put l b
	address add 0 $s0/64
	address add 1 $s1/64
	verdict "IA-QRY-02,SIL-30: an IA opened by an address uses it although it is not the first; without it the name is unknown"
}

instances() {
	ok open a "$r0-1"
	ok open b "$r0-1"
	ok open c "$r1-1"
	ok listen l b 7
	ok listen m c 8
	ok listen n a 9
	works 0 a "$a0" 7 "$a0"
	works 1 b "$a1" 8
	works 2 b "$a0" 9
	works 3 c "$a0" 7
	works 4 a "$a1" 8
	is "INVALID_STATE INVALID_STATE_IA_IN_USE" close a graceful
	ok close a
	becomes "dead DISCONNECTED" state 0
	becomes "DISCONNECTED dead" state 2
	becomes "dead DISCONNECTED" state 4
	is data talk 1
	is data talk 3
	works 5 b "$a0" 7
	is "NON_PEER_REJECTED" connect 6 b "$a0" 9
	ok open a "$r0-1"
	works 7 a "$a0" 7
	for kd_n in 1 3 5 7; do over $kd_n; done
	for kd_n in 0 2 4; do ok free $kd_n; done
	put l m
	order unlisten n >/dev/null
	put a b c
	verdict "IA-OPEN-01,SIL-30: two instances of an IA connect to each other; closing one leaves the other alone"
}

# Both providers on one interface.
both() {
	case $p in rxe) kd_o=siw ;; *) kd_o=rxe ;; esac
	mp "$(provider_module $kd_o)"
	ip link add both0 type dummy
	ip addr add $B.1/24 dev both0
	ip link set both0 up
	try rdma link add "${p}both" type "$p" netdev both0
	try rdma link add ${kd_o}both type $kd_o netdev both0
	is "*${p}both-1 ${kd_o}both-1*" ias
	ok open a "${p}both-1"
	ok open b ${kd_o}both-1
	ok open c both0
	is "${p}both-1 $B.1" query a
	is "${kd_o}both-1 $B.1" query b
	is "both0 $B.1" query c
	ok listen l a 7
	works 0 a $B.1 7 $B.1
	is "*l" addresses 0
	is "$NO_ADDRESS" listen m b 8
	is UNREACHABLE connect 1 b $B.1 7
	is data talk 0
	over 0
	put l a b c
	verdict "SIL-30: two devices on one interface: rdma_cm gives its addresses to the first; the second opens and is refused, not mixed up with it"
	rdma link delete ${kd_o}both
	rdma link delete "${p}both"
	ip link del both0
}

# No carrier: a wire whose other end is down.
carrier() {
	ip link add wire0 type veth peer name wire1
	ip addr add $B.1/24 dev wire0
	ip link set wire0 up
	try rdma link add "${p}wire" type "$p" netdev wire0
	ok open a "${p}wire-1"
	is "${p}wire-1 $B.1" query a
	is "*${p}wire-1*" ias
	ok listen l a 7
	is "$FAILED" connect 0 a $B.2 7 10
	ip link set wire1 up
	until_true 20 grep -qx 1 /sys/class/net/wire0/carrier
	works 1 a $B.1 7 $B.1
	is UNREACHABLE connect 2 a $B.2 7 0
	ip link set wire1 down
	is "CONNECTED CONNECTED" state 1
	ip link set wire1 up
	is data talk 1
	over 1
	put l a
	verdict "SIL-30: an IA of an interface without carrier opens, listens, and connects when there is one"
	rdma link delete "${p}wire"
	ip link del wire0
}

# The interface goes down and up again.
has_qdisc() { ! on "$1" link show dev "$2" | grep -q "qdisc noop "; }
down_up() {
	pair "$r0-1" "$r1-1"
	works 0 a "$a1" 7 "$a0"
	is none async a
	on 0 link set $d0 down
	# soft-iWARP of 6.1 ends all connections of the device.
	case $p-$KERNEL in
	siw-6.1*) kd_want="DISCONNECTED DISCONNECTED" kd_data=FLUSHED ;;
	*) kd_want="CONNECTED CONNECTED" kd_data=data ;;
	esac
	becomes "$kd_want" state 0
	becomes "PROVIDER_INTERNAL_ERROR" async a
	is "$r0-1 $a0" query a
	is "$FAILED" connect 1 a "$a1" 7 10
	on 0 link set $d0 up
	# soft-RoCE must not send before the other end has its queueing discipline again.
	try until_true 30 has_qdisc 1 $d1
	# That took the IPv6 addresses away.
	address add 0 $s0/64
	is "$kd_want" state 0
	is "$kd_data" talk 0
	works 2 a "$a1" 7 "$a0"
	is "none" async a
	is data talk 2
	ok free 0
	over 2
	put l a b
	verdict "ASY-04,SIL-30: an interface goes down: one PROVIDER_INTERNAL_ERROR, no connecting; up again, all is as before"
}

# Somebody has RTNL and keeps it, as if waiting for memory, hence for a disk that has to be
# connected again: all of that works meanwhile.
reconnect() {
	wrong=0
	for kd_n in "$r0-1" "$d0" "$a0"; do
		ns=$home
		ok open a "$kd_n"
		ns=''
		is "$kd_n $a0" query a
		works 0 a "$a1" 7 "$a0"
		over 0
		put a
	done
	echo $wrong >"$TMPDIR/reconnected"
}
rtnl() {
	ok open b "$r1-1"
	ok listen l b 7
	rm -f "$TMPDIR/reconnected"
	echo 1 >/sys/kernel/debug/kdnet/rtnl
	reconnect &
	until_true 60 [ -e "$TMPDIR/reconnected" ] || try false
	echo 0 >/sys/kernel/debug/kdnet/rtnl
	wait $!
	try grep -qx 0 "$TMPDIR/reconnected"
	put l b
	verdict "CTX-05: somebody keeps RTNL: an IA opens, is asked, connects and closes meanwhile"
}

# The same names and addresses in another namespace.
namespaces() {
	ip netns add x 2>/dev/null
	ip -n x link set lo up
	ip -n x link add $d0 type dummy
	ip -n x addr add $a0/24 dev $d0
	ip -n x addr add $B.1/24 dev $d0
	ip -n x link set $d0 up
	try ip netns exec x rdma link add "${p}x" type "$p" netdev $d0
	ok open a "${p}x-1"
	is "${p}x-1 $a0" query a
	put a
	ip -n x addr del $a0/24 dev $d0
	ns=x
	ok open a $d0
	is "$d0 $B.1" query a
	ok open c $B.1
	ok open e "$r0-1"
	is "$r0-1 $a0" query e
	gone f $a0
	ns=$home
	ok open b $d0
	is "$d0 $a0" query b
	gone f $B.1
	# The sockets of soft-iWARP are in the initial namespace, those of soft-RoCE of 6.1, too.
	if [ "$topology" = net ]; then
		ok listen l a 7
		works 0 c $B.1 7 $B.1
		over 0
		put l
	else
		is "$FAILED" connect 0 a $B.1 7 10
	fi
	put a b c e
	verdict "IA-OPEN-08,SIL-30: a name or address is one of the caller's namespace; what others have is not found by it, an RDMA device is"
	# It goes with its namespace.
	ns=x
	ok open a $B.1
	is none async a
	ns=''
	ip netns del x
	becomes IA_CATASTROPHIC async a
	gone b "${p}x-1"
	put a
	verdict "ASY-03,SIL-27: a namespace is deleted, its device goes"
}

# Two networks of the same addresses and names.
twins() {
	for kd_n in 2 3; do ip netns add n$kd_n 2>/dev/null; done
	ip link add veth0 netns n2 type veth peer name veth1 netns n3
	for kd_n in 0 1; do
		ip -n n$((kd_n + 2)) addr add $A.$((kd_n + 1))/24 dev veth$kd_n
		ip -n n$((kd_n + 2)) link set veth$kd_n up
	done
	for kd_n in 2 3; do
		try ip netns exec n$kd_n rdma link add "$p$kd_n" type "$p" netdev veth$((kd_n - 2))
	done
	ok open a "$r0-1"
	ok open b "$r1-1"
	ok open c "${p}2-1"
	ns=n3
	ok open d $a1
	ok listen l b 7
	ok listen m d 7
	for kd_n in 0 2 4; do
		works $kd_n a "$a1" 7 "$a0"
		works $((kd_n + 1)) c "$a1" 7 "$a0"
		is "*l" addresses $kd_n
		is "*m" addresses $((kd_n + 1))
	done
	for ns in n0 n2; do
		ok open e $a0
		ok open f veth0
		works 6 e "$a1" 7 "$a0"
		works 7 f "$a1" 7 "$a0"
		case $ns in n0) kd_want="*l" ;; *) kd_want="*m" ;; esac
		is "$kd_want" addresses 6
		is "$kd_want" addresses 7
		over 6
		over 7
		put e f
	done
	ns=''
	for kd_n in 0 1 2 3 4 5; do
		is data talk $kd_n
		over $kd_n
	done
	put l m a b c d
	verdict "SIL-30: two networks with the same addresses in namespaces of their own: each connection stays in its own"
	for kd_n in 2 3; do rdma link delete "$p$kd_n"; done
	for kd_n in 2 3; do ip netns del n$kd_n; done
}

# The interface moves to another namespace, as a container takes it.
move() {
	ip netns add x 2>/dev/null
	ip -n x link set lo up
	ip link add mv0 type dummy
	ip addr add $B.1/24 dev mv0
	ip link set mv0 up
	try rdma link add "${p}mv" type "$p" netdev mv0
	pair "${p}mv-1" mv0
	works 0 a $B.1 7
	try ip link set mv0 netns x
	becomes IA_CATASTROPHIC async a
	is "BROKEN BROKEN" ended 0
	is "DISCONNECTED DISCONNECTED" state 0
	is "*-1 none" query a
	is INTERNAL_ERROR connect 1 a $B.1 7
	is INTERNAL_ERROR listen m a 8
	gone c "${p}mv-1"
	gone c mv0
	# The device can be made again where the interface is now. Its name is free a while
	# after it has gone.
	ip -n x addr add $B.1/24 dev mv0
	ip -n x link set mv0 up
	try until_true 30 ip netns exec x rdma link add "${p}mv" type "$p" netdev mv0
	gone c mv0
	ns=x
	ok open c mv0
	ns=''
	is "mv0 $B.1" query c
	[ "$topology" != net ] || ok listen m c 7
	[ "$topology" != net ] || works 1 c $B.1 7
	ok clean
	verdict "SIL-27,SIL-30: an interface moves to another namespace: its device goes, a new one can be made there"
	rdma link delete "${p}mv"
	ip netns del x
}

for kd_what in ${3:-names rename families nowhere ports link_local vlans bridge addresses instances both carrier down_up
	rtnl namespaces twins move}; do
	case $kd_what-$topology in twins-dev | twins-one) continue ;; esac
	$kd_what
	ok clean
done

step "kdnet.ko unloads" rmmod kdnet
step "kdapl.ko unloads" rmmod kdapl
finish
