# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# nfs.sh N rxe|siw PART... PROGRAMS: one of two machines joined by a cable. Machine 1 is the kernel's
# own NFS server over RDMA, machine 2 mounts its files with kdat_xprtrdma. PROGRAMS: where
# tests/nfsstack has unpacked what is neither of the kernel nor installed. Parts:
#   files V		files in all kinds of ways (tests/nfscheck), by version V of NFS
#   recall		a delegation is recalled (calls of the server)
#   signals	reads and writes are killed while the server has keys to their memory
#   soft		a soft mount gives up while there is no cable, and works afterwards
#   many		IPv6, and four connections for a mount
#   cable S		the cable is cut for S seconds under load
#   restart		the server restarts under load
#   plug		the device of the client goes under load, and comes back
#   abort	calls are ended by umount -f, also while connections end: their memory is left alone
#   storm		all connections of a mount end at a time; the module comes and goes
#   starved	allocations of the transport fail, and of what it calls, while connections end
#   keys		a server that uses the keys of calls when it must not (tests/stress/nfs)
#   hostile	a server that breaks the protocol (tests/fuzz/nfs)
#   krb5		files signed and encrypted by Kerberos
#   netns		a mount in a network namespace, whose device is not that of the machine
#   gone		a network namespace ends while calls of its mount wait
#   suite V	programs that others test file systems with
#   chaos SECONDS	killed processes, soft mounts, mounts that come and go, under faults of all kinds
#   dirty		much of a small memory waits to be written while there is no cable, for a minute
#   load		the module is refused beside rpcrdma; unloads only without a mount
# shellcheck shell=sh disable=SC2086,SC2154
n=$1 p=$2
shift 2
. "$TOP/tests/guest/nfs-lib.sh"

# The NFS client of 6.1 has one connection for a mount of version 4 over RDMA, its tmpfs no
# attributes of users.
connections=4
case $(uname -r) in
6.1.*) connections=1 ;;
esac

client_files() {
	must "NFS $1: a mount" mount_it "$1"
	step "NFS $1: it is over RDMA" is_rdma
	must "NFS $1: a directory" fresh
	for kd_part in lengths names links fsx direct locks; do
		step "NFS $1: $kd_part" check $kd_part || :
	done
	[ "$1" != 4.2 ] || [ $connections = 1 ] || step "NFS $1: xattr" check xattr || :
	step "NFS $1: data was read by the server (Read chunks)" some 11
	step "NFS $1: data was written by it (Write chunks)" some 12
	step "NFS $1: whole replies were written by it (Reply chunks)" some 13
	step "NFS $1: unmounted" unmount
}

on_server() { meet 2; meet 2; }
server_files() { :; }

# Load that notices any wrong byte, until told to stop.
load() {
	fresh || return
	rm -f "$TMPDIR/stop" "$TMPDIR/wrong"
	(
		i=0
		while [ ! -e "$TMPDIR/stop" ]; do
			i=$((i + 1))
			"$TOP/tests/nfscheck" --seed $i --ops 60 "$dir/tree" fsx direct \
				>>"$TMPDIR/load" 2>&1 || { tail -3 "$TMPDIR/load"; : >"$TMPDIR/wrong"; break; }
			echo $i >"$TMPDIR/rounds"
		done
	) &
	echo 0 >"$TMPDIR/rounds"
}
rounds() { cat "$TMPDIR/rounds"; }
goes_on() {
	kd_round=$(rounds)
	until_true "${1:-200}" further
}
further() { [ ! -e "$TMPDIR/wrong" ] && [ "$(rounds)" -ge $((kd_round + 1)) ]; }
load_over() {
	: >"$TMPDIR/stop"
	wait
	[ ! -e "$TMPDIR/wrong" ]
}

client_cable() {
	must "a mount" mount_it 4.2
	must "load" load
	step "the load goes on" goes_on
	meet 2
	must "the cable is cut" cable cut
	sleep "$1"
	must "the cable is mended after $1 s" cable mend
	step "the load goes on" goes_on 300
	step "every byte was right" load_over
	step "unmounted" unmount
}
server_cable() {
	meet 1
	must "the cable is cut" cable cut
	must "the cable is mended" cable mend
}

