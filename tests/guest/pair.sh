# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# pair.sh N [SIZE COUNT [rxe|siw]]: one of two machines (1 and 2) joined by a cable; each
# of them serves and calls the other one once with kdping.
# shellcheck shell=sh disable=SC2154
n=$1 size=${2:-65536} count=${3:-16} p=${4:-rxe}
peer=192.0.2.$((3 - n))

tell "kernel $(uname -r) is up"
must "a network card and the device ${p}0" wire "$n" "$p"
tell "$(provider_name "$p") device ${p}0 on eth0, address 192.0.2.$n"
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
tell "kdapl.ko loaded: $(modinfo -F description "$KO/kdapl.ko")"

results() { dmesg | sed -n 's/.*\(kdping: [A-Z].*=.*\)/\1/p'; }

serve() {
	must "kdping serves" insmod "$KO/kdping.ko"
	tell "kdping serves on 192.0.2.$n port 4711"
	meet "$n"
	meet "$n"	# the client is done
	step "kdping unloads" rmmod kdping
}

call() {
	meet "$n"
	tell "kdping calls $peer: $count rounds of $size bytes, write, read back, compare"
	step "kdping moves data to $peer and back" \
		insmod "$KO/kdping.ko" connect="$peer" size="$size" count="$count"
	results | grep -e PASS -e FAIL | tail -1 | sed 's/^/tell: /'
	meet "$n"
	lsmod | grep -q '^kdping ' && step "kdping unloads" rmmod kdping
	:
}

if [ "$n" = 1 ]; then
	serve
	call
else
	call
	serve
fi
step "kdping refuses a bad parameter" refused insmod "$KO/kdping.ko" connect=nonsense
step "kdapl.ko unloads" rmmod kdapl
tell "modules unloaded"
meet "$n"
finish
