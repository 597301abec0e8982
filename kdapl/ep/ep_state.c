// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The endpoint state machine, as one table.
 *
 * Rows are DAT_EP_STATE, columns what can happen to an EP. An empty cell means that the call is
 * refused with DAT_INVALID_STATE, or that the event comes late and is ignored; the state does not
 * change. The posting mode of the send work queue is a function of the state, and changes with it
 * under the same lock.
 */
#include "ep.h"
#include "../core/trace.h"

#define TO(s)	(DAT_EP_STATE_##s + 1)

static const u8 ep_table[KDAPL_EP_STATES][KDAPL_EP_INPUTS] = {
	[DAT_EP_STATE_UNCONNECTED] = {
		[KDAPL_IN_CONNECT]	= TO(ACTIVE_CONNECTION_PENDING),
		[KDAPL_IN_RESERVE]	= TO(RESERVED),
		[KDAPL_IN_ACCEPT]	= TO(COMPLETION_PENDING),
		[KDAPL_IN_ENDED]	= TO(DISCONNECTED),	/* a Receive was refused */
		[KDAPL_IN_RESET]	= TO(UNCONNECTED),
		[KDAPL_IN_FREE]		= TO(UNCONNECTED),
	},
	[DAT_EP_STATE_RESERVED] = {
		[KDAPL_IN_UNRESERVE]	= TO(UNCONNECTED),
		[KDAPL_IN_REQUEST]	= TO(PASSIVE_CONNECTION_PENDING),
	},
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = {
		[KDAPL_IN_ACCEPT_OWN]	= TO(COMPLETION_PENDING),
		[KDAPL_IN_DECLINE]	= TO(UNCONNECTED),
		[KDAPL_IN_REMOVED]	= TO(DISCONNECTED),
	},
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = {
		[KDAPL_IN_UNDO]		= TO(UNCONNECTED),
		[KDAPL_IN_ESTABLISHED]	= TO(CONNECTED),
		[KDAPL_IN_GRACEFUL]	= TO(DISCONNECTED),
		[KDAPL_IN_ABRUPT]	= TO(DISCONNECTED),
		[KDAPL_IN_ENDED]	= TO(DISCONNECTED),
		[KDAPL_IN_FREE]		= TO(DISCONNECTED),
	},
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = {
		[KDAPL_IN_ACCEPT_OWN]	= TO(COMPLETION_PENDING),
		[KDAPL_IN_REMOVED]	= TO(DISCONNECTED),
	},
	[DAT_EP_STATE_CONNECTED] = {
		[KDAPL_IN_GRACEFUL]	= TO(DISCONNECT_PENDING),
		[KDAPL_IN_ABRUPT]	= TO(DISCONNECT_PENDING),
		[KDAPL_IN_ENDED]	= TO(DISCONNECTED),
		[KDAPL_IN_FREE]		= TO(DISCONNECTED),
	},
	[DAT_EP_STATE_DISCONNECT_PENDING] = {
		[KDAPL_IN_GRACEFUL]	= TO(DISCONNECT_PENDING),
		[KDAPL_IN_ABRUPT]	= TO(DISCONNECTED),
		[KDAPL_IN_ENDED]	= TO(DISCONNECTED),
		[KDAPL_IN_FREE]		= TO(DISCONNECTED),
	},
	[DAT_EP_STATE_DISCONNECTED] = {
		[KDAPL_IN_GRACEFUL]	= TO(DISCONNECTED),
		[KDAPL_IN_ABRUPT]	= TO(DISCONNECTED),
		[KDAPL_IN_ENDED]	= TO(DISCONNECTED),
		[KDAPL_IN_RESET]	= TO(UNCONNECTED),
		[KDAPL_IN_FREE]		= TO(DISCONNECTED),
	},
	[DAT_EP_STATE_COMPLETION_PENDING] = {
		[KDAPL_IN_ESTABLISHED]	= TO(CONNECTED),
		[KDAPL_IN_GRACEFUL]	= TO(DISCONNECTED),
		[KDAPL_IN_ABRUPT]	= TO(DISCONNECTED),
		[KDAPL_IN_ENDED]	= TO(DISCONNECTED),
		[KDAPL_IN_FREE]		= TO(DISCONNECTED),
	},
};

/* Fields that never change: the identity of an EP, and its peer. */
#define FIELDS_FIXED	(DAT_EP_FIELD_IA_HANDLE | DAT_EP_FIELD_EP_STATE | \
			 DAT_EP_FIELD_LOCAL_IA_ADDRESS_PTR | DAT_EP_FIELD_LOCAL_PORT_QUAL | \
			 DAT_EP_FIELD_REMOTE_IA_ADDRESS_PTR | DAT_EP_FIELD_REMOTE_PORT_QUAL | \
			 DAT_EP_FIELD_SRQ_HANDLE)
