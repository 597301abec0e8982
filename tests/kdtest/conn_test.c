// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Connections: listeners, requests, every outcome of an attempt, every end. */
#include <linux/in.h>
#include <linux/jiffies.h>

#include "kdtest_conn.h"

#define PRIVATE 300		/* more than any transport carries */
#define SLOW_WRITES 100
#define SLOW_SIZE 65536
#define MANY 100		/* connections, of what goes wrong now and then */

/* ---- listeners ---- */

static void psp_create(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	struct kdt_evd *dto = kdt_evd_new(test, &env->b, DAT_EVD_DTO_FLAG);
	DAT_CONN_QUAL port = kdt_new_port();
	DAT_PSP_HANDLE psp, psp2;
	DAT_PSP_PARAM param = {};
	int i;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_psp_create(env->b.h, port, dto->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CR,
		    dat_psp_create(env->b.h, port, NULL, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_psp_create(env->b.h, 0, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_psp_create(env->b.h, 65536, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_psp_create(env->b.h, port | 1ULL << 32, cr->h, DAT_PSP_CONSUMER_FLAG,
				   &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_psp_create(env->b.h, port, cr->h, 2, &psp));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, NULL));
	if (env->b.prov.ep_creator == DAT_PSP_CREATES_EP_NEVER)
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    dat_psp_create(env->b.h, port, cr->h, DAT_PSP_PROVIDER_FLAG, &psp));

	KDT_OK(test, dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_REFUSED(test, DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE,
		    dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp2));
	KDT_OK(test, dat_psp_query(psp, DAT_PSP_FIELD_ALL, &param));
	KUNIT_EXPECT_PTR_EQ(test, param.ia_handle, env->b.h);
	KUNIT_EXPECT_EQ(test, param.conn_qual, port);
	KUNIT_EXPECT_PTR_EQ(test, param.evd_handle, cr->h);
	KUNIT_EXPECT_EQ(test, (int)param.psp_flags, DAT_PSP_CONSUMER_FLAG);
	KDT_OK(test, dat_psp_query(psp, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_psp_query(psp, 0x10, &param));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_psp_query(psp, DAT_PSP_FIELD_ALL, NULL));
	KDT_OK(test, dat_psp_free(psp));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_PSP, dat_psp_free(psp));
	/* Free again at once. */
	for (i = 0; i < 10; i++) {
		KDT_OK(test, dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
		KDT_OK(test, dat_psp_free(psp));
	}
}

struct opener {
	DAT_IA_HANDLE ia;
	DAT_CONN_QUAL port;
	DAT_EVD_HANDLE evd;
	atomic_t *there, *holders;
	int had, refused;
	DAT_RETURN wrong;
	bool both;
	struct completion done;
};

#define OPENED (KD_SLOW ? 16 : 50)

/* Has the qualifier so many times, now and then long enough for the other one to ask. */
static int opener(void *data)
{
	struct opener *o = data;
	unsigned long end = jiffies + KDT_WAIT;
	DAT_PSP_HANDLE psp;
	DAT_RETURN ret;

	atomic_inc(o->there);
	while (atomic_read(o->there) < 2 && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	while (o->had < OPENED && !o->wrong && time_before(jiffies, end)) {
		ret = dat_psp_create(o->ia, o->port, o->evd, DAT_PSP_CONSUMER_FLAG, &psp);
		if (ret == DAT_ERROR(DAT_CONN_QUAL_IN_USE, DAT_NO_SUBTYPE)) {
			o->refused++;
			schedule_timeout_uninterruptible(1);
			continue;
		}
		if (ret == DAT_SUCCESS) {
			if (atomic_inc_return(o->holders) != 1)
				o->both = true;
			if (o->had++ % 8 == 0)
				schedule_timeout_uninterruptible(1);
			atomic_dec(o->holders);
			ret = dat_psp_free(psp);
		}
		o->wrong = ret;
	}
	complete(&o->done);
	return kdt_until_stopped();
}

/* Two who create and free the same: each time one of them has it. */
static void psp_beside(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct opener *o = kunit_kcalloc(test, 2, sizeof(*o), GFP_KERNEL);
	atomic_t *count = kunit_kcalloc(test, 2, sizeof(*count), GFP_KERNEL);
	struct kdt_evd *cr = kdt_evd_new(test, &env->b, DAT_EVD_CR_FLAG);
	DAT_CONN_QUAL port = kdt_new_port();
	struct task_struct *task[2];
	DAT_PSP_HANDLE psp;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, o);
	KUNIT_ASSERT_NOT_NULL(test, count);
	for (i = 0; i < 2; i++) {
		o[i] = (struct opener) {
			.ia = env->b.h, .port = port, .evd = cr->h,
			.there = &count[0], .holders = &count[1],
		};
		init_completion(&o[i].done);
	}
	for (i = 0; i < 2; i++)
		task[i] = kdt_beside(test, opener, &o[i]);
	for (i = 0; i < 2; i++) {
		KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&o[i].done, 2 * KDT_WAIT));
		kdt_stop(test, task[i]);
		KUNIT_EXPECT_EQ_MSG(test, o[i].wrong, 0, "%s %s", kdt_major(o[i].wrong),
				    kdt_minor(o[i].wrong));
		KUNIT_EXPECT_EQ(test, o[i].had, OPENED);
		KUNIT_EXPECT_FALSE(test, o[i].both);
	}
	KUNIT_EXPECT_GT(test, o[0].refused + o[1].refused, 0);
	KDT_OK(test, dat_psp_create(env->b.h, port, cr->h, DAT_PSP_CONSUMER_FLAG, &psp));
	KDT_OK(test, dat_psp_free(psp));
	KDT_OK(test, dat_evd_free(cr->h));
}

