/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Copyright (c) 2026 The kDAPL for Linux authors */
#ifndef _KDRPC_CLIENT_H_
#define _KDRPC_CLIENT_H_

#include <linux/list.h>
#include <linux/llist.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <net/net_namespace.h>
#include "proto.h"

struct kdrpc_client;

/**
 * struct kdrpc_call - a call, from kdrpc_submit() until @done is called
 * @op: what the server is to do
 * @value: sent with the request
 * @sgl: memory lent to the server, of which entries in the middle are whole pages
 * @nents: number of its entries
 * @length: its bytes; 0: nothing is lent
 * @done: called exactly once, in softirq or, by kdrpc_client_close(), in process context. The
 *	memory is the caller's again, and so is the call
 * @err: 0 or an errno
 * @result: value of the answer, if @err is 0
 * @submitted: used by the client until it is connected
 * @node: used by the client
 */
struct kdrpc_call {
	enum kdrpc_op op;
	u32 value;
	struct scatterlist *sgl;
	int nents;
	u32 length;
	void (*done)(struct kdrpc_call *call);
	int err;
	u32 result;
	struct llist_node submitted;
	struct list_head node;
};

struct kdrpc_client *kdrpc_client_create(struct net *net, const struct sockaddr *server, u16 port);
void kdrpc_client_close(struct kdrpc_client *c);
void kdrpc_submit(struct kdrpc_client *c, struct kdrpc_call *call);

int kdrpc_clients_init(void);
void kdrpc_clients_exit(void);

#endif /* _KDRPC_CLIENT_H_ */