# Attempts to connect that have failed since the trace was cleared, and lines about them.
trace() {
	tracefs && : >$tracing/trace && echo "$1" >$tracing/events/kdapl/kdapl_conn_event/enable
}
attempts() { [ "$(grep -c 'event=\(NON_PEER_REJECTED\|UNREACHABLE\|TIMED_OUT\)' $tracing/trace)" -ge "$1" ]; }
complaints() { dmesg | grep -c "kdat_xprtrdma: $server:20049: cannot connect: $1"; }
complained() { [ "$(complaints .)" = "$1" ]; }

client_restart() {
	must "a mount" mount_it "${1:-4.2}"
	must "load" load
	step "the load goes on" goes_on
	must "attempts to connect are traced" trace 1
	kd_lines=$(complaints . || :)
	meet 2		# the server ends
	meet 2
	step "attempts to connect fail" until_true 60 attempts 2
	step "the first one is logged, and no more" complained $((kd_lines + 1))
	trace 0
	meet 2		# it starts again
	meet 2
	step "the load goes on" goes_on 300
	step "every byte was right" load_over
	step "unmounted" unmount
}
server_restart() {
	meet 1
	rpc.nfsd 0
	meet 1
	meet 1
	step "the server starts again" start_nfsd
	meet 1
}

client_plug() {
	must "a mount" mount_it 4.2
	must "load" load
	step "the load goes on" goes_on
	for kd_i in 1 2; do
		step "the device goes" timeout 60 rdma link delete "${p}0"
		must "and comes back" rdma link add "${p}0" type "$p" netdev eth0
		step "the load goes on" goes_on 300
	done
	step "every byte was right" load_over
	step "unmounted" unmount
}
server_plug() { :; }

# Listing a directory is a call that ends with the process, and its reply needs several keys. If the
# server uses one of them afterwards, the connection ends, and that is as it must be.
killed() {
	for kd_i in 1 2 3 4 5 6 7 8 9 10 11 12; do
		timeout -s KILL "0.$((kd_i % 4))$kd_i" dd if="$dir/tree/large" of=/dev/null bs=1M \
			iflag=direct 2>/dev/null
		timeout -s KILL "0.$((kd_i % 4))$kd_i" dd if=/dev/zero of="$dir/tree/scratch" bs=1M \
			count=16 oflag=direct 2>/dev/null
		echo 2 >/proc/sys/vm/drop_caches
		timeout -s KILL "0.$((2 + kd_i % 7))$kd_i" ls "$dir/tree/names" >/dev/null
	done
	:
}
client_signals() {
	must "a mount" mount_it 4.2
	must "a directory" fresh
	must "a large file" dd if=/dev/urandom of="$dir/tree/large" bs=1M count=16
	must "a directory with names" sh -c "mkdir $dir/tree/names && cd $dir/tree/names &&
		touch \$(seq 1000000 1000200)"
	sum=$(sha256sum <"$dir/tree/large")
	must "a slow cable" cable delay 60
	step "reads and writes are killed" killed
	must "a fast cable" cable clean
	step "memory was taken back here" some 25
	echo 3 >/proc/sys/vm/drop_caches
	step "the large file is right" test "$(sha256sum <"$dir/tree/large")" = "$sum"
	step "files are right" check fsx direct
	step "unmounted" unmount
}
server_signals() { :; }

client_abort() {
	must "a mount" mount_it 4.2 nconnect=2
	must "a directory" fresh
	must "a slow cable" cable delay 40
	step "the memory of calls that are ended is left alone" check --seconds 20 --pause 1.5 aborted
	step "also when their connections end" while_ending check --seconds 20 --pause 2 aborted
	must "a fast cable" cable clean
	step "files are right" check fsx direct
	step "unmounted" unmount
}
server_abort() { :; }