static void psp_free(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CR_HANDLE cr = kdt_pair_request(test, pair);
	struct kdt_ep late;

	/* What was delivered stays usable, later requests are refused. */
	KDT_OK(test, dat_psp_free(pair->psp));
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_ep_new(test, &late, &env->a, NULL);
	KDT_OK(test, kdt_connect(&late, &env->b, pair->port));
	kdt_conn(test, &late, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->cr), 0);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_CONNECTED);
	kdt_pair_down(test, pair);
}

/* ---- private data, what a request says ---- */

static void private_data(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	int max = min(env->a.prov.max_private_data_size, env->b.prov.max_private_data_size);
	u8 *there = kunit_kzalloc(test, PRIVATE, GFP_KERNEL);
	u8 *back = kunit_kzalloc(test, PRIVATE, GFP_KERNEL);
	int sizes[] = { 0, 1, 16, max - 1, max };
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CONNECTION_EVENT_DATA *conn;
	DAT_CR_ARRIVAL_EVENT_DATA *arrival;
	DAT_CR_PARAM cr = {};
	DAT_EP_PARAM ep = {};
	DAT_EVENT event;
	const u8 *kept;
	int i, n;

	KUNIT_ASSERT_NOT_NULL(test, there);
	KUNIT_ASSERT_NOT_NULL(test, back);
	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		n = sizes[i];
		kdt_fill(there, PRIVATE, i);
		kdt_fill(back, PRIVATE, 100 + i);
		KDT_OK(test, dat_ep_connect(pair->c.h, (DAT_IA_ADDRESS_PTR)&env->b.addr, pair->port,
					    10 * USEC_PER_SEC, n, there, DAT_QOS_BEST_EFFORT, 0));
		memset(there, 0, PRIVATE);		/* copied during the call */
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->cr, &event));
		arrival = &event.event_data.cr_arrival_event_data;
		KUNIT_EXPECT_PTR_EQ(test, arrival->sp_handle.psp_handle, pair->psp);
		KUNIT_EXPECT_EQ(test, arrival->conn_qual, pair->port);
		KUNIT_EXPECT_EQ(test, (int)arrival->truncate_flag, DAT_FALSE);
		KUNIT_ASSERT_NOT_NULL(test, arrival->local_ia_address_ptr);
		KUNIT_EXPECT_TRUE(test, kdt_same_address(arrival->local_ia_address_ptr, &env->b));

		KDT_OK(test, dat_cr_query(arrival->cr_handle, DAT_CR_FIELD_ALL, &cr));
		KUNIT_EXPECT_TRUE(test, kdt_same_address(cr.remote_ia_address_ptr, &env->a));
		KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &ep));
		KUNIT_EXPECT_EQ(test, cr.remote_port_qual, ep.local_port_qual);
		KUNIT_EXPECT_NULL(test, cr.local_ep_handle);
		/* InfiniBand pads with zeros up to its fixed size. */
		KUNIT_EXPECT_GE(test, cr.private_data_size, n);
		if (n) {
			KUNIT_ASSERT_NOT_NULL(test, cr.private_data);
			KUNIT_EXPECT_TRUE(test, kdt_same(cr.private_data, n, i));
		}
		KDT_OK(test, dat_cr_query(arrival->cr_handle, 0, NULL));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
			    dat_cr_query(arrival->cr_handle, 0x20, &cr));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    dat_cr_query(arrival->cr_handle, DAT_CR_FIELD_ALL, NULL));

		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    dat_cr_accept(arrival->cr_handle, pair->s.h, -1, back));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
			    dat_cr_accept(arrival->cr_handle, pair->s.h, PRIVATE, back));
		KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
			    dat_cr_accept(arrival->cr_handle, pair->s.h, 1, NULL));
		KDT_OK(test, dat_cr_accept(arrival->cr_handle, pair->s.h, n, back));
		KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
			    dat_cr_query(arrival->cr_handle, DAT_CR_FIELD_ALL, &cr));
		memset(back, 0, PRIVATE);

		KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.conn, &event));
		KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn = &event.event_data.connect_event_data;
		KUNIT_EXPECT_GE(test, conn->private_data_size, n);
		kept = conn->private_data;
		if (n)
			KUNIT_EXPECT_TRUE(test, kdt_same(kept, n, 100 + i));
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.conn, &event));
		KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, event.event_data.connect_event_data.private_data_size, 0);
		kdt_pair_down(test, pair);
		/* It lives as long as the connection is not reset. */
		if (n)
			KUNIT_EXPECT_TRUE(test, kdt_same(kept, n, 100 + i));
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
}

