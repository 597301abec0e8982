# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# signed.sh enrol CERTIFICATE | load DIR: have the firmware trust a certificate; with
# module.sig_enforce=1 afterwards, load modules that are signed with its key (DIR/ours), with
# another one (DIR/other), and not at all ($KO).
# shellcheck shell=sh disable=SC2154

case $1 in
enrol)
	mp efivarfs || :
	must "UEFI variables" mount -t efivarfs efivarfs /sys/firmware/efi/efivars
	must "the certificate is enrolled" python3 "$TOP/tests/guest/enrol.py" "$2"
	;;
load)
	says() { # WORDS MODULE: is refused with them
		insmod "$2" 2>"$TMPDIR/said" && return 1
		tell "insmod: $(cat "$TMPDIR/said")"
		grep -q "$1" "$TMPDIR/said"
	}
	step "the certificate is there" logs "Loaded X.509 cert.* kernel module signing key"
	step "signatures are wanted" grep -qx Y /sys/module/module/parameters/sig_enforce
	mp rdma_cm
	step "unsigned: refused" says "Key was rejected by service" "$KO/kdapl.ko"
	step "the log says why" logged "oading of unsigned module is rejected"
	step "signed with another key: refused" \
		says "Key was rejected by service" "$2/other/kdapl.ko"
	step "the log says why" logged "oading of module with unavailable key is rejected"
	strip -g "$2/ours/kdapl.ko" -o "$TMPDIR/kdapl.ko"
	step "signed, and stripped after that: refused" \
		says "Key was rejected by service" "$TMPDIR/kdapl.ko"
	step "which takes the signature away" until_true 1 eval \
		'[ "$(dmesg | grep -c "oading of unsigned module is rejected")" = 2 ]'
	cp "$2/ours/kdapl.ko" "$TMPDIR/kdapl.ko"
	printf x | dd of="$TMPDIR/kdapl.ko" bs=1 seek=9 conv=notrunc 2>/dev/null
	step "signed, and another byte in it: refused" \
		says "Key was rejected by service" "$TMPDIR/kdapl.ko"
	step "signed: loads" insmod "$2/ours/kdapl.ko"
	step "and is none of the unsigned" refused grep -q E /sys/module/kdapl/taint
	step "unloads" rmmod kdapl
	dmesg | grep -e 'X.509' -e rejected | sed 's/^/tell: /'
	;;
esac
finish
