/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Tracepoints of the target, /sys/kernel/tracing/events/kdblk_target. A session has the number
 * that session_list shows.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdblk_target

#if !defined(_KDBLK_TARGET_TRACE_H_) || defined(TRACE_HEADER_MULTI_READ)
#define _KDBLK_TARGET_TRACE_H_

#include <linux/tracepoint.h>

#include "target.h"

/* A login was granted or refused, @status is enum kdblk_status. */
TRACE_EVENT(kdt_login,
	    TP_PROTO(const struct kdt_session *s, const char *disk, u16 status),

	TP_ARGS(s, disk, status),

	TP_STRUCT__entry(
		__field(u64, session)
		__array(char, disk, KDBLK_NAME_LEN)
		__array(char, initiator, KDBLK_NAME_LEN)
		__field(u16, path)
		__field(u16, status)
	),

	TP_fast_assign(
		__entry->session = s->turn;
		strscpy(__entry->disk, disk, KDBLK_NAME_LEN);
		strscpy(__entry->initiator, s->initiator, KDBLK_NAME_LEN);
		__entry->path = s->path;
		__entry->status = status;
	),

	TP_printk("session=%llu disk=%s initiator=%s path=%u status=%u", __entry->session,
		  __entry->disk, __entry->initiator, __entry->path, __entry->status)
);

/* Nothing of a session is left. */
TRACE_EVENT(kdt_session_end,
	    TP_PROTO(const struct kdt_session *s),

	TP_ARGS(s),

	TP_STRUCT__entry(
		__field(u64, session)
		__array(char, initiator, KDBLK_NAME_LEN)
		__array(char, why, 80)
	),

	TP_fast_assign(
		__entry->session = s->turn;
		strscpy(__entry->initiator, s->initiator, KDBLK_NAME_LEN);
		strscpy(__entry->why, s->why, 80);
	),

	TP_printk("session=%llu initiator=%s: %s", __entry->session, __entry->initiator,
		  __entry->why)
);

/* A command is answered, or dropped with its session. */
TRACE_EVENT(kdt_done,
	    TP_PROTO(const struct kdt_cmd *cmd),

	TP_ARGS(cmd),

	TP_STRUCT__entry(
		__field(u64, session)
		__field(u64, offset)
		__field(u32, length)
		__field(u32, queue)
		__field(u16, tag)
		__field(u16, status)
		__field(u8, opcode)
	),

	TP_fast_assign(
		__entry->session = cmd->q->s->turn;
		__entry->offset = cmd->offset;
		__entry->length = cmd->length;
		__entry->queue = cmd->q->n;
		__entry->tag = cmd->tag;
		__entry->status = cmd->status;
		__entry->opcode = cmd->opcode;
	),

	TP_printk("session=%llu queue=%u tag=%u opcode=%u offset=%llu length=%u status=%u",
		  __entry->session, __entry->queue, __entry->tag, __entry->opcode,
		  __entry->offset, __entry->length, __entry->status)
);

#endif /* _KDBLK_TARGET_TRACE_H_ */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
