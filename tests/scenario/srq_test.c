// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared Receive Queues: who gets a message, who owns a buffer, what is counted,
 * and what happens to a queue whose connections come, break and go.
 *
 * The servers of several connections share an SRQ of adapter b. Clients never
 * have more under way than there are buffers, unless a case is about that: on
 * iWARP a message without a buffer ends its connection at once.
 */
#include <linux/completion.h>
#include <linux/delay.h>
#include <linux/kthread.h>
#include <linux/slab.h>

#include "kdtest.h"

#define DTOS	20		/* buffers of the usual SRQ */
#define SLOT	256		/* bytes of a buffer */
#define SLOTS	128		/* the server's memory */

struct rig {
	struct kdt_env *env;
	DAT_SRQ_HANDLE srq;
	struct kdt_buf *to;	/* the server's memory, SLOT bytes at a time */
	struct kdt_buf *from;	/* the clients' */
};

static DAT_SRQ_ATTR srq_attr(DAT_COUNT dtos, DAT_COUNT iov, DAT_COUNT low)
{
	return (DAT_SRQ_ATTR) {
		.max_recv_dtos = dtos,
		.max_recv_iov = iov,
		.low_watermark = low,
	};
}

static struct rig *rig_new(struct kunit *test, DAT_COUNT dtos)
{
	struct rig *rig = kunit_kzalloc(test, sizeof(*rig), GFP_KERNEL);
	DAT_SRQ_ATTR attr = srq_attr(dtos, KDT_IOV, DAT_SRQ_LW_DEFAULT);

	KUNIT_ASSERT_NOT_NULL(test, rig);
	rig->env = kdt_env(test);
	KUNIT_ASSERT_EQ(test, (int)rig->env->b.prov.srq_supported, DAT_TRUE);
	KDT_OK(test, dat_srq_create(rig->env->b.h, rig->env->b.pz, &attr, &rig->srq));
	rig->to = kdt_buf_new(test, &rig->env->b, SLOTS * SLOT);
	rig->from = kdt_buf_new(test, &rig->env->a, SLOTS * SLOT);
	kdt_fill(rig->from->p, rig->from->len, 1);
	return rig;
}

static void ep_attr(struct rig *rig, DAT_EP_ATTR *attr)
{
	kdt_attr(rig->env, attr);
	attr->max_recv_dtos = 0;
	attr->max_recv_iov = 9999;	/* EP-CREATE-13: not looked at */
}

/* A listener and two EPs; the server's Receives come from the SRQ. */
static struct kdt_pair *pair_unconnected(struct kunit *test, struct rig *rig,
					 struct kdt_evd *recv)
{
	struct kdt_pair *pair = kunit_kzalloc(test, sizeof(*pair), GFP_KERNEL);
	struct kdt_ia *b = &rig->env->b;
	DAT_EP_ATTR attr;

	KUNIT_ASSERT_NOT_NULL(test, pair);
	kdt_ep_new(test, &pair->c, &rig->env->a, NULL);
	pair->s.ia = b;
	pair->s.recv = recv ?: kdt_evd_new(test, b, DAT_EVD_DTO_FLAG);
	pair->s.req = kdt_evd_new(test, b, DAT_EVD_DTO_FLAG);
	pair->s.conn = kdt_evd_new(test, b, DAT_EVD_CONNECTION_FLAG);
	ep_attr(rig, &attr);
	KDT_OK(test, dat_ep_create_with_srq(b->h, b->pz, pair->s.recv->h, pair->s.req->h,
					    pair->s.conn->h, rig->srq, &attr, &pair->s.h));
	pair->cr = kdt_evd_new(test, b, DAT_EVD_CR_FLAG);
	pair->port = kdt_new_port();
	KDT_OK(test, dat_psp_create(b->h, pair->port, pair->cr->h, DAT_PSP_CONSUMER_FLAG,
				    &pair->psp));
	return pair;
}

static struct kdt_pair *pair_up(struct kunit *test, struct rig *rig, struct kdt_evd *recv)
{
	struct kdt_pair *pair = pair_unconnected(test, rig, recv);

	kdt_pair_connect(test, pair);
	return pair;
}

/* Receives nobody looks at unless the test does. */
static struct kdt_evd *quiet_evd(struct kunit *test, struct rig *rig)
{
	return kdt_evd_policy(test, &rig->env->b, DAT_EVD_DTO_FLAG, 2 * KDT_DTOS,
			      DAT_UPCALL_DISABLE);
}

static DAT_RETURN post(struct rig *rig, unsigned int slot, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kdt_seg(rig->to, slot % SLOTS * SLOT, SLOT);

	return dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(cookie));
}

static void post_many(struct kunit *test, struct rig *rig, unsigned int first, unsigned int n)
{
	unsigned int i;

	for (i = first; i < first + n; i++)
		KDT_OK(test, post(rig, i, i));
}

/* A message, and its Send has completed. */
static void message(struct kunit *test, struct rig *rig, struct kdt_pair *pair, u32 len)
{
	KDT_OK(test, kdt_send(&pair->c, rig->from, 0, len, 77, 0));
	kdt_dto(test, pair->c.req, &pair->c, 77, DAT_DTO_SEND, DAT_DTO_SUCCESS, len);
}

