// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdrpc - threads that call a server and check every answer.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/crc32.h>
#include <linux/inet.h>
#include <linux/irq_work.h>
#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/rwsem.h>
#include <linux/slab.h>
#include <linux/wait.h>
#include "../../kdapl/version.h"	/* a module of your own has a version of its own */
#include "client.h"

#define MAX_CLIENTS	64
#define MAX_THREADS	64

static char *connect;
static ushort port = KDRPC_PORT;
static uint clients = 1, threads = 4, size = KDRPC_MAX_DATA, count = 100;
static ulong calls;

module_param(connect, charp, 0444);
MODULE_PARM_DESC(connect, "the server's IPv4 or IPv6 address (required)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier, 1..65535 (default 4713)");
module_param(clients, uint, 0444);
MODULE_PARM_DESC(clients, "connections, 1..64 (default 1)");
module_param(threads, uint, 0444);
MODULE_PARM_DESC(threads, "threads of each, 1..64 (default 4)");
module_param(size, uint, 0444);
MODULE_PARM_DESC(size, "bytes of a PUT or GET, 1..16384 (default 16384)");
module_param(count, uint, 0444);
MODULE_PARM_DESC(count, "calls of each thread; 0: until the module is unloaded (default 100)");
module_param(calls, ulong, 0444);
MODULE_PARM_DESC(calls, "read: calls that were answered rightly");

struct test_thread {
	struct kdrpc_client *client;
	struct task_struct *task;
	struct kdrpc_call call;
	struct scatterlist sg;
	struct irq_work irq;
	bool done;
	u8 *data, *expected;
};

static struct kdrpc_client *test_clients[MAX_CLIENTS];
static struct test_thread *test_threads;	/* clients * threads of them */
static DECLARE_WAIT_QUEUE_HEAD(test_wait);
static DECLARE_RWSEM(test_submit);		/* test_stopping: nothing is submitted any more */
static bool test_stopping;
static atomic_long_t test_calls;
static atomic_t test_running, test_failed;

static void test_done(struct kdrpc_call *call)
{
	struct test_thread *t = container_of(call, struct test_thread, call);

	smp_store_release(&t->done, true);	/* pairs with test_call() */
	wake_up_all(&test_wait);
}

/* In a hard interrupt; with PREEMPT_RT in a thread, as kDAPL needs it. */
static void test_irq(struct irq_work *irq)
{
	struct test_thread *t = container_of(irq, struct test_thread, irq);

	kdrpc_submit(t->client, &t->call);
}

/* Every fourth call is made in a hard interrupt. */
static int test_begin(struct test_thread *t, u32 n)
{
	int err = 0;

	t->done = false;
	down_read(&test_submit);
	if (test_stopping)
		err = -ESHUTDOWN;
	else if (n % 4)
		kdrpc_submit(t->client, &t->call);
	else
		irq_work_queue(&t->irq);
	up_read(&test_submit);
	return err;
}

/* One call: an echo, memory that the server reads, or memory that it writes. */
static int test_call(struct test_thread *t, u32 n)
{
	struct kdrpc_call *call = &t->call;
	int err;

	call->op = KDRPC_ECHO + n % 3;
	call->value = n * 40503u + (uintptr_t)t;
	call->length = call->op == KDRPC_ECHO ? 0 : size;
	if (call->op == KDRPC_PUT)
		kdrpc_fill(t->data, size, call->value);
	else
		memset(t->data, 0, size);
	err = test_begin(t, n);
	if (err)
		return err;
	/* It ends by an answer, or when the client is closed. */
	wait_event_idle(test_wait, smp_load_acquire(&t->done));	/* pairs with test_done() */
	if (call->err)
		return call->err;
	if (call->op == KDRPC_ECHO)
		return call->result == call->value ? 0 : -EBADMSG;
	if (call->op == KDRPC_GET) {
		kdrpc_fill(t->expected, size, call->value);
		if (memcmp(t->data, t->expected, size))
			return -EBADMSG;
	}
	return call->result == crc32_le(~0, t->data, size) ? 0 : -EBADMSG;
}