static void connect_arguments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *buf = kdt_buf_new(test, &env->a, 64);
	DAT_IA_ADDRESS_PTR to = (DAT_IA_ADDRESS_PTR)&env->b.addr;
	struct sockaddr_storage other = {};
	u8 data[4] = {};
	DAT_EP_HANDLE c = pair->c.h, ep;
	u32 t = 10 * USEC_PER_SEC;
	DAT_EP_ATTR attr;

	KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, 77));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2,
		    dat_ep_connect(c, NULL, pair->port, t, 0, NULL, 0, 0));
	other.ss_family = AF_UNIX;
	KDT_TYPE(test, DAT_INVALID_ADDRESS,
		 dat_ep_connect(c, (DAT_IA_ADDRESS_PTR)&other, pair->port, t, 0, NULL, 0, 0));
	other.ss_family = AF_UNSPEC;
	KDT_TYPE(test, DAT_INVALID_ADDRESS,
		 dat_ep_connect(c, (DAT_IA_ADDRESS_PTR)&other, pair->port, t, 0, NULL, 0, 0));
	other.ss_family = AF_INET;
	((struct sockaddr_in *)&other)->sin_addr.s_addr = htonl(0xe0000001);
	KDT_TYPE(test, DAT_INVALID_ADDRESS,
		 dat_ep_connect(c, (DAT_IA_ADDRESS_PTR)&other, pair->port, t, 0, NULL, 0, 0));
	((struct sockaddr_in *)&other)->sin_addr.s_addr = htonl(INADDR_BROADCAST);
	KDT_TYPE(test, DAT_INVALID_ADDRESS,
		 dat_ep_connect(c, (DAT_IA_ADDRESS_PTR)&other, pair->port, t, 0, NULL, 0, 0));
	((struct sockaddr_in *)&other)->sin_addr.s_addr = htonl(INADDR_ANY);
	KDT_TYPE(test, DAT_INVALID_ADDRESS,
		 dat_ep_connect(c, (DAT_IA_ADDRESS_PTR)&other, pair->port, t, 0, NULL, 0, 0));

	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_connect(c, to, 0, t, 0, NULL, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3,
		    dat_ep_connect(c, to, 65536, t, 0, NULL, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG4,
		    dat_ep_connect(c, to, pair->port, 0, 0, NULL, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_ep_connect(c, to, pair->port, t, -1, data, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG5,
		    dat_ep_connect(c, to, pair->port, t, env->a.prov.max_private_data_size + 1,
				   data, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG6,
		    dat_ep_connect(c, to, pair->port, t, 1, NULL, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG7,
		    dat_ep_connect(c, to, pair->port, t, 0, NULL, 0x10, 0));
	KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
		    dat_ep_connect(c, to, pair->port, t, 0, NULL, DAT_QOS_PREMIUM, 0));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG8,
		    dat_ep_connect(c, to, pair->port, t, 0, NULL, 0, 4));
	KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
		    dat_ep_connect(c, to, pair->port, t, 0, NULL, 0,
				   DAT_CONNECT_MULTIPATH_REQUIRED_FLAG));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(c), DAT_EP_STATE_UNCONNECTED);

	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->a.h, env->a.pz, pair->c.recv->h, pair->c.req->h, NULL,
				   &attr, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EVD_CONN,
		    dat_ep_connect(ep, to, pair->port, t, 0, NULL, 0, 0));
	KDT_OK(test, dat_ep_free(ep));
	KDT_OK(test, dat_ep_create(env->a.h, NULL, pair->c.recv->h, pair->c.req->h,
				   pair->c.conn->h, &attr, &ep));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_NOTREADY,
		    dat_ep_connect(ep, to, pair->port, t, 0, NULL, 0, 0));
	KDT_OK(test, dat_ep_free(ep));

	/* After all that: the wish for paths is no reason to refuse, the receive is there. */
	KDT_OK(test, dat_ep_connect(c, to, pair->port, DAT_TIMEOUT_INFINITE, 0, NULL, 0,
				    DAT_CONNECT_MULTIPATH_REQUESTED_FLAG));
	{
		struct kdt_buf *from = kdt_buf_new(test, &env->b, 64);
		DAT_EVENT event;

		KUNIT_ASSERT_TRUE(test, kdt_get(pair->cr, &event));
		KDT_OK(test, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle,
					   pair->s.h, 0, NULL));
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
		KDT_OK(test, kdt_send(&pair->s, from, 0, 64, 1, 0));
		kdt_dto(test, pair->c.recv, &pair->c, 77, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
}