some_rounds() { for kd_i in 1 2 3; do goes_on || return; done; }
comes_and_goes() {
	for kd_i in 1 2 3 4 5 6 7 8; do
		mount_it 4.$((kd_i % 3)) nconnect=4 || return
		dd if=/dev/zero of="$dir/tree/some" bs=1M count=4 oflag=direct 2>/dev/null &
		sleep 0.$kd_i
		end_all
		wait $!
		unmount && until_true 60 unused && rmmod kdat_xprtrdma &&
			insmod "$KO/kdat_xprtrdma.ko" || return
	done
}
client_storm() {
	# The listener of soft-iWARP forgets requests when more than ten arrive at a time.
	kd_many=16
	[ "$p" != siw ] || kd_many=8
	must "a mount with $kd_many connections" mount_it 4.2 nconnect=$kd_many
	must "load" load
	step "the load goes on while all of them end" while_ending some_rounds
	step "every byte was right" load_over
	step "unmounted" unmount
	until_true 60 unused
	step "the module comes and goes, and connections end" comes_and_goes
}
server_storm() { :; }

# Each so-manieth allocation fails, 0: none, of those that kdat_xprtrdma is behind.
starve() {
	kd_text=$(cat /sys/module/kdat_xprtrdma/sections/.text)
	for kd_f in failslab fail_page_alloc; do
		cd /sys/kernel/debug/$kd_f || return
		echo "$kd_text" >require-start
		printf '0x%x\n' $((kd_text + 0x20000)) >require-end
		echo 32 >stacktrace-depth
		echo 0 >verbose
		echo N >ignore-gfp-wait
		[ ! -e min-order ] || echo 0 >min-order
		echo -1 >times
		echo "$1" >interval
		echo $(($1 ? 100 : 0)) >probability
	done
	cd /
}
mounts() {	# many come and go, or do not
	for kd_i in 1 2 3 4 5 6 7 8 9 10; do
		! soft_mount "$TMPDIR/soft" 4.2 nconnect=2 || unmount_all "$TMPDIR/soft"
	done 2>>"$log"
}
client_starved() {
	must "a mount" mount_it 4.2 nconnect=2
	must "load" load
	must "few allocations fail" starve 1500
	step "the load goes on while connections end" while_ending goes_on
	step "and again" while_ending goes_on
	step "mounts come and go" mounts
	must "more fail" starve 200
	step "mounts come and go" while_ending mounts
	must "none fails" starve 0
	step "the load goes on" goes_on
	step "every byte was right" load_over
	step "unmounted" unmount
	step "every transport ends" until_true 200 unused
}
server_starved() { :; }

# Receives of the client's connection that wait for messages.
receives() {
	"$TOP/tools/kdapl" conn consumer=kdat_xprtrdma state=CONNECTED |
		awk 'NR == 2 { print $(NF - 1) - $NF }'
}
all_receives() { [ "$(receives)" = 160 ]; }

client_keys() {
	meet 2
	for kd_i in 1 2; do
		step "calls time out, and nobody reaches their memory then" \
			calls seed=$kd_i seconds=15 timeout=1000
		step "calls are ended, and nobody does" calls seed=1$kd_i seconds=10 kill_ms=50
		step "connections end, and nobody does" \
			while_ending calls seed=2$kd_i seconds=10
	done
	meet 2
	meet 2		# it sends a reply of no use, and no other
	calls threads=1 seconds=1 timeout=15000 &
	kd_calls=$!
	meet 2		# the call was made again
	step "all Receives are posted while it waits" until_true 10 all_receives
	step "nobody reaches memory afterwards" wait $kd_calls
	meet 2
	meet 2		# a reply takes back the last key of its call
	kd_given=$(given_up)
	step "it may be that to the padding" calls seed=31 threads=1 seconds=4 timeout=5000
	step "no connection is given up for that" test "$(given_up)" = "$kd_given"
	dmesg | sed -n 's/.*kdnfscall: //p' | grep -e '^PASS' -e '^FA'
	meet 2
}
given_up() { dmesg | grep -c "connection given up" || :; }
acts() { [ "$(cat $kd_keys/acts)" -ge "$1" ]; }
server_keys() {
	must "kdapl.ko loads" insmod "$KO/kdapl.ko"
	must "the server loads" insmod "$KO/kdnfskeys.ko" "ia=${p}0-1" port=20051
	kd_keys=/sys/module/kdnfskeys/parameters
	meet 1
	meet 1
	echo 15 >$kd_keys/only
	kd_acts=$(cat $kd_keys/acts)
	meet 1
	step "a call is made again" until_true 60 acts $((kd_acts + 2))
	meet 1
	meet 1
	echo 16 >$kd_keys/only
	meet 1
	meet 1
	tell "calls: $(cat $kd_keys/acts)"
	step "it was called" test "$(cat $kd_keys/acts)" -ge 100
	step "it has read nothing after a call" test "$(cat $kd_keys/gone)" -eq 0
	step "it unloads" rmmod kdnfskeys
	step "kdapl unloads" rmmod kdapl
}

