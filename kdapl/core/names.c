// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Names for a consumer's log, and errnos for its callers.
 *
 * Nothing here has state or takes a lock. Every function works in every context.
 */
#include <linux/errno.h>
#include <linux/export.h>
#include <linux/kernel.h>

#include "core.h"
#include "names.h"

#define kn(prefix, word)	{ (u32)DAT_##prefix##word, #word },
#define kn_end(prefix, word)	{ (u32)DAT_##prefix##word, #word },

static const struct kdapl_name names_states[] = { KDAPL_EP_STATE_NAMES(kn, kn_end) };
static const struct kdapl_name names_statuses[] = { KDAPL_STATUS_NAMES(kn, kn_end) };
static const struct kdapl_name names_events[] = { KDAPL_EVENT_NAMES(kn, kn_end) };

/**
 * kdat_event_name - name of an event number
 * @number: event_number of an event
 *
 * The name lacks the leading words DAT, CONNECTION_EVENT and ASYNC_ERROR, as in tracepoints:
 * "ESTABLISHED", "EVD_OVERFLOW". An extension of this provider.
 *
 * Context: any.
 * Return: the name, "?" for an unknown number.
 */
const char *kdat_event_name(DAT_EVENT_NUMBER number)
{
	return kdapl_name_find(names_events, ARRAY_SIZE(names_events), number) ?: "?";
}
EXPORT_SYMBOL(kdat_event_name);

/* Names of the reasons of asynchronous errors, which each type of handle counts from 0. */
static const char *const names_reasons[KDAPL_NTYPES][3] = {
	[DAT_HANDLE_TYPE_IA] = { "CATASTROPHIC_ERROR", "OTHER_ERROR" },
	[DAT_HANDLE_TYPE_EP] = { "TRANSFER_TO_ERROR", "OTHER_ERROR", "SOFT_HIGH_WATERMARK" },
	[DAT_HANDLE_TYPE_EVD] = { "OVERFLOW_ERROR", "OTHER_ERROR" },
	[DAT_HANDLE_TYPE_SRQ] = { "TRANSFER_TO_ERROR", "OTHER_ERROR", "LOW_WATERMARK" },
};

/**
 * kdat_async_reason_name - name of the reason of an asynchronous error
 * @event: event of an EVD with the ASYNC flag
 *
 * The value of a reason means something else for each type of handle. The watermarks have no
 * event number of their own: "LOW_WATERMARK" of an SRQ and "SOFT_HIGH_WATERMARK" of an EP come
 * with the number of a fault of the provider, whose reasons are "OTHER_ERROR" and
 * "TRANSFER_TO_ERROR". The call works even if the object of the handle has been freed. An
 * extension of this provider.
 *
 * Context: any.
 * Return: the name, "?" for an event that has no reason.
 */
const char *kdat_async_reason_name(const DAT_EVENT *event)
{
	const DAT_ASYNCH_ERROR_EVENT_DATA *err = &event->event_data.asynch_error_event_data;
	unsigned long type = (unsigned long)err->dat_handle >> KDAPL_HANDLE_TYPE_SHIFT;

	if (event->event_number < DAT_ASYNC_ERROR_EVD_OVERFLOW ||
	    event->event_number > DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR ||
	    type >= KDAPL_NTYPES || (u32)err->reason >= ARRAY_SIZE(names_reasons[0]))
		return "?";
	return names_reasons[type][err->reason] ?: "?";
}
EXPORT_SYMBOL(kdat_async_reason_name);

/**
 * kdat_dto_status_name - name of the status of a completion
 * @status: status of a DTO or of a bind of an RMR
 *
 * For example "SUCCESS", "FLUSHED" or "REMOTE_ACCESS". An extension of this provider.
 *
 * Context: any.
 * Return: the name, "?" for an unknown value.
 */
const char *kdat_dto_status_name(DAT_DTO_COMPLETION_STATUS status)
{
	return kdapl_name_find(names_statuses, ARRAY_SIZE(names_statuses), status) ?: "?";
}
EXPORT_SYMBOL(kdat_dto_status_name);

/**
 * kdat_ep_state_name - name of the state of an EP
 * @state: state, as of dat_ep_get_status()
 *
 * For example "CONNECTED" or "DISCONNECT_PENDING". An extension of this provider.
 *
 * Context: any.
 * Return: the name, "?" for an unknown value.
 */
