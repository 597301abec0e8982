# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# For tools written in bash, with their arguments. -h: the comment at the head of the tool.
# shellcheck shell=bash

case ${1:-} in
-h | --help)
	sed -n '3{/^#$/d};3,${/^#/!q;s/^#\( \|$\)//p}' "$0"
	exit 0
	;;
esac