/* The next event of an EVD is a message for this EP; tells in which buffer. */
static u64 arrived(struct kunit *test, struct kdt_evd *evd, struct kdt_ep *ep, u32 len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "no message in time");
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd->h);
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, ep->h);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE);
	KUNIT_ASSERT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, dto->transfered_length, len);
	return dto->user_cookie.as_64;
}

static void query(struct kunit *test, struct rig *rig, DAT_SRQ_PARAM *param)
{
	memset(param, 0, sizeof(*param));
	KDT_OK(test, dat_srq_query(rig->srq, DAT_SRQ_FIELD_ALL, param));
}

static DAT_COUNT limit_of(struct kunit *test, struct rig *rig)
{
	DAT_SRQ_PARAM param;

	query(test, rig, &param);
	return param.max_recv_dtos;
}

/* The counts are these, now. */
static void counts(struct kunit *test, struct rig *rig, DAT_COUNT available, DAT_COUNT outstanding)
{
	DAT_SRQ_PARAM param;

	query(test, rig, &param);
	KUNIT_EXPECT_EQ(test, param.available_dto_count, available);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, outstanding);
}

/* The counts will be these: messages are on their way. */
static void counts_become(struct kunit *test, struct rig *rig, DAT_COUNT available,
			  DAT_COUNT outstanding)
{
	unsigned long end = jiffies + KDT_WAIT;
	DAT_SRQ_PARAM param;

	do {
		query(test, rig, &param);
		if (param.available_dto_count == available &&
		    param.outstanding_dto_count == outstanding)
			return;
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	KUNIT_EXPECT_EQ(test, param.available_dto_count, available);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, outstanding);
}

/* The next asynchronous event is this watermark's. */
static void watermark(struct kunit *test, struct rig *rig, DAT_HANDLE handle, int reason)
{
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_dequeue(rig->env->b.async, &event),
			      "no asynchronous event in time");
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle, handle);
	KUNIT_EXPECT_EQ(test, (int)data->reason, reason);
}

/* None is there; one that came late would be found by the next call. */
static void no_watermark(struct kunit *test, struct rig *rig)
{
	DAT_EVENT event;

	schedule_timeout_uninterruptible(3);
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(dat_evd_dequeue(rig->env->b.async, &event)) ==
				DAT_QUEUE_EMPTY);
}

/* What the IA says of SRQs is what the device can. */
static void limits(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	DAT_SRQ_HANDLE srq, many[20];
	DAT_SRQ_ATTR attr;
	DAT_RETURN ret;
	int i;

	KUNIT_EXPECT_EQ(test, (int)b->prov.srq_ep_pz_difference_supported,
			b->traits & KDT_SRQ_PD ? DAT_FALSE : DAT_TRUE);
	KUNIT_EXPECT_GE(test, b->attr.max_srqs, (int)ARRAY_SIZE(many));
	KUNIT_EXPECT_GE(test, b->attr.max_ep_per_srq, 4);
	KUNIT_EXPECT_GE(test, b->attr.max_recv_per_srq, 64);
	for (i = 0; i < ARRAY_SIZE(many); i++) {
		attr = srq_attr(1 + i, 1, 0);
		KDT_OK(test, dat_srq_create(b->h, b->pz, &attr, &many[i]));
	}
	for (i = 0; i < ARRAY_SIZE(many); i++)
		KDT_OK(test, dat_srq_free(many[i]));
	attr = srq_attr(b->attr.max_recv_per_srq, 1, 0);
	KDT_OK(test, dat_srq_create(b->h, b->pz, &attr, &srq));
	KDT_OK(test, dat_srq_free(srq));
	/* No attribute says what a device takes in an SRQ: that many, or resources. */
	attr = srq_attr(8, b->attr.max_iov_segments_per_dto, 0);
	ret = dat_srq_create(b->h, b->pz, &attr, &srq);
	if (ret == DAT_SUCCESS)
		KDT_OK(test, dat_srq_free(srq));
	else
		KUNIT_EXPECT_TRUE(test, ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
							 DAT_RESOURCE_SRQ));
	if (b->iwarp)
		KDT_OK(test, ret);
}

/* ---- messages ---- */

