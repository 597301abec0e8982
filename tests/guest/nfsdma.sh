# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# nfsdma.sh kdhca SECONDS PROGRAMS: NFS over a device that does DMA, with bounce buffers
# (swiotlb=force): what the server has written is in the memory of a call when that has ended, and
# nothing comes later, while connections are ended all the time. The server's device has no bounce
# buffers, since that server, from 6.3 or so on, takes what it has read into one before it is copied
# (svc_rdma_recv_ctxt_put() does that), with any client. By hca.sh only.
# shellcheck shell=sh disable=SC2086,SC2154
n=1 p=$1 seconds=$2
. "$TOP/tests/guest/nfs-lib.sh"
used=/sys/kernel/debug/swiotlb/io_tlb_used
in_use() { [ "$(cat $used)" -gt "$before" ]; }
order() { echo "$*" >"/sys/kernel/debug/kdhca/${p}0/do"; }
settings() { echo "$*" >"/sys/kernel/debug/kdhca/${p}0/settings"; }
only() { echo "$1" >/sys/module/kdnfskeys/parameters/only; }
free_kb() { sed -n 's/^MemFree: *\([0-9]*\) kB/\1/p' /proc/meminfo; }
bounced() { logged 'kdhca0: the device may need bounce buffers'; }
# Those of 9p, whose files this machine sees, come and go.
not_in_use() { [ "$(cat $used)" -lt $((before + 256)) ]; }
# The client's queue pair fails, if it has one.
qp_fails() {
	kd_qpn=$("$TOP/tools/kdapl" conn state=CONNECTED consumer=kdat_xprtrdma |
		awk 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == "QPN" || $i == "qpn") c = i }
		     NR == 2 { print $c }')
	[ -z "$kd_qpn" ] || order qp-fatal "$kd_qpn"
}

end_some() {
	case $(($(date +%N | sed 's/^0*//') % 4)) in
	0) qp_fails ;;
	*) end_all ;;
	esac
}

# The server writes, and hangs up: act_hang_up() of kdnfskeys. Freeing what it has written takes
# long enough for the call to be ended meanwhile, and a time at random, so that nobody is always
# the last who frees.
slow_ends() {
	only 9 && settings flush_ms=1000 || return
	kd_status=0
	calls "$@" || kd_status=$?
	only -1 && settings flush_ms=0 && return $kd_status
}

one_machine "$KDHCA+dma=0"
must "bounce buffers are there" [ "$(cat ${used%used}nslabs)" -gt 0 ]
before=$(cat $used)
kd_free=$(free_kb)
must "a mount" mount_it 4.2
tell "a mount has taken $((kd_free - $(free_kb))) kB"
step "of the memory it has not taken much" [ $((kd_free - $(free_kb))) -lt 100000 ]
step "it is over RDMA" is_rdma
step "the device needs bounce buffers" bounced
step "they are used ($before before)" in_use
must "a directory" fresh
step "files are right" check --ops 100 lengths fsx direct
step "data was read by the server (Read chunks)" some 11
step "data was written by it (Write chunks)" some 12
step "whole replies were written by it (Reply chunks)" some 13
step "files are right while connections end" while_ending check --ops 1000 fsx direct
step "no byte comes or goes after its call" while_ending check --seconds "$seconds" --pause 0.6 aborted
step "connections have come again" some 3
tell "columns: $(sed -n 's/.*xprt:\trdma //p' /proc/self/mountstats | head -1)"
step "unmounted" unmount
until_true 60 unused
must "a server that uses keys when it must not" insmod "$KO/kdnfskeys.ko" "ia=${p}1-1" port=20051
step "calls time out, and nobody reaches their memory then" calls seconds=20 timeout=1000
step "calls are ended, and nobody does" calls seed=2 seconds=20 kill_ms=100
step "they are ended while memory is freed, and nobody does" slow_ends seed=4 seconds=40 kill_ms=200
step "connections end, and nobody does" while_ending calls seed=3 seconds=20
tell "calls: $(cat /sys/module/kdnfskeys/parameters/acts)"
step "the server has read nothing after a call" grep -qx 0 /sys/module/kdnfskeys/parameters/gone
step "it unloads" rmmod kdnfskeys
dmesg | sed -n 's/.*kdnfscall: //p' | grep -e '^PASS' -e '^FA' || :
step "every transport ends" until_true 60 unused
step "nothing is left" until_true 30 none
step "kdat_xprtrdma unloads" rmmod kdat_xprtrdma
rpc.nfsd 0
step "no bounce buffer is left in use" until_true 30 not_in_use
step "kdnfsboth unloads" rmmod kdnfsboth
step "kdapl unloads" rmmod kdapl
[ $failed = 0 ] || cat "$log"
finish
