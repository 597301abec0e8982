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
 */
#define pr_fmt(fmt) "kdtest-hold: " fmt

#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kdtest.h"

#define HOLD_PAIRS 4

static char *gone = "auto";

module_param(gone, charp, 0644);
MODULE_PARM_DESC(gone, "mode=hold: whose device is gone at unload: a, b, ab, none (default: find out)");

struct hold_ep {
	struct kdt_ep *ep;
	struct kdt_buf *buf;
	atomic_t posted, completed, bounced;
	bool broken;
};

static struct kdt_env *hold_env;
static struct kdt_pair hold_pairs[HOLD_PAIRS];
static struct hold_ep hold_eps[2 * HOLD_PAIRS];
static const char *hold_wrong;
static char hold_text[160];

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

static DAT_RETURN hold_post(struct hold_ep *h, bool recv)
{
	DAT_RETURN ret;

	atomic_inc(&h->posted);
	if (recv)
		ret = kdt_recv(h->ep, h->buf, 0, 4096, 1);
	else
		ret = kdt_send(h->ep, h->buf, 4096, 4096, 2, 0);
	if (ret != DAT_SUCCESS)
		atomic_dec(&h->posted);
	return ret;
}

/* Each message is answered; each completion is counted. */
static bool hold_hook(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct hold_ep *h = evd->priv;

	if (dto->status == DAT_DTO_SUCCESS && dto->user_cookie.as_64 == 1) {
		atomic_inc(&h->bounced);
		hold_post(h, true);
		hold_post(h, false);
	}
	atomic_inc(&h->completed);
	return true;
}

int kdt_hold_start(void)
{
	DAT_RETURN ret;
	int i, j, err;

	hold_env = kzalloc(sizeof(*hold_env), GFP_KERNEL);
	if (!hold_env)
		return -ENOMEM;
	err = kdt_env_open(hold_env);
	for (i = 0; i < HOLD_PAIRS && !err; i++) {
		ret = kdt_pair_open(hold_env, &hold_pairs[i], NULL);
		hold_eps[2 * i].ep = &hold_pairs[i].c;
		hold_eps[2 * i + 1].ep = &hold_pairs[i].s;
		for (j = 2 * i; j < 2 * i + 2 && ret == DAT_SUCCESS; j++) {
			struct kdt_ep *ep = hold_eps[j].ep;
			int n;

			ret = kdt_buf_open(hold_env, ep->ia, ep->ia->pz, 8192, KDT_RIGHTS,
					   &hold_eps[j].buf);
			ep->recv->priv = &hold_eps[j];
			ep->req->priv = &hold_eps[j];
			ep->recv->hook = hold_hook;
			ep->req->hook = hold_hook;
			for (n = 0; n < 16 && ret == DAT_SUCCESS; n++)
				ret = hold_post(&hold_eps[j], true);
		}
		if (ret != DAT_SUCCESS) {
			pr_err("%s %s\n", kdt_major(ret), kdt_minor(ret));
			err = -EIO;
		}
		if (!err)
			err = kdt_pair_link(&hold_pairs[i]);
	}
	for (i = 0; i < HOLD_PAIRS && !err; i++) {
		for (j = 0; j < 4; j++)
			hold_post(&hold_eps[2 * i], false);
	}
	if (err) {
		kdt_env_close(hold_env);
		kfree(hold_env);
		pr_err("FAIL to start, error %d\n", err);
		return err;
	}
	pr_info("READY eps=%d\n", 2 * HOLD_PAIRS);
	return 0;
}

/* One end, and the right one; everything posted came back. */
static void hold_check_ep(int i)
{
	struct hold_ep *h = &hold_eps[i];
	unsigned long end = jiffies + KDT_WAIT;
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
	if (!atomic_read(&h->bounced))
		wrong("endpoint %d: there was no traffic", i);
	while (atomic_read(&h->completed) != atomic_read(&h->posted) && time_before(jiffies, end))
		schedule_timeout_uninterruptible(1);
	if (atomic_read(&h->completed) != atomic_read(&h->posted))
		wrong("endpoint %d: %d posted, %d completed", i, atomic_read(&h->posted),
		      atomic_read(&h->completed));
}