static void scatter(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, NULL);
	static const u32 part[KDT_IOV] = { 10, 1, 100, 50 };
	static const u32 lens[] = { 0, 1, 9, 10, 11, 12, 110, 111, 112, 160, 161 };
	DAT_LMR_TRIPLET empty = { .virtual_address = 0xdeadbeef, .lmr_context = U32_MAX };
	DAT_LMR_TRIPLET iov[KDT_IOV];
	u8 *at, got[161];
	u32 left, n;
	int i, j;

	/* No segments, and nothing but an empty one: an empty message. */
	KDT_OK(test, dat_srq_post_recv(rig->srq, 0, NULL, kdt_cookie(1)));
	KDT_OK(test, dat_srq_post_recv(rig->srq, 1, &empty, kdt_cookie(1)));
	for (i = 0; i < 2; i++) {
		message(test, rig, pair, 0);
		KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, 0), 1);
	}
	/* Empty ones between others. */
	memset(rig->to->p, 0xcc, 200);
	iov[0] = empty;
	iov[1] = kdt_seg(rig->to, 0, 20);
	iov[2] = empty;
	iov[3] = kdt_seg(rig->to, 100, 20);
	KDT_OK(test, dat_srq_post_recv(rig->srq, KDT_IOV, iov, kdt_cookie(3)));
	message(test, rig, pair, 30);
	KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, 30), 3);
	KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p, rig->from->p, 20));
	KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p + 100, rig->from->p + 20, 10));
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p + 20, 80, 0xcc));
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p + 110, 90, 0xcc));
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		memset(rig->to->p, 0xcc, 4096);
		kdt_fill(rig->from->p, SLOT, i);
		/* In the order of the array, not of the addresses, with gaps. */
		for (j = 0; j < KDT_IOV; j++)
			iov[j] = kdt_seg(rig->to, 1000 - 200 * j + j, part[j]);
		KDT_OK(test, dat_srq_post_recv(rig->srq, KDT_IOV, iov, kdt_cookie(i)));
		memset(iov, 0xa5, sizeof(iov));		/* SRQ-POST-10 */
		message(test, rig, pair, lens[i]);
		KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, lens[i]), i);
		left = lens[i];
		at = got;
		for (j = 0; j < KDT_IOV; j++) {
			u8 *p = rig->to->p + 1000 - 200 * j + j;

			n = min(left, part[j]);
			memcpy(at, p, n);
			at += n;
			left -= n;
			KUNIT_EXPECT_TRUE_MSG(test, kdt_all(p + n, part[j] - n, 0xcc),
					      "segment %d of %u bytes", j, lens[i]);
			KUNIT_EXPECT_TRUE(test, p[-1] == 0xcc && p[part[j]] == 0xcc);
		}
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(got, lens[i], i), "%u bytes", lens[i]);
	}
}

#define FLOWS	3
#define WINDOW	4
#define EACH	200

/* Messages of each connection in order, on EVDs of their own and on a common one. */
static void in_order(struct kunit *test, bool common)
{
	struct rig *rig = rig_new(test, FLOWS * WINDOW);
	struct kdt_evd *recv = common ? kdt_evd_new(test, &rig->env->b, DAT_EVD_DTO_FLAG) : NULL;
	u32 sent[FLOWS] = {}, got[FLOWS] = {}, n, total = 0;
	struct kdt_pair *pair[FLOWS];
	u32 *slot;
	DAT_EVENT event;
	int i, j;

	for (i = 0; i < FLOWS; i++)
		pair[i] = pair_up(test, rig, recv);
	post_many(test, rig, 0, FLOWS * WINDOW);
	for (n = 0, i = 0; n < FLOWS * EACH; i = (i + 1) % FLOWS) {
		while (sent[i] < EACH && sent[i] - got[i] < WINDOW) {
			u32 at = (i * WINDOW + sent[i] % WINDOW) * SLOT;

			slot = (u32 *)(rig->from->p + at);
			slot[0] = i;
			slot[1] = sent[i]++;
			total++;
			KDT_OK(test, kdt_send(&pair[i]->c, rig->from, at, 8, 1,
					      DAT_COMPLETION_SUPPRESS_FLAG));
		}
		/* Not so many that the windows stay full. */
		for (j = 0; j < 2 && n < FLOWS * EACH; j++) {
			struct kdt_evd *evd = pair[i]->s.recv;
			const DAT_DTO_COMPLETION_EVENT_DATA *dto;
			u32 flow;

			if (common ? n == total : got[i] == sent[i])
				break;
			KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "message %u is missing",
					      n);
			dto = &event.event_data.dto_completion_event_data;
			KUNIT_ASSERT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
			slot = (u32 *)(rig->to->p + dto->user_cookie.as_64 * SLOT);
			flow = slot[0];
			KUNIT_ASSERT_LT(test, flow, FLOWS);
			KUNIT_ASSERT_PTR_EQ(test, dto->ep_handle, pair[flow]->s.h);
			KUNIT_ASSERT_EQ(test, slot[1], got[flow]);
			got[flow]++;
			n++;
			KDT_OK(test, post(rig, dto->user_cookie.as_64, dto->user_cookie.as_64));
		}
	}
	for (i = 0; i < FLOWS; i++)
		KUNIT_EXPECT_EQ(test, got[i], EACH);
	counts(test, rig, FLOWS * WINDOW, FLOWS * WINDOW);
}

static void order(struct kunit *test)
{
	in_order(test, false);
	in_order(test, true);
}

/* ---- errors and ends ---- */

/* Nothing more than the connection ended. */
static void still_works(struct kunit *test, struct rig *rig, struct kdt_pair *pair)
{
	KDT_OK(test, post(rig, SLOTS - 1, 4711));
	message(test, rig, pair, 33);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	/* Whichever buffer it was, one has gone. */
	arrived(test, pair->s.recv, &pair->s, 33);
}

