// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdscale - a thousand connections at a time.
 *
 * Orders, one line each, go to the file kdscale/do in debugfs; a write returns when
 * the order has been carried out, and fails, with the reason in the kernel log, when
 * anything was wrong. The orders are at the end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/delay.h>
#include <linux/module.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>

#define TEST_LONG	(240 * HZ)	/* for anything that must happen */

#include "../../lib/consumer.h"
#include "../../lib/orders.h"

#define MSG	64
#define AT_ONCE	64	/* messages, and calls that wait for a grace period */

static char *ia_a, *ia_b;
static ushort port = 4714;

module_param(ia_a, charp, 0444);
MODULE_PARM_DESC(ia_a, "interface adapter of the active ends (required)");
module_param(ia_b, charp, 0444);
MODULE_PARM_DESC(ia_b, "interface adapter of the passive ends (default: the same)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier (default 4714)");

struct end {
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd, conn;	/* of its own, or none */
	/* under the lock of the side */
	u32 outcomes, ends, recvs, sends, received;
	DAT_EVENT_NUMBER outcome;
};

struct side {
	struct test_ia ia;
	DAT_EVD_HANDLE evd, conn, cr;
	DAT_PSP_HANDLE psp;
	struct test_mem mem;	/* per connection: a message to receive, one to send */
	struct end *end;
	spinlock_t lock;	/* all of end, and what follows */
	u32 up, ended, got, done;	/* of all ends */
	u32 posted, recvs;		/* of each end: Sends and Receives posted */
	struct work_struct work;
	bool closing, closed;
};

TEST_STATE;

static struct side side[2];
static u32 count;		/* connections */
static u32 length;		/* of the EVDs for DTOs; 0: what these connections may need */
static u32 nap;			/* of the upcall of a completion, ms */
static u32 round;		/* of data */
static struct dentry *scale_dir;
static struct workqueue_struct *scale_wq;

static u8 byte(u32 n, u32 r, u32 i, bool from_b)
{
	return n * 7 + r * 31 + i * 3 + from_b;
}

static void upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	DAT_EVENT_NUMBER number = event->event_number;
	bool from_b = instance == &side[0];
	struct side *s = instance;
	struct end *end = test_context(number == DAT_DTO_COMPLETION_EVENT ? dto->ep_handle :
				       event->event_data.connect_event_data.ep_handle);
	u32 n, i;
	u8 *p;

	if (!end) {
		/* handles die when dat_ia_close() begins, upcalls end before it returns */
		if (!READ_ONCE(s->closing))
			fail("%s: event 0x%x of nobody", s->ia.name, number);
		return;
	}
	n = end - s->end;
	if (end->conn && number == DAT_DTO_COMPLETION_EVENT)
		msleep(nap);
	if (end->conn && test_is_end(number))
		TRY(kdat_ep_drain, end->ep);
	spin_lock_bh(&s->lock);
	if (number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		s->up++;
		if (end->outcomes++)
			fail("%s %u: ESTABLISHED again", s->ia.name, n);
	} else if (test_is_end(number)) {
		s->ended++;
		if (end->ends++ || !end->outcomes)
			fail("%s %u: another end", s->ia.name, n);
		/* their order is promised within one EVD */
		if (!length && (end->recvs != s->recvs || end->sends != s->posted))
			fail("%s %u: an end with %u of %u Receives, %u of %u Sends", s->ia.name, n,
			     end->recvs, s->recvs, end->sends, s->posted);
	} else if (number != DAT_DTO_COMPLETION_EVENT) {
		fail("%s %u: event 0x%x", s->ia.name, n, number);
	} else if (dto->user_cookie.as_64) {
		end->sends++;
		s->done++;
		if (dto->status != DAT_DTO_SUCCESS)
			fail("%s %u: Send: status %d", s->ia.name, n, dto->status);
	} else {
		end->recvs++;
		p = s->mem.p + 2 * n * MSG;
		if (dto->status == DAT_DTO_SUCCESS) {
			for (i = 0; i < MSG; i++) {
				if (p[i] != byte(n, round, i, from_b))
					break;
			}
			if (i < MSG || dto->transfered_length != MSG)
				fail("%s %u: message of %llu bytes, round %u, wrong from %u: %8ph",
				     s->ia.name, n, (u64)dto->transfered_length, round, i, p);
			s->got++;
		} else if (dto->status != DAT_DTO_ERR_FLUSHED) {
			fail("%s %u: Receive: status %d", s->ia.name, n, dto->status);
		}
	}
	spin_unlock_bh(&s->lock);
	wake_up_all(&test_wait);
}

