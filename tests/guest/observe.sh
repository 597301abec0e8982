# SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
# observe.sh rxe|siw: what debugfs, netlink and the tracepoints tell while a disk is used over
# kdblk, connections that are ended by hand, and that readers of all of it disturb nobody.
# shellcheck shell=sh disable=SC2154
p=$1
. "$TOP/tests/guest/blk-lib.sh"
dir=/sys/kernel/debug/kdapl
mountpoint -q /sys/kernel/debug || mount -t debugfs debugfs /sys/kernel/debug
tracefs

# shows FILE PATTERN [N]: N lines, or some, are so
shows() {
	kd_n=$(grep -cE "$2" "$dir/$1")
	[ "$kd_n" -ge "${3:-1}" ] && return
	echo "($1: $kd_n lines are so: $2)"
	cat "$dir/$1"
	return 1
}
traced() {	# PATTERN
	grep -qE "$1" "$TMPDIR/trace" && return
	echo "(not traced: $1)"
	grep -v '^#' "$TMPDIR/trace" | head -20
	return 1
}
no_object() { ! object_list; }
# The sum of a column of the file about CPUs.
cpu_sum() { awk -v n="$1" 'NR == 1 { for (i = 1; i <= NF; i++) if ($i == n) c = i } NR > 1 && c { s += $c } END { print s + 0 }' $dir/cpus; }
trace() { echo "$1" >$tracing/events/kdapl/enable; }
collect() { cat $tracing/trace >"$TMPDIR/trace"; : >$tracing/trace; }
# Written and read again, through the cache of nobody.
use() {
	dd if=/dev/urandom of="$TMPDIR/out" bs=64k count=8 2>/dev/null &&
		dd if="$TMPDIR/out" of="$(device d)" bs=64k oflag=direct 2>/dev/null &&
		dd if="$(device d)" of="$TMPDIR/in" bs=64k count=8 iflag=direct 2>/dev/null &&
		cmp "$TMPDIR/out" "$TMPDIR/in"
}

must "a device" loopback_dev "$p"
configfs
must "a disk in memory" null_disk 0 64
must "kdapl.ko loads" insmod "$KO/kdapl.ko"
step "nothing is there yet" no_object
trace 1
must "kdblk_target.ko loads" insmod "$KO/kdblk_target.ko"
must "kdblk.ko loads" insmod "$KO/kdblk.ko"
must "the target exports it" export_disk d /dev/nullb0 allow_any=1
must "the target listens" portal p "${p}0-1"
must "kdblk has it" attach d "${p}0-1" 192.0.2.1 d queues=1
collect
step "traced: adapters are opened" traced "kdapl_ia_opened: ia=[0-9]+ name=${p}0-1$"
step "traced: a request arrives" traced 'kdapl_cr_arrived: cr=[0-9]+ with=[0-9]+$'
step "traced: it is accepted" traced 'kdapl_cr_accepted: cr=[0-9]+ with=[0-9]+$'
step "traced: what the CM says" traced 'kdapl_cm_event: ep=[0-9]+ event=ESTABLISHED status=0$'
step "traced: Endpoints are connected" traced 'kdapl_ep_state: ep=[0-9]+ [A-Z_]* -> CONNECTED$'
step "traced: the event of it" traced 'kdapl_conn_event: ep=[0-9]+ qpn=[1-9][0-9]* event=ESTABLISHED$'
step "shown: adapters" shows ias "^([0-9]+) +\\1 +${p}0-1 +kdblk(_target)? +${p}0 +1 +open +[0-9]+$" 2
# Each line of each file: the adapter as in ias, its name, its consumer.
owned() {
	awk 'FNR == 1 { if ($1 != "id" || $2 != "ia" || $3 != "name" || $4 != "consumer") bad = 1; next }
	     FILENAME ~ /ias$/ { own[$1] = $3 " " $4 }
	     { n++; if (own[$2] != $3 " " $4) bad = 1 }
	     END { exit bad || !n }' $dir/ias $dir/pzs $dir/eps $dir/evds $dir/lmrs $dir/rmrs $dir/srqs $dir/points $dir/requests
}
step "shown: the adapter and the consumer of each object" owned
# The same by netlink.
kdapl() { timeout 60 "$TOP/tools/kdapl" "$@"; }
as_in_debugfs() {	# FILE TABLE, and which of its columns name the adapter and the consumer
	[ "$(awk 'NR > 1 && $7 != "-" { print $1, $3, $4 }' "$dir/$1" | sort)" = \
		"$(kdapl "$2" | awk -v n="$3" -v c="$4" 'NR > 1 { print $1, $n, $c }' | sort)" ]
}
step "netlink: the adapters are those of debugfs" as_in_debugfs ias ia 2 6
step "netlink: the connections, too" as_in_debugfs eps conn 3 4
step "netlink: of one module" test "$(kdapl conn consumer=kdblk state=CONNECTED | wc -l)" = 2
json() { kdapl -j "$@" | python3 -c 'import json, sys; print(len(json.load(sys.stdin)))'; }
step "netlink: as JSON" test "$(json conn state=CONNECTED)" = 2
step "netlink: which side has connected" test "$(kdapl -j conn consumer=kdblk_target passive=yes |
	grep -c '"passive": true')$(kdapl -j conn consumer=kdblk passive=no | grep -c '"passive": false')" = 11
