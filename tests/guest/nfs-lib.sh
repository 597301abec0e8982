# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Functions for the scripts that have NFS over RDMA between two machines (POSIX sh). Machine $n of
# them, over provider $p: 1 is the kernel's own server, 2 a client. The last argument of the
# script is the directory where tests/nfsstack has unpacked the programs.
# shellcheck shell=sh disable=SC2086,SC2154
for programs; do :; done
lib=$programs/usr/lib/x86_64-linux-gnu
export LD_LIBRARY_PATH="$lib:$programs/lib/x86_64-linux-gnu:$lib/libnfsidmap"
PATH=$PATH:$programs/usr/bin:$programs/usr/sbin:$programs/sbin
dir=$TMPDIR/mnt log=$TMPDIR/log
mkdir -p "$dir"
server=192.0.2.1

# Files of this machine's own where the programs look for them.
places() {
	mount -t tmpfs tmpfs /var/lib && mkdir -p /var/lib/nfs/rpc_pipefs /var/lib/nfs/nfsdcld \
		/var/lib/nfs/v4recovery &&
		: >/var/lib/nfs/etab && : >/var/lib/nfs/rmtab && : >/var/lib/nfs/state || return
	cp -a /etc "$TMPDIR/etc" && cp -a "$programs/etc/netconfig" "$TMPDIR/etc" &&
		echo "_rpc:x:110:65534::/run/rpcbind:/usr/sbin/nologin" >>"$TMPDIR/etc/passwd" &&
		mount --bind "$TMPDIR/etc" /etc || return
	hostname "machine$n"
	printf '192.0.2.1 machine1\n192.0.2.2 machine2\n' >>/etc/hosts
	mp sunrpc && mount -t rpc_pipefs rpc_pipefs /var/lib/nfs/rpc_pipefs
}

# one_machine PROFILE: server and client are the same machine, since no packet of a device of
# tests/hca leaves it. The client's device is in the namespace n0; the server's one has this profile.
one_machine() {
	provider "$p" && mp veth
	ip netns add n0
	ip link add veth0 netns n0 type veth peer name veth1
	ip -n n0 link set lo up
	ip -n n0 addr add 192.0.2.2/24 dev veth0 && ip -n n0 link set veth0 up
	ip addr add $server/24 dev veth1 && ip link set veth1 up
	must "the client's device" ip netns exec n0 rdma link add "${p}0" type "$p" netdev veth0
	printf %s "$1" >/sys/module/kdhca/parameters/profile
	must "the server's device" rdma link add "${p}1" type "$p" netdev veth1
	all_cpus
	must "places for the programs" places
	must "the server serves" serve
	must "kdapl.ko loads" insmod "$KO/kdapl.ko"
	must "server and client in one kernel" insmod "$KO/kdnfsboth.ko"
	must "kdat_xprtrdma.ko loads" insmod "$KO/kdat_xprtrdma.ko"
	mp nfs && mp nfsv3 && mp nfsv4
	kd_inside="nsenter --net=/run/netns/n0"
}

# share [KINDS]: the server's files for everybody, with these kinds of security.
share() {
	exportfs -i -o "rw,no_root_squash,insecure,no_subtree_check,fsid=0${1:+,sec=$1}" \
		"*:$TMPDIR/export"
}
serve() {
	# No delegations before lockd's grace period is over.
	mp lockd nlm_grace_period=1 nlm_timeout=3
	mp rpcrdma && mp nfsd && mount -t nfsd nfsd /proc/fs/nfsd || return
	mkdir -p "$TMPDIR/export" /run/rpcbind &&
		mount -t tmpfs -o size=256m tmpfs "$TMPDIR/export" || return
	rpcbind -w 2>>"$log"
	# Keeps track of clients: with none to wait for there is no grace period.
	nfsdcld 2>>"$log"
	share || return
	rpc.mountd --port 20048 2>>"$log"
	echo 1048576 >/proc/fs/nfsd/max_block_size
	start_nfsd
}
start_nfsd() {
	rpc.nfsd 8 2>>"$log" && echo "rdma 20049" >/proc/fs/nfsd/portlist
}

mount_it() {	# VERSION [OPTIONS]
	kd_more=''
	kd_from=$server:/
	if [ "$1" = 3 ]; then
		kd_more=,nolock,mountport=20048,mountproto=tcp
		kd_from=$server:/run/tmp/export
	fi
	timeout 120 ${kd_inside:-} mount.nfs "$kd_from" "$dir" \
		-o "vers=$1,proto=rdma,port=20049$kd_more${2:+,$2}"
}
unmount() { timeout 120 umount "$dir"; }
is_rdma() { grep -q 'xprt:	rdma' /proc/self/mountstats; }
fresh() { rm -rf "$dir/tree" && mkdir "$dir/tree"; }
check() { timeout 900 "$TOP/tests/nfscheck" "$dir/tree" "$@"; }
column() { sed -n 's/.*xprt:\trdma //p' /proc/self/mountstats | head -1 | cut -d' ' -f"$1"; }
some() { [ "$(column "$1")" -gt 0 ]; }
unused() { lsmod | grep -q '^kdat_xprtrdma .* 0 *$'; }
end_all() {
	"$TOP/tools/kdapl" conn state=CONNECTED | sed -n 's/^ *\([0-9][0-9]*\) .*/\1/p' |
		xargs -r -n 1 "$TOP/tools/kdapl" end 2>>"$log" || :
}
end_some() { end_all; }
# Connections end until $TMPDIR/enough is there.
ending() {
	while [ ! -e "$TMPDIR/enough" ]; do
		sleep 0.$((2 + $(date +%s) % 7))
		end_some
	done
}
# while_ending COMMAND...
while_ending() {
	rm -f "$TMPDIR/enough"
	ending &
	kd_ending=$!
	kd_status=0
	"$@" || kd_status=$?
	: >"$TMPDIR/enough"
	wait $kd_ending
	return $kd_status
}
# RPCs of kdnfscall to kdnfskeys (tests/stress/nfs).
calls() {
	${kd_inside:-} insmod "$KO/kdnfscall.ko" port=20051 "$@" && rmmod kdnfscall &&
		until_true 60 unused
}

# Both machines are there, the server serves; over kdapl, which is loaded.
begin() {
	must "a network card and the device ${p}0" wire "$n" "$p"
	ip addr add "2001:db8::$n/64" dev eth0 nodad
	must "places for the programs" places
	if [ "$n" = 1 ]; then
		must "the server serves" serve
		meet 1
	else
		must "kdapl.ko loads" insmod "$KO/kdapl.ko"
		mp nfs && mp nfsv3 && mp nfsv4
		must "kdat_xprtrdma.ko loads" insmod "$KO/kdat_xprtrdma.ko"
		meet 2
	fi
}
