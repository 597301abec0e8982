# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Functions for scripts inside a guest (POSIX sh). $KO: directory of our .ko
# files, $MODROOT: where this kernel's own modules are.
# shellcheck shell=sh

# Kernel modules of the guest's own kernel.
mp() { modprobe ${MODROOT:+-d "$MODROOT"} "$@"; }

# loopback_dev rxe|siw: one device rxe0/siw0 with address 192.0.2.1 in this
# namespace, good for connections to itself.
loopback_dev() {
	mp rdma_cm
	mp "$(provider_module "$1")"
	ip link add kd0 type dummy
	ip addr add 192.0.2.1/24 dev kd0
	ip link set kd0 up
	rdma link add "${1}0" type "$1" netdev kd0
}

provider_module() {
	case $1 in
	rxe) echo rdma_rxe ;;
	*) echo "$1" ;;
	esac
}

# two_namespaces rxe|siw: namespaces n0 and n1, joined by veth, device
# rxe0 (192.0.2.1) in n0 and rxe1 (192.0.2.2) in n1. Works with siw on 6.1 and
# 7.2, with rxe on 7.2.
two_namespaces() {
	mp rdma_cm
	mp "$(provider_module "$1")"
	ip netns add n0 2>/dev/null
	ip netns add n1 2>/dev/null
	ip link add veth0 netns n0 type veth peer name veth1 netns n1
	for i in 0 1; do
		ip -n n$i link set lo up
		ip -n n$i addr add 192.0.2.$((i + 1))/24 dev veth$i
		ip -n n$i link set veth$i up
	done
	for i in 0 1; do
		ip netns exec n$i rdma link add "$1$i" type "$1" netdev veth$i
	done
}
