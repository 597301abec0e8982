// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Data: every byte where it belongs, completions in order, flags do what they say. */
#include <linux/sizes.h>
#include <linux/slab.h>

#include "kdtest_mem.h"

static const u32 sizes[] = { 1, 2, 3, 63, 64, 65, 1023, 1024, 1025, 4095, 4096, 4097, 8192,
			     65535, 65536, 65537, 131072, KDT_SIZE - 1, KDT_SIZE };

static void all_sizes(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, KDT_SIZE);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, KDT_SIZE + 1);
	struct kdt_buf *back = kdt_buf_new(test, &env->a, KDT_SIZE + 1);
	u32 len;
	int i;

	for (i = 0; i < ARRAY_SIZE(sizes); i++) {
		len = sizes[i];
		/* Send */
		kdt_fill(from->p, len, i);
		memset(to->p, 0xcc, to->len);
		KDT_OK(test, kdt_recv(&pair->s, to, 0, to->len, 1));
		KDT_OK(test, kdt_send(&pair->c, from, 0, len, 2, 0));
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, len);
		kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, len);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(to->p, len, i), "send %u", len);
		KUNIT_EXPECT_TRUE(test, kdt_all(to->p + len, to->len - len, 0xcc));
		/* Write, to an odd place */
		kdt_fill(from->p, len, 100 + i);
		memset(to->p, 0xcc, to->len);
		KDT_OK(test, kdt_write(&pair->c, from, 0, len, to, 1, 3, 0));
		/* Read back */
		memset(back->p, 0xdd, back->len);
		KDT_OK(test, kdt_read(&pair->c, back, 1, len, to, 1, 4, 0));
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, len);
		kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, len);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(to->p + 1, len, 100 + i), "write %u", len);
		KUNIT_EXPECT_TRUE(test, to->p[0] == 0xcc);
		KUNIT_EXPECT_TRUE(test, kdt_all(to->p + 1 + len, to->len - 1 - len, 0xcc));
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(back->p + 1, len, 100 + i), "read %u", len);
		KUNIT_EXPECT_TRUE(test, back->p[0] == 0xdd);
		KUNIT_EXPECT_TRUE(test, kdt_all(back->p + 1 + len, back->len - 1 - len, 0xdd));
	}
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.req), 0);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.recv), 0);
}

/* Cuts len into n segments at unequal places; a gap of one byte between them. */
static void cut(DAT_LMR_TRIPLET *iov, struct kdt_buf *buf, u32 len, int n)
{
	u32 at = 0, left = len, part;
	int i;

	for (i = 0; i < n; i++) {
		part = i == n - 1 ? left : min(left, len / (n + i) + i);
		iov[i] = kdt_seg(buf, at, part);
		at += part + 1;
		left -= part;
	}
}

/* Copies data to or from the places a cut made. */
static void gather(u8 *to, const DAT_LMR_TRIPLET *iov, int n)
{
	for (; n--; iov++) {
		memcpy(to, (void *)(uintptr_t)iov->virtual_address, iov->segment_length);
		to += iov->segment_length;
	}
}