fails() { ! timeout 200 dd if=/dev/zero of="$dir/tree/soft" bs=1M count=8 oflag=direct; }
client_soft() {
	must "a soft mount" mount_it 4.2 soft,timeo=30,retrans=1
	must "a directory" fresh
	meet 2
	must "the cable is cut" cable cut
	step "a write fails" fails
	must "the cable is mended" cable mend
	step "files are right afterwards" until_true 200 check fsx
	step "unmounted" unmount
}
server_soft() { server_cable; }

client_many() {
	from="[2001:db8::1]:/"
	must "a mount by IPv6" timeout 120 mount.nfs "$from" "$dir" \
		-o vers=4.2,proto=rdma6,port=20049
	step "it is over RDMA" is_rdma
	must "a directory" fresh
	step "files are right" check fsx
	step "unmounted" unmount
	must "a mount with four connections" mount_it 4.2 nconnect=4
	must "a directory" fresh
	step "files are right" check lengths fsx
	step "there are as many" test "$(grep -c 'xprt:	rdma' /proc/self/mountstats)" = $connections
	step "sysfs has them" test "$(cat /sys/kernel/sunrpc/xprt-switches/*/xprt-*-rdma/dstaddr |
		grep -c "^$server")" = $connections
	step "unmounted" unmount
}
server_many() { :; }

# The server takes the file into its own hands, so the client has to give it back.
client_recall() {
	must "a mount" mount_it 4.2
	meet 2		# the server can call
	(until [ -e "$TMPDIR/stop" ]; do cat "$dir/recalled" >/dev/null; sleep 0.1; done) &
	meet 2		# the server writes
	meet 2
	: >"$TMPDIR/stop"
	wait
	step "what the server has written is seen" until_true 30 grep -q two "$dir/recalled"
	step "unmounted" unmount
}
returned() { sed -n 's/^proc4ops //p' /proc/net/rpc/nfsd | cut -d' ' -f10; }
more_returned() { [ "$(returned)" -gt "$kd_before" ]; }
server_recall() {
	echo one >"$TMPDIR/export/recalled"
	meet 1
	step "the server can call" until_true 20 \
		grep -q "callback state: UP" /proc/fs/nfsd/clients/*/info
	step "the client has a delegation" until_true 30 \
		grep -q "type: deleg" /proc/fs/nfsd/clients/*/states
	kd_before=$(returned)
	meet 1
	step "the server changes the file" sh -c "echo two >$TMPDIR/export/recalled"
	step "the client has returned the delegation" until_true 30 more_returned
	meet 1
}

