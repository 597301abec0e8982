// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Shared Receive Queues: who gets a message, who owns a buffer, what is counted,
 * and what happens to a queue whose connections come, break and go.
 *
 * The servers of several connections share an SRQ of adapter b. Clients never
 * have more under way than there are buffers, unless a case is about that: on
 * iWARP a message without a buffer ends its connection at once.
 */
#include "kdtest_play.h"

#define DTOS	20		/* buffers of the usual SRQ */
#define SLOT	256		/* bytes of a buffer */
#define SLOTS	128		/* the server's memory */

struct rig {
	struct kdt_env *env;
	DAT_SRQ_HANDLE srq;
	struct kdt_buf *to;	/* the server's memory, SLOT bytes at a time */
	struct kdt_buf *from;	/* the clients' */
};

static struct rig *rig_new(struct kunit *test, DAT_COUNT dtos)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = dtos, .max_recv_iov = KDT_IOV,
			      .low_watermark = DAT_SRQ_LW_DEFAULT };
	struct rig *rig = kdt_zalloc(test, sizeof(*rig));

	rig->env = kdt_env(test);
	KUNIT_ASSERT_EQ(test, (int)rig->env->b.prov.srq_supported, DAT_TRUE);
	KDT_OK(test, dat_srq_create(rig->env->b.h, rig->env->b.pz, &attr, &rig->srq));
	rig->to = kdt_buf_new(test, &rig->env->b, SLOTS * SLOT);
	rig->from = kdt_buf_new(test, &rig->env->a, SLOTS * SLOT);
	kdt_fill(rig->from->p, rig->from->len, 1);
	return rig;
}

static DAT_RETURN srq_ep(struct rig *rig, struct kdt_ep *ep, DAT_PZ_HANDLE pz)
{
	DAT_EP_ATTR attr;

	kdt_attr(rig->env, &attr);
	attr.max_recv_dtos = 0;
	attr.max_recv_iov = 9999;	/* EP-CREATE-13: not looked at */
	return dat_ep_create_with_srq(ep->ia->h, pz, ep->recv->h, ep->req->h, ep->conn->h,
				      rig->srq, &attr, &ep->h);
}

/* A listener and two EPs; the server's Receives come from the SRQ, to an EVD of this policy. */
static struct kdt_pair *pair_policy(struct kunit *test, struct rig *rig, int policy)
{
	struct kdt_pair evds = {}, *pair;

	evds.s.recv = kdt_evd_policy(test, &rig->env->b, DAT_EVD_DTO_FLAG, 2 * KDT_DTOS, policy);
	pair = kdt_pair_with(test, &evds, NULL, NULL);
	KDT_OK(test, dat_ep_free(pair->s.h));
	KDT_OK(test, srq_ep(rig, &pair->s, rig->env->b.pz));
	return pair;
}

static struct kdt_pair *pair_unconnected(struct kunit *test, struct rig *rig)
{
	return pair_policy(test, rig, DAT_UPCALL_SINGLE_INSTANCE);
}

static struct kdt_pair *pair_up(struct kunit *test, struct rig *rig)
{
	struct kdt_pair *pair = pair_unconnected(test, rig);

	kdt_pair_connect(test, pair);
	return pair;
}

/* For lists of steps: both servers, B and D, share the SRQ. */
static struct kdt_play *play_new(struct kunit *test, struct rig *rig, struct kdt_pair *one,
				 struct kdt_pair *two)
{
	struct kdt_play *p = kdt_play_new(test, one, SLOTS * SLOT);

	kdt_play_more(test, p, two, SLOTS * SLOT);
	p->srq = rig->srq;
	p->end[B].srq = true;
	p->end[D].srq = true;
	return p;
}

static DAT_RETURN post(struct rig *rig, unsigned int slot, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kdt_seg(rig->to, slot % SLOTS * SLOT, SLOT);

	return dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(cookie));
}

static void post_many(struct kunit *test, struct rig *rig, unsigned int n)
{
	unsigned int i;

	for (i = 0; i < n; i++)
		KDT_OK(test, post(rig, i, i));
}