static DAT_EP_HANDLE passive(u32 n)
{
	return n < count ? side[1].end[n].ep : NULL;
}

static int side_open(struct side *s, const char *name)
{
	DAT_EVD_FLAGS more = length ? 0 : DAT_EVD_CONNECTION_FLAG;
	int err;

	memset(s, 0, sizeof(*s));
	spin_lock_init(&s->lock);
	s->end = vzalloc(array_size(count, sizeof(*s->end)));
	err = s->end ? 0 : -ENOMEM;
	err = err ?: test_ia_open(&s->ia, name) ?:
	      test_mem_open(&s->ia, &s->mem, 2 * count * MSG, LOCAL_RIGHTS) ?:
	      test_evd(&s->ia, length ?: 8 * count, DAT_EVD_DTO_FLAG | more, upcall, s,
		       &s->evd) ?:
	      test_evd(&s->ia, count, DAT_EVD_CR_FLAG, test_cm_upcall, passive, &s->cr);
	if (!err && length)
		err = test_evd(&s->ia, 8 * count, DAT_EVD_CONNECTION_FLAG, upcall, s, &s->conn);
	if (!err && s == &side[1])
		err = TRY(dat_psp_create, s->ia.h, port, s->cr, DAT_PSP_CONSUMER_FLAG, &s->psp);
	return err;
}

/* Where completions wait for a place, and so does the end of a connection, for them. */
static int end_evds(struct side *s, struct end *end)
{
	const struct kdat_evd_attr attr = {
		.context = KDAT_EVD_CONTEXT_WORKQUEUE, .comp_vector = KDAT_EVD_VECTOR_ANY,
	};
	const DAT_UPCALL_OBJECT events = { s, upcall };

	return TRY(kdat_evd_create, s->ia.h, 8, DAT_UPCALL_SINGLE_INSTANCE, &events,
		   DAT_EVD_DTO_FLAG, &attr, &end->evd) ?:
	       test_evd(&s->ia, 8, DAT_EVD_CONNECTION_FLAG, upcall, s, &end->conn);
}

static int side_eps(struct side *s, bool own)
{
	struct end *end;
	int err = 0;
	u32 n;

	for (n = 0; n < count && !err; n++) {
		end = &s->end[n];
		if (own)
			err = end_evds(s, end);
		err = err ?: TRY(dat_ep_create, s->ia.h, s->ia.pz, end->evd ?: s->evd,
				 end->evd ?: s->evd, end->conn ?: s->conn ?: s->evd, NULL,
				 &end->ep) ?:
			     TRY(dat_set_consumer_context, end->ep, test_cookie(end));
	}
	return err;
}

static int side_free_eps(struct side *s)
{
	int err = 0;
	u32 n;

	for (n = 0; n < count && s->end; n++) {
		err = FREE(dat_ep_free, &s->end[n].ep) ?: err;
		err = FREE(dat_evd_free, &s->end[n].conn) ?: err;
		err = FREE(dat_evd_free, &s->end[n].evd) ?: err;
		s->end[n] = (struct end) {};
	}
	return err;
}

static void side_close(struct side *s)
{
	if (s->ia.h && !s->closed) {
		side_free_eps(s);
		FREE(dat_psp_free, &s->psp);
		FREE(dat_evd_free, &s->cr);
		FREE(dat_evd_free, &s->evd);
		FREE(dat_evd_free, &s->conn);
		FREE(dat_lmr_free, &s->mem.lmr);
		test_ia_close(&s->ia);
	}
	kvfree(s->mem.p);
	vfree(s->end);
	memset(s, 0, sizeof(*s));
}

