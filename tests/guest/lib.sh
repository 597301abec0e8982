# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Functions for scripts inside a guest (POSIX sh). $KO: directory of our .ko
# files, $MODROOT: where this kernel's own modules are.
# shellcheck shell=sh

failed=0

# step "IDS: what is shown" COMMAND...: one result line for the harness.
step() {
	kd_what=$1
	shift
	if "$@"; then
		echo "kd-test: ok $kd_what"
	else
		echo "('$*' gave $?)"
		echo "kd-test: not ok $kd_what"
		failed=1
		return 1
	fi
}

# must: like step, but nothing after it makes sense when it fails.
must() { step "$@" || exit 1; }

# void WHY: what has failed shows nothing, so this guest is run again.
void() { echo "kd-test: void $1"; }

refused() { ! "$@" 2>/dev/null; }

finish() { [ $failed = 0 ]; }

# until_true SECONDS COMMAND...
until_true() {
	kd_tries=$(($1 * 10))
	shift
	until "$@" >/dev/null 2>&1; do
		kd_tries=$((kd_tries - 1))
		[ $kd_tries -gt 0 ] || return 1
		sleep 0.1
	done
}

logged() { dmesg | grep -q -e "$1"; }
# What ends in a line of the log often does its work before it writes that line.
logs() { until_true 30 logged "$1"; }
# What debugfs says of objects: a line for each of them; and how many there are.
object_list() { grep -Hv '^id ' /sys/kernel/debug/kdapl/* | grep -v '/cpus:'; }
objects() { object_list | wc -l; }
# What each device has of everything, by the name of the device.
resources() { rdma resource show | sed 's/^[0-9]*: //' | sort; }
# The same without completion queues: an EVD keeps those that it once needed.
but_cqs() { resources | sed 's/ cq [0-9]*//'; }

none() { [ "$(objects)" = 0 ]; }
# shellcheck disable=SC2154
all_gone() { [ "$(resources)" = "$empty" ]; }

tracing=/sys/kernel/tracing
tracefs() { mountpoint -q $tracing || mount -t tracefs tracefs $tracing; }

# Of kdtest.ko mode=hold and mode=states: 64 more messages show that its connections are busy.
parameter() { printf %s "$2" >"/sys/module/kdtest/parameters/$1"; }
messages() { cat /sys/module/kdtest/parameters/messages; }
more() { [ "$(messages)" -ge $((from + 64)) ]; }
busy() {
	from=$(messages)
	until_true 60 more
}

# What soft-RoCE of newer kernels sends while there is no carrier may take the queue pair to ERR,
# that of the connection manager too. It never leaves that.
cm_is_dead() { rdma resource show qp | grep -q 'type GSI state ERR'; }

# in_turns ROUNDS BASELINE OTHER: the caller's turn(), there and back, so that what drifts meets both.
in_turns() {
	kd_k=0
	while [ $kd_k -lt "$1" ]; do
		turn "$2" && turn "$3" && turn "$3" && turn "$2" || return
		kd_k=$((kd_k + 2))
	done
}

# megabytes N: the megabyte in $TMPDIR/pattern, so many times.
megabytes() {
	for kd_i in $(seq "$1"); do
		cat "$TMPDIR/pattern" || return
	done
}

# tell: a line for whoever watches (make demo shows these).
tell() { echo "tell: $*"; }

# Kernel modules of the guest's own kernel.
mp() { modprobe ${MODROOT:+-d "$MODROOT"} "$@"; }

provider_module() {
	case $1 in
	rxe) echo rdma_rxe ;;
	*) echo "$1" ;;
	esac
}

provider_name() {
	case $1 in
	rxe) echo soft-RoCE ;;
	siw) echo soft-iWARP ;;
	*) echo "$1" ;;
	esac
}

# all_cpus: switch on those that were left off for the boot (qemu-run -u).
all_cpus() {
	for kd_i in /sys/devices/system/cpu/cpu*/online; do
		[ ! -w "$kd_i" ] || grep -qx 1 "$kd_i" || echo 1 >"$kd_i"
	done
}

# siw blocks in a connect to nowhere for as long as TCP tries.
short_tcp() { echo 1 >/proc/sys/net/ipv4/tcp_syn_retries; }

# provider rxe|siw|kdhca [SIW.KO]: load it. Stock kernels have no siw: ours is given by
# its path. kdhca is of tests/hca, with the personality $KDHCA.
provider() {
	mp rdma_cm
	if [ "$1" = kdhca ]; then
		insmod "$KO/kdhca.ko" "profile=${KDHCA:-plain}"
	elif [ -n "$2" ]; then
		mp libcrc32c
		insmod "$2"
	else
		mp "$(provider_module "$1")"
	fi
}

# loopback_dev rxe|siw [SIW.KO]: one device rxe0/siw0 with address 192.0.2.1, good for
# connections to itself. Who has 192.0.2.N has 2001:db8::N as well.
loopback_dev() {
	provider "$1" "$2"
	short_tcp
	ip link add kd0 type dummy
	ip addr add 192.0.2.1/24 dev kd0
	ip addr add 2001:db8::1/64 dev kd0 nodad
	ip link set kd0 up
	# The name of a device is free a while after it has gone.
	until_true 30 rdma link add "${1}0" type "$1" netdev kd0 && all_cpus
}

