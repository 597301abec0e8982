/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Tracepoints, /sys/kernel/tracing/events/kdapl. Objects have the same ids as in debugfs,
 * which are unique among all live objects of any kind; pointers are never shown.
 *
 * The fast path of posts and completions has no tracepoints: while kdapl_post or one of the
 * completion events is enabled, posts and completions take the slow path, which has the same
 * effect.
 */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM kdapl

#if !defined(KDAPL_TRACE_H) || defined(TRACE_HEADER_MULTI_READ)
#define KDAPL_TRACE_H

#include <linux/tracepoint.h>
#include <rdma/rdma_cm.h>
#include <trace/misc/rdma.h>
#include <dat2/kdat.h>

#include "core.h"
#include "names.h"

#undef kn
#undef kn_end
#define kn(prefix, word)	TRACE_DEFINE_ENUM(DAT_##prefix##word);
#define kn_end(prefix, word)	TRACE_DEFINE_ENUM(DAT_##prefix##word);

KDAPL_EP_STATE_NAMES(kn, kn_end)
KDAPL_DTO_NAMES(kn, kn_end)
KDAPL_STATUS_NAMES(kn, kn_end)
KDAPL_EVENT_NAMES(kn, kn_end)

#undef kn
#undef kn_end
#define kn(prefix, word)	{ DAT_##prefix##word, #word },
#define kn_end(prefix, word)	{ DAT_##prefix##word, #word }

#define show_ep_state(value)	__print_symbolic(value, KDAPL_EP_STATE_NAMES(kn, kn_end))
#define show_dto(value)		__print_symbolic(value, KDAPL_DTO_NAMES(kn, kn_end))
#define show_status(value)	__print_symbolic(value, KDAPL_STATUS_NAMES(kn, kn_end))
#define show_event(value)	__print_symbolic(value, KDAPL_EVENT_NAMES(kn, kn_end))

/* ---- data transfer ---- */

TRACE_EVENT(kdapl_post,
	    TP_PROTO(DAT_EP_HANDLE ep, unsigned int op, u64 cookie, u32 length, u8 flags,
		     bool soft),

	TP_ARGS(ep, op, cookie, length, flags, soft),

	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, ep)
		__field(u32, length)
		__field(u8, op)
		__field(u8, flags)
		__field(bool, soft)
	),

	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->ep = kdapl_id(ep);
		__entry->length = length;
		__entry->op = op;
		__entry->flags = flags;
		__entry->soft = soft;
	),

	TP_printk("ep=%u op=%s cookie=0x%llx length=%u flags=0x%02x%s", __entry->ep,
		  show_dto(__entry->op), __entry->cookie, __entry->length, __entry->flags,
		  __entry->soft ? " not for the device" : "")
);

TRACE_EVENT(kdapl_post_refused,
	    TP_PROTO(DAT_HANDLE handle, unsigned int op, u64 cookie, DAT_RETURN ret),

	TP_ARGS(handle, op, cookie, ret),

	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, ep)
		__field(u32, ret)
		__field(u8, op)
	),

	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->ep = kdapl_id(handle);
		__entry->ret = ret;
		__entry->op = op;
	),

	TP_printk("ep=%u op=%s cookie=0x%llx ret=0x%08x", __entry->ep, show_dto(__entry->op),
		  __entry->cookie, __entry->ret)
);

DECLARE_EVENT_CLASS(kdapl_completion_class,
		    TP_PROTO(DAT_EP_HANDLE ep, unsigned int op, u64 cookie, u32 length,
			     unsigned int status),

	TP_ARGS(ep, op, cookie, length, status),

	TP_STRUCT__entry(
		__field(u64, cookie)
		__field(u32, ep)
		__field(u32, length)
		__field(u8, op)
		__field(u8, status)
	),

	TP_fast_assign(
		__entry->cookie = cookie;
		__entry->ep = kdapl_id(ep);
		__entry->length = length;
		__entry->op = op;
		__entry->status = status;
	),

	TP_printk("ep=%u op=%s cookie=0x%llx length=%u status=%s", __entry->ep,
		  show_dto(__entry->op), __entry->cookie, __entry->length,
		  show_status(__entry->status))
);

