// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Edges: the event of an end that does not fit, posts that come too late, what debugfs has of
 * failures and losses, handles of service points that fail, who may connect to a registration
 * pair.
 */
#include <linux/file.h>
#include <linux/fs.h>
#include <linux/in.h>
#include <linux/mount.h>
#include <linux/net.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/uio.h>

#include "kd_conn.h"
#include "kd_srq.h"
#include "kd_upcall.h"

#define EDGE_EPS	6

struct edge_ep {
	DAT_EP_HANDLE ep;
	struct kdapl_conn *conn;
};

static void edge_connect(struct kd_env *env, struct edge_ep *e)
{
	kd_ep(env, NULL);
	kd_bring_up(env);
	e->ep = env->ep;
	e->conn = kd_conn_of(env);
	kdapl_obj_put(&env->kep->obj);
	env->kep = NULL;
	env->ep = DAT_HANDLE_NULL;
	env->qp = NULL;
}

static void edge_disconnect(struct kd_env *env, struct edge_ep *e)
{
	KD_EXPECT_OK(env->test, dat_ep_disconnect(e->ep, DAT_CLOSE_ABRUPT_FLAG));
	KUNIT_EXPECT_TRUE(env->test, wait_for_completion_timeout(&e->conn->ended, KD_LONG));
}

static void edge_overflow(struct kd_env *env, bool want)
{
	DAT_EVENT event = {};

	KUNIT_EXPECT_EQ(env->test, kd_next(env->async, &event), want);
	if (!want)
		return;
	KUNIT_EXPECT_EQ(env->test, (u32)event.event_number, (u32)DAT_ASYNC_ERROR_EVD_OVERFLOW);
	KUNIT_EXPECT_PTR_EQ(env->test, event.event_data.asynch_error_event_data.dat_handle,
			    env->conn);
}

/* Room for two. An EP that is freed takes its events along, and no others. */
static void edge_overflow_test(struct kunit *test)
{
	struct kd_env *env = kd_open(test, NULL);
	struct edge_ep e[EDGE_EPS] = {};
	DAT_EVENT event;
	int i;

	kd_evd_replace(env, &env->conn, 2, DAT_UPCALL_DISABLE, NULL, DAT_EVD_CONNECTION_FLAG,
		       KDAT_EVD_CONTEXT_DEFAULT);
	for (i = 0; i < 2; i++)
		edge_connect(env, &e[i]);
	edge_overflow(env, false);
	/* the event of an end, too, and no second report as long as nothing is taken */
	edge_disconnect(env, &e[0]);
	edge_overflow(env, true);
	edge_disconnect(env, &e[1]);
	edge_overflow(env, false);
	/* the one that goes had no event there */
	edge_connect(env, &e[2]);
	KD_EXPECT_OK(test, dat_ep_free(e[2].ep));
	edge_connect(env, &e[3]);
	edge_overflow(env, false);
	/* this one had */
	KD_EXPECT_OK(test, dat_ep_free(e[0].ep));
	edge_connect(env, &e[4]);
	edge_overflow(env, false);
	edge_connect(env, &e[5]);
	edge_overflow(env, true);
	for (i = 1; i < 5; i += 3) {
		KUNIT_ASSERT_TRUE(test, kd_next(env->conn, &event));
		KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, e[i].ep);
	}
	KD_EXPECT_EMPTY(test, env->conn);
	for (i = 0; i < EDGE_EPS; i++)
		if (i != 0 && i != 2)
			KD_EXPECT_OK(test, dat_ep_free(e[i].ep));
}

/* A post that has found the connection before dat_ep_reset() adds to it after it was buried. */
static void edge_late_post_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	struct kdapl_conn *conn = kd_conn_of(env);
	struct kdapl_wq *wq[] = { conn->sq, conn->rq };
	int i;

	refcount_inc(&conn->ref);
	kd_end(env, DAT_CONNECTION_EVENT_DISCONNECTED);
	KUNIT_EXPECT_EQ(test, kd_expect_end(env), (u32)DAT_CONNECTION_EVENT_DISCONNECTED);
	for (i = 0; i < 2; i++) {
		kdapl_wq_ready(wq[i]);
		KUNIT_EXPECT_FALSE(test, list_empty(&wq[i]->ready));
	}
	KD_EXPECT_OK(test, dat_ep_reset(env->ep));
	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_TRUE(test, list_empty(&wq[i]->ready));
		kdapl_wq_ready(wq[i]);
		KUNIT_EXPECT_TRUE(test, list_empty(&wq[i]->ready));
	}
	kdapl_conn_put(conn);
}