# What the tool makes of a newer kernel, and of names that are no text.
unknown() {
	python3 -B - "$TOP/tools/kdapl" <<'END'
import sys
from importlib.machinery import SourceFileLoader
from importlib.util import module_from_spec, spec_from_loader
loader = SourceFileLoader("kdapl", sys.argv[1])
kdapl = module_from_spec(spec_from_loader("kdapl", loader))
loader.exec_module(kdapl)
assert kdapl.state(b"\1\0\0\0") == "closing" and kdapl.state(b"\7\0\0\0") == "7"
assert kdapl.number((5).to_bytes(4, sys.byteorder)) == kdapl.number((5).to_bytes(8, sys.byteorder)) == 5
assert kdapl.text(b"rxe\xff\0") == "rxe\\xff" and kdapl.address(b"\1\2") == "0102"
END
}
step "netlink: values and names that the tool does not know" unknown
closed_pipe() {
	{ kdapl conn 2>"$TMPDIR/err"; echo "$?" >"$TMPDIR/status"; } | true
	[ ! -s "$TMPDIR/err" ] && grep -qxE '0|141' "$TMPDIR/status"
}
step "netlink: nobody reads what the tool prints" closed_pipe
# says TEXT COMMAND...: it is refused, with that text.
says() {
	kd_text=$1
	shift
	! "$@" >"$TMPDIR/err" 2>&1 && grep -qF "$kd_text" "$TMPDIR/err" && return
	cat "$TMPDIR/err"
	return 1
}
step "a column that is not there" says "no column queue: id," kdapl conn queue=1
step "netlink: another network namespace is told so" says "first network namespace" \
	unshare -n "$TOP/tools/kdapl" conn
# The kernel's own client, from the sources the guest's kernel was built from: 6.1 has none.
ynl=$MODROOT/../o/source
ynl() {
	timeout 120 python3 -B "$ynl/tools/net/ynl/pyynl/cli.py" --output-json \
		--spec "$TOP/Documentation/netlink/specs/kdapl.yaml" \
		--schema "$ynl/Documentation/netlink/genetlink.yaml" "$@"
}
as_ynl() {
	ynl --dump "$1-get" >"$TMPDIR/ynl" && kdapl -j "$1" >"$TMPDIR/kdapl" &&
		python3 - "$TMPDIR/ynl" "$TMPDIR/kdapl" <<'END'
import json, sys
theirs, ours = (json.load(open(name)) for name in sys.argv[1:])
for row in theirs + ours:
    row["passive"] = bool(row.get("passive"))
    for column in list(row):
        if column.startswith(("requests", "receives")):     # these go on
            del row[column]
if not ours or theirs != ours:
    sys.exit("%s\n%s" % (theirs, ours))
END
}
if [ -e "$ynl/tools/net/ynl/pyynl/cli.py" ]; then
	step "ynl: adapters, as the tool says" as_ynl ia
	step "ynl: connections, as the tool says" as_ynl conn
	step "ynl: a refusal, with its reason" says "no connection has this id" \
		ynl --do conn-end --json '{"id": 1048570, "qpn": 1}'
	step "ynl: a request without a queue pair" says "id and qpn are needed" \
		ynl --do conn-end --json '{"id": 1048570}'
