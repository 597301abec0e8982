# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# old.sh rxe|siw: a consumer of DAT 1.2, alone and with one of 2.0.
# shellcheck shell=sh disable=SC2154
p=$1

held() {
	insmod "$KO/kdold.ko" test=events ia="${p}0-1" address=192.0.2.1 || return
	refused rmmod kdapl_dat12
	kd_held=$?
	rmmod kdold && return $kd_held
}
once() { insmod "$KO/kdold.ko" test="$1" ia="${p}0-1" address=192.0.2.1 && rmmod kdold; }

must "a device" loopback_dev "$p"
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "kdapl_dat12.ko loads" insmod "$KO/kdapl_dat12.ko"
step "C-12: 1.0 to 1.2 open, other versions do not; list and query say 1.2" once version
step "C-11: LMRs by the members of 1.2; arguments are counted as in 1.2" once memory
step "C-03: segments of 4 GiB and more are refused by dat_lmr_sync_rdma_read()" once memory
step "C-01,C-04: masks and sizes of Endpoints, no sizes beyond 32 bits" once masks
step "C-06,C-13: software events of 1.2, by upcall and by dat_evd_dequeue(); the third policy by dat_evd_modify_upcall() of three arguments" once events
step "C-05: each upcall has the object the EVD was given, also after the next one; EVDs freed and abandoned by the hundred" once upcalls
step "kdapl_dat12.ko does not unload while a consumer is there" held
step "C-05,C-09: requests, rejected without a word and accepted; completions with 64-bit lengths" once accept
must "a consumer of 2.0 serves" insmod "$KO/kdping.ko" listen=192.0.2.1
step "C-02,C-03,C-05,C-10: a client of 1.2 and a server of 2.0: Sends, RDMA, a window by its context; posts with too many segments or too long ones are refused" once ping
step "the server has served" logs "kdping: SERVED"
step "kdping.ko unloads" rmmod kdping
step "kdapl_dat12.ko unloads" rmmod kdapl_dat12
step "kdapl.ko unloads" rmmod kdapl
finish