static void segments(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 16384);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 16384);
	struct kdt_buf *flat = kdt_buf_new(test, &env->b, 16384);
	u8 *sent = kunit_kzalloc(test, 16384, GFP_KERNEL);
	u8 *got = kunit_kzalloc(test, 16384, GFP_KERNEL);
	DAT_LMR_TRIPLET out[KDT_IOV], in[KDT_IOV];
	DAT_RMR_TRIPLET remote;
	DAT_EP_PARAM param = {};
	int n, m, k, read_iov;
	u32 len;

	KUNIT_ASSERT_NOT_NULL(test, sent);
	KUNIT_ASSERT_NOT_NULL(test, got);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	read_iov = min(param.ep_attr.max_rdma_read_iov, KDT_IOV);
	for (len = 10; len < 9000; len = len * 5 + 3) {
		for (n = 1; n <= KDT_IOV; n++) {
			for (m = 1; m <= KDT_IOV; m++) {
				kdt_fill(from->p, from->len, len + n);
				memset(to->p, 0, to->len);
				cut(out, from, len, n);
				cut(in, to, len, m);
				gather(sent, out, n);
				KDT_OK(test, dat_ep_post_recv(pair->s.h, m, in, kdt_cookie(1), 0));
				KDT_OK(test, dat_ep_post_send(pair->c.h, n, out, kdt_cookie(2), 0));
				kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND,
					DAT_DTO_SUCCESS, len);
				kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE,
					DAT_DTO_SUCCESS, len);
				gather(got, in, m);
				KUNIT_EXPECT_TRUE_MSG(test, !memcmp(sent, got, len),
						      "%d to %d pieces, %u bytes", n, m, len);
				/* The gaps are not memory of this message. */
				for (k = 0; k + 1 < m; k++) {
					u8 *gap = (u8 *)(uintptr_t)in[k].virtual_address +
						  in[k].segment_length;

					KUNIT_EXPECT_EQ(test, *gap, 0);
				}
			}
			memset(flat->p, 0, flat->len);
			remote = kdt_rseg(flat, 7, len);
			KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, n, out, kdt_cookie(3),
							    &remote, 0));
			kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE,
				DAT_DTO_SUCCESS, len);
			kdt_settle(test, pair);
			KUNIT_EXPECT_TRUE(test, !memcmp(flat->p + 7, sent, len));
			if (n > read_iov)
				continue;
			memset(from->p, 0, from->len);
			KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, n, out, kdt_cookie(4),
							   &remote, 0));
			kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS,
				len);
			gather(got, out, n);
			KUNIT_EXPECT_TRUE(test, !memcmp(got, sent, len));
		}
	}
}

static void nothing_at_all(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	DAT_RMR_TRIPLET remote = kdt_rseg(to, 0, 0);

	memset(to->p, 0x77, 64);
	KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(1), 0));
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 2));
	KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(3), 0));
	KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(4), 0));
	KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 0, NULL, kdt_cookie(5), &remote, 0));
	KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 0, NULL, kdt_cookie(6), &remote, 0));
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->s.recv, &pair->s, 2, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->c.req, &pair->c, 5, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->c.req, &pair->c, 6, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 0);
	KUNIT_EXPECT_TRUE(test, kdt_all(to->p, 64, 0x77));
}

static void empty_segments(struct kunit *test)
{
	DAT_LMR_TRIPLET junk = { .virtual_address = 0xdeadbeefdeadbeefULL, .segment_length = 0,
				 .lmr_context = 0xffffffff };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	DAT_LMR_TRIPLET iov[KDT_IOV];
	DAT_RMR_TRIPLET remote = kdt_rseg(to, 0, 40);
	DAT_EP_PARAM param = {};
	int i;

	/* Wherever they stand: between two real ones, around one, or alone. */
	kdt_fill(from->p, 64, 1);
	for (i = 0; i < KDT_IOV; i++)
		iov[i] = junk;
	KDT_OK(test, dat_ep_post_recv(pair->s.h, KDT_IOV, iov, kdt_cookie(1), 0));
	KDT_OK(test, dat_ep_post_send(pair->c.h, KDT_IOV, iov, kdt_cookie(2), 0));
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);

	memset(to->p, 0, 64);
	iov[1] = kdt_seg(to, 0, 40);
	KDT_OK(test, dat_ep_post_recv(pair->s.h, KDT_IOV, iov, kdt_cookie(3), 0));
	iov[0] = kdt_seg(from, 0, 10);
	iov[1] = junk;
	iov[2] = junk;
	iov[3] = kdt_seg(from, 10, 30);
	KDT_OK(test, dat_ep_post_send(pair->c.h, KDT_IOV, iov, kdt_cookie(4), 0));
	kdt_dto(test, pair->s.recv, &pair->s, 3, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 40);
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, 40);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, 40, 1));

	memset(to->p, 0, 64);
	KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, KDT_IOV, iov, kdt_cookie(5), &remote, 0));
	kdt_dto(test, pair->c.req, &pair->c, 5, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 40);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE(test, kdt_same(to->p, 40, 1));

	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	if (param.ep_attr.max_rdma_read_iov >= 3) {
		memset(from->p, 0, 64);
		iov[0] = junk;
		iov[1] = kdt_seg(from, 0, 40);
		iov[2] = junk;
		KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 3, iov, kdt_cookie(6), &remote, 0));
		kdt_dto(test, pair->c.req, &pair->c, 6, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 40);
		KUNIT_EXPECT_TRUE(test, kdt_same(from->p, 40, 1));
	}
	remote.segment_length = 0;
	KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, &junk, kdt_cookie(7), &remote, 0));
	kdt_dto(test, pair->c.req, &pair->c, 7, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 0);
}

