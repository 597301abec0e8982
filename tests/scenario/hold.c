// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * mode=hold: connections with traffic that outlive the load of the module, so
 * that the device can be taken away under them. Unloading then looks at what
 * happened, frees everything one by one and prints one line:
 *
 *	kdtest-hold: PASS eps=8 ...
 *	kdtest-hold: FAIL <first thing that was wrong>
 *
 * gone= says whose device must be gone by then: a, b, ab or none. By default the
 * registry is asked; what is required of each adapter follows from that.
 *
 * want= says what else may have happened: alive, all connections are up in spite
 * of everything; ended, all have ended without anybody asking for it.
 *
 * Half of the endpoints take their Receives from Shared Receive Queues, one per
 * adapter.
 *
 * Messages are numbered and carry a pattern of their number, so that nothing is
 * lost, doubled, reordered or damaged. Their count can be read while they are
 * under way: /sys/module/kdtest/parameters/messages.
 */
#define pr_fmt(fmt) "kdtest-hold: " fmt

#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kdtest.h"

#define HOLD_PAIRS	4
#define HOLD_ALONE	2		/* pairs with Receives of their own */
#define HOLD_SIZE	4096		/* bytes of a message, at most */
#define HOLD_BALLS	4		/* messages in the air, per connection */
#define HOLD_IN		16		/* receives posted; twice that on an SRQ */
#define HOLD_OUT	(KDT_DTOS + 16)	/* more than the requests that can be outstanding */
#define HOLD_RECV	BIT_ULL(32)	/* in the cookie */
#define HOLD_WINDOW	64		/* messages that may overtake one, with policy=many */

char *kdt_gone = "auto";
static char *want = "", *policy = "single";
static unsigned int bytes = HOLD_SIZE;

module_param_named(gone, kdt_gone, charp, 0644);
MODULE_PARM_DESC(gone, "whose device is gone at unload: a, b, ab, none (default: find out)");
module_param(bytes, uint, 0444);
MODULE_PARM_DESC(bytes, "mode=hold: of a message, up to 4096");
module_param(policy, charp, 0444);
MODULE_PARM_DESC(policy, "mode=hold: of the EVDs: single, many (upcalls that may sleep), notify, disable");
module_param(want, charp, 0644);
MODULE_PARM_DESC(want, "mode=hold: alive: nothing ended; ended: everything did, by itself");

struct hold_srq {
	DAT_SRQ_HANDLE h;
	struct kdt_buf *in;
};

struct hold_ep {
	struct kdt_ep *ep;
	struct hold_srq *srq;		/* or NULL */
	struct kdt_buf *in, *out;
	spinlock_t lock;		/* sending: numbers in the order of posts */
	u32 sent;
	spinlock_t in_lock;		/* receiving: what follows */
	u32 received;			/* all messages up to here */
	u64 beyond;			/* and these behind it, with policy=many */
	atomic_t posted, completed, bounced;
	u32 statuses;			/* bits, other than success and flushed */
	bool broken, damaged;
};

static struct kdt_env *hold_env;
static struct kdt_pair hold_pairs[HOLD_PAIRS];
static struct hold_ep hold_eps[2 * HOLD_PAIRS];
static struct hold_srq hold_srqs[2];	/* of a and b */
static struct task_struct *hold_task;	/* takes the events, with policy=disable */
static const char *hold_wrong;
static char hold_text[160];

static int hold_messages(void)
{
	int i, n = 0;

	for (i = 0; i < 2 * HOLD_PAIRS; i++)
		n += atomic_read(&hold_eps[i].bounced);
	return n;
}

static int messages_get(char *text, const struct kernel_param *kp)
{
	return sprintf(text, "%d\n", hold_messages());
}

static const struct kernel_param_ops messages_ops = { .get = messages_get };
module_param_cb(messages, &messages_ops, NULL, 0444);
MODULE_PARM_DESC(messages, "mode=hold: messages received so far");

/* Keeps the first complaint only. */
static __printf(1, 2) void wrong(const char *fmt, ...)
{
	va_list args;

	if (hold_wrong)
		return;
	va_start(args, fmt);
	vsnprintf(hold_text, sizeof(hold_text), fmt, args);
	va_end(args);
	hold_wrong = hold_text;
}

/* The pattern of a message says who sent it, and which one it is. */
static u32 hold_seed(struct hold_ep *from, u32 number)
{
	return (from - hold_eps) << 24 | (number & 0xffffff);
}

