// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Data transfers: pairs of endpoints, each end sends as fast as the other one has
 * Receives posted, all ends of a side complete on one EVD. What is received is
 * posted again where its event was taken, in whatever context that is.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>

#include "kdstorm.h"

#define PAIRS		2
#define WINDOW		32	/* Receives of an end */
#define MSG		64	/* bytes per message */
#define NOBODY		(STORM_STREAMS - 1)	/* cookie of what is not to be seen */

static const struct kind {
	const char *name;
	DAT_EVD_FLAGS flags;
	bool softirq;
	bool lonely;	/* one message at a time, one way: no wake-up hides the loss of another */
} kinds[] = {
	{ "dto", DAT_EVD_DTO_FLAG, true },
	{ "dto+software", DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, false },
	{ "dto+software", DAT_EVD_DTO_FLAG | DAT_EVD_SOFTWARE_FLAG, true },
	{ "dto-lonely", DAT_EVD_DTO_FLAG, true, true },
	{ "dto-lonely", DAT_EVD_DTO_FLAG, false, true },
};

struct end {
	struct test_end conn;
	struct storm_evd *evd;
	struct end *peer;
	struct test_mem in, out;
	u32 recv_stream, req_stream;
	u32 quota, recvs;	/* messages to send, and to receive */
	u32 id;
	spinlock_t lock;	/* keeps numbers and posts of Receives together */
	u32 posted;		/* Receives */
	struct rnd_state rnd;
	spinlock_t send_lock;	/* the same for Sends */
	u32 sent;
	u32 visible;		/* requests with an event */
	struct storm_thread sender;
};

struct run {
	struct storm_evd *evd[2];
	DAT_EVD_HANDLE cm[2];
	DAT_PSP_HANDLE psp;
	struct end end[2 * PAIRS];	/* even ones on side a */
	bool unsignalled, lonely;
	u32 window;		/* Receives of an end at first */
};

static struct run *run;

/* The last one of a stream, and some before, start an upcall. */
static bool may_be_silent(u32 number, u32 total)
{
	return run->unsignalled && number % 4 != 3 && number != total - 1;
}

/* The buffer is that of the event before, the number is the next one. */
static void post_recv(struct end *end, u32 slot)
{
	DAT_LMR_TRIPLET iov = test_segment(&end->in, slot * MSG, MSG);
	DAT_RETURN ret = DAT_SUCCESS;
	DAT_DTO_COOKIE cookie;
	unsigned long flags;

	spin_lock_irqsave(&end->lock, flags);
	if (end->posted < end->recvs) {
		cookie.as_64 = (u64)slot << 32 | storm_mark(end->recv_stream, end->posted);
		ret = dat_ep_post_recv(end->conn.ep, 1, &iov, cookie,
				       may_be_silent(end->posted, end->recvs) ?
				       DAT_COMPLETION_UNSIGNALLED_FLAG :
				       DAT_COMPLETION_DEFAULT_FLAG);
		if (ret == DAT_SUCCESS)
			WRITE_ONCE(end->posted, end->posted + 1);
	}
	spin_unlock_irqrestore(&end->lock, flags);
	check("dat_ep_post_recv", ret);
}

static u64 content(const struct end *from, u32 number)
{
	return ((u64)number << 32 | from->id) * 0x9e3779b97f4a7c15ULL;
}