static void partial(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 4096);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 4096);
	DAT_LMR_TRIPLET iov[KDT_IOV];
	DAT_RMR_TRIPLET remote;
	DAT_EP_PARAM param = {};

	/* A Read ends where the remote segment does. */
	kdt_fill(theirs->p, 4096, 3);
	memset(mine->p, 0xee, 4096);
	remote = kdt_rseg(theirs, 0, 1000);
	iov[0] = kdt_seg(mine, 0, 4096);
	KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 1, iov, kdt_cookie(1), &remote, 0));
	kdt_dto(test, pair->c.req, &pair->c, 1, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 1000);
	KUNIT_EXPECT_TRUE(test, kdt_same(mine->p, 1000, 3));
	KUNIT_EXPECT_TRUE(test, kdt_all(mine->p + 1000, 3096, 0xee));

	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param));
	if (param.ep_attr.max_rdma_read_iov >= 3) {
		/* One full, one partial, one untouched. */
		memset(mine->p, 0xee, 4096);
		iov[0] = kdt_seg(mine, 0, 600);
		iov[1] = kdt_seg(mine, 600, 600);
		iov[2] = kdt_seg(mine, 1200, 600);
		KDT_OK(test, dat_ep_post_rdma_read(pair->c.h, 3, iov, kdt_cookie(2), &remote, 0));
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 1000);
		KUNIT_EXPECT_TRUE(test, kdt_same(mine->p, 1000, 3));
		KUNIT_EXPECT_TRUE(test, kdt_all(mine->p + 1000, 3096, 0xee));
	}

	/* A Write ends where the local data does. */
	kdt_fill(mine->p, 4096, 4);
	memset(theirs->p, 0xdd, 4096);
	iov[0] = kdt_seg(mine, 0, 100);
	remote = kdt_rseg(theirs, 10, 4000);
	KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, iov, kdt_cookie(3), &remote, 0));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 100);
	kdt_settle(test, pair);
	KUNIT_EXPECT_TRUE(test, kdt_same(theirs->p + 10, 100, 4));
	KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p, 10, 0xdd));
	KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p + 110, 3986, 0xdd));

	/* A Receive takes what comes: one full, one partial, one untouched. */
	memset(theirs->p, 0xdd, 4096);
	iov[0] = kdt_seg(theirs, 0, 60);
	iov[1] = kdt_seg(theirs, 60, 60);
	iov[2] = kdt_seg(theirs, 120, 60);
	KDT_OK(test, dat_ep_post_recv(pair->s.h, 3, iov, kdt_cookie(4), 0));
	KDT_OK(test, kdt_send(&pair->c, mine, 0, 100, 5, 0));
	kdt_dto(test, pair->s.recv, &pair->s, 4, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 100);
	KUNIT_EXPECT_TRUE(test, kdt_same(theirs->p, 100, 4));
	KUNIT_EXPECT_TRUE(test, kdt_all(theirs->p + 100, 3996, 0xdd));
}

static void cookies(struct kunit *test)
{
	static const u64 values[] = { 0, 1, U64_MAX, 0x8000000000000000ULL, 0x0123456789abcdefULL,
				      0xffffffff00000000ULL, 0x00000000ffffffffULL, 0, 0, 1 };
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int i;

	for (i = 0; i < ARRAY_SIZE(values); i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, ~values[i]));
	for (i = 0; i < ARRAY_SIZE(values); i++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, values[i], 0));
		KDT_OK(test, kdt_write(&pair->c, from, 0, 64, to, 0, values[i], 0));
		KDT_OK(test, kdt_read(&pair->c, from, 0, 64, to, 0, values[i], 0));
		kdt_dto(test, pair->c.req, &pair->c, values[i], DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->c.req, &pair->c, values[i], DAT_DTO_RDMA_WRITE,
			DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->c.req, &pair->c, values[i], DAT_DTO_RDMA_READ,
			DAT_DTO_SUCCESS, 64);
		kdt_dto(test, pair->s.recv, &pair->s, ~values[i], DAT_DTO_RECEIVE,
			DAT_DTO_SUCCESS, 64);
	}
}