# Mounts from the hostile server fail one way or the other, and those from the good one do not.
try_hostile() {
	for kd_v in 4.2 4.0; do
		! timeout 20 mount.nfs $server:/ "$dir" -o \
			"vers=$kd_v,proto=rdma,port=20050,soft,timeo=20,retrans=1,retry=0" \
			2>>"$log" || umount "$dir"
	done
}
client_hostile() {
	meet 2
	for kd_i in 1 2 3 4 5 6; do
		try_hostile
	done
	meet 2
	meet 2		# it hangs up, and answers early
	try_hostile
	meet 2		# it goes
	must "a mount from a good server" mount_it 4.2
	must "a directory" fresh
	step "files are right" check fsx
	step "unmounted" unmount
}
server_hostile() {
	must "kdapl.ko loads" insmod "$KO/kdapl.ko"
	must "the hostile server loads" insmod "$KO/kdnfsfuzz.ko" "ia=${p}0-1" port=20050
	kd_fuzz=/sys/module/kdnfsfuzz/parameters
	meet 1
	meet 1
	step "it has sent every fault" test "$(cat $kd_fuzz/faults)" -ge 20
	echo 1 >$kd_fuzz/early
	meet 1
	meet 1
	tell "calls at which the server hung up: $(cat $kd_fuzz/requests)"
	step "it has hung up at calls, and answered them early" test "$(cat $kd_fuzz/requests)" -ge 3
	step "no answer was taken for a call that was not sent" test "$(cat $kd_fuzz/beyond)" -eq 0
	step "it unloads" rmmod kdnfsfuzz
	step "kdapl unloads" rmmod kdapl
}

# For so many seconds: a load that knows its bytes, processes that are killed while they read and
# write by a soft mount, mounts that come and go, all under faults of every kind, while the server
# restarts.
soft_mount() {	# DIRECTORY VERSION OPTIONS
	mkdir -p "$1"
	timeout -s KILL 60 mount.nfs $server:/ "$1" \
		-o "vers=$2,proto=rdma,port=20049,nosharecache,soft,timeo=20,retrans=1,retry=0,$3"
}
going() { [ ! -e "$TMPDIR/stop" ]; }
killing() {
	while going; do
		for kd_i in 1 2 3 4 5 6 7; do
			timeout -s KILL "0.$kd_i" dd if="$1/large" of=/dev/null bs=1M iflag=direct
			timeout -s KILL "0.$kd_i" dd if=/dev/zero of="$1/scratch.$kd_i" bs=300k \
				count=16 oflag=direct
			timeout -s KILL "0.$kd_i" sh -c "ls -l $1 && rm -f $1/scratch.$kd_i"
		done
	done >/dev/null 2>&1
}
# A mount whose program was killed may be there all the same.
unmount_all() {
	while grep -q " $1 nfs4 " /proc/mounts; do
		timeout -s KILL 60 umount -f "$1" || umount -l "$1"
	done
}
mounting() {
	while going; do
		for kd_i in 4.2 4.0 4.1; do
			soft_mount "$1" $kd_i nconnect=4 && timeout -s KILL 5 cat "$1/large" >/dev/null
			unmount_all "$1"
		done
	done >/dev/null 2>&1
}
chaos() {	# SECONDS
	kd_i=0
	kd_until=$(($(date +%s) + $1))
	while [ "$(date +%s)" -lt $kd_until ]; do
		kd_i=$((kd_i + 1))
		case $((kd_i % 6)) in
		0) cable drop 100 && sleep 1 && cable clean ;;
		1) end_all ;;
		2) rdma link delete "${p}0"; rdma link add "${p}0" type "$p" netdev eth0 ;;
		3) cable drop 100 && sleep 5 && cable clean ;;
		4) echo 3 >/proc/sys/vm/drop_caches ;;
		5) cable drop 5 && sleep 1 && cable clean ;;
		esac || return
		sleep 0.$((kd_i % 10))
	done
}
idle() {	# nobody waits for the server
	! grep -qs '^State:[[:space:]]D' /proc/[0-9]*/status
}
client_chaos() {
	must "a mount" mount_it 4.2
	must "load" load
	head -c 8M /dev/urandom >"$dir/large"
	must "a soft mount" soft_mount "$TMPDIR/soft" 4.2 nconnect=1
	meet 2		# the server begins to restart
	killing "$TMPDIR/soft" &
	mounting "$TMPDIR/more" &
	step "$1 s of faults" chaos "$1"
	cable clean
	meet 2		# it is there for good
	step "the load goes on" goes_on 300
	step "every byte was right" load_over
	step "nobody waits for ever" until_true 200 idle
	step "the soft mount goes" timeout 120 umount "$TMPDIR/soft"
	unmount_all "$TMPDIR/more"
	step "files are right" check fsx direct
	rm -f "$dir/large"
	step "unmounted" unmount
	step "every transport ends" until_true 200 unused
}
server_chaos() {
	# Else nobody could open a file for 90 s each time.
	rpc.nfsd 0
	echo 10 >/proc/fs/nfsd/nfsv4leasetime
	echo 10 >/proc/fs/nfsd/nfsv4gracetime
	start_nfsd
	meet 1
	kd_until=$(($(date +%s) + $1))
	while [ "$(date +%s)" -lt $kd_until ]; do
		sleep 9		# the pace of the fault, and how long it lasts
		rpc.nfsd 0
		sleep 1
		must "the server starts again" start_nfsd
	done
	meet 1
}