/* A message, and its Send has completed. */
static void message(struct kunit *test, struct rig *rig, struct kdt_pair *pair, u32 len)
{
	KDT_OK(test, kdt_send(&pair->c, rig->from, 0, len, 77, 0));
	kdt_sent(test, &pair->c, 77, DAT_DTO_SEND, len);
}

/* The next event is a message for this server; tells in which buffer. */
static u64 arrived(struct kunit *test, struct kdt_pair *pair, u32 len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(pair->s.recv, &event), "no message in time");
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, pair->s.h);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE);
	KUNIT_ASSERT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, dto->transfered_length, len);
	return dto->user_cookie.as_64;
}

static DAT_SRQ_PARAM query(struct kunit *test, struct rig *rig)
{
	DAT_SRQ_PARAM param = {};

	KDT_OK(test, dat_srq_query(rig->srq, DAT_SRQ_FIELD_ALL, &param));
	return param;
}

/* The counts are these, now. */
static void counts(struct kunit *test, struct rig *rig, DAT_COUNT available, DAT_COUNT outstanding)
{
	DAT_SRQ_PARAM param = query(test, rig);

	KUNIT_EXPECT_EQ(test, param.available_dto_count, available);
	KUNIT_EXPECT_EQ(test, param.outstanding_dto_count, outstanding);
}

/* What the IA says of SRQs is what the device can. */
static void limits(struct kunit *test)
{
	struct kdt_ia *b = &kdt_env(test)->b;
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 1, .max_recv_iov = 1 };
	DAT_SRQ_HANDLE many[20];
	DAT_RETURN ret;
	int i;

	KUNIT_EXPECT_EQ(test, (int)b->prov.srq_ep_pz_difference_supported,
			b->traits & KDT_SRQ_PD ? DAT_FALSE : DAT_TRUE);
	KUNIT_EXPECT_GE(test, b->attr.max_srqs, (int)ARRAY_SIZE(many));
	KUNIT_EXPECT_GE(test, b->attr.max_ep_per_srq, 4);
	KUNIT_EXPECT_GE(test, b->attr.max_recv_per_srq, 64);
	for (i = 0; i < ARRAY_SIZE(many); i++) {
		KDT_OK(test, dat_srq_create(b->h, b->pz, &attr, &many[i]));
		attr.max_recv_dtos = i < ARRAY_SIZE(many) - 2 ? i + 2 : b->attr.max_recv_per_srq;
	}
	for (i = 0; i < ARRAY_SIZE(many); i++)
		KDT_OK(test, dat_srq_free(many[i]));
	/* No attribute says what a device takes in an SRQ: that many, or resources. */
	attr = (DAT_SRQ_ATTR) { 8, b->attr.max_iov_segments_per_dto, 0 };
	ret = dat_srq_create(b->h, b->pz, &attr, &many[0]);
	if (ret != DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ) || b->iwarp)
		KDT_OK(test, ret);
}

/* ---- messages ---- */

