// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Writes with immediate data: the data, the number that comes with it, and the order of both
 * among messages. Where there are none, that they are refused.
 */
#include "kdtest_mem.h"

#define LEN	(16 * PAGE_SIZE)

static bool has_immed(const struct kdt_ia *ia)
{
	const DAT_NAMED_ATTR *attr = ia->prov.provider_specific_attr;
	int i;

	for (i = 0; i < ia->prov.num_provider_specific_attr; i++) {
		if (!strcmp(attr[i].name, KDAT_ATTR_IMMED_DATA))
			return !strcmp(attr[i].value, "TRUE");
	}
	return false;
}

static void need_immed(struct kunit *test)
{
	if (!has_immed(&kdt_env(test)->a))
		kunit_skip(test, "no immediate data");
}

static DAT_RETURN write_immed(struct kdt_ep *ep, struct kdt_buf *buf, u32 len,
			      const DAT_RMR_TRIPLET *remote, u64 cookie, int flags, u32 immed)
{
	DAT_LMR_TRIPLET iov = kdt_seg(buf, 0, len);

	return kdat_ep_post_rdma_write_immed(ep->h, !!len, &iov, kdt_cookie(cookie), remote, flags,
					     immed);
}

/* The next Receive of the server is that of a Write of so many bytes. */
static void told(struct kunit *test, struct kdt_ep *s, u64 cookie, u32 len, u32 immed)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto;
	const struct kdat_immed *found;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(s->recv, &event), "no event in time");
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, s->h);
	KUNIT_EXPECT_EQ(test, dto->user_cookie.as_64, cookie);
	KUNIT_EXPECT_EQ(test, (int)dto->status, DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ(test, dto->transfered_length, 0);
	found = kdat_event_immed(&event);
	KUNIT_ASSERT_NOT_NULL(test, found);
	KUNIT_EXPECT_EQ(test, found->data, immed);
	KUNIT_EXPECT_EQ(test, found->length, len);
}

/* What the upcall of a Receive finds in the memory of the Write. */
struct at_once {
	struct kdt_buf *to;
	u32 len, seed;
	int right, wrong;
};

static bool look_at_once(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct at_once *at = evd->priv;

	if (kdat_event_immed(event)) {
		if (kdt_same(at->to->p, at->len, at->seed))
			at->right++;
		else
			at->wrong++;
	}
	return false;
}

/* All lengths, into the buffers of the EP: when the event comes the data is there. */
static void lengths(struct kunit *test)
{
	static const u32 lens[] = { 0, 1, 3, 1023, 1024, 1025, 4096, 5000, LEN - 1, LEN };
	static const u32 values[] = { 0, 1, 0x80000000, 0xffffffff, 0x12345678 };
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from, *to, *in;
	struct kdt_pair *pair;
	DAT_RMR_TRIPLET remote;
	struct at_once at = {};
	int i, k, n = 0;
	bool silent;

	need_immed(test);
	pair = kdt_mem_pair(test, NULL);
	from = kdt_buf_new(test, &env->a, LEN);
	to = kdt_buf_new(test, &env->b, LEN);
	in = kdt_buf_new(test, &env->b, 64);
	at.to = to;
	pair->s.recv->priv = &at;
	pair->s.recv->hook = look_at_once;
	for (i = 0; i < ARRAY_SIZE(lens); i++) {
		for (k = 0; k < ARRAY_SIZE(values); k++, n++) {
			kdt_row(test, "%u bytes, value %#x", lens[i], values[k]);
			kdt_fill(from->p, LEN, n);
			memset(to->p, 0x99, LEN);
			memset(in->p, 0x77, 64);
			at.len = lens[i];
			at.seed = n;
			remote = kdt_rseg(to, 0, lens[i]);
			silent = k % 2;
			KDT_OK(test, kdt_recv(&pair->s, in, 0, n % 3 ? 64 : 0, n));
			KDT_OK(test, write_immed(&pair->c, from, lens[i], &remote, n,
						 silent ? KDT_SUPPRESS : 0, values[k]));
			if (!silent)
				kdt_sent(test, &pair->c, n, DAT_DTO_RDMA_WRITE, lens[i]);
			told(test, &pair->s, n, lens[i], values[k]);
			KUNIT_EXPECT_TRUE(test, kdt_all(to->p + lens[i], LEN - lens[i], 0x99));
			KUNIT_EXPECT_TRUE(test, kdt_all(in->p, 64, 0x77));
		}
	}
	KUNIT_EXPECT_EQ(test, at.right, n);
	KUNIT_EXPECT_EQ(test, at.wrong, 0);
	pair->s.recv->hook = NULL;
	kdt_mem_done(test, pair);
}

/* In the order of posting among messages; each waits for a Receive. */
static void order(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from, *to, *in;
	struct kdt_pair *pair;
	DAT_RMR_TRIPLET remote;
	int i, round;

	need_immed(test);
	pair = kdt_mem_pair(test, NULL);
	from = kdt_buf_new(test, &env->a, LEN);
	to = kdt_buf_new(test, &env->b, LEN);
	in = kdt_buf_new(test, &env->b, 64);
	remote = kdt_rseg(to, 0, LEN);
	for (round = 0; round < 4; round++) {
		kdt_fill(from->p, LEN, round);
		/* the first time before there is a Receive */
		for (i = 0; round && i < 10; i++)
			KDT_OK(test, kdt_recv(&pair->s, in, 0, 64, i));
		for (i = 0; i < 10; i++) {
			if (i % 2)
				KDT_OK(test, write_immed(&pair->c, from, LEN - i, &remote, i,
							 round == 3 ? kdt_fence : 0, i));
			else
				KDT_OK(test, kdt_send(&pair->c, from, 0, i, i, 0));
		}
		for (i = 0; !round && i < 10; i++)
			KDT_OK(test, kdt_recv(&pair->s, in, 0, 64, i));
		for (i = 0; i < 10; i++) {
			if (i % 2)
				told(test, &pair->s, i, LEN - i, i);
			else
				kdt_came(test, &pair->s, i, i);
			kdt_sent(test, &pair->c, i, i % 2 ? DAT_DTO_RDMA_WRITE : DAT_DTO_SEND,
				 i % 2 ? LEN - i : i);
		}
		KUNIT_EXPECT_TRUE(test, kdt_same(to->p, LEN - 1, round));
	}
	kdt_mem_done(test, pair);
}

