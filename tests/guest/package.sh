# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# package.sh DIR [dkms]: the modules that came of the installed packages (tests/package), in a
# machine with the kernel they were built for: kdapl.ko and the examples as DKMS has installed
# them, and hello.ko, built against kdapl-dev; then modprobe, with what make install has put in
# DIR/../install (not with 'dkms').
# shellcheck shell=sh disable=SC2154
m=$1

tell "kernel $(uname -r)"
must "soft-RoCE device" loopback_dev rxe
must "the kdapl.ko that DKMS has built loads" insmod "$m/kdapl.ko"
must "the kdapl_dat12.ko that DKMS has built loads" insmod "$m/kdapl_dat12.ko"
step "kdping.ko of DKMS loads, serves and calls itself" insmod "$m/kdping.ko" listen=any connect=192.0.2.1
step "kdrpc_server.ko of DKMS loads" insmod "$m/kdrpc_server.ko"
step "kdrpc.ko of DKMS calls it" insmod "$m/kdrpc.ko" connect=192.0.2.1
mp configfs
step "kdblk_target.ko of DKMS loads" insmod "$m/kdblk_target.ko"
step "kdblk.ko of DKMS loads" insmod "$m/kdblk.ko"
mp libiscsi && mp sunrpc
step "kdat_iser.ko of DKMS loads" insmod "$m/kdat_iser.ko"
step "kdat_xprtrdma.ko of DKMS loads" insmod "$m/kdat_xprtrdma.ko"
step "a module built against kdapl-dev loads" insmod "$m/hello.ko" to=192.0.2.1
step "it opens the Interface Adapter that leads there" logs 'hello: rxe0-1 leads to 192\.0\.2\.1'
step "kdapl.ko does not unload while it is there" refused rmmod kdapl
step "all of them unload" \
	rmmod hello kdping kdrpc kdrpc_server kdblk kdblk_target kdat_iser kdat_xprtrdma kdapl_dat12 kdapl

kd_modules=/lib/modules/$(uname -r)
# Of the kernel's own modules only those that matter, in memory: depmod reads all there are.
few_modules() {
	kd_few=$TMPDIR/modules
	mkdir "$kd_few" && cp "$kd_modules"/modules.builtin* "$kd_modules/modules.order" "$kd_few/" &&
		for kd_i in ib_iser rpcrdma configfs; do
			modprobe --show-depends $kd_i
		done | sed -n "s|^insmod $kd_modules/||p" | while read -r kd_i; do
			mkdir -p "$kd_few/${kd_i%/*}" && cp "$kd_modules/$kd_i" "$kd_few/$kd_i"
		done && mount --bind "$kd_few" "$kd_modules"
}
installed() {
	few_modules && cp -r "$m/../install$kd_modules"/*/ "$kd_modules/" && depmod &&
		modinfo -n kdapl | grep "^$kd_modules/.*/kdapl.ko"
}
lsmod_has() { lsmod | grep -Eq "^($1) "; }
if [ "${2:-}" != dkms ]; then
	must "make install: depmod knows the modules" installed
	step "modprobe kdblk loads kdapl.ko and what that needs" modprobe kdblk
	step "so does modprobe kdblk_target" modprobe kdblk_target
	step "modprobe kdapl_dat12" modprobe kdapl_dat12
	step "modprobe kdping serves" modprobe kdping
	cp "$TOP/ulp_example/iser/modprobe.conf.example" /etc/modprobe.d/iser.conf
	cp "$TOP/ulp_example/nfsrdma/modprobe.conf.example" /etc/modprobe.d/nfs.conf
	step "who asks for ib_iser gets kdat_iser" modprobe ib_iser
	step "who asks for rpcrdma6 gets kdat_xprtrdma" modprobe rpcrdma6
	step "the kernel's are not there" refused lsmod_has 'ib_iser|rpcrdma'
	step "ours are" lsmod_has kdat_xprtrdma
	step "modprobe -r unloads them, and kdapl.ko with the last" \
		modprobe -r kdping kdblk kdblk_target kdat_iser kdat_xprtrdma kdapl_dat12
	step "kdapl.ko is gone" refused test -e /sys/module/kdapl
fi
no_devices rxe
finish