/* Segments in the order of the array, not of the addresses, with gaps; some of them empty. */
static void scatter(struct kunit *test)
{
	static const u32 lens[] = { 0, 1, 9, 10, 11, 12, 110, 111, 112, 160, 161 };
	static const u32 parts[2][KDT_IOV] = { { 10, 1, 100, 50 }, { 0, 30, 0, 131 } };
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig);
	DAT_LMR_TRIPLET iov[KDT_IOV];
	u8 got[161];
	int i, j;

	/* No segments, and nothing but an empty one: an empty message. */
	iov[0] = (DAT_LMR_TRIPLET) { .virtual_address = 0xdeadbeef, .lmr_context = U32_MAX };
	for (i = 0; i < 2; i++) {
		KDT_OK(test, dat_srq_post_recv(rig->srq, i, i ? iov : NULL, kdt_cookie(i)));
		message(test, rig, pair, 0);
		KUNIT_EXPECT_EQ(test, arrived(test, pair, 0), i);
	}
	for (i = 0; i < 2 * ARRAY_SIZE(lens); i++) {
		const u32 *part = parts[i % 2];
		u32 left = lens[i / 2], n;
		u8 *at = got;

		memset(rig->to->p, 0xcc, 4096);
		kdt_fill(rig->from->p, SLOT, i);
		for (j = 0; j < KDT_IOV; j++)
			iov[j] = part[j] ? kdt_seg(rig->to, 1000 - 200 * j + j, part[j]) :
				 (DAT_LMR_TRIPLET) { ~0ULL, 0, U32_MAX };
		KDT_OK(test, dat_srq_post_recv(rig->srq, KDT_IOV, iov, kdt_cookie(i)));
		memset(iov, 0xa5, sizeof(iov));		/* SRQ-POST-10 */
		message(test, rig, pair, left);
		KUNIT_EXPECT_EQ(test, arrived(test, pair, left), i);
		for (j = 0; j < KDT_IOV; j++) {
			u8 *p = rig->to->p + 1000 - 200 * j + j;

			n = min(left, part[j]);
			memcpy(at, p, n);
			at += n;
			left -= n;
			KUNIT_EXPECT_TRUE_MSG(test, kdt_all(p + n, part[j] - n, 0xcc) &&
					      p[-1] == 0xcc && p[part[j]] == 0xcc,
					      "segment %d of %u bytes", j, lens[i / 2]);
		}
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(got, lens[i / 2], i), "%u bytes", lens[i / 2]);
	}
}

#define FLOWS	3
#define WINDOW	4
#define EACH	200

/* Messages of each connection in order, whichever EVD they come to. */
static void order(struct kunit *test)
{
	struct rig *rig = rig_new(test, FLOWS * WINDOW);
	struct kdt_evd *common = kdt_evd_new(test, &rig->env->b, DAT_EVD_DTO_FLAG);
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	u32 sent[FLOWS] = {}, got[FLOWS] = {}, n, flow, *slot;
	struct kdt_pair *pair[FLOWS];
	DAT_EVENT event;
	int i;

	for (i = 0; i < FLOWS; i++) {
		pair[i] = pair_unconnected(test, rig);
		KDT_OK(test, dat_ep_free(pair[i]->s.h));
		pair[i]->s.recv = common;
		KDT_OK(test, srq_ep(rig, &pair[i]->s, rig->env->b.pz));
		kdt_pair_connect(test, pair[i]);
	}
	post_many(test, rig, FLOWS * WINDOW);
	dto = &event.event_data.dto_completion_event_data;
	for (n = 0; n < FLOWS * EACH; n++) {
		for (i = 0; i < FLOWS; i++) {
			/* not so many that the windows stay full */
			while (sent[i] < EACH && sent[i] - got[i] < WINDOW - (n / 8 + i) % 3) {
				u32 at = (i * WINDOW + sent[i] % WINDOW) * SLOT;

				slot = (u32 *)(rig->from->p + at);
				slot[0] = i;
				slot[1] = sent[i]++;
				KDT_OK(test, kdt_send(&pair[i]->c, rig->from, at, 8, 1,
						      KDT_SUPPRESS));
			}
		}
		KUNIT_ASSERT_TRUE_MSG(test, kdt_get(common, &event), "message %u is missing", n);
		KUNIT_ASSERT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
		slot = (u32 *)(rig->to->p + dto->user_cookie.as_64 * SLOT);
		flow = slot[0];
		KUNIT_ASSERT_LT(test, flow, FLOWS);
		KUNIT_ASSERT_PTR_EQ(test, dto->ep_handle, pair[flow]->s.h);
		KUNIT_ASSERT_EQ(test, slot[1], got[flow]++);
		KDT_OK(test, post(rig, dto->user_cookie.as_64, dto->user_cookie.as_64));
	}
	counts(test, rig, FLOWS * WINDOW, FLOWS * WINDOW);
}

/* ---- errors and ends ---- */

/* Nothing more than the connection ended. */
static void still_works(struct kunit *test, struct rig *rig, struct kdt_pair *pair)
{
	KDT_OK(test, post(rig, SLOTS - 1, 4711));
	message(test, rig, pair, 33);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	/* Whichever buffer it was, one has gone. */
	arrived(test, pair, 33);
}

