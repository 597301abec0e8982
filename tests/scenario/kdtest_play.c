// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The player of lists of steps; kdtest_play.h says what they are. */
#include "kdtest_play.h"

static const DAT_DTOS ops[] = {
	[RECV] = DAT_DTO_RECEIVE, [SEND] = DAT_DTO_SEND, [WRITE_TO] = DAT_DTO_RDMA_WRITE,
	[READ_FROM] = DAT_DTO_RDMA_READ, [FMR] = DAT_DTO_LMR_FMR,
	[INVALIDATE] = DAT_DTO_LMR_INVALIDATE, [BIND] = 0xb1bd, [UNBIND] = 0xb1bd,
};

struct kdt_play *kdt_play_new(struct kunit *test, struct kdt_pair *pair, u32 len)
{
	struct kdt_play *p = kdt_zalloc(test, sizeof(*p));

	kdt_play_more(test, p, pair, len);
	return p;
}

void kdt_play_more(struct kunit *test, struct kdt_play *p, struct kdt_pair *pair, u32 len)
{
	struct kdt_ep *ep[] = { &pair->c, &pair->s };
	int i, n = p->pair[0] ? 1 : 0;

	p->pair[n] = pair;
	for (i = 0; i < 2; i++) {
		struct kdt_end *e = &p->end[2 * n + i];

		e->ep = ep[i];
		e->buf = kdt_buf_new(test, ep[i]->ia, len);
		e->up = kdt_state(ep[i]->h) == DAT_EP_STATE_CONNECTED;
	}
}

/* Success is not reported if it is suppressed, failure is. */
static void posted(struct kdt_play *p, struct kdt_end *e, const struct kdt_step *s)
{
	int q = s->verb == RECV;

	if (e->up && s->verb != RECV && s->what & KDT_SUPPRESS)
		return;
	e->posted[q][e->head[q]++ % KDT_DTOS] = (struct kdt_posted) {
		.op = ops[s->verb], .cookie = p->next, .len = s->verb < FMR ? s->len : 0,
	};
}

static void step_post(struct kunit *test, struct kdt_play *p, const struct kdt_step *s)
{
	struct kdt_end *e = &p->end[s->who], *peer = &p->end[s->who ^ 1];
	u32 to = s->to ?: s->at;
	DAT_LMR_TRIPLET iov = kdt_seg(e->buf, s->at, s->len);
	DAT_RETURN ret = DAT_SUCCESS;
	int flags = s->what & FENCED ? (s->what & ~FENCED) | kdt_fence : s->what;
	u64 n = ++p->next;

	posted(p, e, s);
	switch (s->verb) {
	case RECV:
		ret = dat_ep_post_recv(e->ep->h, !!s->len, &iov, kdt_cookie(n), flags);
		break;
	case SEND:
		ret = dat_ep_post_send(e->ep->h, !!s->len, &iov, kdt_cookie(n), flags);
		break;
	case WRITE_TO:
		ret = kdt_write(e->ep, e->buf, s->at, s->len, peer->buf, to, n, flags);
		break;
	case READ_FROM:
		ret = kdt_read(e->ep, e->buf, s->at, s->len, peer->buf, to, n, flags);
		break;
	case FMR:
		ret = kdt_fmr(e->ep, e->fmr, KDT_RIGHTS, DAT_VA_TYPE_VA, n, flags);
		break;
	case INVALIDATE:
		ret = kdt_inv(e->ep, e->fmr, n, flags);
		break;
	case BIND:
		ret = kdt_bind(e->ep, e->window, e->buf, s->at, s->len, n, flags);
		break;
	default:
		ret = kdt_unbind(e->ep, e->window, n, flags);
		break;
	}
	KDT_OK(test, ret);
}