/* The first object in a file of debugfs, as a line of words. */
static void edge_view(struct kunit *test, const char *name, char *line, size_t size)
{
	struct vfsmount *mnt = kern_mount(get_fs_type("debugfs"));
	struct kvec vec = { .iov_base = line, .iov_len = size - 1 };
	struct path root;
	struct iov_iter to;
	struct file *file;
	struct kiocb iocb;
	char *second;
	ssize_t n;

	KUNIT_ASSERT_FALSE(test, IS_ERR(mnt));
	root = (struct path) { .mnt = mnt, .dentry = mnt->mnt_root };
	file = file_open_root(&root, name, O_RDONLY, 0);
	KUNIT_ASSERT_FALSE(test, IS_ERR(file));
	init_sync_kiocb(&iocb, file);
	iov_iter_kvec(&to, ITER_DEST, &vec, 1, vec.iov_len);
	n = seq_read_iter(&iocb, &to);
	filp_close(file, NULL);
	flush_delayed_fput();	/* or the file holds the module for a moment longer */
	kern_unmount(mnt);
	KUNIT_ASSERT_GT(test, n, (ssize_t)0);
	line[n] = '\0';
	second = strchr(line, '\n');
	KUNIT_ASSERT_NOT_NULL(test, second);
	memmove(line, second + 1, strlen(second));
	line[strcspn(line, "\n")] = '\0';
}

static void edge_word(struct kunit *test, const char *line, int n, const char *want)
{
	char word[32];

	KUNIT_EXPECT_STREQ_MSG(test, kd_word(line, n, word, sizeof(word)), want,
			       "word %d of '%s'", n, line);
}

/* A Send fails, and what is posted is flushed: three of its kind, and two Receives. */
static void edge_failed_test(struct kunit *test)
{
	struct kd_env *env = kd_connected(test, NULL);
	DAT_LMR_TRIPLET iov = kd_seg(env, KD_RW, 0, 8);
	unsigned long failed = kd_stat(failed), flushed = kd_stat(flushed);
	char line[512];
	int i;

	for (i = 0; i < 4; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_SEND, 1, &iov, i, NULL, 0));
	for (i = 0; i < 2; i++)
		KD_EXPECT_OK(test, kd_post(env->ep, KD_RECV, 1, &iov, i, NULL, 0));
	fake_ib_complete(env->qp, false, IB_WC_RETRY_EXC_ERR);
	kd_expect_dto(test, env->req, 0, DAT_DTO_ERR_TRANSPORT);
	KUNIT_EXPECT_EQ(test, kd_expect_end(env), (u32)DAT_CONNECTION_EVENT_BROKEN);
	for (i = 1; i < 4; i++)
		kd_expect_dto(test, env->req, i, DAT_DTO_ERR_FLUSHED);
	for (i = 0; i < 2; i++)
		kd_expect_dto(test, env->recv, i, DAT_DTO_ERR_FLUSHED);
	KUNIT_EXPECT_EQ(test, kd_stat(failed) - failed, 1UL);
	KUNIT_EXPECT_EQ(test, kd_stat(flushed) - flushed, 5UL);
	edge_view(test, "kdapl/eps", line, sizeof(line));
	edge_word(test, line, 4, "DISCONNECTED");
	edge_word(test, line, 7, "4/4");
	edge_word(test, line, 8, "2/2");
	edge_word(test, line, 9, "5");
	edge_word(test, line, 10, "1");
	edge_word(test, line, 11, "TRANSPORT");
	edge_word(test, line, 12, "BROKEN");
	kd_reset(env);
	edge_view(test, "kdapl/eps", line, sizeof(line));
	edge_word(test, line, 12, "-");
}

/* A buffer that the device never gives back, and a device that has gone. */
static void edge_lost_test(struct kunit *test)
{
	struct sq *sq = sq_open(test, NULL);
	char line[512];

	fake_ib_taken(sq->env.dev, FAKE_IB_TAKEN_LOST);
	sq_srq(sq, 8);
	sq_ep(sq, 0);
	sq_post(sq, 0, 4);
	edge_view(test, "kdapl/srqs", line, sizeof(line));
	edge_word(test, line, 5, "4");
	edge_word(test, line, 6, "4");
	edge_word(test, line, 7, "0");
	edge_word(test, line, 8, "1");
	KUNIT_EXPECT_GE(test, fake_ib_srq_take(sq->env.qp), 0);
	KUNIT_EXPECT_EQ(test, fake_ib_recv(sq->env.qp, 1, false), 0);
	sq_expect(sq, sq->env.recv, 0, 1, DAT_DTO_SUCCESS, 1);
	sq_ep_free(sq, 0);
	sq_settle();
	edge_view(test, "kdapl/srqs", line, sizeof(line));
	edge_word(test, line, 6, "2");
	edge_word(test, line, 7, "1");
	edge_word(test, line, 8, "0");
	edge_view(test, "kdapl/ias", line, sizeof(line));
	edge_word(test, line, 6, "open");
	fake_ib_unplug(sq->env.dev);
	edge_view(test, "kdapl/ias", line, sizeof(line));
	edge_word(test, line, 6, "lost");
}

/*
 * The fake device has no address to listen on, which is found out when the handle exists. A
 * request may come before the call returns, and names a handle that its consumer has to know.
 */
