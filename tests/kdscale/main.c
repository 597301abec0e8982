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
#include <linux/in.h>
#include <linux/in6.h>
#include <linux/module.h>
#include <linux/nsproxy.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/sort.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#include "../orders.h"
#include "kdscale.h"

#define MSG	64
#define AT_ONCE	64	/* messages, and calls that wait for a grace period */
#define BLOCKS	32	/* of a bench, at most */
#define TIMED	2	/* cookie of Writes whose events are timed */
#define SAMPLES	2000	/* of these */

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
	const char *name;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async, evd, conn, cr;
	DAT_PZ_HANDLE pz;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
	DAT_PSP_HANDLE psp;
	struct sockaddr_storage addr;
	u8 *mem;		/* per connection: a message to receive, one to send */
	struct end *end;
	spinlock_t lock;	/* all of end, and what follows */
	u32 up, ended, got, done;	/* of all ends */
	u32 posted, recvs;		/* of each end: Sends and Receives posted */
	u64 called;			/* when the upcall of a Write was made */
	struct work_struct work;
	bool closing, closed;
	int err;
};

DECLARE_WAIT_QUEUE_HEAD(scale_wait);
static struct side side[2];
static u32 count;		/* connections */
static u32 length;		/* of the EVDs for DTOs; 0: what these connections may need */
static u32 nap;			/* of the upcall of a completion, ms */
static u32 round;		/* of data */
static atomic_t faults;
static struct dentry *scale_dir;
static struct workqueue_struct *scale_wq;

static int check(const char *what, DAT_RETURN ret)
{
	const char *major = "unknown error", *minor = "";

	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &major, &minor);
	if (atomic_inc_return(&faults) > 20)
		return -EIO;
	return fail("%s: %s %s", what, major, minor);
}

#define TRY(call, ...)	check(#call, call(__VA_ARGS__))

#define fault(fmt, ...)							\
({									\
	if (atomic_inc_return(&faults) <= 20)				\
		fail(fmt, ##__VA_ARGS__);				\
})

#define await(condition)						\
	(wait_event_killable_timeout(scale_wait, (condition) ||		\
				     atomic_read(&faults), LONG) > 0 &&	\
	 !atomic_read(&faults))

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
	DAT_CONTEXT context = {};
	struct end *end;
	u32 n, i;
	u8 *p;

	if (dat_get_consumer_context(number == DAT_DTO_COMPLETION_EVENT ? dto->ep_handle :
				     event->event_data.connect_event_data.ep_handle, &context) !=
	    DAT_SUCCESS) {
		/* handles die when dat_ia_close() begins, upcalls end before it returns */
		if (!READ_ONCE(s->closing))
			fault("%s: event 0x%x of nobody", s->name, number);
		return;
	}
	n = context.as_64;
	end = &s->end[n];
	if (end->conn && number == DAT_DTO_COMPLETION_EVENT)
		msleep(nap);
	if (end->conn && (number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			  number == DAT_CONNECTION_EVENT_BROKEN))
		TRY(kdat_ep_drain, end->ep);
	spin_lock_bh(&s->lock);
	if (number == DAT_CONNECTION_EVENT_ESTABLISHED) {
		s->up++;
		if (end->outcomes++)
			fault("%s %u: ESTABLISHED again", s->name, n);
	} else if (number == DAT_CONNECTION_EVENT_DISCONNECTED ||
		   number == DAT_CONNECTION_EVENT_BROKEN) {
		s->ended++;
		if (end->ends++ || !end->outcomes)
			fault("%s %u: another end", s->name, n);
		/* their order is promised within one EVD */
		if (!length && (end->recvs != s->recvs || end->sends != s->posted))
			fault("%s %u: an end with %u of %u Receives, %u of %u Sends", s->name, n,
			      end->recvs, s->recvs, end->sends, s->posted);
	} else if (number != DAT_DTO_COMPLETION_EVENT) {
		fault("%s %u: event 0x%x", s->name, n, number);
	} else if (dto->user_cookie.as_64 == TIMED) {
		WRITE_ONCE(s->called, ktime_get_ns());
		if (dto->status != DAT_DTO_SUCCESS)
			fault("%s %u: Write: status %d", s->name, n, dto->status);
	} else if (dto->user_cookie.as_64) {
		end->sends++;
		s->done++;
		if (dto->status != DAT_DTO_SUCCESS)
			fault("%s %u: Send: status %d", s->name, n, dto->status);
	} else {
		end->recvs++;
		p = s->mem + 2 * n * MSG;
		if (dto->status == DAT_DTO_SUCCESS) {
			for (i = 0; i < MSG; i++) {
				if (p[i] != byte(n, round, i, from_b))
					break;
			}
			if (i < MSG || dto->transfered_length != MSG)
				fault("%s %u: message of %llu bytes, round %u, wrong from %u: %8ph",
				      s->name, n, (u64)dto->transfered_length, round, i, p);
			s->got++;
		} else if (dto->status != DAT_DTO_ERR_FLUSHED) {
			fault("%s %u: Receive: status %d", s->name, n, dto->status);
		}
	}
	spin_unlock_bh(&s->lock);
	wake_up_all(&scale_wait);
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct side *s = instance;
	DAT_CR_PARAM param;
	u32 n;

	if (TRY(dat_cr_query, cr, DAT_CR_FIELD_ALL, &param) ||
	    param.private_data_size < sizeof(n))
		return;
	memcpy(&n, param.private_data, sizeof(n));
	if (n >= count)
		fault("a request of nobody");
	else
		TRY(dat_cr_accept, cr, s->end[n].ep, 0, NULL);
}