/* A message of 65 bytes into so many, or into none at all; the connection can come back. */
static void does_not_fit(struct kunit *test, bool posted, u32 room)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *bad = pair_up(test, rig), *good = pair_up(test, rig);
	DAT_LMR_TRIPLET iov = kdt_seg(rig->to, 16, room);
	DAT_DTO_COMPLETION_STATUS status;
	DAT_EVENT_NUMBER c, s;
	u64 cookie;

	memset(rig->to->p, 0x55, rig->to->len);
	if (posted)
		KDT_OK(test, dat_srq_post_recv(rig->srq, !!room, &iov, kdt_cookie(8)));
	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, 65, 3, 0));
	c = kdt_end(test, &bad->c);
	s = kdt_end(test, &bad->s);
	status = kdt_any_dto(test, bad->c.req, &cookie);
	KUNIT_EXPECT_EQ(test, cookie, 3);
	if (posted) {
		KUNIT_EXPECT_EQ(test, (int)s, DAT_CONNECTION_EVENT_BROKEN);
		KUNIT_EXPECT_EQ(test, (int)kdt_any_dto(test, bad->s.recv, &cookie),
				DAT_DTO_ERR_LOCAL_LENGTH);
		KUNIT_EXPECT_EQ(test, cookie, 8);
	} else if (!rig->env->a.iwarp) {
		/* As with an empty queue of an EP's own: the sender hears, or only the end. */
		KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_ERR_RECEIVER_NOT_READY);
		KUNIT_EXPECT_EQ(test, (int)c, DAT_CONNECTION_EVENT_BROKEN);
	}
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p, 16, 0x55));
	KUNIT_EXPECT_TRUE(test, kdt_all(rig->to->p + 16 + room, rig->to->len - 16 - room, 0x55));
	still_works(test, rig, good);
	KUNIT_EXPECT_EQ(test, kdt_queued(bad->s.recv), 0);
	kdt_reset(test, &bad->c, &bad->s);
	kdt_pair_connect(test, bad);
	still_works(test, rig, bad);
	counts(test, rig, 0, 0);
}

static void longer_than_the_buffer(struct kunit *test)
{
	does_not_fit(test, true, 64);
	does_not_fit(test, true, 0);
}

static void nothing_posted(struct kunit *test)
{
	does_not_fit(test, false, 0);
}

/* Messages that had arrived are kept, buffers nobody took serve the others, flushed is none. */
static void disconnect(struct kunit *test)
{
	static const struct kdt_step steps[] = {
		{ POST, B, SLOT, 8 },
		{ MESSAGE, A, 1 },
		{ MESSAGE, A, 2 },
		{ COUNTS, B, 6, 8 },
		{ LEAVE, A },
		{ COUNTS, B, 6, 8 },
		{ CAME, B, 1 },
		{ CAME, B, 2 },
		{ NOTHING, B },
		{ COUNTS, B, 6, 6 },
		{ MESSAGE, C, 10, .times = 6 },
		{ CAME, D, 10, .times = 6 },
		{ COUNTS, D, 0, 0 },
		/* In DISCONNECTED the SRQ is still there to be posted to. */
		{ POST, B, SLOT, 1 },
		{ LEAVE, C },
		{ COUNTS, B, 1, 1 },
		{ NOTHING, D },
	};
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *one = pair_policy(test, rig, DAT_UPCALL_DISABLE);
	struct kdt_pair *two = pair_up(test, rig), *idle = pair_unconnected(test, rig);

	kdt_pair_connect(test, one);
	kdt_play(test, play_new(test, rig, one, two), steps);
	KUNIT_EXPECT_EQ(test, kdt_queued(idle->s.recv), 0);
}

