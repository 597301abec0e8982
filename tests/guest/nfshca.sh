# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# nfshca.sh kdhca dev|net PROGRAMS: NFS over a device of tests/hca, iWARP (dev) or RoCE. The server's
# device is a plain one. By hca.sh only.
# shellcheck shell=sh disable=SC2086,SC2154
n=1 p=$1
. "$TOP/tests/guest/nfs-lib.sh"

plain=plain
[ "$2" = net ] || plain=plain-iw
one_machine $plain
must "a mount" mount_it 4.2
step "it is over RDMA" is_rdma
must "a directory" fresh
step "files are right" check --ops 100 lengths fsx direct
step "data was read by the server (Read chunks)" some 11
step "data was written by it (Write chunks)" some 12
step "whole replies were written by it (Reply chunks)" some 13
step "files are right while connections end" while_ending check --ops 300 fsx direct
step "connections have come again" some 3
step "unmounted" unmount
step "every transport ends" until_true 60 unused
step "nothing is left" until_true 30 none
step "kdat_xprtrdma unloads" rmmod kdat_xprtrdma
rpc.nfsd 0
step "kdnfsboth unloads" rmmod kdnfsboth
step "kdapl unloads" rmmod kdapl
[ $failed = 0 ] || cat "$log"
finish