static void too_long(struct kunit *test, u32 room)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *bad = pair_up(test, rig, NULL);
	struct kdt_pair *good = pair_up(test, rig, NULL);
	DAT_LMR_TRIPLET iov = kdt_seg(rig->to, 16, room);
	u64 cookie;

	memset(rig->to->p, 0x55, rig->to->len);
	KDT_OK(test, dat_srq_post_recv(rig->srq, !!room, &iov, kdt_cookie(8)));
	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, room + 1, 3, 0));
	kdt_end(test, &bad->c);
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &bad->s), DAT_CONNECTION_EVENT_BROKEN);
	KUNIT_EXPECT_EQ(test, (int)kdt_any_dto(test, bad->s.recv, &cookie),
			DAT_DTO_ERR_LOCAL_LENGTH);
	KUNIT_EXPECT_EQ(test, cookie, 8);
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p, 16, 0x55));
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p + 16 + room, rig->to->len - 16 - room, 0x55));
	kdt_any_dto(test, bad->c.req, &cookie);
	KUNIT_EXPECT_EQ(test, cookie, 3);
	still_works(test, rig, good);
	KUNIT_EXPECT_EQ(test, kdt_queued(bad->s.recv), 0);
	/* And it can come back. */
	KDT_OK(test, dat_ep_reset(bad->c.h));
	KDT_OK(test, dat_ep_reset(bad->s.h));
	kdt_pair_connect(test, bad);
	still_works(test, rig, bad);
	counts(test, rig, 0, 0);
}

static void longer_than_the_buffer(struct kunit *test)
{
	too_long(test, 64);
	too_long(test, 0);
}

static void nothing_posted(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *bad = pair_up(test, rig, NULL);
	struct kdt_pair *good = pair_up(test, rig, NULL);
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT_NUMBER end;

	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, 64, 3, 0));
	end = kdt_end(test, &bad->c);
	kdt_end(test, &bad->s);
	status = kdt_any_dto(test, bad->c.req, NULL);
	/* As with an empty queue of an EP's own: the sender hears, or only the end. */
	if (!rig->env->a.iwarp) {
		KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_ERR_RECEIVER_NOT_READY);
		KUNIT_EXPECT_EQ(test, (int)end, DAT_CONNECTION_EVENT_BROKEN);
	}
	KUNIT_EXPECT_EQ(test, kdt_queued(bad->s.recv), 0);
	still_works(test, rig, good);
	counts(test, rig, 0, 0);
	KDT_OK(test, dat_ep_reset(bad->c.h));
	KDT_OK(test, dat_ep_reset(bad->s.h));
	kdt_pair_connect(test, bad);
	still_works(test, rig, bad);
}

/* Messages that had arrived are kept, buffers nobody took serve the others. */
static void disconnect(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *one = pair_up(test, rig, recv);
	struct kdt_pair *two = pair_up(test, rig, NULL);
	struct kdt_pair *idle = pair_unconnected(test, rig, NULL);
	DAT_EVENT event;
	int i;

	post_many(test, rig, 0, 8);
	message(test, rig, one, 1);
	message(test, rig, one, 2);
	counts_become(test, rig, 6, 8);
	kdt_pair_down(test, one);
	counts(test, rig, 6, 8);
	arrived(test, recv, &one->s, 1);
	arrived(test, recv, &one->s, 2);
	/* No flush: it had taken no other. Nor has one that was never connected. */
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(dat_evd_dequeue(recv->h, &event)) == DAT_QUEUE_EMPTY);
	KUNIT_EXPECT_EQ(test, kdt_queued(idle->s.recv), 0);
	counts(test, rig, 6, 6);
	for (i = 0; i < 6; i++) {
		message(test, rig, two, 10 + i);
		arrived(test, two->s.recv, &two->s, 10 + i);
	}
	counts(test, rig, 0, 0);
	/* In DISCONNECTED the SRQ is still there to be posted to. */
	KDT_OK(test, post(rig, 0, 1));
	kdt_pair_down(test, two);
	counts(test, rig, 1, 1);
	KUNIT_EXPECT_EQ(test, kdt_queued(two->s.recv), 0);
}