static int post_recvs(struct side *s)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	int err = 0;
	u32 n;

	for (n = 0; n < count && !err; n++) {
		DAT_LMR_TRIPLET iov = test_segment(&s->mem, 2 * n * MSG, MSG);

		err = TRY(dat_ep_post_recv, s->end[n].ep, 1, &iov, cookie, 0);
	}
	s->recvs++;
	return err;
}

static void report(const char *what, u64 start)
{
	u64 ms = div_u64(ktime_get_ns() - start, NSEC_PER_MSEC);

	pr_info("%s: %llu ms\n", what, ms);
}

/* ---- orders ---- */

/* open N [LENGTH]: all that N connections need, but the Endpoints. */
static int do_open(char *arg)
{
	length = 0;
	if (count || sscanf(arg, "%u %u", &count, &length) < 1 || !count)
		return -EINVAL;
	return side_open(&side[0], ia_a) ?: side_open(&side[1], ia_b ?: ia_a);
}

/*
 * eps [own MS]: with the attributes that are usual; or each with EVDs of its own whose upcalls
 * sleep, so long for each completion, and until all are through when the connection ends.
 */
static int do_eps(char *arg)
{
	bool own = sscanf(arg, "own %u", &nap) == 1;
	u64 start = ktime_get_ns();
	int err = side_eps(&side[0], own) ?: side_eps(&side[1], own);

	report("Endpoints created", start);
	return err;
}

/* connect WINDOW: all of them, so many under way at a time. */
static int do_connect(char *arg)
{
	u64 start = ktime_get_ns();
	u32 window, n;
	int err, i;

	if (kstrtou32(arg, 0, &window) || !window)
		return -EINVAL;
	for (i = 0; i < 2; i++) {
		side[i].up = 0;
		side[i].ended = 0;
		side[i].got = 0;
		side[i].done = 0;
		side[i].posted = 0;
		side[i].recvs = 0;
		for (n = 0; n < count; n++) {
			struct end *end = &side[i].end[n];

			*end = (struct end) { end->ep, end->evd, end->conn };
		}
	}
	err = post_recvs(&side[0]) ?: post_recvs(&side[1]);
	for (n = 0; n < count && !err; n++) {
		if (!in_order(n < window + READ_ONCE(side[0].up)))
			return fail("%u, %u of %u connections", side[0].up, side[1].up, n);
		err = test_connect(side[0].end[n].ep, &side[1].ia, port, n);
	}
	if (!err && !in_order(READ_ONCE(side[0].up) == count && READ_ONCE(side[1].up) == count))
		err = fail("%u, %u of %u connections", side[0].up, side[1].up, count);
	report("connected", start);
	return err;
}

static int send_all(struct side *s, struct side *to)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 1 };
	u32 n, i, got = to->got, done = s->done;
	int err = 0;

	s->posted++;
	for (n = 0; n < count && !err; n++) {
		u8 *p = s->mem.p + (2 * n + 1) * MSG;
		DAT_LMR_TRIPLET iov = test_segment(&s->mem, (2 * n + 1) * MSG, MSG);

		/* a thousand at once are more than soft-RoCE answers in time */
		if (!in_order(n < AT_ONCE + READ_ONCE(s->done) - done))
			break;
		for (i = 0; i < MSG; i++)
			p[i] = byte(n, round, i, s == &side[1]);
		err = TRY(dat_ep_post_send, s->end[n].ep, 1, &iov, cookie, 0);
	}
	if (!err && !in_order(READ_ONCE(to->got) == got + count &&
			      READ_ONCE(s->done) == s->posted * count))
		err = fail("%u of %u messages, %u Sends are done", to->got - got, count, s->done);
	return err ?: post_recvs(to);
}

/* data: a message each way on each of them. */
static int do_data(char *arg)
{
	u64 start = ktime_get_ns();
	int err;

	err = send_all(&side[0], &side[1]) ?: send_all(&side[1], &side[0]);
	if (!err)
		round++;
	report("messages both ways", start);
	return err;
}

static void disconnect_work(struct work_struct *work)
{
	struct side *s = container_of(work, struct side, work);
	u32 n, i;

	/* from the two ends of the list, so that both sides are at the same one once */
	for (i = 0; i < count; i++) {
		n = s == &side[0] ? i : count - 1 - i;
		TRY(dat_ep_disconnect, s->end[n].ep, n % 2 ? DAT_CLOSE_ABRUPT_FLAG :
							      DAT_CLOSE_GRACEFUL_FLAG);
	}
}