static DAT_RETURN hold_srq_receive(struct hold_srq *srq, u32 slot)
{
	DAT_LMR_TRIPLET iov = kdt_seg(srq->in, slot * HOLD_SIZE, bytes);

	return dat_srq_post_recv(srq->h, 1, &iov, kdt_cookie(HOLD_RECV | slot));
}

static DAT_RETURN hold_receive(struct hold_ep *h, u32 slot)
{
	DAT_RETURN ret;

	if (h->srq)
		return hold_srq_receive(h->srq, slot);

	atomic_inc(&h->posted);
	ret = kdt_recv(h->ep, h->in, slot * HOLD_SIZE, bytes, HOLD_RECV | slot);
	if (ret != DAT_SUCCESS)
		atomic_dec(&h->posted);
	return ret;
}

static DAT_RETURN hold_send(struct hold_ep *h)
{
	unsigned long flags;
	DAT_RETURN ret;
	u32 at;

	spin_lock_irqsave(&h->lock, flags);
	at = h->sent % HOLD_OUT * HOLD_SIZE;
	kdt_fill(h->out->p + at, bytes, hold_seed(h, h->sent));
	atomic_inc(&h->posted);
	ret = kdt_send(h->ep, h->out, at, bytes, 0, 0);
	if (ret == DAT_SUCCESS)
		h->sent++;
	else
		atomic_dec(&h->posted);
	spin_unlock_irqrestore(&h->lock, flags);
	return ret;
}

static bool hold_many(void)
{
	return !strcmp(policy, "many");
}

/* Is it the next message, or with policy=many one that overtook? Then it has arrived. */
static bool hold_arrived(struct hold_ep *h, u32 slot, const u8 *p)
{
	struct hold_ep *peer = &hold_eps[(h - hold_eps) ^ 1];
	u32 i, window = hold_many() ? HOLD_WINDOW : 1;
	unsigned long flags;

	spin_lock_irqsave(&h->in_lock, flags);
	/* An SRQ hands out its buffers in any order. */
	if (!h->srq && !hold_many() && slot != h->received % HOLD_IN)
		window = 0;
	for (i = 0; i < window; i++) {
		if (!(h->beyond & BIT_ULL(i)) &&
		    kdt_same(p, bytes, hold_seed(peer, h->received + i)))
			break;
	}
	if (i < window)
		h->beyond |= BIT_ULL(i);
	while (h->beyond & 1) {
		h->beyond >>= 1;
		h->received++;
	}
	spin_unlock_irqrestore(&h->in_lock, flags);
	return i < window;
}

/*
 * With policy=many, one upcall may be preempted while the other CPU handles more messages than
 * the window has places: these wait for it.
 */
static bool hold_message(struct hold_ep *h, u32 slot, const u8 *p)
{
	return hold_arrived(h, slot, p) ||
	       (hold_many() && wait_event_timeout(h->ep->recv->wait, hold_arrived(h, slot, p),
						  KDT_WAIT));
}

static void hold_status(struct hold_ep *h, DAT_DTO_COMPLETION_STATUS status)
{
	unsigned long flags;

	spin_lock_irqsave(&h->in_lock, flags);
	h->statuses |= 1 << status;
	spin_unlock_irqrestore(&h->in_lock, flags);
}

/* Each message is answered; each completion is counted. */
static bool hold_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct hold_ep *h = evd->priv;
	u32 slot = dto->user_cookie.as_64;

	if (dto->status == DAT_DTO_SUCCESS && dto->user_cookie.as_64 & HOLD_RECV) {
		u8 *p = h->in->p + slot * HOLD_SIZE;

		if (dto->transfered_length != bytes || !hold_message(h, slot, p))
			h->damaged = true;
		memset(p, 0, bytes);
		hold_receive(h, slot);
		hold_send(h);
		atomic_inc(&h->bounced);
	} else if (dto->status != DAT_DTO_SUCCESS && dto->status != DAT_DTO_ERR_FLUSHED) {
		hold_status(h, dto->status);
	}
	/* What is on an SRQ is nobody's. */
	if (!h->srq || !(dto->user_cookie.as_64 & HOLD_RECV))
		atomic_inc(&h->completed);
	wake_up(&evd->wait);
	return true;
}

/* Takes the events of EVDs that call nobody. */
static int hold_poll(void *data)
{
	DAT_EVENT event;
	int i, n;

	while (!kthread_should_stop()) {
		for (i = 0, n = 0; i < 4 * HOLD_PAIRS; i++) {
			struct kdt_ep *ep = hold_eps[i / 2].ep;
			struct kdt_evd *evd = i & 1 ? ep->recv : ep->req;

			if (dat_evd_dequeue(evd->h, &event) == DAT_SUCCESS) {
				hold_hook(evd, &event, DAT_FALSE);
				n++;
			}
		}
		if (!n)
			schedule_timeout_interruptible(1);
		cond_resched();
	}
	return 0;
}