/* The SRQ's EP connects: an attempt that fails takes no buffers and flushes none. */
static void active_side(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *a = &rig->env->a;
	struct kdt_pair *pair = pair_unconnected(test, rig, NULL);
	struct kdt_pair back = {		/* from b to a */
		.c = pair->s,
		.cr = kdt_evd_new(test, a, DAT_EVD_CR_FLAG),
		.port = kdt_new_port(),
	};
	DAT_BOOLEAN idle;
	int i;

	kdt_ep_new(test, &back.s, a, NULL);
	post_many(test, rig, 0, 4);
	KDT_OK(test, dat_ep_get_status(back.c.h, NULL, &idle, NULL));
	KUNIT_EXPECT_EQ(test, (int)idle, DAT_TRUE);
	KDT_OK(test, dat_psp_create(a->h, back.port, back.cr->h, DAT_PSP_CONSUMER_FLAG, &back.psp));
	KDT_OK(test, dat_cr_reject(kdt_pair_request(test, &back), 0, NULL));
	kdt_conn(test, &back.c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KDT_OK(test, post(rig, 4, 4));		/* in DISCONNECTED */
	counts(test, rig, 5, 5);
	KUNIT_EXPECT_EQ(test, kdt_queued(back.c.recv), 0);
	KDT_OK(test, dat_ep_reset(back.c.h));
	kdt_pair_connect(test, &back);
	for (i = 0; i < 5; i++) {
		KDT_OK(test, kdt_send(&back.s, rig->from, 0, 20 + i, 9, 0));
		kdt_dto(test, back.s.req, &back.s, 9, DAT_DTO_SEND, DAT_DTO_SUCCESS, 20 + i);
		arrived(test, back.c.recv, &back.c, 20 + i);
	}
	KDT_OK(test, dat_ep_get_status(back.c.h, NULL, &idle, NULL));
	KUNIT_EXPECT_EQ(test, (int)idle, DAT_TRUE);
	kdt_pair_down(test, &back);
	KDT_OK(test, dat_ep_free(back.c.h));
	/* With no EP at all the SRQ is there to be posted to. */
	KDT_OK(test, post(rig, 0, 0));
	counts(test, rig, 1, 1);
}

#define ROUNDS	5

/* Connections torn in the middle of messages; buffers may go with them (D-15). */
static void torn(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_unconnected(test, rig, NULL);
	struct kdt_buf *big = kdt_buf_new(test, &rig->env->b, KDT_SIZE);
	struct kdt_buf *src = kdt_buf_new(test, &rig->env->a, KDT_SIZE);
	DAT_LMR_TRIPLET iov = kdt_seg(big, 0, KDT_SIZE);
	int limit = limit_of(test, rig), round, i;
	DAT_SRQ_PARAM param;
	DAT_EVENT event;

	for (round = 0; round < 20; round++) {
		kdt_pair_connect(test, pair);
		while (dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(1)) == DAT_SUCCESS)
			;
		for (i = 0; i < 8; i++)
			KDT_OK(test, kdt_send(&pair->c, src, 0, KDT_SIZE, 2, 0));
		if (round & 1)	/* at some point of the stream */
			KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
		KDT_OK(test, dat_ep_disconnect(round & 2 ? pair->c.h : pair->s.h,
					       DAT_CLOSE_ABRUPT_FLAG));
		kdt_end(test, &pair->c);
		kdt_end(test, &pair->s);
		/* Whatever came: in order, and failures only behind successes. */
		while (kdt_get_timeout(pair->s.recv, &event, 0)) {
			DAT_DTO_COMPLETION_EVENT_DATA *dto;

			dto = &event.event_data.dto_completion_event_data;
			KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, pair->s.h);
			KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64, 1);
			if (dto->status != DAT_DTO_SUCCESS)
				KUNIT_EXPECT_EQ(test, (int)dto->status, DAT_DTO_ERR_FLUSHED);
		}
		for (i = 0; i < 8; i++)
			KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.req, &event));
		KDT_OK(test, dat_ep_reset(pair->c.h));
		KDT_OK(test, dat_ep_reset(pair->s.h));
		query(test, rig, &param);
		KUNIT_EXPECT_LE(test, param.outstanding_dto_count, limit);
		KUNIT_EXPECT_EQ(test, param.available_dto_count, param.outstanding_dto_count);
	}
	/* The SRQ is as good as ever: one buffer at a time, three times around. */
	kdt_pair_connect(test, pair);
	for (i = 0; i < 3 * limit; i++) {
		while (dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(1)) == DAT_SUCCESS)
			;
		message(test, rig, pair, 100);
		arrived(test, pair->s.recv, &pair->s, 100);
	}
	kdt_pair_down(test, pair);
	KDT_OK(test, dat_ep_free(pair->s.h));
	KDT_OK(test, dat_srq_free(rig->srq));
	KDT_OK(test, dat_lmr_free(big->lmr));
}

/* ---- the end of an SRQ ---- */

/* What a server does in the upcall of DISCONNECTED, beside completions in softirq. */
struct goodbye {
	struct completion gone;
	DAT_RETURN drained, freed;
	unsigned int sends;		/* seen by then */
};

static bool say_goodbye(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_CONNECTION_EVENT_DATA *conn = &event->event_data.connect_event_data;
	struct kdt_pair *pair = evd->priv;
	struct goodbye *bye = pair->s.req->priv;

	if (event->event_number == DAT_CONNECTION_EVENT_ESTABLISHED)
		return false;
	bye->drained = kdat_ep_drain(conn->ep_handle);
	bye->sends = kdt_queued(pair->s.req);
	bye->freed = dat_ep_free(conn->ep_handle);
	complete(&bye->gone);
	return false;
}

#define GOODBYES	20	/* connections */
#define LAST_WORDS	4	/* messages each way */

