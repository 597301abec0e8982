# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# Shared by the tools: where things are, how to complain, how to get packages.
# shellcheck shell=bash

set -euo pipefail

TOP=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
CACHE=${XDG_CACHE_HOME:-$HOME/.cache}/kdapl
# Build directories, guest logs; -- never inside the source directories.
OUT=${KDAPL_OUT:-$TOP/build}
ME=$(basename "$0")
export LC_ALL=C
unset MAKEFLAGS MFLAGS		# each make here has its own -j

. "$TOP/tools/help.sh"

say()  { printf '%s: %s\n' "$ME" "$*" >&2; }
die()  { printf '%s: %s\n' "$ME" "$*" >&2; exit 2; }

mkdir -p "$CACHE" 2>/dev/null ||
	die "cannot make $CACHE: set XDG_CACHE_HOME to a directory with room for 15 GB"

# with_lock NAME COMMAND...: one at a time per name, across processes.
with_lock() {
	local lock=$CACHE/locks/${1//\//_} fd rc=0
	shift
	mkdir -p "$CACHE/locks"
	exec {fd}>"$lock"
	flock "$fd"
	"$@" {fd}>&- || rc=$?
	exec {fd}>&-
	return $rc
}

# drop_others DIR: remove the directories that differ from DIR by their key at the end, unless
# something, another checkout perhaps, has used them within a fortnight. 'partial' is a kernel of
# 'make check'; 7.2-storage-kasan is another kernel than 7.2-storage.
drop_others() {
	local d
	for d in "${1%-*}"-*; do
		[ ! -d "$d" ] || [ "$d" = "$1" ] || [ "${d%-*}" != "${1%-*}" ] ||
			[ -n "$(find "$d" -maxdepth 1 \( -name complete -o -name partial \) -mtime -14)" ] ||
			rm -rf "$d"
	done
}

# The file of a finished system of tools/suite, which makes it anew when that script changes.
suite_mark() { echo "complete-$(cksum <"$TOP/tools/suite" | cut -d' ' -f1)"; }

# need_debian [ubuntu]: Debian 12 or 13; with "ubuntu" 24.04 of that will do as well. Kernels and
# sources of every suite are taken from Debian's archive.
need_debian() {
	local ID='' VERSION_ID='' PRETTY_NAME='an unknown system'
	# shellcheck disable=SC1091
	[ -r /etc/os-release ] && . /etc/os-release
	case $ID-$VERSION_ID in
	debian-12 | debian-13) return 0 ;;
	ubuntu-24.04) [ "${1:-}" != ubuntu ] || return 0 ;;
	esac
	die "this is $PRETTY_NAME; the test rigs are made for Debian 12 and 13 (amd64)," \
	    "run this in a machine, container or chroot with one of these"
}

as_root() {
	if [ "$(id -u)" = 0 ]; then
		"$@"
	elif command -v sudo >/dev/null && sudo -n true 2>/dev/null; then
		sudo -n "$@"
	else
		return 77
	fi
}

# need_packages PACKAGE...: install what is missing, ask nothing. Jobs that run side by side take
# turns: apt waits for the lock of dpkg, not for that of its lists.
need_packages() {
	[ -z "$(missing_packages "$@")" ] || with_lock apt install_packages "$@"
}

missing_packages() {
	local p
	for p; do
		dpkg-query -W -f '${Status}\n' "$p" 2>/dev/null |
			grep -q '^install ok installed' || echo "$p"
	done
}

install_packages() {
	local missing rc=0
	mapfile -t missing < <(missing_packages "$@")
	[ ${#missing[@]} -eq 0 ] && return 0
	command -v apt-get >/dev/null ||
		die "this needs what Debian has in the packages ${missing[*]}: install the like of these"
	say "installing with apt: ${missing[*]}"
	mkdir -p "$CACHE"
	# shellcheck disable=SC2016
	as_root sh -c '
		export DEBIAN_FRONTEND=noninteractive
		o="-o DPkg::Lock::Timeout=600 -o Acquire::Retries=3 -qq"
		n=0	# the lock of the lists, which the system may hold, is not waited for
		until apt-get $o update || [ $n = 6 ]; do n=$((n + 1)); sleep 10; done
		apt-get $o install -y --no-install-recommends "$@"
	' sh "${missing[@]}" >"$CACHE/apt-install.log" 2>&1 || rc=$?
	case $rc in
	0)  ;;
	77) die "these packages are missing and installing them needs root: as root run" \
		"'apt-get install ${missing[*]}', or start this with sudo" ;;
	*)  tail -5 "$CACHE/apt-install.log" >&2
	    die "apt could not install: ${missing[*]}; is the network up?" \
		"(log: $CACHE/apt-install.log)" ;;
	esac
}