const char *kdat_ep_state_name(DAT_EP_STATE state)
{
	return kdapl_name_find(names_states, ARRAY_SIZE(names_states), state) ?: "?";
}
EXPORT_SYMBOL(kdat_ep_state_name);

/* Types whose subtype makes no difference. */
static const struct {
	u32 type;
	int err;
} names_errnos[] = {
	{ DAT_SUCCESS,			0 },
	{ DAT_ABORT,			-ECANCELED },
	{ DAT_CONN_QUAL_IN_USE,		-EADDRINUSE },
	{ DAT_INTERNAL_ERROR,		-EIO },
	{ DAT_INVALID_HANDLE,		-EBADF },
	{ DAT_INVALID_PARAMETER,	-EINVAL },
	{ DAT_LENGTH_ERROR,		-EMSGSIZE },
	{ DAT_MODEL_NOT_SUPPORTED,	-EOPNOTSUPP },
	{ DAT_PROVIDER_NOT_FOUND,	-ENODEV },
	{ DAT_PRIVILEGES_VIOLATION,	-EACCES },
	{ DAT_PROTECTION_VIOLATION,	-EPERM },
	{ DAT_QUEUE_EMPTY,		-EAGAIN },
	{ DAT_QUEUE_FULL,		-ENOBUFS },
	{ DAT_TIMEOUT_EXPIRED,		-ETIMEDOUT },
	{ DAT_PROVIDER_ALREADY_REGISTERED, -EEXIST },
	{ DAT_PROVIDER_IN_USE,		-EBUSY },
	{ DAT_INTERRUPTED_CALL,		-EINTR },
	{ DAT_CONN_QUAL_UNAVAILABLE,	-EADDRNOTAVAIL },
	{ DAT_RESERVED_LMR,		-EINVAL },
	{ DAT_PORT_IN_USE,		-EADDRINUSE },
	{ DAT_COMM_NOT_SUPPORTED,	-EPROTONOSUPPORT },
	{ DAT_NOT_IMPLEMENTED,		-EOPNOTSUPP },
};

static int names_resource_errno(u32 subtype)
{
	switch (subtype) {
	case DAT_RESOURCE_MEMORY:
		return -ENOMEM;
	case DAT_RESOURCE_TEP:
	case DAT_RESOURCE_SRQ:
		return -EAGAIN;		/* a queue is full */
	default:
		return -ENOSPC;
	}
}

static int names_address_errno(u32 subtype)
{
	switch (subtype) {
	case DAT_INVALID_ADDRESS_UNREACHABLE:
		return -EHOSTUNREACH;
	case DAT_INVALID_ADDRESS_UNSUPPORTED:
		return -EAFNOSUPPORT;
	default:
		return -EINVAL;
	}
}

static int names_state_errno(u32 subtype)
{
	switch (subtype) {
	case DAT_INVALID_STATE_CNO_IN_USE:
	case DAT_INVALID_STATE_EVD_IN_USE:
	case DAT_INVALID_STATE_IA_IN_USE:
	case DAT_INVALID_STATE_LMR_IN_USE:
	case DAT_INVALID_STATE_PZ_IN_USE:
	case DAT_INVALID_STATE_SRQ_IN_USE:
		return -EBUSY;
	default:
		return -EBADFD;
	}
}

/**
 * kdat_errno - the closest errno to what a call returned
 * @ret: return value of a call
 *
 * For consumers whose own callers expect errnos. Documentation/errors.md has the table. -EIO
 * stands for a device that has gone and for a fault of the provider; kdat_ia_lost() tells them
 * apart. An extension of this provider.
 *
 * Context: any.
 * Return: 0 or a negative errno; -EIO for a value that no call returns.
 */
int kdat_errno(DAT_RETURN ret)
{
	u32 type = DAT_GET_TYPE(ret), subtype = DAT_GET_SUBTYPE(ret);
	size_t i;

	switch (type) {
	case DAT_INSUFFICIENT_RESOURCES:
		return names_resource_errno(subtype);
	case DAT_INVALID_ADDRESS:
		return names_address_errno(subtype);
	case DAT_INVALID_STATE:
		return names_state_errno(subtype);
	}
	for (i = 0; i < ARRAY_SIZE(names_errnos); i++)
		if (names_errnos[i].type == type)
			return names_errnos[i].err;
	return -EIO;
}
EXPORT_SYMBOL(kdat_errno);