# Each machine has a server of keys of its own, with the same keys.
realm() {
	kd_db=$TMPDIR/krb5
	mkdir -p "$kd_db" || return
	cat >/etc/krb5.conf <<-END
		[libdefaults]
		default_realm = KD
		dns_canonicalize_hostname = false
		rdns = false
		[realms]
		KD = {
			kdc = 127.0.0.1
		}
		[domain_realm]
		machine1 = KD
		machine2 = KD
		[dbmodules]
		db_module_dir = $lib/krb5/plugins/kdb
	END
	cat >"$kd_db/kdc.conf" <<-END
		[kdcdefaults]
		kdc_listen = 127.0.0.1:88
		kdc_tcp_listen = ""
		[realms]
		KD = {
			database_name = $kd_db/db
			key_stash_file = $kd_db/stash
			acl_file = $kd_db/acl
		}
	END
	cat >/etc/idmapd.conf <<-END
		[General]
		Domain = kd
		Local-Realms = KD
		[Translation]
		Method = static
		GSS-Methods = static
		[Static]
		nfs/machine2@KD = root
	END
	export KRB5_KDC_PROFILE="$kd_db/kdc.conf"
	kdb5_util create -r KD -s -W -P secret &&
		kadmin.local -r KD addprinc -pw one nfs/machine1 &&
		kadmin.local -r KD addprinc -pw two nfs/machine2 &&
		kadmin.local -r KD ktadd -norandkey -k /etc/krb5.keytab "nfs/machine$n" || return
	ip link set lo up
	mp rpcsec_gss_krb5
}
by_kerberos() {	# KIND
	grep -q " $dir nfs4 .*,sec=$1," /proc/mounts
}
client_krb5() {
	must "a realm" realm
	must "it serves keys" krb5kdc -r KD
	must "the client's daemon" rpc.gssd -M
	meet 2
	server=machine1
	for kd_sec in krb5 krb5i krb5p; do
		must "$kd_sec: a mount" mount_it 4.2 sec=$kd_sec
		step "$kd_sec: it is by Kerberos" by_kerberos $kd_sec
		step "$kd_sec: it is over RDMA" is_rdma
		must "$kd_sec: a directory" fresh
		step "$kd_sec: files are right" check lengths fsx direct locks
		# The kernel's own client cannot do so with krb5p either.
		[ $kd_sec = krb5p ] || step "$kd_sec: so are long links" check links
		step "$kd_sec: unmounted" unmount
	done
	server=192.0.2.1
}
server_krb5() {
	must "a realm" realm
	must "the server's daemon" rpc.svcgssd
	must "files for Kerberos" share sys:krb5:krb5i:krb5p
	meet 1
}