/* The SRQ's EP connects: an attempt that fails takes no buffers and flushes none. */
static void active_side(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_ia *a = &rig->env->a;
	struct kdt_pair back = {		/* from b to a */
		.c = pair_unconnected(test, rig)->s,
		.cr = kdt_evd_new(test, a, DAT_EVD_CR_FLAG),
		.port = kdt_new_port(),
	};
	DAT_BOOLEAN idle = DAT_FALSE;
	u32 i;

	kdt_ep_new(test, &back.s, a, NULL);
	post_many(test, rig, 4);
	KDT_OK(test, dat_psp_create(a->h, back.port, back.cr->h, DAT_PSP_CONSUMER_FLAG, &back.psp));
	KDT_OK(test, dat_cr_reject(kdt_pair_request(test, &back), 0, NULL));
	kdt_conn(test, &back.c, DAT_CONNECTION_EVENT_PEER_REJECTED);
	KDT_OK(test, post(rig, 4, 4));		/* in DISCONNECTED */
	counts(test, rig, 5, 5);
	KUNIT_EXPECT_EQ(test, kdt_queued(back.c.recv), 0);
	KDT_OK(test, dat_ep_reset(back.c.h));
	kdt_pair_connect(test, &back);
	for (i = 0; i < 5; i++) {
		struct kdt_pair reversed = { .c = back.s, .s = back.c };

		message(test, rig, &reversed, 20 + i);
		arrived(test, &reversed, 20 + i);
	}
	KDT_OK(test, dat_ep_get_status(back.c.h, NULL, &idle, NULL));
	KUNIT_EXPECT_EQ(test, (int)idle, DAT_TRUE);
	kdt_pair_down(test, &back);
	KDT_OK(test, dat_ep_free(back.c.h));
	/* With no EP at all the SRQ is there to be posted to. */
	KDT_OK(test, post(rig, 0, 0));
	counts(test, rig, 1, 1);
}

/* Connections torn in the middle of messages; buffers may go with them (D-15). */
static void torn(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_unconnected(test, rig);
	struct kdt_buf *big = kdt_buf_new(test, &rig->env->b, KDT_SIZE);
	struct kdt_buf *src = kdt_buf_new(test, &rig->env->a, KDT_SIZE);
	DAT_LMR_TRIPLET iov = kdt_seg(big, 0, KDT_SIZE);
	int limit = query(test, rig).max_recv_dtos, round, i;
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_SRQ_PARAM param;
	DAT_EVENT event;

	dto = &event.event_data.dto_completion_event_data;
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
		for (i = 0; i < 8; i++)
			kdt_any_dto(test, pair->c.req, NULL);
		kdt_reset(test, &pair->c, &pair->s);
		/* only now: an upcall may run on another CPU until the reset has waited for it */
		while (kdt_get_timeout(pair->s.recv, &event, 0)) {
			KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, pair->s.h);
			KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64, 1);
			if (dto->status != DAT_DTO_SUCCESS)
				KUNIT_EXPECT_EQ(test, (int)dto->status, DAT_DTO_ERR_FLUSHED);
		}
		param = query(test, rig);
		KUNIT_EXPECT_LE(test, param.outstanding_dto_count, limit);
		KUNIT_EXPECT_EQ(test, param.available_dto_count, param.outstanding_dto_count);
	}
	/* The SRQ is as good as ever: one buffer at a time, three times around. */
	kdt_pair_connect(test, pair);
	for (i = 0; i < 3 * limit; i++) {
		while (dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(1)) == DAT_SUCCESS)
			;
		message(test, rig, pair, 100);
		arrived(test, pair, 100);
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
	struct goodbye bye;
	struct kdt_pair *pair;

	for (round = 0; round < GOODBYES; round++) {
		pair = pair_unconnected(test, rig);
		memset(&bye, 0, sizeof(bye));
		init_completion(&bye.gone);
		pair->s.req->priv = &bye;
		pair->s.conn->priv = pair;
		pair->s.conn->hook = say_goodbye;
		for (i = 0; i < LAST_WORDS; i++)
			KDT_OK(test, kdt_recv(&pair->c, rig->from, SLOT, SLOT, i));
		kdt_pair_connect(test, pair);
		/* one more than there will be messages, for a message that is cut */
		posted = query(test, rig).outstanding_dto_count;
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
		/* what soft-RoCE loses with a connection (D-15) */
		missing += posted - kdt_queued(pair->s.recv) -
			   query(test, rig).outstanding_dto_count;
		pair->s.conn->hook = NULL;
		kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
		KDT_OK(test, dat_ep_free(pair->c.h));
		KDT_OK(test, dat_psp_free(pair->psp));
	}
	KUNIT_EXPECT_LE(test, missing, rig->env->b.traits & KDT_SRQ_PD ? GOODBYES : 0U);
	/* what was freed in an upcall goes after it */
	KUNIT_EXPECT_TRUE(test, kdt_until(dat_srq_free(rig->srq) == DAT_SUCCESS));
}

