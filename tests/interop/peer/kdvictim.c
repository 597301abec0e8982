// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdvictim - the consumer that a hostile peer is after.
 *
 * It listens where everybody may knock, and answers as its policy says. Whatever
 * the peer does, each request is usable until it is answered, each accepted
 * Endpoint has exactly one outcome, one end when that was ESTABLISHED, and gets
 * all its Receives back. Beside that lives the local guest: a connection between
 * the two adapters with messages going round on and on, and visitors, which are
 * new connections; none of them may notice.
 *
 * Orders, one line each, go to the file kdvictim/do in debugfs; a write returns
 * when the order has been carried out, and fails, with the reason in the kernel
 * log, when anything was wrong since the module was loaded. The orders are at the
 * end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>

#define TEST_LONG	(120 * HZ)	/* for anything that must happen */

#include "../../lib/consumer.h"
#include "../../lib/orders.h"
#include "talk.h"

#define BACKLOG		16		/* of the EVD that is flooded */
#define RECVS		2		/* of an Endpoint for strangers */
#define CROWD		1200		/* so many Endpoints for strangers, at most */
#define RING		4		/* messages of the local guest under way */
#define BURST		64		/* so many for an order */
#define MSG		1000
/* Where the slots of an adapter's memory begin. */
enum { GUEST, VISITOR = 2 * RING, STRANGER = 4 * RING, SLOTS = 6 * RING };

static char *ia_a, *ia_b;
static ushort port = 4712;
static ulong seed;
static int requests, held, live, messages, visits;

module_param(ia_a, charp, 0444);
MODULE_PARM_DESC(ia_a, "interface adapter that is attacked (required)");
module_param(ia_b, charp, 0444);
MODULE_PARM_DESC(ia_b, "interface adapter of the local guest (default: the same)");
module_param(port, ushort, 0444);
MODULE_PARM_DESC(port, "connection qualifier; the local guest has the next one (default 4712)");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");
module_param(requests, int, 0444);
MODULE_PARM_DESC(requests, "requests that were seen");
module_param(held, int, 0444);
MODULE_PARM_DESC(held, "of those, neither accepted nor rejected");
module_param(live, int, 0444);
MODULE_PARM_DESC(live, "Endpoints for strangers");
module_param(messages, int, 0444);
MODULE_PARM_DESC(messages, "messages of the local guest");
module_param(visits, int, 0444);
MODULE_PARM_DESC(visits, "visitors that were served");

struct ia {
	struct test_ia ia;
	DAT_EVD_HANDLE evd;
	struct test_mem mem;
};

/* What an attempt or a connection has come to. */
struct end {
	DAT_EP_HANDLE ep;
	struct ia *ia;
	const char *name;
	/* under vic_lock */
	struct list_head entry;
	int outcomes, ends, recvs, sends, posted_recvs, posted_sends;
	DAT_EVENT_NUMBER outcome, end;
	bool stranger, leave, over, leaving;
	int base;		/* the first of its slots in the memory */
	u32 received;		/* the local guest: messages */
	u32 quota;		/* B's: messages it may send, */
	u32 settled;		/* and those that are done with, answers too */
	struct work_struct free;
};

struct held {
	struct list_head entry;
	DAT_CR_HANDLE cr;
};

enum policy { ACCEPT, REJECT, HOLD, MIX };

static const char *const policies[] = { "accept", "reject", "hold", "mix" };

static DEFINE_SPINLOCK(vic_lock);
static LIST_HEAD(strangers);
static LIST_HEAD(holding);
static LIST_HEAD(graves);
static struct workqueue_struct *vic_wq;
static struct dentry *vic_dir;
static struct rnd_state vic_rnd;
static enum policy policy = MIX;
static struct ia A, B;
static DAT_EVD_HANDLE cr_evd, good_evd;
static DAT_PSP_HANDLE psp, good_psp;
static struct end *guest[2];	/* the active one first */
static u32 seen[8];		/* outcomes and ends of strangers */
static u32 seen_mark[8];	/* of those, before the mark */
static int mark;

TEST_STATE;