#define FIELDS_ATTRS	(DAT_EP_FIELD_EP_ATTR_NUM_TRANSPORT_ATTR | \
			 DAT_EP_FIELD_EP_ATTR_TRANSPORT_SPECIFIC_ATTR | \
			 DAT_EP_FIELD_EP_ATTR_NUM_PROVIDER_ATTR | \
			 DAT_EP_FIELD_EP_ATTR_PROVIDER_SPECIFIC_ATTR)
#define FIELDS_FIRST	(FIELDS_ATTRS | DAT_EP_FIELD_COMM | DAT_EP_FIELD_PZ_HANDLE)
#define FIELDS_ANYTIME	DAT_EP_FIELD_EP_ATTR_SRQ_SOFT_HW
#define FIELDS_EARLY	(DAT_EP_FIELD_ALL & ~(FIELDS_FIXED | FIELDS_FIRST))

/* What dat_ep_modify() may change, by state. */
static const u64 ep_fields[KDAPL_EP_STATES] = {
	[DAT_EP_STATE_UNCONNECTED] = FIELDS_EARLY | FIELDS_FIRST,
	[DAT_EP_STATE_RESERVED] = FIELDS_EARLY,
	[DAT_EP_STATE_PASSIVE_CONNECTION_PENDING] = FIELDS_EARLY,
	[DAT_EP_STATE_ACTIVE_CONNECTION_PENDING] = FIELDS_ANYTIME,
	[DAT_EP_STATE_TENTATIVE_CONNECTION_PENDING] = FIELDS_EARLY | DAT_EP_FIELD_PZ_HANDLE,
	[DAT_EP_STATE_CONNECTED] = FIELDS_ANYTIME,
	[DAT_EP_STATE_DISCONNECT_PENDING] = FIELDS_ANYTIME,
	[DAT_EP_STATE_DISCONNECTED] = FIELDS_ANYTIME,
	[DAT_EP_STATE_COMPLETION_PENDING] = FIELDS_ANYTIME,
};

/**
 * kdapl_ep_fields - what dat_ep_modify() may change
 * @state: DAT_EP_STATE, or negative for any of them
 *
 * Return: DAT_EP_FIELD_* bits.
 */
u64 kdapl_ep_fields(int state)
{
	return state < 0 ? DAT_EP_FIELD_ALL & ~FIELDS_FIXED : ep_fields[state];
}

/**
 * kdapl_ep_next_state - what the table says
 * @state: DAT_EP_STATE
 * @input: what happens
 *
 * Return: the next state, or KDAPL_EP_NO_STEP.
 */
int kdapl_ep_next_state(int state, enum kdapl_ep_input input)
{
	return ep_table[state][input] - 1;
}

/**
 * kdapl_ep_step - move the EP, if the table allows it
 * @ep: EP; ep->lock held
 * @input: what happens
 *
 * Return: the state before the step, or KDAPL_EP_NO_STEP.
 */
int kdapl_ep_step(struct kdapl_ep *ep, enum kdapl_ep_input input)
{
	struct kdapl_conn *conn = rcu_dereference_protected(ep->conn,
							    lockdep_is_held(&ep->lock));
	int old = ep->state;
	int next = kdapl_ep_next_state(old, input);

	lockdep_assert_held(&ep->lock);
	if (next == KDAPL_EP_NO_STEP)
		return KDAPL_EP_NO_STEP;
	WRITE_ONCE(ep->state, next);
	if (next != old)
		trace_kdapl_ep_state(ep->obj.handle, old, next);
	if (conn && next != old) {
		switch (next) {
		case DAT_EP_STATE_CONNECTED:
			kdapl_wq_set_mode(conn->sq, KDAPL_WQ_LIVE);
			break;
		case DAT_EP_STATE_DISCONNECTED:
			kdapl_wq_set_mode(conn->sq, KDAPL_WQ_FLUSHING);
			break;
		default:
			kdapl_wq_set_mode(conn->sq, KDAPL_WQ_REFUSE);
		}
	}
	return old;
}

/**
 * kdapl_ep_may - may an attempt to be connected begin?
 * @ep: EP; ep->lock held
 * @input: KDAPL_IN_CONNECT, _RESERVE, _ACCEPT or _ACCEPT_OWN
 * @state: where the state goes that forbids it
 *
 * Return: 0 if kdapl_ep_step() is going to allow it; -EBADF if the EP has been freed; -EBADFD if
 * its state forbids it.
 */
int kdapl_ep_may(struct kdapl_ep *ep, enum kdapl_ep_input input, DAT_EP_STATE *state)
{
	struct kdapl_conn *conn = rcu_dereference_protected(ep->conn,
							    lockdep_is_held(&ep->lock));

	if (!ep->obj.live)
		return -EBADF;
	*state = ep->state;
	if (kdapl_ep_next_state(ep->state, input) == KDAPL_EP_NO_STEP)
		return -EBADFD;
	if (conn && kdapl_conn_spent(conn)) {
		*state = DAT_EP_STATE_DISCONNECTED;	/* where it is about to go */
		return -EBADFD;
	}
	return 0;
}