/* ---- size and watermarks ---- */

/* With buffers on it and an EP: all that was asked for, or nothing. Without them: all. */
static void grow(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_up(test, rig);
	int limit = query(test, rig).max_recv_dtos, now, i;
	DAT_RETURN ret;
	u64 slot;

	post_many(test, rig, 5);
	ret = dat_srq_resize(rig->srq, 16 * DTOS);
	now = query(test, rig).max_recv_dtos;
	if (ret != DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_SRQ))
		KDT_OK(test, ret);
	KUNIT_EXPECT_TRUE(test, ret ? now == limit : now >= 16 * DTOS);
	counts(test, rig, 5, 5);
	for (i = 0; i < 5; i++) {
		message(test, rig, pair, 40);
		arrived(test, pair, 40);
	}
	KDT_OK(test, dat_ep_free(pair->s.h));
	KDT_OK(test, dat_srq_resize(rig->srq, 16 * DTOS));
	limit = query(test, rig).max_recv_dtos;
	KUNIT_EXPECT_GE(test, limit, 16 * DTOS);
	post_many(test, rig, limit);
	KDT_TYPE(test, DAT_INSUFFICIENT_RESOURCES, post(rig, 0, 0));
	pair = pair_up(test, rig);
	for (i = 0; i < 2 * limit; i++) {
		message(test, rig, pair, 40);
		slot = arrived(test, pair, 40);
		KDT_OK(test, post(rig, slot, slot));
	}
	counts(test, rig, limit, limit);
}

/* The three of them, on an EVD nobody looks at: once each, and the hard one ends it. */
static void watermarks(struct kunit *test)
{
	static const struct kdt_step before[] = {
		{ LINK, A },
		{ POST, B, SLOT, 8 },
		{ LOW, B, 5 },
		{ MESSAGE, A, 1 },
		{ MESSAGE, A, 1 },
		{ MESSAGE, C, 9 },	/* another EP's count */
		{ CAME, D, 9 },
		{ COUNTS, B, 5, 7 },
		{ CALM, B },
		{ MESSAGE, A, 1 },
		{ LOW_EVENT, B },
		{ SOFT_EVENT, B },
		{ MESSAGE, A, 1 },
		{ COUNTS, B, 3, 7 },
		{ CALM, B },
		{ STATE, B, 0, DAT_EP_STATE_CONNECTED },
	}, after[] = {
		/* What had arrived is kept, and nobody else is concerned. */
		{ CAME, B, 1, .times = 5 },
		{ NOTHING, B },
		{ MESSAGE, C, 9 },
		{ CAME, D, 9 },
		{ COUNTS, B, 1, 1 },
		/* The setting is used up: all is well until it is set again. */
		{ RESET, A },
		{ LINK, A },
		{ POST, B, SLOT, 6 },
		{ MESSAGE, A, 1, .times = 6 },
		{ COUNTS, B, 1, 7 },
		{ CALM, B },
		{ STATE, B, 0, DAT_EP_STATE_CONNECTED },
	};
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *bad = pair_policy(test, rig, DAT_UPCALL_DISABLE);
	struct kdt_pair *good = pair_up(test, rig);
	struct kdt_play *p = play_new(test, rig, bad, good);

	/* Before there is a connection: it holds as soon as there is one. */
	KDT_OK(test, dat_ep_set_watermark(bad->s.h, 2, 4));
	kdt_play(test, p, before);
	KDT_OK(test, kdt_send(&bad->c, rig->from, 0, 1, 5, 0));
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &bad->s), DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &bad->c);
	kdt_any_dto(test, bad->c.req, NULL);
	kdt_play(test, p, after);
	/* with upcalls, too */
	KDT_OK(test, dat_ep_set_watermark(good->s.h, DAT_WATERMARK_INFINITE, 0));
	KDT_OK(test, kdt_send(&good->c, rig->from, 0, 9, 5, 0));
	KUNIT_EXPECT_EQ(test, (int)kdt_end(test, &good->s), DAT_CONNECTION_EVENT_BROKEN);
	kdt_end(test, &good->c);
	arrived(test, good, 9);
}

