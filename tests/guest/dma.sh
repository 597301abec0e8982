# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# dma.sh kdhca net|dev: data through bounce buffers or, with intel_iommu=on, through an IOMMU.
# What arrives is what was sent, byte by byte. By hca.sh only.
# shellcheck shell=sh disable=SC2154
p=$1
topology "$2" "$p"
pci=/sys/bus/pci/drivers/kdhca used=/sys/kernel/debug/swiotlb/io_tlb_used
two_pci() { [ "$(find $pci/ -name '*:*' | wc -l)" = 2 ]; }
# Each of the two has page tables of its own, which is what takes a wrong address to nowhere.
translated() { [ "$(grep -l ^DMA $pci/*:*/iommu_group/type | wc -l)" = 2 ]; }
apart() { [ "$(readlink -f $pci/*:*/iommu_group | sort -u | wc -l)" = 2 ]; }
in_use() { [ "$(cat $used)" -gt "$before" ]; }
must "two devices that do DMA are there" two_pci
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
case $(cat /proc/cmdline) in
*intel_iommu=on*)
	copies=0 sync=0
	# DMA_API_DEBUG has every driver synchronise, needed or not
	case $KERNEL in *-dma) sync=1 ;; esac
	must "an IOMMU translates for both" translated
	must "with a domain for each" apart
	;;
*)
	copies=1 sync=1 before=$(cat $used)
	must "bounce buffers are there" [ "$(cat ${used%used}nslabs)" -gt 0 ]
	;;
esac
dmesg -C
insmod "$KO/kdstorm.ko" ia_a="$a-1" ia_b="$b-1" events=20000 &
[ $copies = 0 ] || step "they are used (${before-} before)" until_true 60 in_use
step "kdstorm.ko: 20,000 events, and the right message in each buffer" wait $!
dmesg | sed -n 's/.*kdstorm: //p' | grep -e '^PASS' -e '^FAIL' -e '^FAULT' -e '^check'
step "EVD-UP-11: the right message in the right buffer" logged "kdstorm: check data ok"
! lsmod | grep -q '^kdstorm ' || rmmod kdstorm
step "each byte after each kind of transfer" insmod "$KO/kddma.ko" ia_a="$a-1" ia_b="$b-1"
dmesg | grep 'kddma: '
step "LMR-SYNC-05: lmr_sync_req is $sync" \
	logged "kddma: lmr_sync_req is $sync on $a-1, $sync on $b-1"
good() { logged "kddma: ok $1\$"; }
step "LMR-SYNC-06: Sends and Receives" good send
step "RDMAW-01,LMR-SYNC-06: RDMA Writes between odd addresses; nothing around them changes" good write
step "RDMAR-01,LMR-SYNC-06: RDMA Reads between odd addresses; nothing around them changes" good read
step "FLAG-02,LMR-SYNC-06: a suppressed Read is there with the completion of the next one" good suppressed
step "LMR-SYNC-02: a peer's Write, and the CPU's own around it" good sync-write
step "LMR-SYNC-01: a peer reads what the CPU has written" good sync-read
step "LMR-SYNC-07: a binding's end brings what the peer has written, and keeps what the CPU has" good fmr
step "LMR-SYNC-07: dat_lmr_free as well" good free
step "LMR-SYNC-07: memory that is only read stays as the CPU has left it" good free-source
! lsmod | grep -q '^kddma ' || rmmod kddma
step "kdapl.ko unloads" rmmod kdapl
step "the devices go" no_devices "$p"
step "kdhca.ko unloads" rmmod kdhca
finish
