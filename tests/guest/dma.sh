# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# dma.sh kdhca net|dev: data through bounce buffers (swiotlb=force) or an IOMMU, on a stock
# kernel: what arrives is what was sent, byte by byte. By hca.sh only.
# shellcheck shell=sh disable=SC2154
p=$1
case $2 in
net) two_namespaces "$p"; a=${p}0-1 b=${p}1-1 ;;
dev) two_devices "$p"; a=${p}0-1 b=${p}1-1 ;;
esac
dmesg | grep -iE 'software IO TLB|DMAR: IOMMU|DMAR: Intel' | tail -3
must "a device that does DMA is there" [ -e /sys/bus/pci/drivers/kdhca/*:* ]
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
step "kdstorm.ko: 20,000 events, and the right message in each buffer" \
	insmod "$KO/kdstorm.ko" ia_a="$a" ia_b="$b" events=20000 connections=10
dmesg | sed -n 's/.*kdstorm: //p' | grep -e '^PASS' -e '^FAIL' -e '^FAULT' -e '^check'
step "EVD-UP-11: the right message in the right buffer" logged "kdstorm: check data ok"
! lsmod | grep -q '^kdstorm ' || rmmod kdstorm
step "kdapl.ko unloads" rmmod kdapl
step "the devices go" no_devices "$p"
step "kdhca.ko unloads" rmmod kdhca
finish
