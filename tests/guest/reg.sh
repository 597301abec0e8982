# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# reg.sh rxe|siw|null BLOCKS CHAINS PAGES...: fast registrations, each with a Send that
# carries the key and an invalidation, with kDAPL and with the verbs alone, in turn.
# shellcheck shell=sh disable=SC2154
p=$1 blocks=$2 chains=$3
shift 3
if [ "$p" = null ]; then
	null_dev
	ia=kdnull0-1 blind=1 several=''
else
	loopback_dev "$p"
	ia=${p}0-1 blind=0 several=8
fi
reg() { echo "$*" >/sys/kernel/debug/kdreg/do; }

must "kdapl.ko loads" insmod "$KO/kdapl.ko"
empty=$(resources)
must "kdreg.ko loads" insmod "$KO/kdreg.ko" ia="$ia" blind=$blind
must "connections are open" reg open
for pages in "$@"; do
	for slots in 1 $several; do
		step "FMR-02,FMR-04: $pages pages, $slots at a time: fmr, Send with the key, invalidate" \
			reg bench "$blocks" "$chains" "$pages" "$slots" local
		step "SINV-01,SINV-02: the same, and the peer's answer invalidates" \
			reg bench "$blocks" "$chains" "$pages" "$slots" peer
	done
done
dmesg | sed -n 's/.*kdreg: bench/tell: bench/p'
step "all is freed" reg close
step "kdreg.ko unloads" timeout 100 rmmod kdreg
step "nothing is left" until_true 60 all_gone
step "kdapl.ko unloads" rmmod kdapl
finish