static u32 rnd(u32 below)
{
	u32 n;

	spin_lock_bh(&vic_lock);
	n = prandom_u32_state(&vic_rnd) % below;
	spin_unlock_bh(&vic_lock);
	return n;
}

/* ---- one end of a connection ---- */

static DAT_LMR_TRIPLET segment(struct ia *ia, int n)
{
	return test_segment(&ia->mem, n * MSG, MSG);
}

static struct end *end_open(struct ia *ia, const char *name, bool stranger, int base)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = MSG,
		.max_recv_dtos = 2 * RING, .max_recv_iov = 1,
		.max_request_dtos = 2 * RING, .max_request_iov = 1,
		.max_rdma_read_in = VICTIM_READS, .max_rdma_read_out = VICTIM_READS,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};
	struct end *end = kzalloc(sizeof(*end), GFP_KERNEL);

	if (!end)
		return NULL;
	end->ia = ia;
	end->name = name;
	end->stranger = stranger;
	end->base = base;
	INIT_LIST_HEAD(&end->entry);
	if (TRY(dat_ep_create, ia->ia.h, ia->ia.pz, ia->evd, ia->evd, ia->evd, &attr, &end->ep)) {
		kfree(end);
		return NULL;
	}
	TRY(dat_set_consumer_context, end->ep, test_cookie(end));
	if (stranger) {
		spin_lock_bh(&vic_lock);
		live++;
		list_add_tail(&end->entry, &strangers);
		spin_unlock_bh(&vic_lock);
	}
	return end;
}

static void end_free(struct work_struct *work)
{
	struct end *end = container_of(work, struct end, free);

	TRY(dat_ep_free, end->ep);
	spin_lock_bh(&vic_lock);
	list_del(&end->entry);
	if (end->stranger)
		live--;
	spin_unlock_bh(&vic_lock);
	kfree(end);
	wake_up_all(&test_wait);
}

static int end_post_recv(struct end *end, int n)
{
	/* the memory is never looked at but by the local guest */
	DAT_LMR_TRIPLET iov = segment(end->ia, end->base + n);
	DAT_DTO_COOKIE cookie = { .as_64 = n };

	spin_lock_bh(&vic_lock);
	end->posted_recvs++;
	spin_unlock_bh(&vic_lock);
	return TRY(dat_ep_post_recv, end->ep, 1, &iov, cookie, 0);
}

/* Everything that must come has come. vic_lock held. */
static bool end_over(const struct end *end)
{
	if (!end->outcomes || end->recvs != end->posted_recvs || end->sends != end->posted_sends)
		return false;
	return end->ends || end->outcome != DAT_CONNECTION_EVENT_ESTABLISHED;
}

static void end_check(struct end *end)
{
	bool free;

	spin_lock_bh(&vic_lock);
	free = end->stranger && !end->over && end_over(end);
	if (free)
		end->over = true;
	spin_unlock_bh(&vic_lock);
	if (free) {
		INIT_WORK(&end->free, end_free);
		queue_work(vic_wq, &end->free);
	}
	wake_up_all(&test_wait);
}