# null_dev [PARAMETER]: the device without a wire, kdnull0, with address 192.0.2.1.
null_dev() {
	ip link add kd0 type dummy
	ip addr add 192.0.2.1/24 dev kd0
	ip link set kd0 up
	mp rdma_cm
	insmod "$KO/kdnull.ko" netdev=kd0 "$@"
}

# two_devices rxe|siw [SIW.KO]: devices siw0 (192.0.2.1) and siw1 (192.0.2.2) in this
# namespace, connected by the network stack.
two_devices() {
	provider "$1" "$2"
	short_tcp
	ip link add veth0 type veth peer name veth1
	for kd_i in 0 1; do
		ip addr add 192.0.2.$((kd_i + 1))/24 dev veth$kd_i
		ip addr add 2001:db8::$((kd_i + 1))/64 dev veth$kd_i nodad
		# Nobody answers ARP for an address of the same machine.
		ip link set veth$kd_i arp off up
	done
	for kd_i in 0 1; do
		until_true 30 rdma link add "$1$kd_i" type "$1" netdev veth$kd_i || return
	done
	all_cpus
}

# two_namespaces rxe|siw: namespaces n0 and n1, joined by veth, device
# rxe0 (192.0.2.1) in n0 and rxe1 (192.0.2.2) in n1. Good for rxe of 7.2; rxe
# of 6.1 does not connect across namespaces, and siw opens its sockets in the
# namespace of the caller, whatever the device's is.
two_namespaces() {
	provider "$1"
	ip netns add n0 2>/dev/null || :
	ip netns add n1 2>/dev/null || :
	ip link add veth0 netns n0 type veth peer name veth1 netns n1
	for kd_i in 0 1; do
		ip -n n$kd_i link set lo up
		ip -n n$kd_i addr add 192.0.2.$((kd_i + 1))/24 dev veth$kd_i
		ip -n n$kd_i addr add 2001:db8::$((kd_i + 1))/64 dev veth$kd_i nodad
		ip -n n$kd_i link set veth$kd_i up
	done
	for kd_i in 0 1; do
		until_true 30 ip netns exec n$kd_i rdma link add "$1$kd_i" type "$1" \
			netdev veth$kd_i || return
	done
	all_cpus
}

# topology net|dev|one rxe|siw: two devices in two namespaces, two in this one, or one. Sets a
# and b, the devices, and dev, the network interface of a: for "ip $ns", and "$in0 COMMAND".
# shellcheck disable=SC2034
topology() {
	a=${2}0 b=${2}1 dev=veth0 ns='' in0=''
	case $1 in
	net) two_namespaces "$2" && ns="-n n0" in0="ip netns exec n0" ;;
	dev) two_devices "$2" ;;
	one) loopback_dev "$2" && b=$a dev=kd0 ;;
	esac
}

# wire N [rxe|siw [SIW.KO]]: the network card of machine N of two gets address 192.0.2.N and
# the device rxe0 or siw0. (tools/uml-pair, or tools/qemu-run -w.)
wire() {
	if [ "$ACCEL" = uml ]; then
		exec 9</dev/tty2	# where the orders for the cable are answered
		stty -echo <&9
		# A card without a carrier is one whose plug, vec0, is pulled.
		ip link add eth0 address "52:54:00:00:00:0$1" type bridge || return
		ip link set vec0 master eth0 up || return
		# A thread receives. Softirqs would do it in the host's signal handler, where no alarm
		# arrives, and so miss their limit of time: on a busy host nothing else gets this CPU.
		echo 1 >/sys/class/net/vec0/threaded || return
	else
		mp virtio_net
		until_true 5 ip link show eth0 || return
	fi
	ip addr add "192.0.2.$1/24" dev eth0
	ip link set eth0 up
	provider "${2:-rxe}" "$3"
	rdma link add "${2:-rxe}0" type "${2:-rxe}" netdev eth0
}

# cable ORDER: see tools/uml-pair. Those between QEMU guests can be cut and mended, which the
# card notices.
cable() {
	echo "wire: $*"
	if [ "$ACCEL" = uml ]; then
		read -r kd_answer cable_said <&9
		[ "$kd_answer" = "done" ] || { echo "cable: $kd_answer $cable_said"; return 1; }
	else
		case $1 in
		cut) until_true 60 grep -qx 0 /sys/class/net/eth0/carrier ;;
		mend) until_true 120 grep -qx 1 /sys/class/net/eth0/carrier ;;
		*) return 1 ;;
		esac
	fi
}

# meet N: machine 1 and machine 2 wait for each other here.
meet() {
	if [ "$ACCEL" = uml ]; then
		cable meet
	elif [ "$1" = 1 ]; then
		busybox nc -l -p 6000 </dev/null >/dev/null
	else
		until_true 120 busybox nc -w 5 192.0.2.1 6000 </dev/null
	fi
}

# no_devices rxe|siw: undo the two above, whatever is left of it.
no_devices() {
	for kd_i in 0 1; do
		rdma link delete "$1$kd_i" 2>/dev/null || :
	done
	ip -n n0 link del veth0 2>/dev/null || :
	ip link del veth0 2>/dev/null || :
	ip link del kd0 2>/dev/null || :
}