static int send(struct end *end, u32 number, u32 random)
{
	u64 *message = (u64 *)(end->out.p + number % WINDOW * MSG);
	DAT_LMR_TRIPLET iov = test_segment(&end->out, number % WINDOW * MSG, MSG);
	DAT_COMPLETION_FLAGS flags = DAT_COMPLETION_DEFAULT_FLAG;
	bool visible = run->lonely || number == end->quota - 1 || random % 4;
	DAT_DTO_COOKIE cookie = {};
	DAT_RETURN ret;

	message[0] = content(end, number);
	message[MSG / 8 - 1] = message[0];
	if (!visible)
		flags = DAT_COMPLETION_SUPPRESS_FLAG;
	else if (may_be_silent(number, end->quota) && random / 4 % 2)
		flags = DAT_COMPLETION_UNSIGNALLED_FLAG;
	cookie.as_64 = visible ? storm_mark(end->req_stream, end->visible) :
				 storm_mark(NOBODY, number);
	ret = dat_ep_post_send(end->conn.ep, 1, &iov, cookie, flags);
	if (DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
		return -EAGAIN;
	if (ret == DAT_SUCCESS)
		end->visible += visible;
	return check("dat_ep_post_send", ret);
}

/* 0, or -EAGAIN: there is nothing to send now, or no room */
static bool send_next(struct end *end, u32 random)
{
	unsigned long flags;
	int err = -EAGAIN;

	spin_lock_irqsave(&end->send_lock, flags);
	if (end->sent < end->quota && end->sent != READ_ONCE(end->peer->posted)) {
		err = send(end, end->sent, random);
		if (!err)
			WRITE_ONCE(end->sent, end->sent + 1);
		else if (err != -EAGAIN)
			WRITE_ONCE(end->evd->stop, true);
	}
	spin_unlock_irqrestore(&end->send_lock, flags);
	return err;
}

/* The next message is on its way: it may come just when the engine goes to rest. */
static void linger(struct end *end)
{
	unsigned long flags;
	u32 random;

	spin_lock_irqsave(&end->lock, flags);
	random = prandom_u32_state(&end->rnd);
	spin_unlock_irqrestore(&end->lock, flags);
	udelay(random % 256 << random / 256 % 11 >> 8);
}

static void dto_event(struct storm_evd *evd, const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	u32 mark = dto->user_cookie.as_64, slot = dto->user_cookie.as_64 >> 32;
	struct end *end = NULL;
	bool recv = false;
	u64 *message;
	int i;

	for (i = 0; i < 2 * PAIRS && !end; i++) {
		recv = run->end[i].recv_stream == mark >> 24;
		if (run->end[i].evd == evd && (recv || run->end[i].req_stream == mark >> 24))
			end = &run->end[i];
	}
	storm_checked(STORM_DATA, 1);
	if (!end || event->event_number != DAT_DTO_COMPLETION_EVENT ||
	    dto->ep_handle != end->conn.ep || dto->status != DAT_DTO_SUCCESS ||
	    dto->transfered_length != MSG ||
	    dto->operation != (recv ? DAT_DTO_RECEIVE : DAT_DTO_SEND)) {
		storm_fault(STORM_DATA, "%s: event 0x%x, mark %x, operation %d, status %d",
			    evd->name, event->event_number, mark, dto->operation, dto->status);
		return;
	}
	if (!recv)
		return;
	message = (u64 *)(end->in.p + slot * MSG);
	if (message[0] != content(end->peer, mark & 0xffffff) ||
	    message[MSG / 8 - 1] != message[0])
		storm_fault(STORM_DATA, "%s: Receive %u has another message", evd->name,
			    mark & 0xffffff);
	post_recv(end, slot);
	if (run->lonely) {
		send_next(end->peer, 0);
		linger(end);
	}
}

static void sender(struct storm_thread *t)
{
	struct end *end = t->arg;

	while (READ_ONCE(end->sent) < end->quota && !end->evd->stop) {
		if (send_next(end, prandom_u32_state(&t->rnd)))
			storm_pause(end->sent != READ_ONCE(end->peer->posted) || end->evd->stop,
				    1);
		cond_resched();
	}
}

/* ---- connections ---- */

static DAT_EP_HANDLE passive(u32 n)
{
	return n < PAIRS ? run->end[2 * n + 1].conn.ep : NULL;
}

static int end_open(struct end *end, int side)
{
	struct test_ia *ia = side ? &storm_b : &storm_a;
	DAT_COMPLETION_FLAGS flags = run->unsignalled ? DAT_COMPLETION_UNSIGNALLED_FLAG :
							DAT_COMPLETION_DEFAULT_FLAG;
	const DAT_EP_ATTR attr = {
		.max_message_size = MSG,
		.recv_completion_flags = flags,
		.request_completion_flags = flags,
		.max_recv_dtos = WINDOW, .max_recv_iov = 1,
		.max_request_dtos = WINDOW, .max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	int recv, req;

	spin_lock_init(&end->lock);
	spin_lock_init(&end->send_lock);
	storm_rnd_init(&end->rnd);
	end->evd = run->evd[side];
	recv = storm_evd_stream(end->evd, end->recvs);
	req = storm_evd_stream(end->evd, end->quota);
	if (recv < 0 || req < 0)
		return -ENOMEM;
	end->recv_stream = recv;
	end->req_stream = req;
	return test_mem_open(ia, &end->in, WINDOW * MSG, LOCAL_RIGHTS) ?:
	       test_mem_open(ia, &end->out, WINDOW * MSG, LOCAL_RIGHTS) ?:
	       test_end_open(ia, &end->conn, end->evd->h, end->evd->h, run->cm[side], &attr);
}

static int pair_up(u32 n, DAT_CONN_QUAL port)
{
	struct end *end = &run->end[2 * n];
	int i, err;

	end[0].peer = &end[1];
	end[1].peer = &end[0];
	err = end_open(&end[0], 0) ?: end_open(&end[1], 1);
	for (i = 0; i < 2 * run->window && !err; i++)
		post_recv(&end[i % 2], i / 2);
	return err ?: test_connect(end[0].conn.ep, &storm_b, port, n) ?:
	       test_connected("a pair", &end[0].conn, &end[1].conn);
}

static void pair_down(u32 n)
{
	struct end *end = &run->end[2 * n];
	int i;

	if (end[0].conn.outcome == DAT_CONNECTION_EVENT_ESTABLISHED) {
		dat_ep_disconnect(end->conn.ep, DAT_CLOSE_GRACEFUL_FLAG);
		test_over("a pair", &end[0].conn, &end[1].conn);
	}
	for (i = 0; i < 2; i++) {
		FREE(dat_ep_free, &end[i].conn.ep);
		test_mem_close(&end[i].in);
		test_mem_close(&end[i].out);
	}
}

static int sides_open(const struct kind *kind, const struct storm_phase *phase, u32 events,
		      DAT_CONN_QUAL port)
{
	int i, err = 0;

	for (i = 0; i < 2 && !err; i++) {
		struct test_ia *ia = i ? &storm_b : &storm_a;

		run->evd[i] = storm_evd_open(ia, kind->flags, kind->softirq, phase, dto_event,
					     kind->name);
		if (!run->evd[i])
			return -ENOMEM;
		if (kind->flags & DAT_EVD_SOFTWARE_FLAG)
			err = storm_sources_open(run->evd[i], events / 10);
		err = err ?: test_evd(ia, 32, DAT_EVD_CR_FLAG | DAT_EVD_CONNECTION_FLAG,
				      test_cm_upcall, passive, &run->cm[i]);
	}
	return err ?: TRY(dat_psp_create, storm_b.h, port, run->cm[1], DAT_PSP_CONSUMER_FLAG,
			  &run->psp);
}

static int start(void)
{
	int i, err = storm_both_start(run->evd);

	for (i = 0; i < 2 * PAIRS && !err; i++)
		err = storm_thread_start(&run->end[i].sender, "sender", sender, &run->end[i], i,
					 storm_cpu(i / 2 + i));
	return err;
}

/* All that is posted comes; nobody is without a Receive for so long. */
static void finish(void)
{
	u64 taken[2] = {};
	int i;

	for (i = 0; i < 2 * PAIRS; i++) {
		struct end *end = &run->end[i];
		u64 before;

		do {
			before = storm_taken(run->evd[0]) + storm_taken(run->evd[1]);
			if (wait_for_completion_timeout(&end->sender.done, TEST_LONG))
				break;
		} while (storm_taken(run->evd[0]) + storm_taken(run->evd[1]) != before &&
			 !storm_overtime());
		if (!try_wait_for_completion(&end->sender.done))
			storm_fault(STORM_WAKE, "%s: %u of %u Sends, for %u Receives",
				    end->evd->name, end->sent, end->quota, end->peer->posted);
		taken[i % 2] += end->recvs + end->visible;
	}
	for (i = 0; i < 2; i++) {
		if (run->evd[i]->n_sources)
			storm_sources_wait(run->evd[i]);
		storm_evd_settle(run->evd[i], taken[i]);
	}
}

static int dto_storm(const struct kind *kind, const struct storm_phase *phase, u32 events)
{
	static DAT_CONN_QUAL port = 21000;
	int i, err;

	run = kzalloc(sizeof(*run), GFP_KERNEL);
	if (!run)
		return -ENOMEM;
	run->lonely = kind->lonely;
	run->unsignalled = kind->flags == DAT_EVD_DTO_FLAG && !kind->lonely;
	run->window = kind->lonely ? 1 : WINDOW;
	for (i = 0; i < 2 * PAIRS; i++) {
		run->end[i].quota = events * 3 / (5 * 2 * PAIRS) + 1;
		run->end[i].id = i;
		/* One pair, one way: the others do not send, and get nothing. */
		if (kind->lonely)
			run->end[i].quota = i ? 0 : events / 2 + 1;
	}
	for (i = 0; i < 2 * PAIRS; i++)
		run->end[i].recvs = run->end[i ^ 1].quota;
	err = sides_open(kind, phase, events, ++port);
	for (i = 0; i < PAIRS && !err; i++)
		err = pair_up(i, port);
	if (!err)
		err = start();
	if (!err)
		finish();
	storm_both_stop(run->evd);
	for (i = 0; i < 2 * PAIRS; i++)
		storm_thread_stop(&run->end[i].sender);
	for (i = 0; i < PAIRS; i++)
		pair_down(i);
	FREE(dat_psp_free, &run->psp);
	for (i = 0; i < 2; i++) {
		FREE(dat_evd_free, &run->cm[i]);
		storm_evd_close(run->evd[i]);
	}
	kfree(run);
	return err;
}

int storm_dto(u32 events)
{
	int i, k, err = 0;

	for (i = 0; events && i < STORM_PHASES * ARRAY_SIZE(kinds); i++) {
		k = i % ARRAY_SIZE(kinds);
		if (err || storm_overtime())
			break;
		err = dto_storm(&kinds[k], &storm_phases[i / ARRAY_SIZE(kinds)],
				events / (STORM_PHASES * ARRAY_SIZE(kinds)) + 1);
	}
	return err;
}