static int side_open(struct side *s, const char *name)
{
	const DAT_UPCALL_OBJECT events = { s, upcall }, cr = { s, cr_upcall };
	DAT_IA_ATTR *attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = {};
	int err;

	if (!attr)
		return -ENOMEM;
	memset(s, 0, sizeof(*s));
	s->name = name;
	spin_lock_init(&s->lock);
	s->mem = vzalloc(2 * count * MSG);
	s->end = vzalloc(array_size(count, sizeof(*s->end)));
	region.for_va = s->mem;
	err = s->mem && s->end ? 0 : -ENOMEM;
	err = err ?: TRY(dat_ia_open, (char *)name, 16, &s->async, &s->ia) ?:
	      TRY(dat_ia_query, s->ia, NULL, DAT_IA_FIELD_IA_ADDRESS_PTR, attr, 0, NULL) ?:
	      TRY(dat_pz_create, s->ia, &s->pz) ?:
	      TRY(dat_lmr_kcreate, s->ia, DAT_MEM_TYPE_VIRTUAL, region, 2 * count * MSG, s->pz,
		  DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG, DAT_VA_TYPE_VA,
		  DAT_MEM_OPTIMIZE_DONT_CARE, &s->lmr, &s->key, NULL, NULL, NULL) ?:
	      TRY(dat_evd_kcreate, s->ia, length ?: 8 * count, DAT_UPCALL_SINGLE_INSTANCE, &events,
		  DAT_EVD_DTO_FLAG | (length ? 0 : DAT_EVD_CONNECTION_FLAG), &s->evd) ?:
	      TRY(dat_evd_kcreate, s->ia, count, DAT_UPCALL_SINGLE_INSTANCE, &cr,
		  DAT_EVD_CR_FLAG, &s->cr);
	if (!err && length)
		err = TRY(dat_evd_kcreate, s->ia, 8 * count, DAT_UPCALL_SINGLE_INSTANCE, &events,
			  DAT_EVD_CONNECTION_FLAG, &s->conn);
	if (!err && s == &side[1])
		err = TRY(dat_psp_create, s->ia, port, s->cr, DAT_PSP_CONSUMER_FLAG, &s->psp);
	if (!err)
		memcpy(&s->addr, attr->ia_address_ptr,
		       attr->ia_address_ptr->sa_family == AF_INET6 ?
		       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	kfree(attr);
	return err;
}

/* Where completions wait for a place, and so does the end of a connection, for them. */
static int end_evds(struct side *s, struct end *end)
{
	const struct kdat_evd_attr attr = {
		.context = KDAT_EVD_CONTEXT_WORKQUEUE, .comp_vector = KDAT_EVD_VECTOR_ANY,
	};
	const DAT_UPCALL_OBJECT events = { s, upcall };

	return TRY(kdat_evd_create, s->ia, 8, DAT_UPCALL_SINGLE_INSTANCE, &events,
		   DAT_EVD_DTO_FLAG, &attr, &end->evd) ?:
	       TRY(dat_evd_kcreate, s->ia, 8, DAT_UPCALL_SINGLE_INSTANCE, &events,
		   DAT_EVD_CONNECTION_FLAG, &end->conn);
}

static int side_eps(struct side *s, bool own)
{
	DAT_CONTEXT context = {};
	struct end *end;
	int err = 0;
	u32 n;

	for (n = 0; n < count && !err; n++) {
		end = &s->end[n];
		context.as_64 = n;
		if (own)
			err = end_evds(s, end);
		err = err ?: TRY(dat_ep_create, s->ia, s->pz, end->evd ?: s->evd,
				 end->evd ?: s->evd, end->conn ?: s->conn ?: s->evd, NULL,
				 &end->ep) ?:
			     TRY(dat_set_consumer_context, end->ep, context);
	}
	return err;
}

static int side_free_eps(struct side *s)
{
	int err = 0;
	u32 n;

	for (n = 0; n < count && s->end; n++) {
		if (s->end[n].ep)
			err = TRY(dat_ep_free, s->end[n].ep) ?: err;
		if (s->end[n].conn)
			err = TRY(dat_evd_free, s->end[n].conn) ?: err;
		if (s->end[n].evd)
			err = TRY(dat_evd_free, s->end[n].evd) ?: err;
		s->end[n] = (struct end) {};
	}
	return err;
}

static void side_close(struct side *s)
{
	if (s->ia && !s->closed) {
		side_free_eps(s);
		if (s->psp)
			TRY(dat_psp_free, s->psp);
		if (s->cr)
			TRY(dat_evd_free, s->cr);
		if (s->evd)
			TRY(dat_evd_free, s->evd);
		if (s->conn)
			TRY(dat_evd_free, s->conn);
		if (s->lmr)
			TRY(dat_lmr_free, s->lmr);
		if (s->pz)
			TRY(dat_pz_free, s->pz);
		/* Graceful refuses while anything is left, so a leak shows itself here. */
		if (TRY(dat_ia_close, s->ia, DAT_CLOSE_GRACEFUL_FLAG))
			dat_ia_close(s->ia, DAT_CLOSE_ABRUPT_FLAG);
	}
	vfree(s->mem);
	vfree(s->end);
	memset(s, 0, sizeof(*s));
}

static int post_recvs(struct side *s)
{
	DAT_DTO_COOKIE cookie = { .as_64 = 0 };
	int err = 0;
	u32 n;

	for (n = 0; n < count && !err; n++) {
		DAT_LMR_TRIPLET iov = { (uintptr_t)s->mem + 2 * n * MSG, MSG, s->key };

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
		if (!await(n < window + READ_ONCE(side[0].up)))
			return fail("%u, %u of %u connections", side[0].up, side[1].up, n);
		err = TRY(dat_ep_connect, side[0].end[n].ep, (DAT_IA_ADDRESS_PTR)&side[1].addr,
			  port, DAT_TIMEOUT_INFINITE, sizeof(n), &n, DAT_QOS_BEST_EFFORT,
			  DAT_CONNECT_DEFAULT_FLAG);
	}
	if (!err && !await(READ_ONCE(side[0].up) == count && READ_ONCE(side[1].up) == count))
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
		u8 *p = s->mem + (2 * n + 1) * MSG;
		DAT_LMR_TRIPLET iov = { (uintptr_t)p, MSG, s->key };

		/* a thousand at once are more than soft-RoCE answers in time */
		if (!await(n < AT_ONCE + READ_ONCE(s->done) - done))
			break;
		for (i = 0; i < MSG; i++)
			p[i] = byte(n, round, i, s == &side[1]);
		err = TRY(dat_ep_post_send, s->end[n].ep, 1, &iov, cookie, 0);
	}
	if (!err && !await(READ_ONCE(to->got) == got + count &&
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

static int by_size(const void *a, const void *b)
{
	const u64 *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static u64 median(u64 *ns, u32 n)
{
	sort(ns, n, sizeof(*ns), by_size, NULL);
	return ns[n / 2];
}

/* An empty Write: its event is the only one that is under way. */
static int write_one(struct side *s, u32 n)
{
	DAT_DTO_COOKIE cookie = { .as_64 = TIMED };
	DAT_RMR_TRIPLET remote = {};

	return TRY(dat_ep_post_rdma_write, s->end[n].ep, 0, NULL, cookie, &remote, 0);
}

/* What the call takes that finds the event, and the one after it, which finds none. */
static int cost_dequeue(struct side *s, u64 *found, u64 *none)
{
	unsigned long until = jiffies + LONG;
	DAT_EVENT event;
	DAT_RETURN ret;
	u64 start, end;
	u32 i;

	for (i = 0; i < SAMPLES; i++) {
		if (write_one(s, i % count))
			return -EIO;
		do {
			cond_resched();
			start = ktime_get_ns();
			ret = dat_evd_dequeue(s->evd, &event);
			end = ktime_get_ns();
		} while (ret != DAT_SUCCESS && time_before(jiffies, until));
		if (ret != DAT_SUCCESS)
			return fail("a Write without an event");
		found[i] = end - start;
		ret = dat_evd_dequeue(s->evd, &event);
		none[i] = ktime_get_ns() - end;
		if (ret == DAT_SUCCESS)
			return fail("an event too many");
	}
	return 0;
}

/* From the post to the upcall. */
static int cost_upcall(struct side *s, u64 *called)
{
	u64 start;
	u32 i;

	for (i = 0; i < SAMPLES; i++) {
		WRITE_ONCE(s->called, 0);
		start = ktime_get_ns();
		if (write_one(s, i % count))
			return -EIO;
		if (!await(READ_ONCE(s->called)))
			return fail("a Write without an upcall");
		called[i] = s->called - start;
	}
	return 0;
}

/* cost: of an event of an EVD that has all these Endpoints, medians. */
static int do_cost(char *arg)
{
	const DAT_UPCALL_OBJECT *same = DAT_UPCALL_SAME;
	u64 *ns = vmalloc(array3_size(3, SAMPLES, sizeof(*ns)));
	struct side *s = &side[0];
	int err = -ENOMEM;

	if (!ns)
		return err;
	err = TRY(dat_evd_modify_upcall, s->evd, DAT_UPCALL_TEARDOWN, same, DAT_UPCALL_INVOC_NEW) ?:
	      cost_dequeue(s, ns, ns + SAMPLES) ?:
	      TRY(dat_evd_modify_upcall, s->evd, DAT_UPCALL_SINGLE_INSTANCE, same,
		  DAT_UPCALL_INVOC_NEW) ?:
	      cost_upcall(s, ns + 2 * SAMPLES);
	if (!err)
		pr_info("cost: %u Endpoints on an EVD: dequeue %llu ns, none there %llu ns, upcall %llu ns\n",
			count, median(ns, SAMPLES), median(ns + SAMPLES, SAMPLES),
			median(ns + 2 * SAMPLES, SAMPLES));
	vfree(ns);
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

	TRY(dat_ia_close, s->ia, DAT_CLOSE_ABRUPT_FLAG);
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
	if (!await(READ_ONCE(side[0].ended) == count && READ_ONCE(side[1].ended) == count))
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
	return atomic_read(&faults) ? -EIO : 0;
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
	return err ?: atomic_read(&faults) ? -EIO : 0;
}

struct single {
	DAT_EVD_HANDLE dto, conn;
	DAT_EP_HANDLE ep;
};

/*
 * singles N: Endpoints with EVDs of their own, made and freed one by one, as by N
 * consumers that know nothing of each other.
 */
static int do_singles(char *arg)
{
	struct single *all;
	int err = 0;
	u64 start;
	u32 n, i;

	if (kstrtou32(arg, 0, &n) || !n)
		return -EINVAL;
	all = vzalloc(array_size(n, sizeof(*all)));
	if (!all)
		return -ENOMEM;
	start = ktime_get_ns();
	for (i = 0; i < n && !err; i++)
		err = TRY(dat_evd_kcreate, side[0].ia, 8, DAT_UPCALL_DISABLE, NULL,
			  DAT_EVD_DTO_FLAG, &all[i].dto) ?:
		      TRY(dat_evd_kcreate, side[0].ia, 8, DAT_UPCALL_DISABLE, NULL,
			  DAT_EVD_CONNECTION_FLAG, &all[i].conn) ?:
		      TRY(dat_ep_create, side[0].ia, side[0].pz, all[i].dto, all[i].dto,
			  all[i].conn, NULL, &all[i].ep);
	report("Endpoints with EVDs of their own created", start);
	start = ktime_get_ns();
	for (i = 0; i < n; i++) {
		if (all[i].ep)
			err = TRY(dat_ep_free, all[i].ep) ?: err;
		if (all[i].conn)
			err = TRY(dat_evd_free, all[i].conn) ?: err;
		if (all[i].dto)
			err = TRY(dat_evd_free, all[i].dto) ?: err;
	}
	report("Endpoints with EVDs of their own freed one by one", start);
	vfree(all);
	return err;
}

/* raw-open N, raw-close: so many queue pairs with queues of the same size, by the verbs. */
static int do_raw_open(char *arg)
{
	u32 n;

	return kstrtou32(arg, 0, &n) ? -EINVAL : raw_open(&side[0].addr, n);
}

static int do_raw_close(char *arg)
{
	raw_close();
	return 0;
}

static int dapl_block(u32 window, struct scale_times *times)
{
	u64 start = ktime_get_ns();
	char arg[16];
	int err, i;
	u32 n;

	snprintf(arg, sizeof(arg), "%u", window);
	err = side_eps(&side[0], false) ?: side_eps(&side[1], false);
	times->create = ktime_get_ns() - start;
	start = ktime_get_ns();
	side[0].recvs = 0;
	side[1].recvs = 0;
	err = err ?: do_connect(arg);
	times->connect = ktime_get_ns() - start;
	start = ktime_get_ns();
	if (!err) {
		both(disconnect_work);
		err = do_ended(NULL);
	}
	times->disconnect = ktime_get_ns() - start;
	start = ktime_get_ns();
	for (i = 0; i < 2; i++) {
		err = side_free_eps(&side[i]) ?: err;
		for (n = 0; n < count; n++)
			memset(&side[i].end[n], 0, sizeof(side[i].end[n]));
	}
	times->destroy = ktime_get_ns() - start;
	return err;
}

/* bench BLOCKS WINDOW: blocks of connections, kDAPL's and raw ones in turn. */
static int do_bench(char *arg)
{
	static const char *const phases[] = { "create", "connect", "disconnect", "destroy" };
	static struct scale_times times[2][BLOCKS];
	u64 ns[BLOCKS];
	u32 blocks, window, i, k, p;
	int err = 0;

	if (sscanf(arg, "%u %u", &blocks, &window) != 2 || !blocks || blocks > BLOCKS)
		return -EINVAL;
	for (i = 0; i < blocks && !err; i++)
		err = dapl_block(window, &times[0][i]) ?:
		      raw_block(&side[1].addr, port + 1, count, window, &times[1][i]);
	for (p = 0; p < 4 && !err; p++) {
		for (k = 0; k < 2; k++) {
			for (i = 0; i < blocks; i++)
				ns[i] = ((u64 *)&times[k][i])[p];
			sort(ns, blocks, sizeof(*ns), by_size, NULL);
#define RATE(t)	div64_u64((u64)count * NSEC_PER_SEC, max((t), 1ULL))
			pr_info("bench %u at a time: %-10s %-5s %6llu per s (%llu to %llu, %u blocks of %u)\n",
				window, phases[p], k ? "raw" : "kDAPL", RATE(ns[blocks / 2]),
				RATE(ns[blocks - 1]), RATE(ns[0]), blocks, count);
		}
	}
	return err;
}

static const struct order orders[] = {
	{ "open", do_open },		/* N [LENGTH] */
	{ "eps", do_eps },		/* [own MS] */
	{ "connect", do_connect },	/* WINDOW */
	{ "data", do_data },
	{ "cost", do_cost },
	{ "ended", do_ended },
	{ "disconnect", do_disconnect },
	{ "close", do_close },
	{ "free", do_free },
	{ "singles", do_singles },	/* N */
	{ "raw-open", do_raw_open },	/* N */
	{ "raw-close", do_raw_close },
	{ "bench", do_bench },		/* BLOCKS WINDOW */
	{}
};

static int __init scale_init(void)
{
	if (!ia_a)
		return -EINVAL;
	scale_wq = alloc_workqueue("kdscale", WQ_UNBOUND, 0);
	if (!scale_wq)
		return -ENOMEM;
	raw_net = get_net(current->nsproxy->net_ns);
	scale_dir = orders_open("kdscale", orders);
	return 0;
}

static void __exit scale_exit(void)
{
	debugfs_remove_recursive(scale_dir);
	raw_close();
	side_close(&side[0]);
	side_close(&side[1]);
	destroy_workqueue(scale_wq);
	put_net(raw_net);
}

module_init(scale_init);
module_exit(scale_exit);
MODULE_DESCRIPTION("kDAPL test: a thousand connections");
MODULE_AUTHOR("The kdapl authors");
MODULE_LICENSE("Dual BSD/GPL");
