# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# hca.sh PERSONALITY SCRIPT ARGUMENTS...: a guest script over kdhca.ko of tests/hca, with that
# personality; NAME+SETTING=NUMBER,... changes it.
# shellcheck shell=sh disable=SC1090,SC2154,SC2034
KDHCA=$1 kd_script=$2
shift 2
. "$TOP/tests/guest/$kd_script"