fi
# Named as any consumer of verbs is, by its module.
named() { for kd_x in pd cq qp cm_id; do rdma resource show $kd_x | grep -q "comm \[$1\]" || return; done; }
step "rdma resource show names kdblk" named kdblk
step "rdma resource show names kdblk_target" named kdblk_target
step "shown: Protection Zones" shows pzs '[1-9][0-9]*$' 2
step "shown: Endpoints of both sides" shows eps 'CONNECTED +[1-9][0-9]* +192\.0\.2\.1:' 2
step "shown: Event Dispatchers" shows evds ' (d|dc) +(softirq|workqueue) +single' 2
step "shown: regions" shows lmrs 'memory +bound +0x[0-9a-f]+ 0x[0-9a-f]+ local_read,local_write [0-9]+$' 2
step "shown: regions for fast registration" shows lmrs 'fmr +unbound' 16
step "shown: where it listens" shows points 'psp +14420'
step "data is written and read while all is traced" use
collect
step "traced: posts" traced 'kdapl_post: ep=[0-9]+ op=SEND cookie=0x[0-9a-f]+ length=[0-9]+ flags='
step "traced: RDMA" traced 'kdapl_post: ep=[0-9]+ op=RDMA_READ cookie=0x[0-9a-f]+ length=65536 '
step "traced: Receives" traced 'kdapl_post: ep=[0-9]+ op=RECEIVE '
step "traced: completions" traced 'kdapl_completion: ep=[0-9]+ op=RECEIVE(_WITH_INVALIDATE)? .*status=SUCCESS$'
step "traced: upcalls" traced 'kdapl_upcall: evd=[0-9]+ event=DTO_COMPLETION_EVENT'
step "traced: keys that come" traced 'kdapl_key_valid: id=[0-9]+ key=0x[0-9a-f]+ length=65536 priv='
step "traced: and go" traced 'kdapl_key_gone: id=[0-9]+ key=0x[0-9a-f]+ length=65536 '
trace 0
: >$tracing/trace
step "data is written and read, and nothing is traced" use
collect
step "traced: nothing" test "$(grep -vc '^#' "$TMPDIR/trace")" = 0
requests() { awk '/CONNECTED/ { split($8, n, "/"); sum += n[2] } END { print sum + 0 }' $dir/eps; }
before=$(requests)
upcalls=$(cpu_sum upcalls)
turns=$(($(cpu_sum softirq) + $(cpu_sum work)))
step "data is written and read once more" use
step "shown: more requests are done" test "$(requests)" -gt "$before"
step "shown: CPUs have made more upcalls" test "$(cpu_sum upcalls)" -gt "$upcalls"
step "shown: in turns of theirs" test $(($(cpu_sum softirq) + $(cpu_sum work))) -gt "$turns"
flushed=$(cpu_sum flushed)
ep=$(awk '/CONNECTED/ { print $1; exit }' $dir/eps)
for e in post completion; do
	echo "ep == $ep" >$tracing/events/kdapl/kdapl_$e/filter
	echo 1 >$tracing/events/kdapl/kdapl_$e/enable
done
step "data is written and read while one Endpoint is traced" use
trace 0
for e in post completion; do
	echo 0 >$tracing/events/kdapl/kdapl_$e/filter