/* ---- attempts that fail ---- */

/* After a failure: D, receives flushed, posts flushed; a reset, and the next attempt works. */
static void after_failure(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *buf)
{
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_DISCONNECTED);
	kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	kdt_dto(test, pair->c.recv, &pair->c, 2, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	KDT_OK(test, kdt_send(&pair->c, buf, 0, 64, 3, 0));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED, 0);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    kdt_connect(&pair->c, pair->s.ia, pair->port));
	KDT_OK(test, dat_ep_reset(pair->c.h));
	if (kdt_state(pair->s.h) != DAT_EP_STATE_UNCONNECTED)
		KDT_OK(test, dat_ep_reset(pair->s.h));
	kdt_pair_connect(test, pair);
	kdt_pair_down(test, pair);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static struct kdt_buf *two_receives(struct kunit *test, struct kdt_pair *pair)
{
	struct kdt_buf *buf = kdt_buf_new(test, pair->c.ia, 64);

	KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, 1));
	KDT_OK(test, kdt_recv(&pair->c, buf, 0, 64, 2));
	return buf;
}

static void nobody_listens(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *buf = two_receives(test, pair);

	KDT_OK(test, kdt_connect(&pair->c, pair->s.ia, kdt_new_port()));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_NON_PEER_REJECTED);
	after_failure(test, pair, buf);
}

static void rejected(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *buf = two_receives(test, pair);
	u8 why[40];
	DAT_CR_HANDLE cr;

	kdt_fill(why, sizeof(why), 9);
	cr = kdt_pair_request(test, pair);
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_cr_reject(cr, -1, why));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG2, dat_cr_reject(cr, PRIVATE, why));
	KDT_REFUSED(test, DAT_INVALID_PARAMETER, DAT_INVALID_ARG3, dat_cr_reject(cr, 1, NULL));
	KDT_OK(test, dat_cr_reject(cr, sizeof(why), why));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR, dat_cr_reject(cr, 0, NULL));
	kdt_rejected(test, &pair->c, sizeof(why), 9);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_UNCONNECTED);
	after_failure(test, pair, buf);
}

static void timed_out(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *buf = two_receives(test, pair);
	unsigned long start = jiffies;
	DAT_EVENT event;

	KDT_OK(test, dat_ep_connect(pair->c.h, (DAT_IA_ADDRESS_PTR)&env->b.addr, pair->port,
				    300 * USEC_PER_MSEC, 0, NULL, DAT_QOS_BEST_EFFORT, 0));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_TIMED_OUT);
	/* By the clock that timers have; it may be late, then others run ahead of it. */
	KUNIT_EXPECT_GE(test, jiffies - start, msecs_to_jiffies(300));

	/* Too late for the server: its accept is taken, and fails. */
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->cr, &event));
	KDT_OK(test, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->s.h, 0,
				   NULL));
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.conn, &event));
	if (env->b.iwarp && event.event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		/* There the answer to the request is all that establishing takes. */
		kdt_end(test, &pair->s);
	else
		KUNIT_EXPECT_EQ(test, (int)event.event_number,
				DAT_CONNECTION_EVENT_ACCEPT_COMPLETION_ERROR);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_DISCONNECTED);
	after_failure(test, pair, buf);
}