/* It is traffic only when every endpoint has seen some. */
static int hold_warm_up(void)
{
	int i;

	for (i = 0; i < 2 * HOLD_PAIRS; i++) {
		struct hold_ep *h = &hold_eps[i];

		if (!wait_event_timeout(h->ep->recv->wait, atomic_read(&h->bounced) >= HOLD_BALLS,
					KDT_WAIT))
			return -ETIMEDOUT;
	}
	return 0;
}

static DAT_RETURN hold_srq_open(struct kdt_ia *ia, struct hold_srq *srq)
{
	DAT_SRQ_ATTR attr = { .max_recv_dtos = 2 * HOLD_IN, .max_recv_iov = 1 };
	DAT_RETURN ret;
	int n;

	ret = dat_srq_create(ia->h, ia->pz, &attr, &srq->h) ?:
	      kdt_buf_open(hold_env, ia, ia->pz, 2 * HOLD_IN * HOLD_SIZE, KDT_RIGHTS, &srq->in);
	for (n = 0; n < 2 * HOLD_IN && ret == DAT_SUCCESS; n++)
		ret = hold_srq_receive(srq, n);
	return ret;
}

static DAT_RETURN hold_evd(struct hold_ep *h, struct kdt_evd **evd)
{
	struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;
	DAT_UPCALL_POLICY how = DAT_UPCALL_SINGLE_INSTANCE;
	DAT_RETURN ret;

	if (hold_many()) {
		how = DAT_UPCALL_MANY;
		attr.context = KDAT_EVD_CONTEXT_WORKQUEUE;
	} else if (!strcmp(policy, "notify")) {
		how = DAT_UPCALL_NOTIFY;
	} else if (!strcmp(policy, "disable")) {
		how = DAT_UPCALL_DISABLE;
	}
	ret = kdt_evd_open_attr(hold_env, h->ep->ia, DAT_EVD_DTO_FLAG, 2 * KDT_DTOS, how, &attr,
				evd);
	if (ret == DAT_SUCCESS) {
		(*evd)->priv = h;
		(*evd)->hook = hold_hook;
	}
	return ret;
}

/* The endpoint again, with EVDs of the policy, and Receives of its own or an SRQ. */
static DAT_RETURN hold_ep_open(struct hold_ep *h, struct kdt_ep *ep, struct hold_srq *srq)
{
	struct kdt_ia *ia = ep->ia;
	DAT_EP_ATTR attr;
	DAT_RETURN ret;
	int n;

	spin_lock_init(&h->lock);
	spin_lock_init(&h->in_lock);
	h->ep = ep;
	h->srq = srq;
	kdt_attr(hold_env, &attr);
	ret = dat_ep_free(ep->h) ?: hold_evd(h, &ep->recv) ?: hold_evd(h, &ep->req) ?:
	      kdt_buf_open(hold_env, ia, ia->pz, HOLD_OUT * HOLD_SIZE, KDT_RIGHTS, &h->out);
	if (ret != DAT_SUCCESS)
		return ret;
	if (srq) {
		h->in = srq->in;
		return dat_ep_create_with_srq(ia->h, ia->pz, ep->recv->h, ep->req->h, ep->conn->h,
					      srq->h, &attr, &ep->h);
	}
	ret = dat_ep_create(ia->h, ia->pz, ep->recv->h, ep->req->h, ep->conn->h, &attr, &ep->h) ?:
	      kdt_buf_open(hold_env, ia, ia->pz, HOLD_IN * HOLD_SIZE, KDT_RIGHTS, &h->in);
	for (n = 0; n < HOLD_IN && ret == DAT_SUCCESS; n++)
		ret = hold_receive(h, n);
	return ret;
}

static int hold_pair_up(int i)
{
	struct kdt_pair *pair = &hold_pairs[i];
	struct hold_srq *srqs[2] = {};
	DAT_RETURN ret;

	if (i >= HOLD_ALONE) {
		srqs[0] = &hold_srqs[0];
		srqs[1] = &hold_srqs[1];
	}
	ret = kdt_pair_open(hold_env, pair, NULL) ?:
	      hold_ep_open(&hold_eps[2 * i], &pair->c, srqs[0]) ?:
	      hold_ep_open(&hold_eps[2 * i + 1], &pair->s, srqs[1]);
	if (ret != DAT_SUCCESS) {
		pr_err("%s %s\n", kdt_major(ret), kdt_minor(ret));
		return -EIO;
	}
	return kdt_pair_link(pair);
}