static void through_srq(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from, *to;
	struct kdt_pair *pair;
	DAT_RMR_TRIPLET remote;
	DAT_LMR_TRIPLET iov;
	DAT_SRQ_HANDLE srq;
	struct kdt_ep *s;
	int i;

	need_immed(test);
	if (!env->b.prov.srq_supported)
		kunit_skip(test, "no SRQs");
	pair = kdt_pair_new(test, NULL);
	from = kdt_buf_new(test, &env->a, LEN);
	to = kdt_buf_new(test, &env->b, LEN);
	remote = kdt_rseg(to, 64, LEN - 64);
	iov = kdt_seg(to, 0, 64);
	s = &pair->s;
	srq = kdt_pair_srq(test, pair);
	kdt_pair_connect(test, pair);
	for (i = 0; i < 20; i++) {
		kdt_fill(from->p, LEN, i);
		KDT_OK(test, dat_srq_post_recv(srq, 1, &iov, kdt_cookie(i)));
		if (i % 3 == 2) {
			KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, 0));
			kdt_sent(test, &pair->c, i, DAT_DTO_SEND, 64);
			kdt_came(test, s, i, 64);
			KUNIT_EXPECT_TRUE(test, kdt_same(to->p, 64, i));
			continue;
		}
		KDT_OK(test, write_immed(&pair->c, from, LEN - 64, &remote, i, 0, ~i));
		kdt_sent(test, &pair->c, i, DAT_DTO_RDMA_WRITE, LEN - 64);
		told(test, s, i, LEN - 64, ~i);
		KUNIT_EXPECT_TRUE(test, kdt_same(to->p + 64, LEN - 64, i));
	}
	kdt_mem_down(test, pair);
	KDT_OK(test, dat_ep_free(s->h));
	KDT_OK(test, dat_srq_free(srq));
}

/* Where it may not write nothing is told. */
static void bad_key(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from, *to, *in;
	DAT_DTO_COMPLETION_STATUS status;
	struct kdt_pair *pair;
	DAT_RMR_TRIPLET remote;
	u64 cookie;

	need_immed(test);
	pair = kdt_mem_pair(test, NULL);
	from = kdt_buf_new(test, &env->a, 4096);
	to = kdt_buf_new(test, &env->b, 4096);
	in = kdt_buf_new(test, &env->b, 64);
	remote = kdt_rseg(to, 0, 4096);
	remote.rmr_context ^= 0x5a5a00;
	memset(to->p, 0x99, 4096);
	KDT_OK(test, kdt_recv(&pair->s, in, 0, 64, 1));
	KDT_OK(test, write_immed(&pair->c, from, 4096, &remote, 2, 0, 3));
	kdt_end(test, &pair->s);
	kdt_end(test, &pair->c);
	KUNIT_EXPECT_NE(test, (int)kdt_any_dto(test, pair->s.recv, &cookie), DAT_DTO_SUCCESS);
	KUNIT_EXPECT_EQ(test, cookie, 1);
	status = kdt_any_dto(test, pair->c.req, &cookie);
	KUNIT_EXPECT_EQ(test, cookie, 2);
	/* the peer's disconnect may overtake the device's own news of the error */
	if (status != DAT_DTO_ERR_FLUSHED)
		KUNIT_EXPECT_EQ(test, (int)status, DAT_DTO_ERR_REMOTE_ACCESS);
	KUNIT_EXPECT_TRUE(test, kdt_all(to->p, 4096, 0x99));
	kdt_pair_done(test, pair);
}

/* A refusal costs nothing, and a Write without it works. */
static void not_on_iwarp(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_mem_pair(test, NULL);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 4096);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 4096);
	DAT_RMR_TRIPLET remote = kdt_rseg(to, 0, 4096);

	KUNIT_EXPECT_EQ(test, has_immed(&env->a), !env->a.iwarp);
	KUNIT_EXPECT_EQ(test, has_immed(&env->b), !env->b.iwarp);
	if (env->a.iwarp) {
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    write_immed(&pair->c, from, 4096, &remote, 1, 0, 1));
		KDT_REFUSED(test, DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE,
			    write_immed(&pair->c, from, 0, &remote, 1, 0, 1));
	}
	kdt_put(test, &pair->c, from, 0, 4096, to, 0);
	kdt_mem_done(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(lengths, "IMM-01,IMM-03,IMM-04,IMM-05: every length, the data is there in time"),
	KD_CASE(order, "IMM-02,IMM-03: in order among messages, and not before a Receive"),
	KD_CASE(through_srq, "IMM-03,IMM-05: through a Shared Receive Queue"),
	KD_CASE(bad_key, "IMM-01: into memory that is not the peer's to write"),
	KD_CASE(not_on_iwarp, "IMM-06: who has it says so, the others refuse"),
	{}
};

struct kunit_suite kdt_immed_suite = { .name = "kdtest-immed", KDT_CASES };