/* What a consumer that has not noticed yet gets from its calls. */
static void hold_check_calls(struct kdt_ia *ia, int first)
{
	struct hold_ep *h = &hold_eps[first];
	DAT_EVD_HANDLE async = DAT_HANDLE_NULL;
	DAT_EP_PARAM param;
	DAT_IA_HANDLE other;
	DAT_RETURN ret;
	DAT_PZ_HANDLE pz;

#define EXPECT(type, call)								\
do {											\
	ret = (call);									\
	if (DAT_GET_TYPE(ret) != (type))						\
		wrong("%s: %s: %s %s", ia->name, #call, kdt_major(ret), kdt_minor(ret));	\
} while (0)
	EXPECT(DAT_INTERNAL_ERROR, dat_pz_create(ia->h, &pz));
	EXPECT(DAT_INTERNAL_ERROR, kdt_send(h->ep, h->buf, 0, 64, 3, 0));
	EXPECT(DAT_INTERNAL_ERROR, kdt_recv(h->ep, h->buf, 0, 64, 3));
	EXPECT(DAT_INTERNAL_ERROR, kdt_write(h->ep, h->buf, 0, 64, h->buf, 0, 3, 0));
	EXPECT(DAT_INTERNAL_ERROR, kdt_read(h->ep, h->buf, 0, 64, h->buf, 0, 3, 0));
	EXPECT(DAT_INTERNAL_ERROR, dat_ep_reset(h->ep->h));
	EXPECT(DAT_SUCCESS, dat_ep_query(h->ep->h, DAT_EP_FIELD_ALL, &param));
	EXPECT(DAT_SUCCESS, dat_ia_query(ia->h, NULL, DAT_IA_FIELD_ALL, &ia->attr, 0, NULL));
	EXPECT(DAT_PROVIDER_NOT_FOUND, dat_ia_open((char *)ia->name, 8, &async, &other));
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
	if (!strncmp(gone, "auto", 4))
		return !found;
	/* "none" has neither letter in it */
	if (found == !!strchr(gone, which))
		wrong("%s: %s", ia->name, found ? "still there" : "gone, unexpectedly");
	return strchr(gone, which);
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
	int i, bounced = 0;

	for (i = 0; i < HOLD_PAIRS && !a_gone && !b_gone; i++)
		hold_free("disconnect", dat_ep_disconnect(hold_pairs[i].c.h, 0));
	for (i = 0; i < 2 * HOLD_PAIRS; i++) {
		hold_check_ep(i);
		bounced += atomic_read(&hold_eps[i].bounced);
	}
	for (i = 0; i < 2 * HOLD_PAIRS; i += 2) {
		bool broken_a = hold_eps[i].broken, broken_b = hold_eps[i + 1].broken;

		/* Of two devices, the one that went first has disconnected the other. */
		if (a_gone && b_gone && strcmp(a->name, b->name) ? !broken_a && !broken_b :
		    (a_gone && !broken_a) || (b_gone && !broken_b))
			wrong("endpoints %d, %d: not BROKEN", i, i + 1);
	}
	hold_check_async(a, a_gone);
	hold_check_async(b, b_gone);
	if (a_gone)
		hold_check_calls(a, 0);
	if (b_gone)
		hold_check_calls(b, 1);

	/* Consumers give everything back as ever. */
	for (i = 0; i < HOLD_PAIRS; i++) {
		hold_free("dat_psp_free", dat_psp_free(hold_pairs[i].psp));
		hold_free("dat_ep_free", dat_ep_free(hold_pairs[i].c.h));
		hold_free("dat_ep_free", dat_ep_free(hold_pairs[i].s.h));
	}
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
		pr_info("PASS eps=%d messages=%d gone=%s%s\n", 2 * HOLD_PAIRS, bounced,
			a_gone ? "a" : "", b_gone ? "b" : "");
}