# A device in a namespace is one that only those inside can go over. (soft-iWARP opens its
# sockets in the first one.)
over_device() { grep -q " $1 .* CONNECTED " /sys/kernel/debug/kdapl/eps; }
in_netns() { nsenter --net=/run/netns/nfs "$@"; }
namespace() {
	ip netns add nfs && ip link add kdv0 type veth peer name eth0 netns nfs &&
		ip link set kdv0 master eth0 up && ip -n nfs addr add 192.0.2.3/24 dev eth0 &&
		ip -n nfs link set eth0 up && mkdir -p "$TMPDIR/netns"
}
client_netns() {
	must "a namespace" namespace
	step "without a device inside a mount fails" refused in_netns timeout 60 mount.nfs \
		$server:/ "$TMPDIR/netns" -o vers=4.2,proto=rdma,port=20049,soft,timeo=30,retrans=1,retry=0
	step "and the log says why" logs "$server:20049: cannot connect: -\(19\|ENODEV\)"
	must "a device inside" in_netns rdma link add "${p}9" type "$p" netdev eth0
	must "a mount inside" in_netns timeout 120 mount.nfs $server:/ "$TMPDIR/netns" \
		-o vers=4.2,proto=rdma,port=20049
	dir=$TMPDIR/netns
	must "a directory" fresh
	step "the client inside has address 192.0.2.3" grep -q 'clientaddr=192.0.2.3' /proc/mounts
	step "it is over the device inside" over_device "${p}9-1"
	step "files are right" check lengths fsx
	step "the device of the namespace goes" rdma link delete "${p}9"
	must "and comes back" in_netns rdma link add "${p}9" type "$p" netdev eth0
	step "files are right" check fsx
	step "unmounted" unmount
	dir=$TMPDIR/mnt
	rdma link delete "${p}9"
	ip netns delete nfs
}
server_netns() { :; }

# Calls that write have been sent from this mount.
writes_at() { sed -n "\\# mounted on $1 #,/^$/p" /proc/self/mountstats | grep -q 'WRITE: [1-9]'; }
# It is gone, its mount as well, while calls wait for the server.
client_gone() {
	for kd_i in 1 2; do
		must "a namespace" namespace
		must "a device inside" in_netns rdma link add "${p}9" type "$p" netdev eth0
		must "a mount inside" in_netns timeout 120 mount.nfs $server:/ "$TMPDIR/netns" \
			-o vers=4.2,proto=rdma,port=20049,nconnect=2,nosharecache
		dd if=/dev/zero of="$TMPDIR/netns/large" bs=1M count=500 oflag=direct 2>/dev/null &
		must "it writes" until_true 100 writes_at "$TMPDIR/netns"
		cable drop 100
		sleep 0.$kd_i	# the fault, at two moments
		kill -9 $!
		umount -l "$TMPDIR/netns"
		ip netns delete nfs
		sleep 2		# it lasts so long
		cable clean
		wait $! || :
		step "the transports of a namespace that is gone end" until_true 200 unused
		rdma link delete "${p}9" 2>/dev/null || :
		ip link delete kdv0 2>/dev/null || :
	done
}
server_gone() { :; }

# What it says matters only when it fails.
quietly() {
	timeout 300 "$@" >"$log.last" 2>&1 || { tail -30 "$log.last"; return 1; }
}
fio_verify() {
	quietly fio --name=v --directory="$dir/tree" --rw=randrw --bsrange=1k-300k --size=12m \
		--verify=crc32c --verify_fatal=1 --numjobs=3 --ioengine=psync --direct="$1" \
		--group_reporting --minimal
}
stress() {	# VERSION
	quietly stress-ng --temp-path "$dir/tree" --timeout 20 --verify --no-rand-seed --quiet \
		--chmod 1 --dentry 1 --dentries 200 --dir 1 --dir-dirs 200 --fallocate 1 \
		--fallocate-bytes 8m --filename 1 --flock 1 --fstat 1 --getdent 1 --lease 1 --link 1 \
		--lockf 1 --mknod 1 --mmap 1 --mmap-bytes 4m --mmap-file --open 1 --readahead 1 \
		--readahead-bytes 8m --rename 1 --seek 1 --seek-size 8m --symlink 1 --sync-file 1 \
		--sync-file-bytes 8m --touch 1 --utime 1 $([ "$1" = 3 ] || echo --xattr 1)
}
benchmark() { quietly dbench -D "$dir/tree" -c /usr/share/dbench/client.txt -t 20 4; }
acls() {
	: >"$dir/tree/acl"
	if [ "$1" = 3 ]; then
		setfacl -m u:1234:r,g:77:rw "$dir/tree/acl" &&
			getfacl -c "$dir/tree/acl" 2>/dev/null | grep -qx 'user:1234:r--'
	else
		getfattr --only-values -n system.nfs4_acl "$dir/tree/acl" | grep -q 'OWNER@'
	fi
}
client_suite() {
	must "NFS $1: a mount" mount_it "$1"
	must "NFS $1: a directory" fresh
	step "NFS $1: access lists" acls "$1"
	step "NFS $1: fio verifies what it writes" fio_verify 0
	step "NFS $1: and with O_DIRECT" fio_verify 1
	step "NFS $1: stress-ng" stress "$1"
	step "NFS $1: dbench" benchmark
	step "NFS $1: files are right" check --ops 2000 fsx
	step "NFS $1: unmounted" unmount
}
server_suite() { :; }

