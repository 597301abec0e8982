# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# nfsbench.sh N rxe|siw ROUNDS SECONDS PROGRAMS: kdat_xprtrdma beside the kernel's own client over
# RDMA, with the same server, files, cable and boot, in turns: there is one transport of that kind
# at a time. Printed as by blkbench.sh.
# shellcheck shell=sh disable=SC2154
n=$1 p=$2 rounds=$3 seconds=$4
. "$TOP/tests/guest/nfs-lib.sh"

gone() {	# MODULE
	case $1 in
	rpcrdma) modprobe ${MODROOT:+-d "$MODROOT"} -r "$1" ;;
	*) rmmod "$1" ;;
	esac
}
turn() {	# MODULE
	case $1 in
	rpcrdma) mp rpcrdma ;;
	*) insmod "$KO/$1.ko" ;;
	esac && mount_it 4.2 && is_rdma &&
		timeout 300 python3 "$TOP/tests/blkbench" --turn "$TMPDIR/found" "$seconds" \
			"$1=$dir" && unmount && until_true 60 gone "$1"
}
begin
if [ "$n" = 2 ]; then
	rmmod kdat_xprtrdma
	step "$rounds rounds of $seconds s each, in turns" in_turns "$rounds" rpcrdma kdat_xprtrdma
	step "what they have found" python3 "$TOP/tests/blkbench" --tell "$TMPDIR/found" "$seconds" \
		- rpcrdma kdat_xprtrdma
else
	head -c 64M /dev/urandom >"$TMPDIR/export/file"
fi
meet "$n"
finish