static int test_main(void *arg)
{
	struct test_thread *t = arg;
	int err = 0;
	u32 n;

	for (n = 0; !err && (!count || n < count); n++) {
		err = test_call(t, n);
		if (!err)
			WRITE_ONCE(calls, atomic_long_inc_return(&test_calls));
		cond_resched();
	}
	if (err && err != -ESHUTDOWN) {
		atomic_inc(&test_failed);
		pr_err("FAIL call=%u op=%u error %pe\n", n - 1, t->call.op, ERR_PTR(err));
	}
	atomic_dec(&test_running);
	wake_up_all(&test_wait);
	wait_event_idle(test_wait, kthread_should_stop());
	return 0;
}

static int test_thread_start(struct test_thread *t, struct kdrpc_client *client)
{
	t->client = client;
	t->call.done = test_done;
	t->call.sgl = &t->sg;
	t->call.nents = 1;
	t->irq = IRQ_WORK_INIT(test_irq);
	t->data = kmalloc(size, GFP_KERNEL);
	t->expected = kmalloc(size, GFP_KERNEL);
	if (!t->data || !t->expected)
		return -ENOMEM;
	sg_init_one(&t->sg, t->data, size);
	atomic_inc(&test_running);
	t->task = kthread_run(test_main, t, "kdrpc");
	if (!IS_ERR(t->task))
		return 0;
	atomic_dec(&test_running);
	return PTR_ERR(t->task);
}

/* The order matters: new calls, calls that wait for an answer, threads that wait for calls. */
static void test_stop(void)
{
	u32 i;

	down_write(&test_submit);
	test_stopping = true;
	up_write(&test_submit);
	for (i = 0; i < clients * threads; i++)
		irq_work_sync(&test_threads[i].irq);
	for (i = 0; i < clients; i++)
		if (test_clients[i])
			kdrpc_client_close(test_clients[i]);
	for (i = 0; i < clients * threads; i++) {
		if (!IS_ERR_OR_NULL(test_threads[i].task))
			kthread_stop(test_threads[i].task);
		kfree(test_threads[i].expected);
		kfree(test_threads[i].data);
	}
	kvfree(test_threads);
	kdrpc_clients_exit();
}

static int test_start(const struct sockaddr *server)
{
	u32 i, n;
	int err;

	for (i = 0; i < clients; i++) {
		test_clients[i] = kdrpc_client_create(current->nsproxy->net_ns, server, port);
		if (!test_clients[i])
			return -ENOMEM;
		for (n = 0; n < threads; n++) {
			err = test_thread_start(&test_threads[i * threads + n], test_clients[i]);
			if (err)
				return err;
		}
	}
	if (!count)
		return 0;
	if (wait_event_killable(test_wait, !atomic_read(&test_running)))
		return -EINTR;
	return atomic_read(&test_failed) ? -EIO : 0;
}

static int __init kdrpc_init(void)
{
	struct sockaddr_storage server = {};
	const char *wrong = NULL;
	int err;

	if (!connect || inet_pton_with_scope(current->nsproxy->net_ns, AF_UNSPEC, connect, NULL,
					     &server))
		wrong = "connect= must be the IPv4 or IPv6 address of a server";
	else if (!port)
		wrong = "port= must be 1..65535";
	else if (!clients || clients > MAX_CLIENTS || !threads || threads > MAX_THREADS)
		wrong = "clients= and threads= must be 1..64";
	else if (!size || size > KDRPC_MAX_DATA)
		wrong = "size= must be 1..16384";
	if (wrong) {
		pr_err("%s\n", wrong);
		return -EINVAL;
	}
	test_threads = kvcalloc(clients * threads, sizeof(*test_threads), GFP_KERNEL);
	if (!test_threads)
		return -ENOMEM;
	err = kdrpc_clients_init();
	if (err) {
		kvfree(test_threads);
		return err;
	}
	err = test_start((struct sockaddr *)&server);
	if (!err && count)
		pr_info("PASS calls=%ld\n", atomic_long_read(&test_calls));
	if (err)
		test_stop();
	return err;
}

static void __exit kdrpc_exit(void)
{
	test_stop();
	pr_info("%s calls=%ld\n", atomic_read(&test_failed) ? "FAIL" : "done",
		atomic_long_read(&test_calls));
}

module_init(kdrpc_init);
module_exit(kdrpc_exit);
MODULE_DESCRIPTION("kDAPL example: calls a server, with memory lent for each call");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION(KDAPL_VERSION);