/* Nothing is lost, whichever EVD is faster, and each buffer is somewhere. */
static void drained(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	unsigned int round, i, posted = 0, missing = 0;
	DAT_RETURN ret = DAT_SUCCESS;
	struct goodbye bye;
	struct kdt_pair *pair;
	DAT_SRQ_PARAM param;

	for (round = 0; round < GOODBYES; round++) {
		pair = pair_unconnected(test, rig, NULL);
		memset(&bye, 0, sizeof(bye));
		init_completion(&bye.gone);
		pair->s.req->priv = &bye;
		pair->s.conn->priv = pair;
		pair->s.conn->hook = say_goodbye;
		for (i = 0; i < LAST_WORDS; i++)
			KDT_OK(test, kdt_recv(&pair->c, rig->from, SLOT, SLOT, i));
		kdt_pair_connect(test, pair);
		/* one more than there will be messages, for a message that is cut */
		query(test, rig, &param);
		posted = param.outstanding_dto_count;
		for (; posted < LAST_WORDS + 1; posted++)
			KDT_OK(test, post(rig, posted, posted));
		for (i = 0; i < LAST_WORDS; i++) {
			KDT_OK(test, kdt_send(&pair->c, rig->from, 0, SLOT, i, 0));
			KDT_OK(test, kdt_send(&pair->s, rig->to, 0, SLOT, i, 0));
		}
		KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
		KUNIT_ASSERT_TRUE(test, wait_for_completion_timeout(&bye.gone, KDT_WAIT));
		KDT_OK(test, bye.drained);
		KDT_OK(test, bye.freed);
		KUNIT_EXPECT_EQ_MSG(test, bye.sends, LAST_WORDS, "round %u", round);
		query(test, rig, &param);
		/* what soft-RoCE loses with a connection (D-15) */
		missing += posted - kdt_queued(pair->s.recv) - param.outstanding_dto_count;
		pair->s.conn->hook = NULL;
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		KDT_OK(test, dat_ep_free(pair->c.h));
		KDT_OK(test, dat_psp_free(pair->psp));
	}
	KUNIT_EXPECT_LE(test, missing, rig->env->b.traits & KDT_SRQ_PD ? GOODBYES : 0U);
	/* what was freed in an upcall goes after it */
	for (i = 0; i < 10000 && (ret = dat_srq_free(rig->srq)) != DAT_SUCCESS; i++)
		usleep_range(1000, 2000);
	KDT_OK(test, ret);
}

/* All of it at once, with messages on their way. */
static void close_ia(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *b = &rig->env->b;
	DAT_SRQ_HANDLE srq = rig->srq;
	struct kdt_pair *pair[3];
	int i, j;

	for (i = 0; i < 3; i++)
		pair[i] = pair_up(test, rig, NULL);
	post_many(test, rig, 0, DTOS);
	for (i = 0; i < 3; i++) {
		for (j = 0; j < 4; j++)
			KDT_OK(test, kdt_send(&pair[i]->c, rig->from, 0, SLOT, 1, 0));
	}
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_IA_IN_USE,
		    dat_ia_close(b->h, DAT_CLOSE_GRACEFUL_FLAG));
	KDT_OK(test, dat_ia_close(b->h, DAT_CLOSE_ABRUPT_FLAG));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, dat_srq_query(srq, 0, NULL));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, post(rig, 0, 0));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_SRQ, dat_srq_free(srq));
	KDT_REFUSED(test, DAT_INVALID_HANDLE, DAT_INVALID_HANDLE_EP, dat_ep_free(pair[0]->s.h));
	for (i = 0; i < 3; i++) {
		kdt_end(test, &pair[i]->c);
		for (j = 0; j < 4; j++)
			kdt_any_dto(test, pair[i]->c.req, NULL);
	}
	b->h = DAT_HANDLE_NULL;
}

/* ---- size and watermarks ---- */

/* With buffers on it and an EP: all that was asked for, or nothing. Without them: all. */
static void grow(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, NULL);
	int limit = limit_of(test, rig), i;
	DAT_RETURN ret;
	u64 slot;

	post_many(test, rig, 0, 5);
	ret = dat_srq_resize(rig->srq, 16 * DTOS);
	if (ret == DAT_SUCCESS) {
		KUNIT_EXPECT_GE(test, limit_of(test, rig), 16 * DTOS);
	} else {
		KUNIT_EXPECT_TRUE(test, ret == DAT_ERROR(DAT_INSUFFICIENT_RESOURCES,
							 DAT_RESOURCE_SRQ));
		KUNIT_EXPECT_EQ(test, limit_of(test, rig), limit);
	}
	counts(test, rig, 5, 5);
	for (i = 0; i < 5; i++) {
		message(test, rig, pair, 40);
		arrived(test, pair->s.recv, &pair->s, 40);
	}
	KDT_OK(test, dat_ep_free(pair->s.h));
	KDT_OK(test, dat_srq_resize(rig->srq, 16 * DTOS));
	limit = limit_of(test, rig);
	KUNIT_EXPECT_GE(test, limit, 16 * DTOS);
	post_many(test, rig, 0, limit);
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, post(rig, 0, 0));
	pair = pair_up(test, rig, NULL);
	for (i = 0; i < 2 * limit; i++) {
		message(test, rig, pair, 40);
		slot = arrived(test, pair->s.recv, &pair->s, 40);
		KDT_OK(test, post(rig, slot, slot));
	}
	counts(test, rig, limit, limit);
}

#define INF DAT_WATERMARK_INFINITE