static void close_work(struct work_struct *work)
{
	struct side *s = container_of(work, struct side, work);

	TRY(dat_ia_close, s->ia.h, DAT_CLOSE_ABRUPT_FLAG);
}

static void both(work_func_t fn)
{
	int i;

	for (i = 0; i < 2; i++)
		INIT_WORK(&side[i].work, fn);
	for (i = 0; i < 2; i++)
		queue_work(scale_wq, &side[i].work);
	for (i = 0; i < 2; i++)
		flush_work(&side[i].work);
}

struct reset {
	struct work_struct work;
	u32 first;
	int err;
};

static void reset_work(struct work_struct *work)
{
	struct reset *r = container_of(work, struct reset, work);
	u32 n;

	for (n = r->first; n < 2 * count && !r->err; n += AT_ONCE)
		r->err = TRY(dat_ep_reset, side[n % 2].end[n / 2].ep);
}

static int reset_all(void)
{
	struct reset *r = kcalloc(AT_ONCE, sizeof(*r), GFP_KERNEL);
	int err = r ? 0 : -ENOMEM, i;

	for (i = 0; i < AT_ONCE && r; i++) {
		INIT_WORK(&r[i].work, reset_work);
		r[i].first = i;
		queue_work(scale_wq, &r[i].work);
	}
	for (i = 0; i < AT_ONCE && r; i++) {
		flush_work(&r[i].work);
		err = err ?: r[i].err;
	}
	kfree(r);
	return err;
}

/* ended: until all have, whoever has ended them. */
static int do_ended(char *arg)
{
	if (!in_order(READ_ONCE(side[0].ended) == count && READ_ONCE(side[1].ended) == count))
		return fail("%u, %u of %u ends", side[0].ended, side[1].ended, count);
	return 0;
}

/* disconnect: all of them, from both ends at once; then each is ready for another. */
static int do_disconnect(char *arg)
{
	u64 start = ktime_get_ns();
	int err;

	both(disconnect_work);
	err = do_ended(NULL);
	if (err)
		return err;
	report("disconnected", start);
	start = ktime_get_ns();
	err = reset_all();
	report("reset", start);
	return err;
}

/* close: both instances abruptly, at once, with all that is on them. */
static int do_close(char *arg)
{
	u64 start = ktime_get_ns();
	int i;

	for (i = 0; i < 2; i++)
		WRITE_ONCE(side[i].closing, true);
	both(close_work);
	report("closed", start);
	for (i = 0; i < 2; i++) {
		side[i].closed = true;
		side_close(&side[i]);
	}
	count = 0;
	return failed() ? -EIO : 0;
}

/* free: one by one, and gracefully. */
static int do_free(char *arg)
{
	u64 start = ktime_get_ns();
	int err = side_free_eps(&side[0]) ?: side_free_eps(&side[1]);

	report("Endpoints freed", start);
	side_close(&side[0]);
	side_close(&side[1]);
	count = 0;
	return err ?: failed() ? -EIO : 0;
}

static const struct order orders[] = {
	{ "open", do_open },		/* N [LENGTH] */
	{ "eps", do_eps },		/* [own MS] */
	{ "connect", do_connect },	/* WINDOW */
	{ "data", do_data },
	{ "ended", do_ended },
	{ "disconnect", do_disconnect },
	{ "close", do_close },
	{ "free", do_free },
	{}
};

static int __init scale_init(void)
{
	if (!ia_a)
		return -EINVAL;
	scale_wq = alloc_workqueue("kdscale", WQ_UNBOUND, 0);
	if (!scale_wq)
		return -ENOMEM;
	scale_dir = orders_open("kdscale", orders);
	return 0;
}

static void __exit scale_exit(void)
{
	debugfs_remove_recursive(scale_dir);
	side_close(&side[0]);
	side_close(&side[1]);
	destroy_workqueue(scale_wq);
}

module_init(scale_init);
module_exit(scale_exit);
MODULE_DESCRIPTION("kDAPL test: a thousand connections");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
