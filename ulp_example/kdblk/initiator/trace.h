/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Tracepoints of the initiator, /sys/kernel/tracing/events/kdblk. The tracepoints of the block
 * layer show what happens to a request before and after.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdblk

#if !defined(_KDBLK_TRACE_H_) || defined(TRACE_HEADER_MULTI_READ)
#define _KDBLK_TRACE_H_

#include <linux/tracepoint.h>

#include "kdblk.h"

/* An attempt to connect and log in has ended, with an errno or 0. */
TRACE_EVENT(kdblk_attempt,
	    TP_PROTO(const struct kdblk_disk *disk, int err),

	TP_ARGS(disk, err),

	TP_STRUCT__entry(
		__array(char, disk, KDBLK_NAME_LEN)
		__field(u32, attempt)
		__field(int, err)
	),

	TP_fast_assign(
		strscpy(__entry->disk, kdblk_name(disk), KDBLK_NAME_LEN);
		__entry->attempt = disk->attempts;
		__entry->err = err;
	),

	TP_printk("disk=%s attempt=%u err=%d", __entry->disk, __entry->attempt, __entry->err)
);

TRACE_EVENT(kdblk_lost,
	    TP_PROTO(const struct kdblk_disk *disk, const char *why),

	TP_ARGS(disk, why),

	TP_STRUCT__entry(
		__array(char, disk, KDBLK_NAME_LEN)
		__array(char, why, 80)
	),

	TP_fast_assign(
		strscpy(__entry->disk, kdblk_name(disk), KDBLK_NAME_LEN);
		strscpy(__entry->why, why, 80);
	),

	TP_printk("disk=%s: %s", __entry->disk, __entry->why)
);

/*
 * The target was asked over this disk to end another path of it: 0 when nothing of that is left,
 * -EAGAIN while it is ending, or another errno.
 */
TRACE_EVENT(kdblk_fence,
	    TP_PROTO(const struct kdblk_disk *by, u16 path, int err),

	TP_ARGS(by, path, err),

	TP_STRUCT__entry(
		__array(char, by, KDBLK_NAME_LEN)
		__field(u16, path)
		__field(int, err)
	),

	TP_fast_assign(
		strscpy(__entry->by, kdblk_name(by), KDBLK_NAME_LEN);
		__entry->path = path;
		__entry->err = err;
	),

	TP_printk("by=%s path=%u err=%d", __entry->by, __entry->path, __entry->err)
);

/* A command was answered, @status is enum kdblk_status. */
TRACE_EVENT(kdblk_done,
	    TP_PROTO(const struct kdblk_queue *q, u16 tag, u8 opcode, u16 status),

	TP_ARGS(q, tag, opcode, status),

	TP_STRUCT__entry(
		__field(int, minor)
		__field(u16, queue)
		__field(u16, tag)
		__field(u16, status)
		__field(u8, opcode)
	),

	TP_fast_assign(
		__entry->minor = q->disk->minor;
		__entry->queue = q->index;
		__entry->tag = tag;
		__entry->status = status;
		__entry->opcode = opcode;
	),

	TP_printk("kdblk%d queue=%u tag=%u opcode=%u status=%u", __entry->minor, __entry->queue,
		  __entry->tag, __entry->opcode, __entry->status)
);

#endif /* _KDBLK_TRACE_H_ */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