static void conn_event(const DAT_EVENT *event)
{
	struct end *end = test_context(event->event_data.connect_event_data.ep_handle);
	DAT_EVENT_NUMBER number = event->event_number;
	bool leave = false;

	if (!end || end->over) {
		fail("%s of an Endpoint that is over", kdat_event_name(number));
		return;
	}
	spin_lock_bh(&vic_lock);
	if (end->stranger)
		seen[(number - DAT_CONNECTION_EVENT_ESTABLISHED) & 7]++;
	if (number == DAT_CONNECTION_EVENT_BROKEN ||
	    (number == DAT_CONNECTION_EVENT_DISCONNECTED && end->outcomes)) {
		if (end->ends++ || end->outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
			fail("%s: %s after %s, %s", end->name, kdat_event_name(number),
			     kdat_event_name(end->outcome), kdat_event_name(end->end));
		end->end = number;
	} else {
		if (end->outcomes++)
			fail("%s: %s after %s, %s", end->name, kdat_event_name(number),
			     kdat_event_name(end->outcome), kdat_event_name(end->end));
		end->outcome = number;
		leave = end->leave && number == DAT_CONNECTION_EVENT_ESTABLISHED;
	}
	spin_unlock_bh(&vic_lock);
	if (leave)
		TRY(dat_ep_disconnect, end->ep, rnd(2) ? DAT_CLOSE_ABRUPT_FLAG :
							  DAT_CLOSE_GRACEFUL_FLAG);
	end_check(end);
}

/* ---- the local guest: numbered messages go round, back and forth ---- */

static void guest_fill(u8 *p, u32 number)
{
	int i;

	for (i = 0; i < MSG; i++)
		p[i] = number * 31 + i * 7 + (number >> 8);
}

static bool guest_right(const u8 *p, u32 number)
{
	int i;

	for (i = 0; i < MSG; i++) {
		if (p[i] != (u8)(number * 31 + i * 7 + (number >> 8)))
			return false;
	}
	return true;
}

/* Slots of a side: RING to receive, then RING to send. */
static void guest_send(struct end *end, u32 number)
{
	DAT_LMR_TRIPLET iov = segment(end->ia, end->base + RING + number % RING);
	DAT_DTO_COOKIE cookie = { .as_64 = BIT_ULL(32) | number };
	DAT_RETURN ret;

	guest_fill(end->ia->mem.p + (end->base + RING + number % RING) * MSG, number);
	spin_lock_bh(&vic_lock);
	end->posted_sends++;
	spin_unlock_bh(&vic_lock);
	ret = dat_ep_post_send(end->ep, 1, &iov, cookie, 0);
	if (ret != DAT_SUCCESS) {
		spin_lock_bh(&vic_lock);
		end->posted_sends--;
		spin_unlock_bh(&vic_lock);
		if (!end->leaving)		/* not when the guest is leaving */
			check("guest's dat_ep_post_send", ret);
	}
}

/* B begins, with RING messages at a time, up to its quota; A answers each with the same number. */
static void guest_go(struct end *end)
{
	u32 may = end->ia == &B ? min(end->received + RING, READ_ONCE(end->quota)) : end->received;

	while (!READ_ONCE(end->leaving) && end->posted_sends < may &&
	       end->posted_sends - end->sends < RING)
		guest_send(end, end->posted_sends);
}

static void dto_event(const DAT_EVENT *event)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct end *end = test_context(dto->ep_handle);
	bool recv = !(dto->user_cookie.as_64 >> 32), mine;
	int slot = dto->user_cookie.as_64 & 0xff;
	u32 number = 0;

	if (!end || end->over) {
		fail("completion of an Endpoint that is over");
		return;
	}
	mine = !end->stranger && recv && dto->status == DAT_DTO_SUCCESS;
	if (end->stranger && recv && dto->status == DAT_DTO_SUCCESS)
		fail("a stranger has sent a message");
	if (!end->stranger && dto->status != DAT_DTO_SUCCESS && !end->leaving)
		fail("guest: status %d of %s", dto->status, recv ? "a Receive" : "a Send");
	if (mine) {
		number = end->received++;
		if (slot != number % RING || dto->transfered_length != MSG ||
		    !guest_right(end->ia->mem.p + (end->base + slot) * MSG, number))
			fail("guest: message %u is wrong", number);
		messages++;
		if (!end->leaving)
			end_post_recv(end, slot);
	}
	spin_lock_bh(&vic_lock);
	if (recv)
		end->recvs++;
	else
		end->sends++;
	spin_unlock_bh(&vic_lock);
	if (!end->stranger) {
		guest_go(end);
		WRITE_ONCE(end->settled, min_t(u32, end->received, end->sends));
	}
	end_check(end);
}

static void upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	if (event->event_number == DAT_DTO_COMPLETION_EVENT)
		dto_event(event);
	else
		conn_event(event);
}

/* ---- requests ---- */