#define DEFINE_COMPLETION_EVENT(name)							\
DEFINE_EVENT(kdapl_completion_class, name,						\
	TP_PROTO(DAT_EP_HANDLE ep, unsigned int op, u64 cookie, u32 length,		\
		 unsigned int status),							\
	TP_ARGS(ep, op, cookie, length, status))

DEFINE_COMPLETION_EVENT(kdapl_completion);
DEFINE_COMPLETION_EVENT(kdapl_completion_flushed);
DEFINE_COMPLETION_EVENT(kdapl_completion_failed);

/* ---- Event Dispatchers ---- */

TRACE_EVENT(kdapl_upcall,
	    TP_PROTO(DAT_EVD_HANDLE evd, unsigned int number, bool more),

	TP_ARGS(evd, number, more),

	TP_STRUCT__entry(
		__field(u32, evd)
		__field(u32, number)
		__field(bool, more)
	),

	TP_fast_assign(
		__entry->evd = kdapl_id(evd);
		__entry->number = number;
		__entry->more = more;
	),

	TP_printk("evd=%u event=%s%s", __entry->evd,
		  __print_symbolic(__entry->number,
				   { 0, "some" },	/* DAT_UPCALL_NOTIFY */
				   KDAPL_EVENT_NAMES(kn, kn_end)),
		  __entry->more ? " more" : "")
);

TRACE_EVENT(kdapl_evd_overflow,
	    TP_PROTO(DAT_EVD_HANDLE evd, unsigned int number, int length),

	TP_ARGS(evd, number, length),

	TP_STRUCT__entry(
		__field(u32, evd)
		__field(u32, number)
		__field(int, length)
	),

	TP_fast_assign(
		__entry->evd = kdapl_id(evd);
		__entry->number = number;
		__entry->length = length;
	),

	TP_printk("evd=%u length=%d lost=%s", __entry->evd, __entry->length,
		  show_event(__entry->number))
);

/* ---- connections ---- */

TRACE_EVENT(kdapl_ep_state,
	    TP_PROTO(DAT_EP_HANDLE ep, int from, int to),

	TP_ARGS(ep, from, to),

	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u8, from)
		__field(u8, to)
	),

	TP_fast_assign(
		__entry->ep = kdapl_id(ep);
		__entry->from = from;
		__entry->to = to;
	),

	TP_printk("ep=%u %s -> %s", __entry->ep, show_ep_state(__entry->from),
		  show_ep_state(__entry->to))
);

TRACE_EVENT(kdapl_conn_event,
	    TP_PROTO(DAT_EP_HANDLE ep, u32 qpn, unsigned int number),

	TP_ARGS(ep, qpn, number),

	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u32, qpn)
		__field(u32, number)
	),

	TP_fast_assign(
		__entry->ep = kdapl_id(ep);
		__entry->qpn = qpn;
		__entry->number = number;
	),

	TP_printk("ep=%u qpn=%u event=%s", __entry->ep, __entry->qpn,
		  show_event(__entry->number))
);

/* A connection or an attempt ends, because of an event, the consumer or the peer. */
TRACE_EVENT(kdapl_conn_end,
	    TP_PROTO(DAT_EP_HANDLE ep, u32 qpn, unsigned int reason),

	TP_ARGS(ep, qpn, reason),

	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u32, qpn)
		__field(u32, reason)
	),

	TP_fast_assign(
		__entry->ep = kdapl_id(ep);
		__entry->qpn = qpn;
		__entry->reason = reason;
	),

	TP_printk("ep=%u qpn=%u reason=%s", __entry->ep, __entry->qpn,
		  __print_symbolic(__entry->reason,
				   { KDAPL_END_NONE, "the consumer" },
				   { KDAPL_END_PEER, "the peer, says the CM" },
				   KDAPL_EVENT_NAMES(kn, kn_end)))
);