static void aborted(struct kunit *test)
{
	static const DAT_CLOSE_FLAGS flags[] = { DAT_CLOSE_ABRUPT_FLAG, DAT_CLOSE_GRACEFUL_FLAG };
	int i;

	for (i = 0; i < 2; i++) {
		struct kdt_pair *pair = kdt_pair_new(test, NULL);
		struct kdt_buf *buf = two_receives(test, pair);
		DAT_CR_HANDLE cr = kdt_pair_request(test, pair);

		KDT_OK(test, dat_ep_disconnect(pair->c.h, flags[i]));
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		KDT_OK(test, dat_cr_reject(cr, 0, NULL));
		after_failure(test, pair, buf);
	}
}

static void no_such_host(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct sockaddr_storage nobody = kdt_nobody_there(&env->b);
	/* RoCE without neighbours to ask: only the consumer's timer ends that soon */
	bool found_out = env->a.iwarp || kdt_ia_asks(&env->a);
	struct kdt_ep ep;
	DAT_EVENT event;

	kdt_ep_new(test, &ep, &env->a, NULL);
	KDT_OK(test, dat_ep_connect(ep.h, (DAT_IA_ADDRESS_PTR)&nobody, 5000, found_out ?
				    DAT_TIMEOUT_INFINITE : 2 * USEC_PER_SEC, 0, NULL,
				    DAT_QOS_BEST_EFFORT, 0));
	KUNIT_ASSERT_TRUE(test, kdt_get_timeout(ep.conn, &event, 2 * KDT_WAIT));
	KUNIT_EXPECT_EQ(test, (int)event.event_number, found_out ?
			DAT_CONNECTION_EVENT_UNREACHABLE : DAT_CONNECTION_EVENT_TIMED_OUT);
	KUNIT_EXPECT_EQ(test, kdt_queued(ep.conn), 0);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep.h), DAT_EP_STATE_DISCONNECTED);
	KDT_OK(test, dat_ep_reset(ep.h));
	kdt_ep_done(test, &ep);
}

/* ---- accepting ---- */

static void accept_errors(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_pair *busy = kdt_pair_up(test);
	DAT_CR_HANDLE cr = kdt_pair_request(test, pair);
	DAT_EP_HANDLE ep;
	DAT_EP_ATTR attr;

	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(cr, NULL, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(cr, env->b.pz, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_CONNECTED,
		    dat_cr_accept(cr, busy->s.h, 0, NULL));
	kdt_pair_down(test, busy);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    dat_cr_accept(cr, busy->s.h, 0, NULL));
	kdt_attr(env, &attr);
	KDT_OK(test, dat_ep_create(env->b.h, env->b.pz, pair->s.recv->h, pair->s.req->h, NULL,
				   &attr, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(cr, ep, 0, NULL));
	KDT_OK(test, dat_ep_free(ep));
	KDT_OK(test, dat_ep_create(env->b.h, NULL, pair->s.recv->h, pair->s.req->h,
				   pair->s.conn->h, &attr, &ep));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP,
		    dat_cr_accept(cr, ep, 0, NULL));
	KDT_OK(test, dat_ep_free(ep));

	/* Refused without effect: the same request is accepted now. */
	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_CR,
		    dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_pair_down(test, pair);
}

struct acceptor {
	DAT_EP_HANDLE ep;
	DAT_RETURN ret;
};

static bool accept_now(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct acceptor *a = evd->priv;

	a->ret = dat_cr_accept(event->event_data.cr_arrival_event_data.cr_handle, a->ep, 0, NULL);
	return true;
}

static void accept_in_upcall(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct acceptor a = { .ep = pair->s.h, .ret = DAT_ABORT };

	pair->cr->priv = &a;
	pair->cr->hook = accept_now;
	KDT_OK(test, kdt_connect(&pair->c, pair->s.ia, pair->port));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
	KDT_OK(test, a.ret);
	kdt_pair_down(test, pair);
	pair->cr->hook = NULL;
}