int kdt_hold_start(void)
{
	int i, err;

	bytes = clamp(bytes, 1U, (unsigned int)HOLD_SIZE);
	hold_env = kzalloc(sizeof(*hold_env), GFP_KERNEL);
	if (!hold_env)
		return -ENOMEM;
	err = kdt_env_open(hold_env);
	if (!err && (hold_srq_open(&hold_env->a, &hold_srqs[0]) ?:
		     hold_srq_open(&hold_env->b, &hold_srqs[1])) != DAT_SUCCESS)
		err = -EIO;
	for (i = 0; i < HOLD_PAIRS && !err; i++)
		err = hold_pair_up(i);
	if (!err && !strcmp(policy, "disable")) {
		hold_task = kthread_run(hold_poll, NULL, "kdtest-poll");
		err = PTR_ERR_OR_ZERO(hold_task);
		if (err)
			hold_task = NULL;
	}
	for (i = 0; i < HOLD_PAIRS * HOLD_BALLS && !err; i++)
		hold_send(&hold_eps[i / HOLD_BALLS * 2]);
	if (!err)
		err = hold_warm_up();
	if (err) {
		if (hold_task)
			kthread_stop(hold_task);
		kdt_env_close(hold_env);
		kfree(hold_env);
		pr_err("FAIL to start, error %d\n", err);
		return err;
	}
	pr_info("READY eps=%d\n", 2 * HOLD_PAIRS);
	return 0;
}

/* One end, and the right one; everything posted came back. */
static void hold_check_ep(int i, bool asked)
{
	struct hold_ep *h = &hold_eps[i];
	DAT_EVENT event;

	if (!kdt_get(h->ep->conn, &event)) {
		wrong("endpoint %d: no event ends the connection", i);
		return;
	}
	h->broken = event.event_number == DAT_CONNECTION_EVENT_BROKEN;
	if (!h->broken && event.event_number != DAT_CONNECTION_EVENT_DISCONNECTED)
		wrong("endpoint %d: event 0x%x", i, event.event_number);
	if (kdt_state(h->ep->h) != DAT_EP_STATE_DISCONNECTED)
		wrong("endpoint %d: state %d", i, kdt_state(h->ep->h));
	if (h->damaged)
		wrong("endpoint %d: a message is not the one that was sent", i);
	if (!kdt_guarded(h->in) || !kdt_guarded(h->out))
		wrong("endpoint %d: written outside its memory", i);
	if (!kdt_until(atomic_read(&h->completed) == atomic_read(&h->posted)))
		wrong("endpoint %d: %d posted, %d completed", i, atomic_read(&h->posted),
		      atomic_read(&h->completed));
	/* soft-iWARP fails what it was sending; an endpoint that has asked for the end gets it */
	if (h->statuses && !h->broken && !asked)
		wrong("endpoint %d: statuses 0x%x, but not BROKEN", i, h->statuses);
	/* Nobody asked for an end, and on RoCE a peer that is silent is an error. */
	if (!strncmp(want, "ended", 5) && !h->ep->ia->iwarp && !h->broken)
		wrong("endpoint %d: not BROKEN", i);
}

/* Up and moving, in spite of everything. */
static void hold_check_alive(int i)
{
	struct hold_ep *h = &hold_eps[i];
	int seen = atomic_read(&h->bounced);

	if (kdt_queued(h->ep->conn))
		wrong("endpoint %d: its connection has ended", i);
	else if (!wait_event_timeout(h->ep->recv->wait, atomic_read(&h->bounced) > seen, KDT_WAIT))
		wrong("endpoint %d: no message comes any more", i);
}

static void hold_check_async(struct kdt_ia *ia, bool is_gone)
{
	unsigned int catastrophic = 0;
	DAT_EVENT event;

	/* It was delivered before the removal ended. */
	while (dat_evd_dequeue(ia->async, &event) == DAT_SUCCESS) {
		if (event.event_number != DAT_ASYNC_ERROR_IA_CATASTROPHIC)
			continue;
		catastrophic++;
		if (event.event_data.asynch_error_event_data.dat_handle != ia->h ||
		    event.event_data.asynch_error_event_data.reason != DAT_IA_CATASTROPHIC_ERROR)
			wrong("%s: wrong data in IA_CATASTROPHIC", ia->name);
	}
	if (catastrophic != is_gone)
		wrong("%s: %u times IA_CATASTROPHIC", ia->name, catastrophic);
}

