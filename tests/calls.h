/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Calls of kDAPL by a test module, and the names of what comes of them. Who calls
 * TRY() defines fail(fmt, ...), which says what is wrong and is -EIO.
 */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include <dat2/kdat.h>
#include <linux/kernel.h>

static inline const char *major_name(DAT_RETURN ret)
{
	const char *major, *minor;

	return dat_strerror(ret, &major, &minor) == DAT_SUCCESS ? major : "unknown error";
}

static inline const char *minor_name(DAT_RETURN ret)
{
	const char *major, *minor;

	return dat_strerror(ret, &major, &minor) == DAT_SUCCESS ? minor : "";
}

#define check(what, call)						\
({									\
	DAT_RETURN _ret = (call);					\
	_ret == DAT_SUCCESS ? 0 : fail("%s: %s %s", what, major_name(_ret), minor_name(_ret)); \
})

#define TRY(call, ...)	check(#call, call(__VA_ARGS__))

static inline const char *event_name(DAT_EVENT_NUMBER event)
{
	switch ((u32)event) {
	case 0:						return "none";
	case DAT_CONNECTION_EVENT_ESTABLISHED:		return "ESTABLISHED";
	case DAT_CONNECTION_EVENT_PEER_REJECTED:	return "PEER_REJECTED";
	case DAT_CONNECTION_EVENT_NON_PEER_REJECTED:	return "NON_PEER_REJECTED";
	case DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR: return "ACCEPT_COMPLETION_ERROR";
	case DAT_CONNECTION_EVENT_DISCONNECTED:		return "DISCONNECTED";
	case DAT_CONNECTION_EVENT_BROKEN:		return "BROKEN";
	case DAT_CONNECTION_EVENT_TIMED_OUT:		return "TIMED_OUT";
	case DAT_CONNECTION_EVENT_UNREACHABLE:		return "UNREACHABLE";
	case DAT_ASYNC_ERROR_EVD_OVERFLOW:		return "EVD_OVERFLOW";
	case DAT_ASYNC_ERROR_IA_CATASTROPHIC:		return "IA_CATASTROPHIC";
	case DAT_ASYNC_ERROR_EP_BROKEN:			return "EP_BROKEN";
	case DAT_ASYNC_ERROR_TIMED_OUT:			return "ASYNC_TIMED_OUT";
	case DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR:	return "PROVIDER_INTERNAL_ERROR";
	default:					return "another";
	}
}

static inline const char *status_name(int status)
{
	static const char * const names[] = {
		"SUCCESS", "FLUSHED", "LOCAL_LENGTH", "LOCAL_EP", "LOCAL_PROTECTION",
		"BAD_RESPONSE", "REMOTE_ACCESS", "REMOTE_RESPONDER", "TRANSPORT",
		"RECEIVER_NOT_READY",
	};

	return status >= 0 && status < ARRAY_SIZE(names) ? names[status] : "another";
}

#endif