done
collect
step "traced: posts of that one" traced "kdapl_post: ep=$ep "
step "traced: and of no other" eval "! grep kdapl_ $TMPDIR/trace | grep -v ' ep=$ep '"
trace 1
step "the target is switched off" set_to 0 $kd_target/portals/p/enable
until_true 20 is d recovering
collect
step "traced: why a connection ends" traced 'kdapl_conn_end: ep=[0-9]+ qpn=[0-9]+ reason='
step "traced: the event of it" traced 'kdapl_conn_event: .*event=DISCONNECTED$'
step "traced: what was flushed" traced 'kdapl_completion_flushed: .*status=FLUSHED$'
step "shown: a CPU has seen it" test "$(cpu_sum flushed)" -gt "$flushed"
trace 0
step "the target is switched on" set_to 1 $kd_target/portals/p/enable
step "the disk comes back" until_true 20 is d live
one() { kdapl conn consumer=kdblk state=CONNECTED | awk 'NR == 2 { print $1 }'; }
kd_id=$(one)
kd_qpn=$(kdapl conn id="$kd_id" | awk 'NR == 2 { print $6 }')
# From its standard input: nobody may not read everybody's sources.
as_nobody() {
	timeout 60 setpriv --reuid 65534 --regid 65534 --clear-groups --bounding-set -all \
		--inh-caps -all python3 - "$@" <"$TOP/tools/kdapl"
}
step "who has no rights sees connections" test "$(as_nobody conn id="$kd_id" | wc -l)" = 2
step "and ends none" says "Operation not permitted" as_nobody end "$kd_id" "$kd_qpn"
usage() { kdapl end; [ $? = 2 ]; }
step "a wrong command line: exit status 2" usage
step "one that is not there is not ended" says "no connection" kdapl end 1048570
step "nor is one with another queue pair" says "queue pair" kdapl end "$kd_id" $((kd_qpn + 1))
step "it is still there" test "$(one)" = "$kd_id"
step "a connection is ended by hand" kdapl end "$kd_id" "$kd_qpn"
step "the log says so" logs "kdapl: ${p}0-1: QP [0-9]* of kdblk: .* broke: it was ended by hand$"
another() { [ "$(one)" ] && [ "$(one)" != "$kd_id" ]; }
step "kdblk connects again" until_true 30 another
step "data is written and read" use
# Whoever reads, and traces, while all comes and goes.
touch "$TMPDIR/go"
while [ -e "$TMPDIR/go" ]; do
	cat $dir/* >/dev/null
	kdapl conn >/dev/null
done &
kd_reader=$!
while [ -e "$TMPDIR/go" ]; do
	trace 1
	trace 0
done &
kd_tracer=$!
comes_and_goes() {
	kd_i=0
	while [ $kd_i -lt 30 ]; do
		kd_i=$((kd_i + 1))
		set_to 0 $kd_initiator/d/connect && set_to 1 $kd_initiator/d/connect && use || return
	done
}
step "thirty connections while others read and trace" comes_and_goes
rm "$TMPDIR/go"
wait $kd_reader $kd_tracer
broke() { logs "kdapl: ${p}0-1: QP [0-9]* of $1: the connection to 192.0.2.1:$2 broke: the device was removed$"; }
step "the log has no other connection that broke" refused logged " broke: [^i]"
must "the device goes" rdma link delete "${p}0"
step "the log says so of kdblk's connections" broke kdblk 14420
step "and of the target's" broke kdblk_target "[0-9]*"
must "the device comes back" rdma link add "${p}0" type "$p" netdev kd0
step "and so does the disk" until_true 60 is d live
step "data is written and read" use
step "kdblk leaves" detach d
step "the target is empty" no_disk d
step "and listens no more" no_portal p
no_null_disk 0
step "kdblk.ko unloads" rmmod kdblk
step "kdblk_target.ko unloads" rmmod kdblk_target
step "nothing is left" no_object
step "kdapl.ko unloads" rmmod kdapl
step "and its files are gone" test ! -e $dir -a ! -e $tracing/events/kdapl
finish
