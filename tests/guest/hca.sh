# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# hca.sh PERSONALITY SCRIPT ARGUMENTS...: a guest script over kdhca.ko of tests/hca, with that
# personality; NAME+SETTING=NUMBER,... changes it.
# shellcheck shell=sh disable=SC1090,SC2154,SC2034
KDHCA=$1 kd_script=$2
shift 2
# Before 7.2 a driver does not hear of "rdma link delete" before the consumers do: there the order
# "unplug" takes the device away, so that posts are late.
case $KERNEL in
7.2*) ;;
*)
	mkdir "$TMPDIR/bin"
	cat >"$TMPDIR/bin/rdma" <<-END
		#!/bin/sh
		do=/sys/kernel/debug/kdhca/\$3/do
		if [ "\$1 \$2" = "link delete" ] && [ -e "\$do" ] && echo unplug >"\$do"; then
			while $(command -v rdma) link show "\$3/1" >/dev/null 2>&1; do
				sleep 0.1
			done
		else
			exec $(command -v rdma) "\$@"
		fi
	END
	chmod +x "$TMPDIR/bin/rdma"
	PATH=$TMPDIR/bin:$PATH
	;;
esac
. "$TOP/tests/guest/$kd_script"