static void edge_sp_handle_test(struct kunit *test)
{
	struct sockaddr_in addr = { .sin_family = AF_INET, .sin_port = htons(7) };
	DAT_COMM comm = { AF_INET, SOCK_STREAM, 0 };
	struct kd_env *env = kd_open(test, NULL);
	DAT_EVD_HANDLE evd = kd_cr_evd(env, 8);
	const DAT_HANDLE mark = test;
	DAT_HANDLE handle = mark, psp;
	DAT_CONN_QUAL qual = 7;
	struct kdapl_sp *sp;

	addr.sin_addr.s_addr = htonl(0xc0000201);
#define NO_ADDRESS(call)	KD_EXPECT_RET(test, call, DAT_INVALID_ADDRESS,		\
					      DAT_INVALID_ADDRESS_UNREACHABLE)
	NO_ADDRESS(dat_psp_create(env->ia, 7, evd, DAT_PSP_CONSUMER_FLAG, &handle));
	NO_ADDRESS(dat_psp_create(env->ia, 7, evd, DAT_PSP_PROVIDER_FLAG, &handle));
	NO_ADDRESS(dat_psp_create_any(env->ia, &qual, evd, DAT_PSP_CONSUMER_FLAG, &handle));
	NO_ADDRESS(dat_rsp_create(env->ia, 7, DAT_HANDLE_NULL, evd, &handle));
	NO_ADDRESS(dat_csp_create(env->ia, &comm, (DAT_IA_ADDRESS_PTR)&addr, evd, &handle));
	KUNIT_EXPECT_PTR_EQ(test, handle, mark);
	KUNIT_EXPECT_EQ(test, qual, 7ULL);

	psp = kd_psp(env, evd, 8, DAT_PSP_CONSUMER_FLAG);
	sp = kdapl_obj_get(psp, DAT_HANDLE_TYPE_PSP);
	KUNIT_ASSERT_NOT_NULL(test, sp);
	sp->out = &handle;
	KD_EXPECT_OK(test, dat_cr_reject(kd_cr(env, psp, evd), 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, handle, psp);
	handle = mark;
	KD_EXPECT_OK(test, dat_cr_reject(kd_cr(env, psp, evd), 0, NULL));
	KUNIT_EXPECT_PTR_EQ(test, handle, mark);
	kdapl_obj_put(&sp->obj);
	KD_EXPECT_OK(test, dat_psp_free(psp));
	KD_EXPECT_OK(test, dat_evd_free(evd));
}

/* The listener of a registration pair on iWARP is open to anybody for a moment. */
static void edge_reg_door_test(struct kunit *test)
{
	struct kdapl_reg_door door = {};
	struct sockaddr_storage from = {};
	struct sockaddr_in *own = (struct sockaddr_in *)&door.addr, *peer = (void *)&from;
	u8 pdata[KDAPL_REG_NONCE + 4];

	get_random_bytes(door.nonce, sizeof(door.nonce));
	memcpy(pdata, door.nonce, sizeof(door.nonce));
	*own = (struct sockaddr_in) { .sin_family = AF_INET, .sin_port = htons(7) };
	own->sin_addr.s_addr = htonl(0xc0000201);
	*peer = *own;
	peer->sin_port = htons(8);
	KUNIT_EXPECT_FALSE(test, kdapl_reg_admits(&door, &from, NULL, 0));
	KUNIT_EXPECT_FALSE(test, kdapl_reg_admits(&door, &from, pdata, KDAPL_REG_NONCE - 1));
	pdata[KDAPL_REG_NONCE - 1] ^= 1;
	KUNIT_EXPECT_FALSE(test, kdapl_reg_admits(&door, &from, pdata, sizeof(pdata)));
	pdata[KDAPL_REG_NONCE - 1] ^= 1;
	peer->sin_addr.s_addr = htonl(0xc0000202);
	KUNIT_EXPECT_FALSE(test, kdapl_reg_admits(&door, &from, pdata, sizeof(pdata)));
	peer->sin_addr = own->sin_addr;
	KUNIT_EXPECT_TRUE(test, kdapl_reg_admits(&door, &from, pdata, sizeof(pdata)));
	KUNIT_EXPECT_FALSE(test, kdapl_reg_admits(&door, &from, pdata, sizeof(pdata)));
}

static struct kunit_case edge_cases[] = {
	KD_CASE(edge_overflow_test, "EVD-OVF-02: the end of a connection that does not fit"),
	KD_CASE(edge_late_post_test, "EP-RST-02: late posts to a connection that is buried"),
	KD_CASE(edge_failed_test, "STAT-02: failures in debugfs"),
	KD_CASE(edge_lost_test, "SRQ-POST-19: losses in debugfs"),
	KD_CASE(edge_sp_handle_test,
		"PSP-01,PSP-07,RSP-01,CSP-01: when the handle of a service point is written"),
	KD_CASE(edge_reg_door_test, "D-21: a registration pair takes one request, its own"),
	{}
};

KD_SUITE("kdapl-edge", edge_cases, sq_init, sq_exit);