/* The number of a Receive on an SRQ is not known before. */
static void step_came_srq(struct kunit *test, struct kdt_end *e, u32 len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(e->ep->recv, &event), "%s: no message in time",
			      kdt_at(test));
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, e->ep->h);
	KUNIT_EXPECT_EQ(test, (int)dto->operation, DAT_DTO_RECEIVE);
	KUNIT_EXPECT_EQ_MSG(test, (int)dto->status, DAT_DTO_SUCCESS, "%s", kdt_at(test));
	KUNIT_EXPECT_EQ_MSG(test, dto->transfered_length, len, "%s", kdt_at(test));
}

static void step_done(struct kunit *test, struct kdt_end *e, int q, int status, u32 len)
{
	struct kdt_posted *d = &e->posted[q][e->tail[q]++ % KDT_DTOS];

	if (q && e->srq) {
		step_came_srq(test, e, len);
		return;
	}
	KUNIT_ASSERT_TRUE_MSG(test, e->tail[q] <= e->head[q], "%s: nothing is posted",
			      kdt_at(test));
	if (d->op == ops[BIND])
		kdt_bind_event(test, e->ep->req, e->window->h, d->cookie, status ?
			       DAT_RMR_BIND_FAILURE : DAT_RMR_BIND_SUCCESS);
	else
		kdt_dto(test, q ? e->ep->recv : e->ep->req, e->ep, d->cookie, d->op, status,
			q ? len : d->len);
}

static void step_link(struct kunit *test, struct kdt_play *p, const struct kdt_step *s)
{
	struct kdt_pair *pair = p->pair[s->who / 2];

	if (s->verb == LINK)
		kdt_pair_connect(test, pair);
	else if (s->verb == RESET)
		kdt_reset(test, &pair->c, &pair->s);
	else
		kdt_pair_down(test, pair);
	p->end[s->who & ~1].up = s->verb == LINK;
	p->end[s->who | 1].up = s->verb == LINK;
}

static bool counts_are(struct kunit *test, DAT_SRQ_HANDLE srq, DAT_SRQ_PARAM *now, int available,
		       int outstanding)
{
	KDT_OK(test, dat_srq_query(srq, DAT_SRQ_FIELD_ALL, now));
	return now->available_dto_count == available && now->outstanding_dto_count == outstanding;
}

static void step_counts(struct kunit *test, struct kdt_play *p, int available, int outstanding)
{
	DAT_SRQ_PARAM now = {};

	KUNIT_EXPECT_TRUE_MSG(test, kdt_until(counts_are(test, p->srq, &now, available,
							 outstanding)),
			      "%s: %d available, %d outstanding", kdt_at(test),
			      now.available_dto_count, now.outstanding_dto_count);
}

static void step_watermark(struct kunit *test, struct kdt_play *p, const struct kdt_step *s)
{
	DAT_EVD_HANDLE async = kdt_env(test)->b.async;
	bool low = s->verb == LOW_EVENT;
	DAT_ASYNCH_ERROR_EVENT_DATA *data;
	DAT_EVENT event;

	if (s->verb == CALM) {
		/* one that came late would be found by the next step of this kind */
		schedule_timeout_uninterruptible(3);
		KDT_TYPE(test, DAT_QUEUE_EMPTY, dat_evd_dequeue(async, &event));
		return;
	}
	KUNIT_ASSERT_TRUE_MSG(test, kdt_dequeue(async, &event), "%s: no event", kdt_at(test));
	data = &event.event_data.asynch_error_event_data;
	KUNIT_EXPECT_EQ(test, (int)event.event_number, DAT_ASYNC_ERROR_PROVIDER_INTERNAL_ERROR);
	KUNIT_EXPECT_PTR_EQ(test, data->dat_handle,
			    low ? (DAT_HANDLE)p->srq : (DAT_HANDLE)p->end[s->who].ep->h);
	KUNIT_EXPECT_EQ(test, (int)data->reason, low ? (int)DAT_SRQ_LOW_WATERMARK_EVENT :
			(int)DAT_SRQ_SOFT_HIGH_WATERMARK_EVENT);
}

