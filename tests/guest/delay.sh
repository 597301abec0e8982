# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# delay.sh siw: the scenarios of data over a slow link, where what has been sent has not
# arrived yet.
# shellcheck shell=sh disable=SC2154
two_devices "$1"
tc qdisc replace dev lo root netem delay 3ms limit 10000
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
must "the scenarios load" insmod "$KO/kdtest.ko" ia_a="${1}0-1" ia_b="${1}1-1" suite=kdtest-data
step "they unload" rmmod kdtest
step "kdapl.ko unloads" rmmod kdapl
finish