/* ---- Protection Zones ---- */

static void zones(struct kunit *test)
{
	struct rig *rig = rig_new(test, DTOS);
	struct kdt_pair *pair = pair_unconnected(test, rig);
	struct kdt_ia *b = &rig->env->b;
	struct kdt_buf *theirs;
	DAT_LMR_TRIPLET iov;
	DAT_PZ_HANDLE pz;
	DAT_RETURN ret;

	KDT_OK(test, dat_pz_create(b->h, &pz));
	KDT_OK(test, kdt_buf_open(rig->env, b, pz, 4096, KDT_RIGHTS, &theirs));
	KDT_OK(test, dat_ep_free(pair->s.h));
	ret = srq_ep(rig, &pair->s, pz);
	if (!b->prov.srq_ep_pz_difference_supported) {
		KUNIT_EXPECT_EQ(test, DAT_GET_TYPE(ret), (u32)DAT_INVALID_PARAMETER);
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
	KUNIT_EXPECT_EQ(test, arrived(test, pair, 100), 7);
	KUNIT_EXPECT_TRUE(test, !memcmp(rig->to->p, rig->from->p, 100));
	iov = kdt_seg(theirs, 0, 16);
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION,
		 dat_srq_post_recv(rig->srq, 1, &iov, kdt_cookie(1)));
	KDT_TYPE(test, DAT_PROTECTION_VIOLATION, kdt_send(&pair->s, rig->to, 0, 16, 1, 0));
	kdt_message(test, &pair->s, theirs, &pair->c, rig->from, 100);
	kdt_put(test, &pair->c, rig->from, 0, 100, theirs, 0);
}

/* ---- in upcalls ---- */

struct again {
	struct rig *rig;
	atomic_t posted;
	DAT_RETURN ret;
};

/* The buffer that is being reported is posted again from its own upcall. */
static bool again_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct again *a = evd->priv;

	if (dto->status == DAT_DTO_SUCCESS)
		a->ret |= post(a->rig, dto->user_cookie.as_64, dto->user_cookie.as_64);
	atomic_inc(&a->posted);
	return true;
}

/* The SRQ is full: an upcall must find room for the buffer it was given. */
static void in_upcalls(struct kunit *test)
{
	struct rig *rig = rig_new(test, 16);
	struct again *a = kdt_zalloc(test, sizeof(*a));
	int limit = query(test, rig).max_recv_dtos, i;
	struct kdt_pair *pair = pair_up(test, rig);

	a->rig = rig;
	pair->s.recv->priv = a;
	pair->s.recv->hook = again_hook;
	post_many(test, rig, limit);
	for (i = 1; i <= 300; i++) {
		message(test, rig, pair, 64);
		/* On iWARP a Send has left before it has arrived. */
		KUNIT_ASSERT_TRUE(test, wait_event_timeout(pair->s.recv->wait,
							   atomic_read(&a->posted) == i, KDT_WAIT));
	}
	KDT_OK(test, a->ret);
	counts(test, rig, limit, limit);
	kdt_pair_down(test, pair);
	pair->s.recv->hook = NULL;
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
	KD_CASE(grow, "SRQ-RSZ-02: larger"),
	KD_CASE(watermarks,
		"SRQ-LW-01,SRQ-LW-02,EP-WM-02..06,SIL-28,SIL-29: low, soft, hard, once each"),
	KD_CASE(zones, "EP-CREATE-14,SRQ-CR-05,SRQ-CR-03: different PZs of SRQ and EP"),
	KD_CASE(in_upcalls, "SRQ-POST-11,CTX-02,SIL-37: 300 posts from upcalls to a full SRQ"),
	{}
};

struct kunit_suite kdt_srq_suite = { .name = "kdtest-srq", KDT_CASES };