/* Data from the first instant of the connection on, in both directions. */
static void data_at_once(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *a = kdt_buf_new(test, &env->a, 128);
	struct kdt_buf *b = kdt_buf_new(test, &env->b, 128);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	DAT_CR_HANDLE cr;
	int i;

	for (i = 0; i < 10; i++) {
		kdt_fill(a->p, 64, i);
		kdt_fill(b->p, 64, 1000 + i);
		memset(a->p + 64, 0, 64);
		memset(b->p + 64, 0, 64);
		KDT_OK(test, kdt_recv(&pair->c, a, 64, 64, 1));
		KDT_OK(test, kdt_recv(&pair->s, b, 64, 64, 2));
		cr = kdt_pair_request(test, pair);
		KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
		KDT_OK(test, kdt_send(&pair->c, a, 0, 64, 3, 0));
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
		KDT_OK(test, kdt_send(&pair->s, b, 0, 64, 4, 0));
		kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.recv, &pair->s, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.req, &pair->s, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		KUNIT_EXPECT_TRUE(test, kdt_same(b->p + 64, 64, i));
		KUNIT_EXPECT_TRUE(test, kdt_same(a->p + 64, 64, 1000 + i));
		kdt_pair_down(test, pair);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
}

/* ---- ends ---- */

static void disconnects(struct kunit *test)
{
	static const struct {
		bool client, server;
		DAT_CLOSE_FLAGS flags;
	} who[] = {
		{ true, false, DAT_CLOSE_ABRUPT_FLAG },
		{ true, false, DAT_CLOSE_GRACEFUL_FLAG },
		{ false, true, DAT_CLOSE_ABRUPT_FLAG },
		{ false, true, DAT_CLOSE_GRACEFUL_FLAG },
		{ true, true, DAT_CLOSE_ABRUPT_FLAG },
		{ true, true, DAT_CLOSE_GRACEFUL_FLAG },
	};
	int i;

	for (i = 0; i < ARRAY_SIZE(who); i++) {
		struct kdt_pair *pair = kdt_pair_up(test);

		if (who[i].client)
			KDT_OK(test, dat_ep_disconnect(pair->c.h, who[i].flags));
		if (who[i].server)
			KDT_OK(test, dat_ep_disconnect(pair->s.h, who[i].flags));
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->c.h), DAT_EP_STATE_DISCONNECTED);
		KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_DISCONNECTED);
		/* Nothing more comes, neither from this ... */
		KDT_OK(test, dat_ep_disconnect(pair->c.h, who[i].flags));
		/* ... nor after the fact. */
		kdt_ep_done(test, &pair->c);
		kdt_ep_done(test, &pair->s);
	}
}

static void graceful_finishes_requests(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, KDT_SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, KDT_SIZE);
	int i, n = 16;

	kdt_fill(from->p, KDT_SIZE, 5);
	for (i = 0; i < n; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, i * 4096, 4096, i));
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 16, n));
	for (i = 0; i < n; i++)
		KDT_OK(test, kdt_send(&pair->c, from, i * 4096, 4096, i,
				      i % 2 ? DAT_COMPLETION_SUPPRESS_FLAG : 0));
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 0; i < n; i += 2)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 4096);
	for (i = 0; i < n; i++)
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 4096);
	kdt_dto(test, pair->s.recv, &pair->s, n, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, n * 4096, 5));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* More than goes through a slow link in the time that a device may do nothing. */
static void graceful_takes_its_time(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, SLOW_SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SLOW_SIZE);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	int i;

	kdt_attr(env, &attr);
	attr.max_request_dtos = SLOW_WRITES;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	for (i = 0; i < SLOW_WRITES; i++)
		KDT_OK(test, kdt_write(&pair->c, from, 0, SLOW_SIZE, to, 0, i, 0));
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_GRACEFUL_FLAG));
	for (i = 0; i < SLOW_WRITES; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS,
			SLOW_SIZE);
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* What the upcall of a case does, and with what. */
struct actor {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
	DAT_RETURN ret;
};

static bool speak_first(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct actor *who = evd->priv;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		who->ret = kdt_send(who->ep, who->buf, 0, 16, 1, 0);
	return false;
}

