/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Straight-line cases as lists of steps, one line each:
 *
 *	{ RECV, B, 64 }, { SEND, A, 64, KDT_SUPPRESS }, { CAME, B, 64 },
 *
 * Each end has a buffer of its own; RDMA goes to the same place of the peer's buffer,
 * or to @to. The player numbers what is posted, and wants each completion with its number,
 * its operation and its length, in the order of the posts. Messages name the step.
 */
#ifndef KDTEST_PLAY_H
#define KDTEST_PLAY_H

#include "kdtest_mem.h"

/* The ends of one connection, and of another one. A and C call. */
enum kdt_who { A, B, C, D, KDT_ENDS };

enum kdt_verb {
	/* posts of @len bytes with the flags @what */
	RECV, SEND, WRITE_TO, READ_FROM,
	/* of the LMR of dat_lmr_allocate(), and of a window of @len bytes in the buffer */
	FMR, INVALIDATE, BIND, UNBIND,
	POST,		/* @what Receives of @len bytes on the SRQ */
	/* the next request is done, with the status @what; so is the next Receive, of @len bytes */
	DONE, CAME,
	TAKE,		/* DONE, though no upcall tells of it */
	GONE,		/* so many Receives (@len) were flushed */
	MESSAGE,	/* SEND of @len bytes from the start, and DONE */
	FILL, SAME,	/* @len bytes are made, or are, the pattern of the number @what */
	BOUND,		/* is the LMR, @what? */
	LINK, LEAVE, RESET,	/* the connection, both ends; the client leaves */
	STATE,		/* of the endpoint is @what */
	NOTHING,	/* is left in its EVDs of completions */
	MARK, SILENT,	/* no upcall of those has begun since */
	COUNTS,		/* of the SRQ become @len available, @what outstanding */
	LOW,		/* the low watermark of the SRQ becomes @len */
	/* the next asynchronous event is of the low watermark, of the soft one; there is none */
	LOW_EVENT, SOFT_EVENT, CALM,
};

#define FENCED BIT(30)	/* a flag: a fence, where the device fences all kinds of requests */

struct kdt_step {
	enum kdt_verb verb;
	enum kdt_who who;
	u32 len;
	int what;
	u32 at, to;	/* where in the own buffer; and in the peer's, if it is elsewhere */
	int times;	/* 0: once */
};

struct kdt_posted {
	DAT_DTOS op;
	u64 cookie;
	u32 len;
};

struct kdt_end {
	struct kdt_ep *ep;
	struct kdt_buf *buf, *fmr;
	struct kdt_window *window;
	struct kdt_posted posted[2][KDT_DTOS];		/* requests, Receives */
	unsigned int head[2], tail[2], mark[2];
	bool up, srq;
};

struct kdt_play {
	struct kdt_pair *pair[KDT_ENDS / 2];
	struct kdt_end end[KDT_ENDS];
	DAT_SRQ_HANDLE srq;		/* of the ends that say so */
	u64 next;			/* cookie */
	int round;			/* added to the numbers of patterns */
};

/* Two ends, connected or not, with buffers of so many bytes. */
struct kdt_play *kdt_play_new(struct kunit *test, struct kdt_pair *pair, u32 len);
/* Two more. */
void kdt_play_more(struct kunit *test, struct kdt_play *p, struct kdt_pair *pair, u32 len);
void kdt_play_steps(struct kunit *test, struct kdt_play *p, const struct kdt_step *steps,
		    size_t size);
#define kdt_play(test, p, steps) kdt_play_steps(test, p, steps, sizeof(steps))

#endif /* KDTEST_PLAY_H */