/* Events of the connection manager. */
TRACE_EVENT(kdapl_cm_event,
	    TP_PROTO(DAT_EP_HANDLE ep, unsigned int event, int status),

	TP_ARGS(ep, event, status),

	TP_STRUCT__entry(
		__field(u32, ep)
		__field(u32, event)
		__field(int, status)
	),

	TP_fast_assign(
		__entry->ep = kdapl_id(ep);
		__entry->event = event;
		__entry->status = status;
	),

	TP_printk("ep=%u event=%s status=%d", __entry->ep,
		  rdma_show_cm_event(__entry->event), __entry->status)
);

DECLARE_EVENT_CLASS(kdapl_cr_class,
		    TP_PROTO(DAT_CR_HANDLE cr, DAT_HANDLE with),

	TP_ARGS(cr, with),

	TP_STRUCT__entry(
		__field(u32, cr)
		__field(u32, with)
	),

	TP_fast_assign(
		__entry->cr = kdapl_id(cr);
		__entry->with = kdapl_id(with);
	),

	TP_printk("cr=%u with=%u", __entry->cr, __entry->with)
);

#define DEFINE_CR_EVENT(name)				\
DEFINE_EVENT(kdapl_cr_class, name,			\
	TP_PROTO(DAT_CR_HANDLE cr, DAT_HANDLE with),	\
	TP_ARGS(cr, with))

DEFINE_CR_EVENT(kdapl_cr_arrived);	/* at this service point */
DEFINE_CR_EVENT(kdapl_cr_accepted);	/* with this EP */
DEFINE_CR_EVENT(kdapl_cr_rejected);

/* ---- memory ---- */

DECLARE_EVENT_CLASS(kdapl_mr_class,
		    TP_PROTO(DAT_HANDLE handle, u32 key, u64 length, unsigned int priv),

	TP_ARGS(handle, key, length, priv),

	TP_STRUCT__entry(
		__field(u64, length)
		__field(u32, id)
		__field(u32, key)
		__field(u32, priv)
	),

	TP_fast_assign(
		__entry->length = length;
		__entry->id = kdapl_id(handle);
		__entry->key = key;
		__entry->priv = priv;
	),

	TP_printk("id=%u key=0x%08x length=%llu priv=0x%02x", __entry->id, __entry->key,
		  __entry->length, __entry->priv)
);

#define DEFINE_MR_EVENT(name)							\
DEFINE_EVENT(kdapl_mr_class, name,						\
	TP_PROTO(DAT_HANDLE handle, u32 key, u64 length, unsigned int priv),	\
	TP_ARGS(handle, key, length, priv))

DEFINE_MR_EVENT(kdapl_key_valid);	/* an LMR or RMR has been bound to memory */
DEFINE_MR_EVENT(kdapl_key_gone);

/* ---- Interface Adapters ---- */

DECLARE_EVENT_CLASS(kdapl_ia_class,
		    TP_PROTO(DAT_IA_HANDLE ia, const char *name),

	TP_ARGS(ia, name),

	TP_STRUCT__entry(
		__field(u32, ia)
		__array(char, name, 64)
	),

	TP_fast_assign(
		__entry->ia = kdapl_id(ia);
		strscpy(__entry->name, name, sizeof(__entry->name));
	),

	TP_printk("ia=%u name=%s", __entry->ia, __entry->name)
);

#define DEFINE_IA_EVENT(name)				\
DEFINE_EVENT(kdapl_ia_class, name,			\
	TP_PROTO(DAT_IA_HANDLE ia, const char *name),	\
	TP_ARGS(ia, name))

DEFINE_IA_EVENT(kdapl_ia_opened);
DEFINE_IA_EVENT(kdapl_ia_closed);
DEFINE_IA_EVENT(kdapl_ia_lost);		/* its device has failed or been removed */

#endif /* KDAPL_TRACE_H */

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE trace
#include <trace/define_trace.h>