/* The arrays belong to the caller again when the post returns. */
static void scribble(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 4096);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 8192);
	DAT_LMR_TRIPLET iov[3];
	DAT_RMR_TRIPLET remote;
	int i;

	kdt_fill(from->p, 4096, 6);
	for (i = 0; i < 20; i++) {
		memset(to->p, 0, 8192);
		iov[0] = kdt_seg(to, 0, 1000);
		iov[1] = kdt_seg(to, 1000, 2000);
		iov[2] = kdt_seg(to, 3000, 1096);
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 3, iov, kdt_cookie(1), 0));
		memset(iov, 0xff, sizeof(iov));
		iov[0] = kdt_seg(from, 0, 10);
		iov[1] = kdt_seg(from, 10, 3000);
		iov[2] = kdt_seg(from, 3010, 1086);
		KDT_OK(test, dat_ep_post_send(pair->c.h, 3, iov, kdt_cookie(2), 0));
		memset(iov, 0xff, sizeof(iov));
		iov[0] = kdt_seg(from, 0, 4096);
		remote = kdt_rseg(to, 4096, 4096);
		KDT_OK(test, dat_ep_post_rdma_write(pair->c.h, 1, iov, kdt_cookie(3), &remote, 0));
		memset(iov, 0xff, sizeof(iov));
		memset(&remote, 0xff, sizeof(remote));
		kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 4096);
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 4096);
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 4096);
		kdt_settle(test, pair);
		KUNIT_EXPECT_TRUE(test, kdt_same(to->p, 4096, 6));
		KUNIT_EXPECT_TRUE(test, kdt_same(to->p + 4096, 4096, 6));
	}
}

/* All kinds of requests in one queue: reported in the order they were posted. */
static void post_order(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 65536);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 65536);
	static const DAT_DTOS kind[] = { DAT_DTO_RDMA_READ, DAT_DTO_SEND, DAT_DTO_RDMA_WRITE,
					 DAT_DTO_RDMA_READ, DAT_DTO_RDMA_READ, DAT_DTO_SEND };
	int i, round, n = 48;
	DAT_RETURN ret;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < n; i++)
			KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, i));
		for (i = 0; i < n; i++) {
			switch (kind[i % 6]) {
			case DAT_DTO_SEND:
				ret = kdt_send(&pair->c, mine, 0, 64, i, 0);
				break;
			case DAT_DTO_RDMA_WRITE:
				ret = kdt_write(&pair->c, mine, 0, 64, theirs, 0, i, 0);
				break;
			default:	/* long ones, so that others could overtake */
				ret = kdt_read(&pair->c, mine, 64, 16384, theirs, 64, i, 0);
			}
			KDT_OK(test, ret);
		}
		for (i = 0; i < n; i++)
			kdt_dto(test, pair->c.req, &pair->c, i, kind[i % 6], DAT_DTO_SUCCESS,
				kind[i % 6] == DAT_DTO_RDMA_READ ? 16384 : 64);
		for (i = 0; i < n / 3; i++)
			kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
				64);
		/* The rest of the receives, for the next round. */
		for (i = 0; i < n - n / 3; i++)
			KDT_OK(test, kdt_send(&pair->c, mine, 0, 64, i, 0));
		for (i = 0; i < n - n / 3; i++) {
			kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
			kdt_dto(test, pair->s.recv, &pair->s, n / 3 + i, DAT_DTO_RECEIVE,
				DAT_DTO_SUCCESS, 64);
		}
	}
}

static void write_before_send(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 32768);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 32768);
	int i;

	for (i = 0; i < 50; i++) {
		kdt_fill(mine->p, 32768, i);
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(1), 0));
		KDT_OK(test, kdt_write(&pair->c, mine, 0, 32768, theirs, 0, 2,
				       DAT_COMPLETION_SUPPRESS_FLAG));
		KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(3), 0));
		kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(theirs->p, 32768, i), "round %d", i);
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
	}
}

