/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Outstanding operations on LMRs and RMRs, and their owners.
 */
#ifndef KDAPL_MEM_OP_H
#define KDAPL_MEM_OP_H

struct kdapl_op_owner;

/**
 * struct kdapl_op_owner_ops - what can be asked of a connection that has operations under way
 * @evd_get: the EVD they come back on, referenced, or NULL. The lock that protects the
 *	operation is held
 * @evd_drain: take in what has come back on it; with @teardown also where there is only room
 *	left for connections that end. Any context
 * @hold: get a reference, under the lock that protects the operation
 * @put: drop it; may sleep
 * @kick: have the device tell how far it is: what was suppressed has no completion of its own;
 *	may sleep
 * @progress: a number that changes whenever the device gives back one of its requests. Messages
 *	that arrive prove nothing: a peer may send for ever, and take nothing itself
 * @end: end the connection as broken
 */
struct kdapl_op_owner_ops {
	struct kdapl_obj *(*evd_get)(struct kdapl_op_owner *owner);
	void (*evd_drain)(struct kdapl_obj *evd, bool teardown);
	void (*hold)(struct kdapl_op_owner *owner);
	void (*put)(struct kdapl_op_owner *owner);
	void (*kick)(struct kdapl_op_owner *owner);
	u32 (*progress)(struct kdapl_op_owner *owner);
	void (*end)(struct kdapl_op_owner *owner);
};

/**
 * struct kdapl_op_owner - part of a connection; to lower floors all there is of it
 * @ops: constant
 */
struct kdapl_op_owner {
	const struct kdapl_op_owner_ops *ops;
};

/**
 * struct kdapl_op_evd - where an operation comes back
 * @ops: of its owner
 * @evd: NULL: nowhere
 *
 * Unlike the owner it can be looked at without the lock that protects the operation.
 */
struct kdapl_op_evd {
	const struct kdapl_op_owner_ops *ops;
	struct kdapl_obj *evd;
};

struct kdapl_op_evd kdapl_op_evd_get(struct kdapl_op_owner *owner);
void kdapl_op_evd_drain(struct kdapl_op_evd from, bool teardown);
void kdapl_op_wait(struct kdapl_ia *ia, spinlock_t *lock, struct kdapl_op_owner **op);

#endif /* KDAPL_MEM_OP_H */