/* The three of them, on an EVD nobody looks at: once each, and the hard one ends it. */
static void watermarks(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_evd *recv = quiet_evd(test, rig);
	struct kdt_pair *bad = pair_unconnected(test, rig, recv);
	struct kdt_pair *good = pair_up(test, rig, NULL);
	DAT_EVENT event;
	int i;

	/* Before there is a connection: it holds as soon as there is one. */
	KDT_OK(test, dat_ep_set_watermark(bad->s.h, 2, 4));
	kdt_pair_connect(test, bad);
	post_many(test, rig, 0, 8);
	KDT_OK(test, dat_srq_set_lw(rig->srq, 5));
	message(test, rig, bad, 1);
	message(test, rig, bad, 1);
	message(test, rig, good, 9);	/* another EP's count */
	arrived(test, good->s.recv, &good->s, 9);
	counts_become(test, rig, 5, 7);
	no_watermark(test, rig);
	message(test, rig, bad, 1);
	watermark(test, rig, rig->srq, DAT_SRQ_LOW_WATERMARK_EVENT);
	watermark(test, rig, bad->s.h, DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
	message(test, rig, bad, 1);
	counts_become(test, rig, 3, 7);
	no_watermark(test, rig);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(bad->s.h), DAT_EP_STATE_CONNECTED);
	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, 1, 5, 0));
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &bad->s), DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &bad->c);
	kdt_any_dto(test, bad->c.req, NULL);
	/* What had arrived is kept, and nobody else is concerned. */
	for (i = 0; i < 5; i++)
		arrived(test, recv, &bad->s, 1);
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(dat_evd_dequeue(recv->h, &event)) == DAT_QUEUE_EMPTY);
	message(test, rig, good, 9);
	arrived(test, good->s.recv, &good->s, 9);
	counts(test, rig, 1, 1);
	/* The setting is used up: all is well until it is set again, with upcalls, too. */
	KDT_OK(test, dat_ep_reset(bad->c.h));
	KDT_OK(test, dat_ep_reset(bad->s.h));
	kdt_pair_connect(test, bad);
	post_many(test, rig, 0, 6);
	for (i = 0; i < 6; i++)
		message(test, rig, bad, 1);
	counts_become(test, rig, 1, 7);
	no_watermark(test, rig);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(bad->s.h), DAT_EP_STATE_CONNECTED);
	KDT_OK(test, dat_ep_set_watermark(good->s.h, INF, 0));
	KDT_OK(test, kdt_send(&good->c, rig->from, 0, 9, 5, 0));
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &good->s), DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &good->c);
	arrived(test, good->s.recv, &good->s, 9);
}

/* ---- Protection Zones ---- */

static void zones(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_env *env = rig->env;
	struct kdt_ia *b = &env->b;
	struct kdt_pair *pair = pair_unconnected(test, rig, NULL);
	struct kdt_buf *theirs;
	DAT_PZ_HANDLE pz;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;

	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_OK(test, kdt_buf_open(env, b, pz, 4096, KDT_RIGHTS, &theirs));
	KDT_OK(test, dat_ep_free(pair->s.h));
	ep_attr(rig, &attr);
	ret = dat_ep_create_with_srq(b->h, pz, pair->s.recv->h, pair->s.req->h, pair->s.conn->h,
				     rig->srq, &attr, &pair->s.h);
	if (!b->prov.srq_ep_pz_difference_supported) {
		KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(ret) == DAT_INVALID_PARAMETER);
		/* A refused create holds nothing. */
		KDT_OK(test, dat_lmr_free(theirs->lmr));
		KDT_OK(test, dat_pz_free(pz));
		KDT_OK(test, dat_srq_free(rig->srq));
		return;
	}
	KDT_OK(test, ret);
	kdt_pair_connect(test, pair);
	/* Receives obey the SRQ's, everything else the EP's. */
	KDT_OK(test, post(rig, 0, 7));
	message(test, rig, pair, 100);
	KUNIT_EXPECT_EQ(test, arrived(test, pair->s.recv, &pair->s, 100), 7);
	KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p, rig->from->p, 100));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
		 dat_srq_post_recv(rig->srq, 1, &(DAT_LMR_TRIPLET) {
				   (uintptr_t)theirs->p, 16, theirs->lctx }, kdt_cookie(1)));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_send(&pair->s, rig->to, 0, 16, 1, 0));
	KDT_OK(test, kdt_recv(&pair->c, rig->from, 0, 100, 1));
	KDT_OK(test, kdt_send(&pair->s, theirs, 0, 100, 2, 0));
	kdt_dto(test, pair->s.req, &pair->s, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 100);
	kdt_dto(test, pair->c.recv, &pair->c, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 100);
	KDT_OK(test, kdt_write(&pair->c, rig->from, 0, 100, theirs, 0, 3, 0));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 100);
}

/* ---- concurrency and contexts ---- */

/* All calls of class ANY that have to do with an SRQ, with interrupts off. */
static void under_a_lock(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig, quiet_evd(test, rig));
	DAT_RETURN ret = DAT_SUCCESS, full = DAT_SUCCESS;
	int limit = limit_of(test, rig), i;
	DAT_SRQ_PARAM param = {};
	unsigned long flags;
	DAT_CONTEXT context;
	DAT_COUNT n, span;
	DAT_EVENT event;
	spinlock_t lock;	/* a consumer's, protects nothing here */

	/* ESTABLISHED can be seen a moment before completions become events: wait for one */
	KDT_OK(test, post(rig, 0, 0));
	message(test, rig, pair, 5);
	arrived(test, pair->s.recv, &pair->s, 5);
	KDT_OK(test, post(rig, 0, 0));
	message(test, rig, pair, 5);
	counts_become(test, rig, 0, 1);
	spin_lock_init(&lock);
	spin_lock_irqsave(&lock, flags);
	ret |= dat_ep_recv_query(pair->s.h, &n, &span);
	ret |= dat_ep_set_watermark(pair->s.h, 0, INF);
	ret |= dat_srq_set_lw(rig->srq, 1);
	ret |= dat_evd_dequeue(pair->s.recv->h, &event);
	for (i = 0; i < limit; i++)
		ret |= post(rig, i, i);
	full = post(rig, 0, 0);
	ret |= dat_srq_query(rig->srq, DAT_SRQ_FIELD_ALL, &param);
	ret |= dat_get_consumer_context(rig->srq, &context);
	spin_unlock_irqrestore(&lock, flags);
	KDT_OK(test, ret);
	KUNIT_EXPECT_TRUE(test, DAT_GET_TYPE(full) == DAT_INSUFFICIENT_RESOURCES);
	KUNIT_EXPECT_EQ(test, n, 1);
	KUNIT_EXPECT_EQ(test, param.available_dto_count, limit);
	for (i = 0; i < limit; i++) {
		message(test, rig, pair, 6);
		arrived(test, pair->s.recv, &pair->s, 6);
	}
}