static void fence(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 16384);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 16384);
	struct kdt_buf *echo = kdt_buf_new(test, &env->b, 16384);
	int i;

	/* What the fenced Send carries is what the Read before it brought. */
	for (i = 0; i < 30; i++) {
		kdt_fill(theirs->p, 16384, i);
		memset(mine->p, 0, 16384);
		KDT_OK(test, kdt_recv(&pair->s, echo, 0, 16384, 1));
		KDT_OK(test, kdt_read(&pair->c, mine, 0, 16384, theirs, 0, 2, 0));
		KDT_OK(test, kdt_send(&pair->c, mine, 0, 16384, 3,
				      DAT_COMPLETION_BARRIER_FENCE_FLAG));
		kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 16384);
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(echo->p, 16384, i), "round %d", i);
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 16384);
		kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_SUCCESS, 16384);
	}
	if (!kdt_fence) {
		/* A device that fences Sends only says so: never a fence that is none. */
		KUNIT_EXPECT_EQ(test, (u32)kdt_write(&pair->c, mine, 0, 64, theirs, 0, 5,
						     DAT_COMPLETION_BARRIER_FENCE_FLAG),
				(u32)DAT_ERROR(DAT_MODEL_NOT_SUPPORTED, DAT_NO_SUBTYPE));
		return;
	}
	/* Fenced Writes and Reads are legal, too. */
	KDT_OK(test, kdt_read(&pair->c, mine, 0, 64, theirs, 0, 4, 0));
	KDT_OK(test, kdt_write(&pair->c, mine, 0, 64, theirs, 0, 5,
			       DAT_COMPLETION_BARRIER_FENCE_FLAG));
	KDT_OK(test, kdt_read(&pair->c, mine, 0, 64, theirs, 0, 6,
			      DAT_COMPLETION_BARRIER_FENCE_FLAG));
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, 5, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, 6, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
}

static void suppressed(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	int i;

	/* Ten queues full of Sends without an event, paced by the peer's receives. */
	for (i = 0; i < 10 * KDT_DTOS; i++) {
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, DAT_COMPLETION_SUPPRESS_FLAG));
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	for (i = 0; i < 3 * KDT_DTOS; i++) {
		KDT_OK(test, kdt_write(&pair->c, from, 0, 64, to, 0, i,
				       DAT_COMPLETION_SUPPRESS_FLAG));
		KDT_OK(test, kdt_read(&pair->c, from, 0, 64, to, 0, i, 0));
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	}
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->c.req), 0);
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 1));
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 2, 0));
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);

	/* Those that fail are reported all the same. */
	KDT_OK(test, dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_DISCONNECTED);
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 3, DAT_COMPLETION_SUPPRESS_FLAG));
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_SEND, DAT_DTO_ERR_FLUSHED, 0);
}

/* With the completion after it the memory of a suppressed request is the consumer's. */
static void suppressed_then_reused(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *from = kdt_mem_new(test, SZ_256K, false);	/* pages by themselves */
	struct kdt_buf *to = kdt_buf_new(test, &env->b, SZ_256K);
	DAT_REGION_DESCRIPTION region = { .for_va = from->p };
	u32 i, len, bad = 0;

	KDT_OK(test, dat_lmr_kcreate(env->a.h, DAT_MEM_TYPE_VIRTUAL, region, SZ_256K, env->a.pz,
				     KDT_RIGHTS, DAT_VA_TYPE_VA, 0, &from->lmr, &from->lctx,
				     &from->rctx, NULL, NULL));
	for (i = 0; i < 8 * KD_TIMES(20); i++) {
		len = SZ_2K << i % 8;
		kdt_fill(from->p, len, i);
		KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(3), 0));
		KDT_OK(test, kdt_write(&pair->c, from, 0, len, to, 0, 1,
				       DAT_COMPLETION_SUPPRESS_FLAG));
		KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(2), 0));
		kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 0);
		memset(from->p, 0xee, len);
		kdt_dto(test, pair->s.recv, &pair->s, 3, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 0);
		bad += !kdt_same(to->p, len, i);
	}
	KUNIT_EXPECT_EQ(test, bad, 0);
}