/* Private data may be junk. 1: it says that we shall leave at once */
static int request_asks(DAT_CR_HANDLE cr)
{
	DAT_CR_PARAM param;

	if (TRY(dat_cr_query, cr, DAT_CR_FIELD_ALL, &param))
		return -EIO;
	if (param.local_ep_handle != DAT_HANDLE_NULL || param.private_data_size < 0 ||
	    param.private_data_size > 255 ||
	    (param.private_data_size && !param.private_data))
		return fail("a request that cannot be");
	return param.private_data_size >= (DAT_COUNT)sizeof(TALK_LEAVE) &&
	       !memcmp(param.private_data, TALK_LEAVE, sizeof(TALK_LEAVE));
}

static void request_reject(DAT_CR_HANDLE cr)
{
	u8 pdata[56];

	get_random_bytes(pdata, sizeof(pdata));
	TRY(dat_cr_reject, cr, rnd(sizeof(pdata) + 1), pdata);
}

static void request_accept(DAT_CR_HANDLE cr, bool leave)
{
	struct end *end = NULL;
	u8 pdata[56];
	int i;

	get_random_bytes(pdata, sizeof(pdata));
	if (READ_ONCE(live) < CROWD)
		end = end_open(&A, "stranger", true, STRANGER);
	if (!end) {
		request_reject(cr);
		return;
	}
	end->leave = leave;
	for (i = 0; i < RECVS; i++)
		end_post_recv(end, i);
	/* A peer that has gone is no reason to fail. */
	if (TRY(dat_cr_accept, cr, end->ep, rnd(sizeof(pdata) + 1), pdata))
		request_reject(cr);
}

static void request_answer(DAT_CR_HANDLE cr, enum policy how, bool leave)
{
	struct held *h;

	if (how == MIX)
		how = rnd(4);
	switch (how) {
	case REJECT:
		request_reject(cr);
		break;
	case HOLD:
		h = kzalloc(sizeof(*h), GFP_KERNEL);
		if (h) {
			h->cr = cr;
			spin_lock_bh(&vic_lock);
			list_add_tail(&h->entry, &holding);
			held++;
			spin_unlock_bh(&vic_lock);
			break;
		}
		fallthrough;
	default:
		request_accept(cr, leave);
		break;
	}
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_CR_ARRIVAL_EVENT_DATA *data = &event->event_data.cr_arrival_event_data;
	int leave;

	if (event->event_number != DAT_CONNECTION_REQUEST_EVENT ||
	    data->sp_handle.psp_handle != psp || data->conn_qual != port) {
		fail("event 0x%x among requests", event->event_number);
		return;
	}
	leave = request_asks(data->cr_handle);
	if (leave >= 0)
		request_answer(data->cr_handle, leave ? ACCEPT : READ_ONCE(policy), leave);
	spin_lock_bh(&vic_lock);
	requests++;
	spin_unlock_bh(&vic_lock);
	wake_up_all(&test_wait);
}

/* ---- visitors and the local guest ---- */

static struct end *accepting;	/* who is meant by the next request on the other port */

static void good_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	TRY(dat_cr_accept, event->event_data.cr_arrival_event_data.cr_handle, accepting->ep, 0,
	    NULL);
}

static int pair_open(struct end *pair[2], const char *name, int base)
{
	/* However long the strangers keep the machine busy, this is no dead peer. */
	struct kdat_conn_attr patient = KDAT_CONN_ATTR_INIT;
	int i;

	patient.ack_timeout = 18;
	patient.retry_count = 7;

	pair[0] = end_open(&B, name, false, base);
	pair[1] = end_open(&A, name, false, base);
	if (!pair[0] || !pair[1])
		return -EIO;
	for (i = 0; i < 2; i++) {
		if (TRY(kdat_ep_modify_conn, pair[i]->ep, &patient))
			return -EIO;
	}
	for (i = 0; i < 2 * RING; i++) {
		if (end_post_recv(pair[i % 2], i / 2))
			return -EIO;
	}
	return 0;
}