static void step_nothing(struct kunit *test, struct kdt_ep *ep)
{
	struct kdt_evd *evd[] = { ep->req, ep->recv };
	DAT_EVENT event;
	int i;

	for (i = 0; i < 2; i++) {
		KUNIT_EXPECT_EQ_MSG(test, kdt_queued(evd[i]), 0, "%s", kdt_at(test));
		KDT_TYPE(test, DAT_QUEUE_EMPTY, dat_evd_dequeue(evd[i]->h, &event));
	}
}

static void step_upcalls(struct kunit *test, struct kdt_end *e, bool silent)
{
	struct kdt_evd *evd[] = { e->ep->req, e->ep->recv };
	int i;

	for (i = 0; i < 2; i++) {
		if (silent)
			KUNIT_EXPECT_EQ_MSG(test, READ_ONCE(evd[i]->entered), e->mark[i], "%s",
					    kdt_at(test));
		else
			KUNIT_EXPECT_TRUE(test, kdt_idle(evd[i]));
		e->mark[i] = READ_ONCE(evd[i]->entered);
	}
}

static void step(struct kunit *test, struct kdt_play *p, const struct kdt_step *s)
{
	struct kdt_end *e = &p->end[s->who];
	u8 *data = e->buf ? e->buf->p + s->at : NULL;
	DAT_LMR_TRIPLET iov;
	int i;

	switch (s->verb) {
	case POST:
		for (i = 0; i < s->what; i++) {
			iov = kdt_seg(e->buf, s->at + i * s->len, s->len);
			KDT_OK(test, dat_srq_post_recv(p->srq, 1, &iov, kdt_cookie(++p->next)));
		}
		break;
	case DONE:
		step_done(test, e, 0, s->what, s->len);
		break;
	case TAKE:
		e->ep->req->quiet = true;
		step_done(test, e, 0, s->what, s->len);
		e->ep->req->quiet = false;
		break;
	case CAME:
		step_done(test, e, 1, s->what, s->len);
		break;
	case GONE:
		for (i = 0; i < s->len; i++)
			step_done(test, e, 1, DAT_DTO_ERR_FLUSHED, 0);
		break;
	case MESSAGE:
		step_post(test, p, &(struct kdt_step) { SEND, s->who, s->len });
		step_done(test, e, 0, DAT_DTO_SUCCESS, s->len);
		break;
	case FILL:
		kdt_fill(data, s->len, s->what + p->round);
		break;
	case SAME:
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(data, s->len, s->what + p->round),
				      "%s: %u bytes are not these", kdt_at(test), s->len);
		break;
	case BOUND:
		KUNIT_EXPECT_EQ_MSG(test, kdt_bound(test, e->fmr->lmr), s->what, "%s",
				    kdt_at(test));
		break;
	case LINK:
	case LEAVE:
	case RESET:
		step_link(test, p, s);
		break;
	case STATE:
		KUNIT_EXPECT_EQ_MSG(test, (int)kdt_state(e->ep->h), s->what, "%s", kdt_at(test));
		break;
	case NOTHING:
		step_nothing(test, e->ep);
		break;
	case MARK:
	case SILENT:
		step_upcalls(test, e, s->verb == SILENT);
		break;
	case COUNTS:
		step_counts(test, p, s->len, s->what);
		break;
	case LOW:
		KDT_OK(test, dat_srq_set_lw(p->srq, s->len));
		break;
	case LOW_EVENT:
	case SOFT_EVENT:
	case CALM:
		step_watermark(test, p, s);
		break;
	default:
		step_post(test, p, s);
	}
}

void kdt_play_steps(struct kunit *test, struct kdt_play *p, const struct kdt_step *steps,
		    size_t size)
{
	int i, k;

	for (i = 0; i < size / sizeof(*steps); i++) {
		kdt_row(test, "step %d, verb %d", i, steps[i].verb);
		for (k = 0; k < max(steps[i].times, 1); k++)
			step(test, p, &steps[i]);
	}
	kdt_row(test, "%s", "");
}