static void unsignalled(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	struct kdt_pair *pair;
	DAT_EP_ATTR attr;
	unsigned int calls;
	DAT_EVENT event;
	int i;

	kdt_attr(env, &attr);
	attr.recv_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	attr.request_completion_flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	calls = pair->c.req->calls;
	for (i = 0; i < 5; i++) {
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, DAT_COMPLETION_UNSIGNALLED_FLAG));
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	}
	/* They wait for one that notifies, and come before it. */
	KUNIT_EXPECT_EQ(test, pair->c.req->calls, calls);
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 5));
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 5, 0));
	for (i = 0; i < 6; i++)
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.recv, &pair->s, 5, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);

	/* Or for somebody who asks. */
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 6));
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 6, DAT_COMPLETION_UNSIGNALLED_FLAG));
	kdt_dto(test, pair->s.recv, &pair->s, 6, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	KUNIT_ASSERT_TRUE(test, kdt_dequeue(pair->c.req->h, &event));
	KUNIT_EXPECT_EQ(test, event.event_data.dto_completion_event_data.user_cookie.as_64, 6);
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->c.req), 0);

	/* The same for Receives, and SUPPRESS is stronger. */
	KUNIT_EXPECT_EQ(test, kdt_queued(pair->s.recv), 0);
	for (i = 0; i < 3; i++) {
		DAT_LMR_TRIPLET iov = kdt_seg(to, 0, 64);

		KDT_OK(test, dat_ep_post_recv(pair->s.h, 1, &iov, kdt_cookie(20 + i),
					      i < 2 ? DAT_COMPLETION_UNSIGNALLED_FLAG : 0));
	}
	calls = pair->s.recv->calls;
	for (i = 0; i < 2; i++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 30 + i, i == 1 ? 0 :
				      DAT_COMPLETION_UNSIGNALLED_FLAG |
				      DAT_COMPLETION_SUPPRESS_FLAG));
	}
	/* Both have arrived: this one is answered after them. */
	kdt_dto(test, pair->c.req, &pair->c, 31, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	KDT_OK(test, kdt_read(&pair->c, from, 0, 64, to, 0, 32, 0));
	kdt_dto(test, pair->c.req, &pair->c, 32, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	KUNIT_EXPECT_EQ(test, pair->s.recv->calls, calls);
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 33, 0));
	kdt_dto(test, pair->c.req, &pair->c, 33, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	for (i = 0; i < 3; i++)
		kdt_dto(test, pair->s.recv, &pair->s, 20 + i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS,
			64);
}

