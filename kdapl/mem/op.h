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
 * struct kdapl_op_owner_ops - operations on a connection with outstanding operations
 * @evd_get: get the EVD they complete on, referenced, or NULL. The lock that protects the
 *	operation is held
 * @evd_poll: poll a few completions of that EVD ahead, in any context; with @wait all there are,
 *	which may sleep
 * @hold: take a reference, under the lock that protects the operation
 * @put: drop the reference; may sleep
 * @kick: post a request whose completion shows how far the device is, since suppressed requests
 *	have none; may sleep
 * @progress: a number that changes whenever the device completes one of its requests. Received
 *	messages do not count: a peer may go on sending and accept nothing itself
 * @end: end the connection as broken
 */
struct kdapl_op_owner_ops {
	struct kdapl_obj *(*evd_get)(struct kdapl_op_owner *owner);
	void (*evd_poll)(struct kdapl_obj *evd, bool wait);
	void (*hold)(struct kdapl_op_owner *owner);
	void (*put)(struct kdapl_op_owner *owner);
	void (*kick)(struct kdapl_op_owner *owner);
	u32 (*progress)(struct kdapl_op_owner *owner);
	void (*end)(struct kdapl_op_owner *owner);
};

/**
 * struct kdapl_op_owner - the part of a connection that this folder uses
 * @ops: constant
 */
struct kdapl_op_owner {
	const struct kdapl_op_owner_ops *ops;
};

/**
 * struct kdapl_op_evd - the EVD an operation completes on
 * @ops: operations of its owner
 * @evd: NULL: none
 *
 * Unlike the owner it may be used without the lock that protects the operation.
 */
struct kdapl_op_evd {
	const struct kdapl_op_owner_ops *ops;
	struct kdapl_obj *evd;
};

struct kdapl_op_evd kdapl_op_evd_get(struct kdapl_op_owner *owner);
void kdapl_op_evd_poll(struct kdapl_op_evd from, bool wait);
void kdapl_op_wait(struct kdapl_ia *ia, spinlock_t *lock, struct kdapl_op_owner **op);

#endif /* KDAPL_MEM_OP_H */