# 60 MiB of 256 are dirty while there is no cable. With more, whoever wants memory, this script
# among them, may wait for the server: NFS writes what a process reclaims.
big_right() { megabytes 60 | cmp - "$dir/tree/big"; }
mostly_dirty() {
	[ "$(awk '/^(Dirty|Writeback):/ { n += $2 } END { print n }' /proc/meminfo)" -gt 40960 ]
}
client_dirty() {
	must "a mount" mount_it 4.2
	must "a directory" fresh
	head -c 1M /dev/urandom >"$TMPDIR/pattern"
	echo 70 >/proc/sys/vm/dirty_ratio
	echo 60 >/proc/sys/vm/dirty_background_ratio
	# The file is opened while that is possible, and by one process: whoever closes it waits.
	mkfifo "$TMPDIR/fifo"
	dd if="$TMPDIR/fifo" of="$dir/tree/big" bs=1M iflag=fullblock &
	kd_writer=$!
	exec 3>"$TMPDIR/fifo"
	until_true 30 test -e "$dir/tree/big"
	meet 2
	must "the cable is cut" cable cut
	kd_begun=$(date +%s)
	{ megabytes 60 >&3; } &
	exec 3>&-
	step "much of the memory is dirty" until_true 60 mostly_dirty
	until_true 120 a_minute
	must "the cable is mended" cable mend
	step "what was dirty is written" wait $kd_writer
	step "all of it" timeout 300 sync
	echo 3 >/proc/sys/vm/drop_caches
	step "and right" big_right
	step "unmounted" unmount
}
a_minute() { [ "$(date +%s)" -ge $((kd_begun + 60)) ]; }
server_dirty() { server_cable; }

client_load() {
	must "a mount" mount_it 4.2
	step "kdat_xprtrdma does not unload under it" refused rmmod kdat_xprtrdma
	step "unmounted" unmount
	until_true 60 unused
	step "kdat_xprtrdma unloads" rmmod kdat_xprtrdma
	must "rpcrdma loads" mp rpcrdma
	step "kdat_xprtrdma is refused beside it" refused insmod "$KO/kdat_xprtrdma.ko"
	step "and says why" logs "kdat_xprtrdma: proto=rdma already belongs to another module"
	must "rpcrdma unloads" modprobe ${MODROOT:+-d "$MODROOT"} -r rpcrdma
	must "kdat_xprtrdma loads" insmod "$KO/kdat_xprtrdma.ko"
}
server_load() { :; }

begin
while [ $# -gt 1 ]; do
	part=$1 arg=''
	shift
	case ${1:-} in
	[0-9]*) arg=$1; shift ;;
	esac
	if [ "$n" = 1 ]; then server_$part $arg; else client_$part $arg; fi
	meet "$n"
done
if [ "$n" = 2 ]; then
	step "every transport ends" until_true 200 unused
	step "nothing is left" until_true 30 none
	step "kdat_xprtrdma unloads" rmmod kdat_xprtrdma
	step "kdapl unloads" rmmod kdapl
else
	rpc.nfsd 0
	[ $failed = 0 ] || cat "$log"
fi
meet "$n"
finish