static unsigned int solicited_round(struct kunit *test, struct kdt_buf *from, struct kdt_buf *to)
{
	struct kdt_pair *pair;
	unsigned int silent;
	DAT_EP_ATTR attr;
	int i;

	kdt_attr(kdt_env(test), &attr);
	attr.recv_completion_flags = DAT_COMPLETION_SOLICITED_WAIT_FLAG;
	pair = kdt_pair_new(test, &attr);
	kdt_pair_connect(test, pair);
	for (i = 0; i < 5; i++)
		KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, i));
	for (i = 0; i < 4; i++) {
		KDT_OK(test, kdt_send(&pair->c, from, 0, 64, i, 0));
		kdt_dto(test, pair->c.req, &pair->c, i, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	}
	/* All have arrived, on every transport. */
	KDT_OK(test, kdt_read(&pair->c, from, 0, 64, to, 0, 7, 0));
	kdt_dto(test, pair->c.req, &pair->c, 7, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	silent = !pair->s.recv->calls;
	KDT_OK(test, kdt_send(&pair->c, from, 0, 64, 4, DAT_COMPLETION_SOLICITED_WAIT_FLAG));
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	/* The one that asks brings those before it along; too many calls are legal. */
	for (i = 0; i < 5; i++)
		kdt_dto(test, pair->s.recv, &pair->s, i, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);
	/* The end of the connection is never silent. */
	KDT_OK(test, kdt_recv(&pair->s, to, 0, 64, 9));
	kdt_pair_down(test, pair);
	kdt_dto(test, pair->s.recv, &pair->s, 9, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
	return silent;
}

static void solicited(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_buf *from = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *to = kdt_buf_new(test, &env->b, 64);
	unsigned int i, silent = 0;

	for (i = 0; i < 5; i++)
		silent += solicited_round(test, from, to);
	/* A look around that was under way anyway may take some along, not always. */
	if (env->b.prov.completion_flags_supported & DAT_COMPLETION_SOLICITED_WAIT_FLAG)
		KUNIT_EXPECT_GT_MSG(test, silent, 0, "told of what nobody asked for, each time");
	else
		KUNIT_EXPECT_EQ(test, silent, 0);
}

/* In DISCONNECTED each post is taken and flushed, in order, behind what was there. */
static void flushed(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	static const DAT_DTOS kind[] = { DAT_DTO_SEND, DAT_DTO_RDMA_WRITE, DAT_DTO_RDMA_READ };
	struct kdt_ep *ep[] = { &pair->c, &pair->s };
	int i, j, n = 30;

	KDT_OK(test, kdt_recv(&pair->c, mine, 0, 64, 1000));
	KDT_OK(test, kdt_recv(&pair->s, theirs, 0, 64, 1000));
	kdt_pair_down(test, pair);
	for (j = 0; j < 2; j++) {
		struct kdt_buf *own = j ? theirs : mine, *other = j ? mine : theirs;
		int flags = 0;

		for (i = 0; i < n; i++) {
			switch (kind[i % 3]) {
			case DAT_DTO_SEND:
				KDT_OK(test, kdt_send(ep[j], own, 0, 64, i, flags));
				break;
			case DAT_DTO_RDMA_WRITE:
				KDT_OK(test, kdt_write(ep[j], own, 0, 64, other, 0, i, flags));
				break;
			default:
				KDT_OK(test, kdt_read(ep[j], own, 0, 64, other, 0, i, flags));
			}
			KDT_OK(test, kdt_recv(ep[j], own, 0, 64, 2000 + i));
			flags ^= DAT_COMPLETION_SUPPRESS_FLAG;
		}
		/* Validation does not stop there. */
		KDT_TYPE(test, DAT_INVALID_PARAMETER, kdt_send(ep[j], own, 0, 65, 1, 0));
		for (i = 0; i < n; i++)
			kdt_dto(test, ep[j]->req, ep[j], i, kind[i % 3], DAT_DTO_ERR_FLUSHED, 0);
		kdt_dto(test, ep[j]->recv, ep[j], 1000, DAT_DTO_RECEIVE, DAT_DTO_ERR_FLUSHED, 0);
		for (i = 0; i < n; i++)
			kdt_dto(test, ep[j]->recv, ep[j], 2000 + i, DAT_DTO_RECEIVE,
				DAT_DTO_ERR_FLUSHED, 0);
		kdt_ep_done(test, ep[j]);
	}
}

struct echo {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
	unsigned int left;
	DAT_RETURN ret;
};

/* Answers each message from inside the upcall that brings it. */
static bool echo_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct echo *e = evd->priv;

	if (event->event_data.dto_completion_event_data.status != DAT_DTO_SUCCESS || !e->left)
		return false;
	e->left--;
	e->ret |= kdt_recv(e->ep, e->buf, 0, 64, 0);
	e->ret |= kdt_send(e->ep, e->buf, 0, 64, 0, DAT_COMPLETION_SUPPRESS_FLAG);
	return e->left;
}

static void posts_in_upcalls(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct echo *c = kunit_kzalloc(test, sizeof(*c), GFP_KERNEL);
	struct echo *s = kunit_kzalloc(test, sizeof(*s), GFP_KERNEL);
	DAT_EVENT event;

	KUNIT_ASSERT_NOT_NULL(test, c);
	KUNIT_ASSERT_NOT_NULL(test, s);
	*c = (struct echo) { &pair->c, kdt_buf_new(test, &env->a, 128), 500, DAT_SUCCESS };
	*s = (struct echo) { &pair->s, kdt_buf_new(test, &env->b, 128), 500, DAT_SUCCESS };
	pair->c.recv->priv = c;
	pair->s.recv->priv = s;
	pair->c.recv->hook = echo_hook;
	pair->s.recv->hook = echo_hook;
	KDT_OK(test, kdt_recv(&pair->c, c->buf, 0, 64, 0));
	KDT_OK(test, kdt_recv(&pair->s, s->buf, 0, 64, 0));
	KDT_OK(test, kdt_send(&pair->c, c->buf, 64, 64, 0, DAT_COMPLETION_SUPPRESS_FLAG));
	/* The 500th answer of the client is queued for us. */
	KUNIT_ASSERT_TRUE(test, kdt_get_timeout(pair->c.recv, &event, 3 * KDT_WAIT));
	KUNIT_EXPECT_EQ(test, c->left, 0);
	/* And the server has got it: nothing is under way any more. */
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
	KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.recv, &event));
	KDT_OK(test, c->ret);
	KDT_OK(test, s->ret);
	kdt_pair_down(test, pair);
	pair->c.recv->hook = NULL;
	pair->s.recv->hook = NULL;
}