/* The accepting side sends at once, the other one waits for that. */
static void accepting_speaks_first(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *to = kdt_buf_new(test, &env->a, 16);
	struct actor who = { .ep = &pair->s, .buf = kdt_buf_new(test, &env->b, 16) };
	int i;

	pair->s.conn->priv = &who;
	pair->s.conn->hook = speak_first;
	for (i = 0; i < MANY; i++) {
		kdt_fill(who.buf->p, 16, i);
		KDT_OK(test, kdt_recv(&pair->c, to, 0, 16, 2));
		kdt_pair_connect(test, pair);
		KDT_OK(test, who.ret);
		kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 16);
		kdt_dto(test, pair->c.recv, &pair->c, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 16);
		KUNIT_ASSERT_TRUE(test, kdt_same(to->p, 16, i));
		kdt_pair_down(test, pair);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	pair->s.conn->hook = NULL;
}

static bool leave_with_it(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct actor *who = evd->priv;

	if (event->event_data.dto_completion_event_data.status == DAT_DTO_SUCCESS)
		who->ret = dat_ep_disconnect(who->ep->h, DAT_CLOSE_GRACEFUL_FLAG);
	return false;
}

/* Who has its answer leaves gracefully: whoever sent it is not told that it was lost. */
static void leave_with_the_answer(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *to = kdt_buf_new(test, &env->a, 16);
	struct kdt_buf *from = kdt_buf_new(test, &env->b, 16);
	struct actor who = { .ep = &pair->c };
	int i;

	if (env->a.iwarp)
		kunit_skip(test, "on iWARP a Send is done when it has left");
	pair->c.recv->priv = &who;
	pair->c.recv->hook = leave_with_it;
	for (i = 0; i < MANY; i++) {
		KDT_OK(test, kdt_recv(&pair->c, to, 0, 16, 2));
		kdt_pair_connect(test, pair);
		KDT_OK(test, kdt_send(&pair->s, from, 0, 16, 1, 0));
		kdt_dto(test, pair->c.recv, &pair->c, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 16);
		kdt_dto(test, pair->s.req, &pair->s, 1, DAT_DTO_SEND, DAT_DTO_SUCCESS, 16);
		KDT_OK(test, who.ret);
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	pair->c.recv->hook = NULL;
}

static void abrupt_after_graceful(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_up(test);
	DAT_RETURN ret;

	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_GRACEFUL_FLAG));
	/* In DISCONNECT_PENDING or beyond: no requests run, and both calls are harmless. */
	ret = dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(1), 0);
	KUNIT_EXPECT_TRUE_MSG(test, ret == DAT_SUCCESS ||
			      ret == DAT_ERROR(DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCPENDING),
			      "0x%08x", ret);
	if (ret == DAT_SUCCESS)
		kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED, 0);
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

/* Each round flushes what the last one left, in order, before the end of the reset. */
static void twenty_rounds(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_buf *a = kdt_buf_new(test, &env->a, 4096);
	struct kdt_buf *b = kdt_buf_new(test, &env->b, 4096);
	int i, j;

	for (i = 0; i < 20; i++) {
		kdt_fill(a->p, 4096, i);
		for (j = 0; j < 6; j++) {
			KDT_OK(test, kdt_recv(&pair->c, a, 0, 1, j));
			KDT_OK(test, kdt_recv(&pair->s, b, 0, 4096, j));
		}
		kdt_pair_connect(test, pair);
		KDT_OK(test, kdt_send(&pair->c, a, 0, 4096, 100, 0));
		kdt_dto(test, pair->c.req, &pair->c, 100, DAT_DTO_SEND, DAT_DTO_SUCCESS, 4096);
		kdt_dto(test, pair->s.recv, &pair->s, 0, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 4096);
		KUNIT_EXPECT_TRUE(test, kdt_same(b->p, 4096, i));
		KDT_OK(test, dat_ep_disconnect(i % 2 ? pair->c.h : pair->s.h, i / 2 % 2 ?
					       DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG));
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_DISCONNECTED);
		for (j = 0; j < 6; j++)
			kdt_dto(test, pair->c.recv, &pair->c, j, DAT_DTO_RECEIVE,
				DAT_DTO_ERR_FLUSHED, 0);
		for (j = 1; j < 6; j++)
			kdt_dto(test, pair->s.recv, &pair->s, j, DAT_DTO_RECEIVE,
				DAT_DTO_ERR_FLUSHED, 0);
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
	}
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}