static bool hold_is_gone(struct kdt_ia *ia, char which)
{
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_IA_HANDLE other;
	bool found = dat_ia_open((char *)ia->name, 8, &async, &other) == DAT_SUCCESS;

	if (found)
		dat_ia_close(other, DAT_CLOSE_ABRUPT_FLAG);
	if (!strncmp(kdt_gone, "auto", 4))
		return !found;
	/* "none" has neither letter in it */
	if (found == !!strchr(kdt_gone, which))
		wrong("%s: %s", ia->name, found ? "still there" : "gone, unexpectedly");
	return strchr(kdt_gone, which);
}

static void hold_free(const char *what, DAT_RETURN ret)
{
	if (ret != DAT_SUCCESS)
		wrong("%s: %s %s", what, kdt_major(ret), kdt_minor(ret));
}

void kdt_hold_stop(void)
{
	struct kdt_ia *a = &hold_env->a, *b = &hold_env->b;
	bool a_gone = hold_is_gone(a, 'a'), b_gone = hold_is_gone(b, 'b');
	struct kdt_evd *evd;
	struct kdt_buf *buf;
	bool ended = !strncmp(want, "ended", 5), alive = !strncmp(want, "alive", 5);
	bool ask = !a_gone && !b_gone && !ended;
	int i, messages, broken = 0;
	u32 statuses = 0;

	for (i = 0; i < 2 * HOLD_PAIRS && alive; i++)
		hold_check_alive(i);
	/* Only an endpoint that sends can notice that nobody listens. */
	for (i = 0; i < 2 * HOLD_PAIRS && ended; i++)
		hold_send(&hold_eps[i]);
	for (i = 0; i < HOLD_PAIRS && ask; i++)
		hold_free("disconnect", dat_ep_disconnect(hold_pairs[i].c.h, 0));
	for (i = 0; i < 2 * HOLD_PAIRS; i++) {
		hold_check_ep(i, ask && i % 2 == 0);
		broken += hold_eps[i].broken;
		statuses |= hold_eps[i].statuses;
	}
	messages = hold_messages();
	for (i = 0; i < 2 * HOLD_PAIRS; i += 2) {
		bool broken_a = hold_eps[i].broken, broken_b = hold_eps[i + 1].broken;

		/* Of two devices, the one that went first has disconnected the other. */
		if (a_gone && b_gone && strcmp(a->name, b->name) ? !broken_a && !broken_b :
		    (a_gone && !broken_a) || (b_gone && !broken_b))
			wrong("endpoints %d, %d: not BROKEN", i, i + 1);
	}
	hold_check_async(a, a_gone);
	hold_check_async(b, b_gone);
	if (hold_task)
		kthread_stop(hold_task);
	/* Consumers give everything back as ever. */
	for (i = 0; i < HOLD_PAIRS; i++) {
		hold_free("dat_psp_free", dat_psp_free(hold_pairs[i].psp));
		hold_free("dat_ep_free", dat_ep_free(hold_pairs[i].c.h));
		hold_free("dat_ep_free", dat_ep_free(hold_pairs[i].s.h));
	}
	hold_free("dat_srq_free", dat_srq_free(hold_srqs[0].h));
	hold_free("dat_srq_free", dat_srq_free(hold_srqs[1].h));
	list_for_each_entry(evd, &hold_env->evds, link) {
		hold_free("dat_evd_free", dat_evd_free(evd->h));
		if (kdt_queued(evd))
			wrong("more than one event on a connection");
	}
	list_for_each_entry(buf, &hold_env->bufs, link)
		hold_free("dat_lmr_free", dat_lmr_free(buf->lmr));
	hold_free("dat_pz_free", dat_pz_free(a->pz));
	hold_free("dat_pz_free", dat_pz_free(b->pz));
	hold_free("dat_ia_close", dat_ia_close(a->h, DAT_CLOSE_GRACEFUL_FLAG));
	hold_free("dat_ia_close", dat_ia_close(b->h, DAT_CLOSE_GRACEFUL_FLAG));
	kdt_env_close(hold_env);
	kfree(hold_env);
	if (hold_wrong)
		pr_err("FAIL %s\n", hold_wrong);
	else
		pr_info("PASS eps=%d messages=%d gone=%s%s broken=%d statuses=0x%x\n",
			2 * HOLD_PAIRS, messages, a_gone ? "a" : "", b_gone ? "b" : "", broken,
			statuses);
}
