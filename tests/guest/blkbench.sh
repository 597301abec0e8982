# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# blkbench.sh rxe|siw [ROUNDS [SECONDS [MTU [NSEC [ATTRIBUTES...]]]]]: kdblk beside the kernel's
# own nvme-rdma and nvmet-rdma: the same disk in memory, the same device, the same boot, in turns.
# MTU "-": as it is. NSEC: the disk completes in a hard interrupt, after so many nanoseconds, as
# real disks do; 0: inline, as none does. ATTRIBUTES: of one more kdblk, as "depth=64,queues=1".
# Printed: a table, with "tell:" before each line, and what was found in JSON, with "json:".
# shellcheck shell=sh disable=SC2154
p=$1 rounds=${2:-15} seconds=${3:-0.5} mtu=${4:--} nsec=${5:-0}
if [ $# -gt 5 ]; then shift 5; else set --; fi
. "$TOP/tests/guest/blk-lib.sh"
nvmet=/sys/kernel/config/nvmet subsystem=test.kdblk port=4421

nvme_export() {
	mp nvmet-rdma || return
	mkdir $nvmet/subsystems/$subsystem $nvmet/subsystems/$subsystem/namespaces/1 \
		$nvmet/ports/1 &&
		set_to 1 $nvmet/subsystems/$subsystem/attr_allow_any_host &&
		attributes $nvmet/subsystems/$subsystem/namespaces/1 device_path=/dev/nullb0 enable=1 &&
		attributes $nvmet/ports/1 addr_trtype=rdma addr_adrfam=ipv4 \
			addr_traddr=192.0.2.1 addr_trsvcid=$port &&
		ln -s $nvmet/subsystems/$subsystem $nvmet/ports/1/subsystems/$subsystem
}
nvme_connect() {	# one I/O queue per CPU, as kdblk has
	# Paths of its own would be counted elsewhere, and cost.
	mp nvme-core multipath=N && mp nvme-rdma || return
	echo "transport=rdma,traddr=192.0.2.1,trsvcid=$port,nqn=$subsystem,queue_size=128" \
		>/dev/nvme-fabrics && until_true 10 test -b /dev/nvme0n1
}
nvme_leave() {
	echo 1 >/sys/class/nvme/nvme0/delete_controller &&
		rm $nvmet/ports/1/subsystems/$subsystem &&
		rmdir $nvmet/ports/1 $nvmet/subsystems/$subsystem/namespaces/1 \
			$nvmet/subsystems/$subsystem
}

must "a device" loopback_dev "$p"
[ "$mtu" = - ] || must "frames of up to $mtu bytes" ip link set kd0 mtu "$mtu"
if [ "$nsec" = 0 ]; then
	must "a disk of 256 MiB in memory" written_disk 0 256
else
	must "a disk of 256 MiB in memory, with interrupts" written_disk 0 256 irqmode=2 \
		completion_nsec="$nsec"
fi
must "nvmet-rdma exports it" nvme_export
must "nvme-rdma has it" nvme_connect
disks="nullb0 nvme0n1"
if [ -e "$KO/kdblk.ko" ]; then
	must "kdapl.ko loads" insmod "$KO/kdapl.ko"
	must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
	must "kdblk.ko loads" insmod "$KO/kdblk.ko"
	must "the target exports it, too" export_disk d /dev/nullb0 allow_any=1
	must "the target listens" portal p "${p}0-1"
	must "kdblk has it" attach d "${p}0-1" 192.0.2.1 d
	disks="$disks $(cat $kd_initiator/d/device)"
	n=0
	for i; do
		n=$((n + 1))
		# shellcheck disable=SC2046
		must "another one has $i" attach d$n "${p}0-1" 192.0.2.1 d path=$n \
			$(echo "$i" | tr , ' ')
		disks="$disks $(cat $kd_initiator/d$n/device)"
	done
fi
# shellcheck disable=SC2086
step "$rounds rounds of $seconds s each, in turns" \
	python3 "$TOP/tests/blkbench" "$rounds" "$seconds" $disks
if [ -e "$KO/kdblk.ko" ]; then
	while [ "$n" -gt 0 ]; do
		step "the other one leaves" detach d$n
		n=$((n - 1))
	done
	step "kdblk leaves" detach d
	step "the target is empty" no_disk d
	step "and listens no more" no_portal p
	step "kdblk.ko unloads" rmmod kdblk
	step "kdblk_target.ko unloads" rmmod kdblk_target
	step "kdapl.ko unloads" rmmod kdapl
fi
step "nvme-rdma leaves" nvme_leave
finish