static void many_at_once(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_new(test, NULL);
	struct kdt_ep *c = kunit_kcalloc(test, 8, sizeof(*c), GFP_KERNEL);
	struct kdt_ep *s = kunit_kcalloc(test, 8, sizeof(*s), GFP_KERNEL);
	DAT_EVENT event;
	int i;

	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_NOT_NULL(test, s);
	for (i = 0; i < 8; i++) {
		kdt_ep_new(test, &c[i], &env->a, NULL);
		kdt_ep_new(test, &s[i], &env->b, NULL);
	}
	for (i = 0; i < 8; i++)
		KDT_OK(test, kdt_connect(&c[i], &env->b, pair->port));
	for (i = 0; i < 8; i++) {
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->cr, &event));
		KDT_OK(test, dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, s[i].h,
					   0, NULL));
	}
	for (i = 0; i < 8; i++) {
		kdt_conn(test, &c[i], DAT_CONNECTION_EVENT_ESTABLISHED);
		kdt_conn(test, &s[i], DAT_CONNECTION_EVENT_ESTABLISHED);
	}
	for (i = 0; i < 8; i++)
		KDT_OK(test, dat_ep_disconnect(c[i].h, DAT_CLOSE_ABRUPT_FLAG));
	for (i = 0; i < 8; i++) {
		kdt_conn(test, &c[i], DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_conn(test, &s[i], DAT_CONNECTION_EVENT_DISCONNECTED);
		kdt_ep_done(test, &c[i]);
		kdt_ep_done(test, &s[i]);
	}
}

static struct kunit_case cases[] = {
	KD_CASE(psp_create, "PSP-01,PSP-03,PSP-04,PSP-05,PSP-10,PSP-11,SIL-10: listeners"),
	KD_CASE(psp_beside, "PSP-10,PSP-05: two create and free the same one"),
	KD_CASE(psp_free, "PSP-08,PSP-09,CONN-10: a freed listener refuses, its requests live on"),
	KD_CASE(private_data, "CONN-06,CR-QRY-01,CR-ACC-07,EVD-EV-02,EVD-EV-03,EVD-EV-06: data"),
	KD_CASE(connect_arguments, "CONN-03,CONN-04,CONN-05,CONN-07,CONN-08,CONN-12: refusals"),
	KD_CASE(nobody_listens, "EPSM-07,EPSM-30,CONN-10,CONN-15,FLUSH-02: nobody listens"),
	KD_CASE(rejected, "EPSM-06,CR-REJ-01,EVD-EV-04,SIL-11,FLUSH-02: rejected by the peer"),
	KD_CASE(timed_out, "EPSM-09,EPSM-12,EPSM-34,CR-ACC-08,SIL-33: time out, late accept"),
	KD_CASE(aborted, "EPSM-10,EP-DIS-03,EP-DIS-05: disconnect while connecting"),
	KD_CASE(no_such_host, "EPSM-08,SIL-12: a host that does not exist"),
	KD_CASE(accept_errors, "CR-ACC-01,CR-ACC-02,CR-ACC-04,CR-ACC-05,CR-ACC-06: accept"),
	KD_CASE(accept_in_upcall, "CTX-04,EVD-UP-11,CR-ACC-03: accept inside the upcall"),
	KD_CASE(data_at_once, "CR-ACC-10,RECV-14,EPSM-05,EPSM-11,EPSM-32: data at once"),
	KD_CASE(disconnects, "EP-DIS-01,EP-DIS-08,EP-DIS-09,EPSM-14,EPSM-15,EPSM-31: ends"),
	KD_CASE(graceful_finishes_requests, "FLUSH-09,EPSM-16,EPSM-18: graceful finishes requests"),
	KD_CASE(graceful_takes_its_time, "FLUSH-09,EPSM-16: graceful takes the time it needs"),
	KD_CASE(accepting_speaks_first, "EPSM-11,CR-ACC-10: the accepting side speaks first"),
	KD_CASE(leave_with_the_answer, "EPSM-16,EPSM-18: to leave with the answer fails nobody"),
	KD_CASE(abrupt_after_graceful, "EP-DIS-06,EP-DIS-07,EPSM-19: abrupt after graceful"),
	KD_CASE(twenty_rounds, "EP-RST-03,FLUSH-01,EP-CREATE-12,SIL-47: 20 rounds with one EP"),
	KD_CASE(many_at_once, "EPSM-30,PSP-02: eight connections at once"),
	{}
};

struct kunit_suite kdt_conn_suite = {
	.name = "kdtest-conn",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