static int pair_connect(struct end *pair[2])
{
	int err;

	accepting = pair[1];
	err = TRY(dat_ep_connect, pair[0]->ep, (DAT_IA_ADDRESS_PTR)&A.ia.addr, port + 1,
		  DAT_TIMEOUT_INFINITE, 0, NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
	if (err)
		return err;
	if (!in_order(READ_ONCE(pair[0]->outcomes) && READ_ONCE(pair[1]->outcomes)) ||
	    pair[0]->outcome != DAT_CONNECTION_EVENT_ESTABLISHED ||
	    pair[1]->outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
		return fail("%s: %s, %s", pair[0]->name, kdat_event_name(pair[0]->outcome),
			    kdat_event_name(pair[1]->outcome));
	return 0;
}

/* So many messages and their answers. Nothing is under way before, so no upcall sends any. */
static int pair_talk(struct end *pair[2], u32 n)
{
	struct end *b = pair[0];

	WRITE_ONCE(b->quota, b->quota + n);
	guest_send(b, b->posted_sends);
	if (!in_order(READ_ONCE(b->settled) == b->quota))
		return fail("%s: %u of %u messages are answered", b->name, b->settled, b->quota);
	return 0;
}

static bool is_over(struct end *end)
{
	bool over;

	spin_lock_bh(&vic_lock);
	over = end_over(end);
	spin_unlock_bh(&vic_lock);
	return over;
}

/* What was sent has been received, and the sender knows. */
static bool pair_quiet(struct end *pair[2])
{
	bool quiet;

	spin_lock_bh(&vic_lock);
	quiet = pair[0]->sends == pair[0]->posted_sends && pair[1]->received == pair[0]->sends &&
		pair[1]->sends == pair[1]->posted_sends && pair[0]->received == pair[1]->sends;
	spin_unlock_bh(&vic_lock);
	return quiet;
}

static int pair_close(struct end *pair[2])
{
	int err = 0, i;

	if (pair[0] && pair[1] && pair[0]->outcomes && pair[1]->outcomes) {
		WRITE_ONCE(pair[0]->leaving, true);
		WRITE_ONCE(pair[1]->leaving, true);
		/* soft-iWARP takes an end in the middle of a message for an error */
		if (!in_order(pair_quiet(pair)))
			err = fail("%s: messages do not arrive", pair[0]->name);
		err = err ?: TRY(dat_ep_disconnect, pair[0]->ep, DAT_CLOSE_ABRUPT_FLAG);
		if (!err && !in_order(is_over(pair[0]) && is_over(pair[1])))
			err = fail("%s: ends %s, %s, %d of %d, %d of %d Receives", pair[0]->name,
				   kdat_event_name(pair[0]->end), kdat_event_name(pair[1]->end),
				   pair[0]->recvs, pair[0]->posted_recvs, pair[1]->recvs,
				   pair[1]->posted_recvs);
	}
	for (i = 0; i < 2; i++) {
		if (!pair[i])
			continue;
		TRY(dat_ep_free, pair[i]->ep);
		/* its last upcall may still be on its way out */
		list_add_tail(&pair[i]->entry, &graves);
		pair[i] = NULL;
	}
	return err;
}

/* ---- orders ---- */

static int do_policy(char *arg)
{
	int i = match_string(policies, ARRAY_SIZE(policies), arg);

	if (i < 0)
		return -EINVAL;
	WRITE_ONCE(policy, i);
	return 0;
}

/* stop: requests stay in their EVD, until go. */
static int do_stop(char *arg)
{
	return TRY(dat_evd_modify_upcall, cr_evd, DAT_UPCALL_TEARDOWN, NULL, DAT_UPCALL_INVOC_ANY);
}

static int do_go(char *arg)
{
	return TRY(dat_evd_modify_upcall, cr_evd, DAT_UPCALL_SINGLE_INSTANCE, NULL,
		   DAT_UPCALL_INVOC_ANY);
}

/* backlog N */
static int do_backlog(char *arg)
{
	u32 n;

	return kstrtou32(arg, 0, &n) ? -EINVAL : TRY(dat_evd_resize, cr_evd, n);
}

static int do_mark(char *arg)
{
	spin_lock_bh(&vic_lock);
	mark = requests;
	memcpy(seen_mark, seen, sizeof(seen));
	spin_unlock_bh(&vic_lock);
	return 0;
}

/* saw EVENT N: so many strangers or more have had it since mark. */
static int do_saw(char *arg)
{
	char name[32];
	u32 i, n, is;

	if (sscanf(arg, "%31s %u", name, &n) != 2)
		return -EINVAL;
	for (i = 0; i < ARRAY_SIZE(seen); i++) {
		is = seen[i] - seen_mark[i];
		if (!strcmp(name, kdat_event_name(DAT_CONNECTION_EVENT_ESTABLISHED + i)))
			return is >= n ? 0 : fail("%u times %s, not %u", is, name, n);
	}
	return -EINVAL;
}

/* heard N: so many requests have come since mark. */
static int do_heard(char *arg)
{
	u32 n;

	if (kstrtou32(arg, 0, &n))
		return -EINVAL;
	if (!in_order(READ_ONCE(requests) - mark >= (int)n))
		return fail("%d requests, not %u", requests - mark, n);
	return 0;
}

/* answer accept|reject|mix: those that were held. */
static int do_answer(char *arg)
{
	int how = match_string(policies, ARRAY_SIZE(policies), arg);
	struct held *h;

	if (how < 0 || how == HOLD)
		return -EINVAL;
	for (;;) {
		spin_lock_bh(&vic_lock);
		h = list_first_entry_or_null(&holding, struct held, entry);
		if (h) {
			list_del(&h->entry);
			held--;
		}
		spin_unlock_bh(&vic_lock);
		if (!h)
			return failed() ? -EIO : 0;
		request_answer(h->cr, how == MIX ? rnd(2) : how, false);
		kfree(h);
	}
}

/*
 * leave [pending]: every connection with a stranger is given up, or those only that
 * are not connected. The connection manager of the kernel may see a peer's last word
 * before its first one, and forget it; then nothing but patience or this helps.
 */
static int do_leave(char *arg)
{
	bool pending = arg && !strcmp(arg, "pending");
	DAT_EP_HANDLE *ep = kcalloc(2 * CROWD, sizeof(*ep), GFP_KERNEL);
	struct end *end;
	DAT_RETURN ret;
	int n = 0, i;

	if (!ep)
		return -ENOMEM;
	spin_lock_bh(&vic_lock);
	list_for_each_entry(end, &strangers, entry) {
		if (n < 2 * CROWD && !(pending && end->outcomes))
			ep[n++] = end->ep;
	}
	spin_unlock_bh(&vic_lock);
	for (i = 0; i < n; i++) {
		ret = dat_ep_disconnect(ep[i], i % 3 ? DAT_CLOSE_ABRUPT_FLAG :
						       DAT_CLOSE_GRACEFUL_FLAG);
		/* or it has just been freed, or is about to be used */
		if (ret != DAT_SUCCESS && DAT_GET_TYPE(ret) != DAT_INVALID_HANDLE &&
		    DAT_GET_TYPE(ret) != DAT_INVALID_STATE)
			check("dat_ep_disconnect", ret);
	}
	kfree(ep);
	if (pending)
		pr_info("%d accepted requests given up\n", n);
	return failed() ? -EIO : 0;
}

static void report(void)
{
	char text[200];
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(seen); i++)
		n += scnprintf(text + n, sizeof(text) - n, " %s %u",
			       kdat_event_name(DAT_CONNECTION_EVENT_ESTABLISHED + i), seen[i]);
	pr_info("requests %d:%s\n", requests, text);
}

/* drained: no stranger is left. */
static int do_drained(char *arg)
{
	struct end *end;
	int n = 0;

	if (in_order(!READ_ONCE(live) && !READ_ONCE(held))) {
		report();
		return 0;
	}
	report();
	spin_lock_bh(&vic_lock);
	list_for_each_entry(end, &strangers, entry) {
		if (n++ < 5)
			pr_err("left: %s, %s, %d of %d Receives\n", kdat_event_name(end->outcome),
			       kdat_event_name(end->end), end->recvs, end->posted_recvs);
	}
	spin_unlock_bh(&vic_lock);
	return fail("%d strangers are left, %d requests", live, held);
}

/* traffic: messages go round. */
static int do_traffic(char *arg)
{
	return pair_talk(guest, BURST);
}

/* visit: somebody comes, talks, and leaves. */
static int do_visit(char *arg)
{
	struct end *pair[2] = {};
	int err = pair_open(pair, "visitor", VISITOR) ?: pair_connect(pair) ?:
		  pair_talk(pair, 4 * RING);

	err = pair_close(pair) ?: err;
	if (!err)
		visits++;
	return err;
}

static const struct order orders[] = {
	{ "policy", do_policy },	/* accept|reject|hold|mix */
	{ "stop", do_stop },
	{ "go", do_go },
	{ "backlog", do_backlog },	/* N */
	{ "mark", do_mark },
	{ "heard", do_heard },		/* N */
	{ "saw", do_saw },		/* EVENT N */
	{ "answer", do_answer },	/* accept|reject|mix */
	{ "leave", do_leave },
	{ "drained", do_drained },
	{ "traffic", do_traffic },
	{ "visit", do_visit },
	{}
};

static int ia_open(struct ia *ia, const char *name)
{
	return test_ia_open(&ia->ia, name) ?:
	       test_mem_open(&ia->ia, &ia->mem, SLOTS * MSG, LOCAL_RIGHTS) ?:
	       test_evd(&ia->ia, 4 * CROWD, DAT_EVD_DTO_FLAG | DAT_EVD_CONNECTION_FLAG, upcall, ia,
			&ia->evd);
}

static void ia_close(struct ia *ia)
{
	FREE(dat_evd_free, &ia->evd);
	test_mem_close(&ia->mem);
	test_ia_quiet(&ia->ia);
	test_ia_close(&ia->ia);
}

static void vic_close(void)
{
	struct end *end, *next;

	debugfs_remove_recursive(vic_dir);
	WRITE_ONCE(policy, REJECT);
	if (cr_evd)
		do_go(NULL);
	FREE(dat_psp_free, &psp);
	do_answer("reject");
	do_leave(NULL);
	do_drained(NULL);
	/* after a fault nobody has waited */
	wait_event_idle_timeout(test_wait, !READ_ONCE(live), TEST_LONG / 8);
	pair_close(guest);
	FREE(dat_psp_free, &good_psp);
	FREE(dat_evd_free, &cr_evd);
	FREE(dat_evd_free, &good_evd);
	flush_workqueue(vic_wq);
	ia_close(&A);
	ia_close(&B);
	destroy_workqueue(vic_wq);
	list_for_each_entry_safe(end, next, &graves, entry)
		kfree(end);
	pr_info("%s messages=%d visits=%d requests=%d\n",
		failed() ? "FAIL" : "PASS", messages, visits, requests);
}

static int __init vic_init(void)
{
	int err;

	if (!ia_a)
		return -EINVAL;
	if (!seed)
		seed = get_random_u32();
	prandom_seed_state(&vic_rnd, seed);
	vic_wq = alloc_workqueue("kdvictim", WQ_UNBOUND, 0);
	if (!vic_wq)
		return -ENOMEM;
	err = ia_open(&A, ia_a) ?: ia_open(&B, ia_b ?: ia_a) ?:
	      test_evd(&A.ia, BACKLOG, DAT_EVD_CR_FLAG, cr_upcall, NULL, &cr_evd) ?:
	      test_evd(&A.ia, BACKLOG, DAT_EVD_CR_FLAG, good_upcall, NULL, &good_evd) ?:
	      TRY(dat_psp_create, A.ia.h, port, cr_evd, DAT_PSP_CONSUMER_FLAG, &psp) ?:
	      TRY(dat_psp_create, A.ia.h, port + 1, good_evd, DAT_PSP_CONSUMER_FLAG, &good_psp) ?:
	      pair_open(guest, "guest", GUEST) ?: pair_connect(guest);
	if (err) {
		vic_close();
		return err;
	}
	pr_info("seed=%lu\n", seed);
	vic_dir = orders_open("kdvictim", orders);
	return 0;
}

static void __exit vic_exit(void)
{
	vic_close();
}

module_init(vic_init);
module_exit(vic_exit);
MODULE_DESCRIPTION("kDAPL test: a consumer among hostile peers");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