static void posts_under_a_lock(struct kunit *test)
{
	struct kdt_env *env = kdt_env(test);
	struct kdt_pair *pair = kdt_pair_up(test);
	struct kdt_buf *mine = kdt_buf_new(test, &env->a, 64);
	struct kdt_buf *theirs = kdt_buf_new(test, &env->b, 64);
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_CONTEXT context = {};
	DAT_HANDLE_TYPE type;
	DAT_EP_PARAM param;
	unsigned long flags;
	DAT_EVENT event;
	spinlock_t lock;	/* a consumer's, protects nothing here */

	/* All calls of class ANY, with interrupts off. */
	spin_lock_init(&lock);
	spin_lock_irqsave(&lock, flags);
	ret |= kdt_recv(&pair->s, theirs, 0, 64, 1);
	ret |= kdt_send(&pair->c, mine, 0, 64, 2, 0);
	ret |= kdt_write(&pair->c, mine, 0, 64, theirs, 0, 3, 0);
	ret |= kdt_read(&pair->c, mine, 0, 64, theirs, 0, 4, 0);
	ret |= dat_ep_get_status(pair->c.h, NULL, NULL, NULL);
	ret |= dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &param);
	ret |= dat_set_consumer_context(pair->c.h, context);
	ret |= dat_get_consumer_context(pair->c.h, &context);
	ret |= dat_get_handle_type(pair->c.h, &type);
	if (DAT_GET_TYPE(dat_evd_dequeue(env->a.async, &event)) != DAT_QUEUE_EMPTY)
		ret |= DAT_ERROR(DAT_INTERNAL_ERROR, 0);
	spin_unlock_irqrestore(&lock, flags);
	KDT_OK(test, ret);
	kdt_dto(test, pair->c.req, &pair->c, 2, DAT_DTO_SEND, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, 3, DAT_DTO_RDMA_WRITE, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->c.req, &pair->c, 4, DAT_DTO_RDMA_READ, DAT_DTO_SUCCESS, 64);
	kdt_dto(test, pair->s.recv, &pair->s, 1, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, 64);

	spin_lock_irqsave(&lock, flags);
	ret = dat_ep_disconnect(pair->c.h, DAT_CLOSE_ABRUPT_FLAG);
	spin_unlock_irqrestore(&lock, flags);
	KDT_OK(test, ret);
	kdt_pair_left(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(all_sizes, "SEND-01,RECV-01,RDMAW-01,RDMAR-01,STAT-04: 1 byte to 256 KiB"),
	KD_CASE(segments, "SEND-04,RECV-03,RDMAW-02,RDMAR-03: gather, scatter in order"),
	KD_CASE(nothing_at_all, "SEND-02,SEND-03,SEND-16,RECV-02,SIL-19: no segments"),
	KD_CASE(empty_segments, "EP-POST-12: empty segments with garbage in them"),
	KD_CASE(partial, "RDMAR-02,RDMAR-03,RDMAR-10,RDMAW-09,RDMAW-12,RECV-12: partial"),
	KD_CASE(cookies, "EP-POST-08,EP-POST-09,GEN-12,RECV-04,SEND-05,RDMAW-18,RDMAR-05: cookies"),
	KD_CASE(scribble, "EP-POST-04,EP-POST-05,SIL-35: iov overwritten after the post"),
	KD_CASE(post_order, "EP-POST-21,RECV-20,FLUSH-10,RDMAR-16: completions in posting order"),
	KD_CASE(write_before_send, "RDMAW-17,RDMAW-04: a Write is there before the next Send"),
	KD_CASE(fence, "FLAG-09,SEND-10: fenced requests wait for Reads"),
	KD_CASE(suppressed, "FLAG-02,FLAG-03,FLAG-11,SEND-07,SEND-18,SIL-04: suppressed"),
	KD_CASE(suppressed_then_reused, "FLAG-02,SIL-04: memory of suppressed requests used again"),
	KD_CASE(unsignalled,
		"FLAG-04,FLAG-05,FLAG-20,FLAG-21,SEND-09,EVD-UP-03,EVD-UP-04: unsignalled"),
	KD_CASE(solicited, "SEND-08,RECV-07,FLAG-07,FLAG-08,FLAG-20: solicited wait"),
	KD_CASE(flushed, "EP-POST-11,FLUSH-03,FLUSH-04,RECV-15,RDMAW-10,RDMAR-11: flushed"),
	KD_CASE(posts_in_upcalls, "CTX-02,EVD-UP-11,EVD-UP-13: 1000 posts from upcalls"),
	KD_CASE(posts_under_a_lock, "CTX-01,CTX-03,EP-POST-02,SEND-15: calls with interrupts off"),
	{}
};

struct kunit_suite kdt_data_suite = {
	.name = "kdtest-data",
	.init = kdt_init,
	.exit = kdt_exit,
	.test_cases = cases,
};