struct again {
	struct rig *rig;
	atomic_t left, posted;
	DAT_RETURN ret;
};

/* The buffer that is being reported is posted again from its own upcall. */
static bool again_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct again *a = evd->priv;
	DAT_RETURN ret;

	if (dto->status != DAT_DTO_SUCCESS)
		return false;
	ret = post(a->rig, dto->user_cookie.as_64, dto->user_cookie.as_64);
	if (ret != DAT_SUCCESS)
		a->ret = ret;
	atomic_inc(&a->posted);
	return atomic_dec_return(&a->left) > 0;
}

static void in_upcalls(struct kunit *test)
{
	struct rig *rig = rig_new(test, 16);
	struct again *a = kunit_kzalloc(test, sizeof(*a), GFP_KERNEL);
	int limit = limit_of(test, rig), i, j;
	struct kdt_pair *pair[2];

	KUNIT_ASSERT_NOT_NULL(test, a);
	a->rig = rig;
	for (i = 0; i < 2; i++) {
		pair[i] = pair_up(test, rig, NULL);
		pair[i]->s.recv->priv = a;
		pair[i]->s.recv->hook = again_hook;
	}
	/* The SRQ is full: an upcall must find room for the buffer it was given. */
	post_many(test, rig, 0, limit);
	atomic_set(&a->left, INT_MAX);
	for (j = 0; j < 300; j++) {
		for (i = 0; i < 2; i++)
			KDT_OK(test, kdt_send(&pair[i]->c, rig->from, 0, 64, 1, 0));
		for (i = 0; i < 2; i++)
			kdt_dto(test, pair[i]->c.req, &pair[i]->c, 1, DAT_DTO_SEND,
				DAT_DTO_SUCCESS, 64);
		/* On iWARP a Send has left before it has arrived. */
		for (i = 0; atomic_read(&a->posted) < 2 * (j + 1) && i < 30 * HZ; i++)
			schedule_timeout_uninterruptible(1);
		KUNIT_ASSERT_EQ(test, atomic_read(&a->posted), 2 * (j + 1));
	}
	KDT_OK(test, a->ret);
	counts(test, rig, limit, limit);
	kdt_pair_down(test, pair[0]);
	kdt_pair_down(test, pair[1]);
	pair[0]->s.recv->hook = NULL;
	pair[1]->s.recv->hook = NULL;
}

static struct kunit_case cases[] = {
	KD_CASE(limits, "SRQ-CR-04,SRQ-QRY-03,SIL-29: what the IA says of SRQs"),
	KD_CASE(scatter,
		"SRQ-POST-02,SRQ-POST-03,SRQ-POST-10,SRQ-POST-12,EP-POST-12: filled in order"),
	KD_CASE(order, "SRQ-POST-13,EP-POST-21: order of each connection"),
	KD_CASE(longer_than_the_buffer,
		"SRQ-POST-17,SRQ-POST-02: a message too long for its buffer breaks one connection"),
	KD_CASE(nothing_posted, "SRQ-CR-06,EP-WM-05: a message, and the SRQ is empty"),
	KD_CASE(disconnect, "SRQ-POST-18,SRQ-POST-19: buffers outlive connections"),
	KD_CASE(active_side,
		"SRQ-POST-15,SRQ-POST-18,SRQ-POST-19,EP-STA-01: the SRQ's EP connects"),
	KD_CASE(torn, "SRQ-POST-19,SRQ-POST-12: connections torn in the middle of messages"),
	KD_CASE(drained, "STAT-05,EP-FREE-06: drained, then freed in the upcall of DISCONNECTED"),
	KD_CASE(close_ia, "IA-CLOSE-02,SRQ-FREE-01,GEN-05: closing with an SRQ in use"),
	KD_CASE(grow, "SRQ-RSZ-02: larger"),
	KD_CASE(watermarks,
		"SRQ-LW-01,SRQ-LW-02,EP-WM-02..06,SIL-28,SIL-29: low, soft, hard, once each"),
	KD_CASE(zones, "EP-CREATE-14,SRQ-CR-05,SRQ-CR-03: different PZs of SRQ and EP"),
	KD_CASE(under_a_lock, "SRQ-POST-11,CTX-01,CTX-03: calls with interrupts off"),
	KD_CASE(in_upcalls, "SRQ-POST-11,CTX-02,SIL-37: 600 posts from upcalls to a full SRQ"),
	{}
};

struct kunit_suite kdt_srq_suite = {
	.name = "kdtest-srq",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
