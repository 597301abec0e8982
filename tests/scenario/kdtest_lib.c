// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The ground the suites stand on; kdtest.h says what is here.
 *
 * Nothing in here sleeps for a fixed time. Tests wait for events, which upcalls
 * put into a queue, with a limit that only a broken provider reaches.
 */
#define pr_fmt(fmt) "kdtest: " fmt

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/kthread.h>
#include <linux/mm.h>
#include <linux/sched.h>
#include <linux/slab.h>
#include <linux/vmalloc.h>
#include <linux/workqueue.h>
#include <net/net_namespace.h>

#include "kdtest.h"

/* ---- messages ---- */

const char *kdt_major(DAT_RETURN ret)
{
	const char *major, *minor;

	return dat_strerror(ret, &major, &minor) == DAT_SUCCESS ? major : "undefined";
}

const char *kdt_minor(DAT_RETURN ret)
{
	const char *major, *minor;

	return dat_strerror(ret, &major, &minor) == DAT_SUCCESS ? minor : "";
}

/* ---- environment ---- */

DAT_COMPLETION_FLAGS kdt_fence;

static u32 ia_traits(const struct kdt_ia *ia)
{
	static const char *const names[] = { "tcp", "grants", "lax", "unsolicited", "srq-pd",
					     "unasked" };
	u32 traits = 0;
	int i;

	if (!kdt_traits)
		return ia->iwarp ? KDT_TCP | KDT_GRANTS | KDT_LAX | KDT_UNSOLICITED : KDT_SRQ_PD;
	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (strstr(kdt_traits, names[i]))
			traits |= 1 << i;
	}
	return traits;
}

static int kdt_ia_open(struct kdt_ia *ia, const char *name)
{
	DAT_RETURN ret;

	ia->name = name;
	ret = dat_ia_open((char *)name, 16, &ia->async, &ia->h);
	if (ret != DAT_SUCCESS) {
		ia->h = DAT_HANDLE_NULL;
		goto err;
	}
	ret = dat_ia_query(ia->h, NULL, DAT_IA_FIELD_ALL, &ia->attr, DAT_PROVIDER_FIELD_ALL,
			   &ia->prov);
	if (ret != DAT_SUCCESS)
		goto err;
	kdt_fence = ia->prov.completion_flags_supported & DAT_COMPLETION_BARRIER_FENCE_FLAG;
	ret = dat_pz_create(ia->h, &ia->pz);
	if (ret != DAT_SUCCESS)
		goto err;
	ia->iwarp = ia->prov.rdma_write_for_rdma_read_req;
	ia->traits = ia_traits(ia);
	if (ia->attr.ia_address_ptr)
		memcpy(&ia->addr, ia->attr.ia_address_ptr,
		       ia->attr.ia_address_ptr->sa_family == AF_INET6 ?
		       sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in));
	return 0;
err:
	pr_err("%s: %s %s\n", name, kdt_major(ret), kdt_minor(ret));
	return -ENODEV;
}

int kdt_env_open(struct kdt_env *env)
{
	INIT_LIST_HEAD(&env->evds);
	INIT_LIST_HEAD(&env->bufs);
	return kdt_ia_open(&env->a, kdt_ia_a) ?: kdt_ia_open(&env->b, kdt_ia_b);
}

struct kdt_close {
	struct work_struct work;
	DAT_IA_HANDLE ia;
};

static void kdt_close_work(struct work_struct *work)
{
	dat_ia_close(container_of(work, struct kdt_close, work)->ia, DAT_CLOSE_ABRUPT_FLAG);
}

void kdt_patient_tcp(struct kdt_env *env)
{
	env->syn_retries = READ_ONCE(init_net.ipv4.sysctl_tcp_syn_retries);
	WRITE_ONCE(init_net.ipv4.sysctl_tcp_syn_retries, 6);
}

void kdt_impatient_tcp(struct kdt_env *env)
{
	if (env->syn_retries)
		WRITE_ONCE(init_net.ipv4.sysctl_tcp_syn_retries, env->syn_retries);
	env->syn_retries = 0;
}

/* Abrupt close frees what is left and waits for upcalls; then the memory can go. */
void kdt_env_close(struct kdt_env *env)
{
	struct kdt_evd *evd, *evd_next;
	struct kdt_buf *buf, *buf_next;
	struct kdt_close other;
	int i;

	kdt_impatient_tcp(env);
	for (i = 0; i < KDT_TASKS; i++) {
		if (env->tasks[i])
			kthread_stop(env->tasks[i]);
	}
	for (i = 0; i < KDT_RAWS; i++) {
		if (env->raws[i])
			kdt_raw_close(env->raws[i]);
	}
	for (i = 0; i < KDT_MORE_IAS; i++) {
		if (env->more[i])
			dat_ia_close(env->more[i], DAT_CLOSE_ABRUPT_FLAG);
	}
	/* both at once: most of it is waiting for grace periods */
	INIT_WORK_ONSTACK(&other.work, kdt_close_work);
	other.ia = env->b.h;
	if (other.ia)
		schedule_work(&other.work);
	if (env->a.h)
		dat_ia_close(env->a.h, DAT_CLOSE_ABRUPT_FLAG);
	flush_work(&other.work);
	destroy_work_on_stack(&other.work);
	env->a.h = DAT_HANDLE_NULL;
	env->b.h = DAT_HANDLE_NULL;
	list_for_each_entry_safe(evd, evd_next, &env->evds, link) {
		kvfree(evd->ring);
		kfree(evd);
	}
	list_for_each_entry_safe(buf, buf_next, &env->bufs, link) {
		kvfree(buf->base ?: buf->p);
		kfree(buf);
	}
}

int kdt_init(struct kunit *test)
{
	struct kdt_env *env = kunit_kzalloc(test, sizeof(*env), GFP_KERNEL);

	if (!env)
		return -ENOMEM;
	test->priv = env;
	return kdt_env_open(env);
}

void kdt_exit(struct kunit *test)
{
	struct kdt_env *env = test->priv;
	struct kdt_buf *buf;
	struct kdt_evd *evd;

	if (!env)
		return;
	list_for_each_entry(evd, &env->evds, link)
		KUNIT_EXPECT_FALSE_MSG(test, evd->strange, "an event that names another EVD");
	list_for_each_entry(buf, &env->bufs, link)
		KUNIT_EXPECT_TRUE_MSG(test, kdt_guarded(buf),
				      "written outside of a buffer of %u bytes", buf->len);
	kdt_env_close(env);
}

/* ---- EVDs ---- */

/* One event, in an upcall or taken by one. */
static void kdt_arrived(struct kdt_evd *evd, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	unsigned long flags;

	if (!evd->h || event->evd_handle != evd->h)
		WRITE_ONCE(evd->strange, true);
	if (evd->hook && evd->hook(evd, event, more))
		return;
	spin_lock_irqsave(&evd->lock, flags);
	if (evd->head - evd->tail < KDT_RING)
		evd->ring[evd->head++ % KDT_RING] = *event;
	else
		evd->lost = true;
	spin_unlock_irqrestore(&evd->lock, flags);
}

static void kdt_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct kdt_evd *evd = instance;
	int running = atomic_inc_return(&evd->running);
	unsigned long flags;
	DAT_EVENT next;

	spin_lock_irqsave(&evd->lock, flags);
	evd->entered++;
	evd->max_running = max(evd->max_running, running);
	spin_unlock_irqrestore(&evd->lock, flags);
	if (in_serving_softirq())
		WRITE_ONCE(evd->softirq, true);
	else if (in_task())
		WRITE_ONCE(evd->process, true);
	if (event) {
		kdt_arrived(evd, event, more);
	} else {
		/* NOTIFY brings no event but says that there is one */
		if (more != DAT_TRUE)
			WRITE_ONCE(evd->strange, true);
		while (!READ_ONCE(evd->keep) && dat_evd_dequeue(evd->h, &next) == DAT_SUCCESS)
			kdt_arrived(evd, &next, DAT_FALSE);
	}
	spin_lock_irqsave(&evd->lock, flags);
	evd->calls++;
	spin_unlock_irqrestore(&evd->lock, flags);
	atomic_dec(&evd->running);
	wake_up(&evd->wait);
}

DAT_RETURN kdt_evd_open_attr(struct kdt_env *env, struct kdt_ia *ia, DAT_EVD_FLAGS flags,
			     DAT_COUNT qlen, DAT_UPCALL_POLICY policy,
			     const struct kdat_evd_attr *attr, struct kdt_evd **out)
{
	DAT_UPCALL_OBJECT upcall = { .upcall_func = kdt_upcall };
	struct kdt_evd *evd;
	DAT_RETURN ret;

	evd = kzalloc(sizeof(*evd), GFP_KERNEL);
	if (!evd)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	evd->ia = ia;
	evd->ring = kvcalloc(KDT_RING, sizeof(*evd->ring), GFP_KERNEL);
	spin_lock_init(&evd->lock);
	init_waitqueue_head(&evd->wait);
	list_add(&evd->link, &env->evds);
	if (!evd->ring)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	upcall.instance_data = evd;
	evd->quiet = policy == DAT_UPCALL_DISABLE;
	if (attr)
		ret = kdat_evd_create(ia->h, qlen, policy, evd->quiet ? NULL : &upcall, flags,
				      attr, &evd->h);
	else
		ret = dat_evd_kcreate(ia->h, qlen, policy, evd->quiet ? NULL : &upcall, flags,
				      &evd->h);
	*out = evd;
	return ret;
}

DAT_RETURN kdt_evd_open(struct kdt_env *env, struct kdt_ia *ia, DAT_EVD_FLAGS flags,
			DAT_COUNT qlen, DAT_UPCALL_POLICY policy, struct kdt_evd **out)
{
	return kdt_evd_open_attr(env, ia, flags, qlen, policy, NULL, out);
}

DAT_RETURN kdt_soft(struct kdt_evd *evd, unsigned long number)
{
	DAT_EVENT event = {
		.event_number = DAT_SOFTWARE_EVENT,
		.event_data.software_event_data.pointer = (void *)number,
	};

	return dat_evd_post_se(evd->h, &event);
}

unsigned long kdt_soft_number(const DAT_EVENT *event)
{
	return (unsigned long)event->event_data.software_event_data.pointer;
}

bool kdt_idle(struct kdt_evd *evd)
{
	return wait_event_timeout(evd->wait, !atomic_read(&evd->running), KDT_WAIT);
}

static bool kdt_take(struct kdt_evd *evd, DAT_EVENT *event)
{
	unsigned long flags;
	bool got = false;

	spin_lock_irqsave(&evd->lock, flags);
	if (evd->head != evd->tail) {
		*event = evd->ring[evd->tail++ % KDT_RING];
		got = true;
	}
	spin_unlock_irqrestore(&evd->lock, flags);
	return got;
}

/* An EVD without upcalls tells nobody: look again at each tick, with a limit. */
static bool kdt_poll(DAT_EVD_HANDLE h, struct kdt_evd *evd, DAT_EVENT *event, long timeout)
{
	unsigned long end = jiffies + timeout;

	do {
		/* what upcalls brought before they were disabled comes first */
		if ((evd && kdt_take(evd, event)) || dat_evd_dequeue(h, event) == DAT_SUCCESS)
			return true;
		schedule_timeout_uninterruptible(1);
	} while (time_before(jiffies, end));
	return false;
}

bool kdt_dequeue(DAT_EVD_HANDLE evd, DAT_EVENT *event)
{
	return kdt_poll(evd, NULL, event, KDT_WAIT);
}

bool kdt_get_timeout(struct kdt_evd *evd, DAT_EVENT *event, long timeout)
{
	if (READ_ONCE(evd->quiet))
		return kdt_poll(evd->h, evd, event, timeout);
	return wait_event_timeout(evd->wait, kdt_take(evd, event), timeout);
}

bool kdt_get(struct kdt_evd *evd, DAT_EVENT *event)
{
	return kdt_get_timeout(evd, event, KDT_WAIT);
}

unsigned int kdt_queued(struct kdt_evd *evd)
{
	unsigned long flags;
	unsigned int n;

	spin_lock_irqsave(&evd->lock, flags);
	n = evd->lost ? KDT_RING + 1 : evd->head - evd->tail;
	spin_unlock_irqrestore(&evd->lock, flags);
	return n;
}

DAT_EP_STATE kdt_state(DAT_EP_HANDLE ep)
{
	DAT_EP_STATE state = -1;

	dat_ep_get_status(ep, &state, NULL, NULL);
	return state;
}

/* ---- memory ---- */

#define GUARD_BYTE 0x5c

bool kdt_guarded(const struct kdt_buf *buf)
{
	return !buf->base || (kdt_all(buf->base, KDT_GUARD, GUARD_BYTE) &&
			      kdt_all(buf->p + buf->len, KDT_GUARD, GUARD_BYTE));
}

DAT_RETURN kdt_buf_open(struct kdt_env *env, struct kdt_ia *ia, DAT_PZ_HANDLE pz, u32 len,
			DAT_MEM_PRIV_FLAGS rights, struct kdt_buf **out)
{
	struct kdt_buf *buf = kzalloc(sizeof(*buf), GFP_KERNEL);
	DAT_REGION_DESCRIPTION region = {};

	if (!buf)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	list_add(&buf->link, &env->bufs);
	buf->base = kvmalloc(len + 2 * KDT_GUARD, GFP_KERNEL);
	if (!buf->base)
		return DAT_ERROR(DAT_INSUFFICIENT_RESOURCES, DAT_RESOURCE_MEMORY);
	buf->p = buf->base + KDT_GUARD;
	buf->len = len;
	memset(buf->base, GUARD_BYTE, KDT_GUARD);
	memset(buf->p, 0, len);
	memset(buf->p + len, GUARD_BYTE, KDT_GUARD);
	region.for_va = buf->p;
	*out = buf;
	return dat_lmr_kcreate(ia->h, DAT_MEM_TYPE_VIRTUAL, region, len, pz, rights,
			       DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE, &buf->lmr, &buf->lctx,
			       &buf->rctx, NULL, NULL);
}

void kdt_fill(u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++)
		p[i] = (i * 2654435761u + seed * 40503u) >> 11;
}

bool kdt_same(const u8 *p, u32 len, u32 seed)
{
	u32 i;

	for (i = 0; i < len; i++) {
		if (p[i] != (u8)((i * 2654435761u + seed * 40503u) >> 11))
			return false;
	}
	return true;
}

bool kdt_all(const u8 *p, u32 len, u8 value)
{
	return !len || !memchr_inv(p, value, len);
}

DAT_LMR_TRIPLET kdt_seg(const struct kdt_buf *buf, u32 offset, u32 len)
{
	return (DAT_LMR_TRIPLET) {
		.virtual_address = (uintptr_t)buf->p + buf->shift + offset,
		.segment_length = len,
		.lmr_context = buf->lctx,
	};
}

DAT_RMR_TRIPLET kdt_rseg(const struct kdt_buf *buf, u32 offset, u32 len)
{
	return (DAT_RMR_TRIPLET) {
		.virtual_address = (uintptr_t)buf->p + buf->shift + offset,
		.segment_length = len,
		.rmr_context = buf->rctx,
	};
}

DAT_DTO_COOKIE kdt_cookie(u64 value)
{
	return (DAT_DTO_COOKIE) { .as_64 = value };
}

DAT_RETURN kdt_send(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len, u64 cookie,
		    int flags)
{
	DAT_LMR_TRIPLET iov = kdt_seg(buf, offset, len);

	return dat_ep_post_send(ep->h, 1, &iov, kdt_cookie(cookie), flags);
}

DAT_RETURN kdt_recv(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len, u64 cookie)
{
	DAT_LMR_TRIPLET iov = kdt_seg(buf, offset, len);

	return dat_ep_post_recv(ep->h, 1, &iov, kdt_cookie(cookie), DAT_COMPLETION_DEFAULT_FLAG);
}

DAT_RETURN kdt_write(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
		     struct kdt_buf *to, u32 to_offset, u64 cookie, int flags)
{
	DAT_LMR_TRIPLET iov = kdt_seg(buf, offset, len);
	DAT_RMR_TRIPLET remote = kdt_rseg(to, to_offset, len);

	return dat_ep_post_rdma_write(ep->h, 1, &iov, kdt_cookie(cookie), &remote, flags);
}

DAT_RETURN kdt_read(struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
		    struct kdt_buf *from, u32 from_offset, u64 cookie, int flags)
{
	DAT_LMR_TRIPLET iov = kdt_seg(buf, offset, len);
	DAT_RMR_TRIPLET remote = kdt_rseg(from, from_offset, len);

	return dat_ep_post_rdma_read(ep->h, 1, &iov, kdt_cookie(cookie), &remote, flags);
}

/* ---- endpoints ---- */

void kdt_attr(const struct kdt_env *env, DAT_EP_ATTR *attr)
{
	const DAT_IA_ATTR *a = &env->a.attr, *b = &env->b.attr;

	memset(attr, 0, sizeof(*attr));
	attr->service_type = DAT_SERVICE_TYPE_RC;
	attr->qos = DAT_QOS_BEST_EFFORT;
	attr->max_message_size = KDT_SIZE;
	attr->max_rdma_size = KDT_SIZE;
	attr->max_recv_dtos = KDT_DTOS;
	attr->max_request_dtos = KDT_DTOS;
	attr->max_recv_iov = KDT_IOV;
	attr->max_request_iov = KDT_IOV;
	attr->max_rdma_read_in = 4;
	attr->max_rdma_read_out = 4;
	attr->srq_soft_hw = DAT_HW_DEFAULT;
	attr->max_rdma_read_iov = min3(KDT_IOV, a->max_iov_segments_per_rdma_read,
				       b->max_iov_segments_per_rdma_read);
	attr->max_rdma_write_iov = KDT_IOV;
}

/* Never the same port twice: on iWARP it is a TCP port, which stays busy a while. */
DAT_CONN_QUAL kdt_new_port(void)
{
	static atomic_t port = ATOMIC_INIT(0);

	return 20000 + (unsigned int)atomic_inc_return(&port) % 10000;
}

static DAT_RETURN evd_missing(struct kdt_env *env, struct kdt_ia *ia, int flags,
			      struct kdt_evd **evd)
{
	return *evd ? DAT_SUCCESS : kdt_evd_open(env, ia, flags, 2 * KDT_DTOS,
						 DAT_UPCALL_SINGLE_INSTANCE, evd);
}

/* With the EVDs that are there already. */
static DAT_RETURN ep_evds(struct kdt_env *env, struct kdt_ep *ep, struct kdt_ia *ia)
{
	ep->ia = ia;
	return evd_missing(env, ia, DAT_EVD_DTO_FLAG, &ep->recv) ?:
	       evd_missing(env, ia, DAT_EVD_DTO_FLAG, &ep->req) ?:
	       evd_missing(env, ia, DAT_EVD_CONNECTION_FLAG, &ep->conn);
}

static DAT_RETURN ep_open(struct kdt_env *env, struct kdt_ep *ep, struct kdt_ia *ia,
			  const DAT_EP_ATTR *attr)
{
	DAT_EP_ATTR def;

	kdt_attr(env, &def);
	return ep_evds(env, ep, ia) ?:
	       dat_ep_create(ia->h, ia->pz, ep->recv->h, ep->req->h, ep->conn->h, attr ?: &def,
			     &ep->h);
}

static DAT_RETURN pair_open(struct kdt_env *env, struct kdt_pair *pair, const DAT_EP_ATTR *attr_c,
			    const DAT_EP_ATTR *attr_s)
{
	pair->port = kdt_new_port();
	return ep_open(env, &pair->c, &env->a, attr_c) ?: ep_open(env, &pair->s, &env->b, attr_s) ?:
	       evd_missing(env, &env->b, DAT_EVD_CR_FLAG, &pair->cr) ?:
	       dat_psp_create(env->b.h, pair->port, pair->cr->h, DAT_PSP_CONSUMER_FLAG, &pair->psp);
}

DAT_RETURN kdt_ep_evds(struct kdt_env *env, struct kdt_ep *ep, struct kdt_ia *ia)
{
	memset(ep, 0, sizeof(*ep));
	return ep_evds(env, ep, ia);
}

DAT_RETURN kdt_ep_open(struct kdt_env *env, struct kdt_ep *ep, struct kdt_ia *ia,
		       const DAT_EP_ATTR *attr)
{
	memset(ep, 0, sizeof(*ep));
	return ep_open(env, ep, ia, attr);
}

DAT_RETURN kdt_pair_open(struct kdt_env *env, struct kdt_pair *pair, const DAT_EP_ATTR *attr)
{
	memset(pair, 0, sizeof(*pair));
	return pair_open(env, pair, attr, attr);
}

bool kdt_same_address(const struct sockaddr *sa, const struct kdt_ia *ia)
{
	if (sa->sa_family != ia->addr.ss_family)
		return false;
	if (sa->sa_family == AF_INET6)
		return !memcmp(&((struct sockaddr_in6 *)sa)->sin6_addr,
			       &((struct sockaddr_in6 *)&ia->addr)->sin6_addr,
			       sizeof(struct in6_addr));
	return ((struct sockaddr_in *)sa)->sin_addr.s_addr ==
	       ((struct sockaddr_in *)&ia->addr)->sin_addr.s_addr;
}

DAT_RETURN kdt_connect(struct kdt_ep *ep, struct kdt_ia *to, DAT_CONN_QUAL port)
{
	return dat_ep_connect(ep->h, (DAT_IA_ADDRESS_PTR)&to->addr, port, 30 * USEC_PER_SEC, 0,
			      NULL, DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG);
}

int kdt_pair_link(struct kdt_pair *pair)
{
	DAT_EVENT event;
	DAT_RETURN ret;
	int i;

	ret = kdt_connect(&pair->c, pair->s.ia, pair->port);
	if (ret == DAT_SUCCESS) {
		if (!kdt_get(pair->cr, &event))
			return -ETIMEDOUT;
		ret = dat_cr_accept(event.event_data.cr_arrival_event_data.cr_handle, pair->s.h, 0,
				    NULL);
	}
	if (ret != DAT_SUCCESS) {
		pr_err("connecting: %s %s\n", kdt_major(ret), kdt_minor(ret));
		return -EIO;
	}
	for (i = 0; i < 2; i++) {
		if (!kdt_get(i ? pair->s.conn : pair->c.conn, &event) ||
		    event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED)
			return -ENOTCONN;
	}
	return 0;
}

/* ---- the same with assertions ---- */

void kdt_row(struct kunit *test, const char *fmt, ...)
{
	va_list args;

	va_start(args, fmt);
	vsnprintf(kdt_env(test)->at, sizeof(kdt_env(test)->at), fmt, args);
	va_end(args);
}

void *kdt_zalloc(struct kunit *test, size_t size)
{
	void *p = kunit_kzalloc(test, size, GFP_KERNEL);

	KUNIT_ASSERT_NOT_NULL(test, p);
	return p;
}

struct kdt_evd *kdt_evd_policy(struct kunit *test, struct kdt_ia *ia, int flags, DAT_COUNT qlen,
			       DAT_UPCALL_POLICY policy)
{
	struct kdt_evd *evd;

	KDT_OK(test, kdt_evd_open(kdt_env(test), ia, flags, qlen, policy, &evd));
	return evd;
}

struct kdt_evd *kdt_evd_context(struct kunit *test, struct kdt_ia *ia, int flags, DAT_COUNT qlen,
				DAT_UPCALL_POLICY policy, enum kdat_evd_context context)
{
	struct kdat_evd_attr attr = KDAT_EVD_ATTR_INIT;
	struct kdt_evd *evd;

	attr.context = context;
	KDT_OK(test, kdt_evd_open_attr(kdt_env(test), ia, flags, qlen, policy, &attr, &evd));
	return evd;
}

DAT_IA_HANDLE kdt_ia_more(struct kunit *test, struct kdt_ia *ia, DAT_COUNT qlen,
			  DAT_EVD_HANDLE *async)
{
	struct kdt_env *env = kdt_env(test);
	DAT_IA_HANDLE h;
	int i;

	for (i = 0; i < KDT_MORE_IAS && env->more[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, KDT_MORE_IAS);
	KDT_OK(test, dat_ia_open((char *)ia->name, qlen, async, &h));
	env->more[i] = h;
	return h;
}

void kdt_ia_less(struct kunit *test, DAT_IA_HANDLE ia)
{
	struct kdt_env *env = kdt_env(test);
	int i;

	for (i = 0; i < KDT_MORE_IAS; i++) {
		if (env->more[i] == ia)
			env->more[i] = DAT_HANDLE_NULL;
	}
	KDT_OK(test, dat_ia_close(ia, DAT_CLOSE_ABRUPT_FLAG));
}

struct task_struct *kdt_beside(struct kunit *test, int (*fn)(void *), void *data)
{
	struct kdt_env *env = kdt_env(test);
	struct task_struct *task;
	int i;

	for (i = 0; i < KDT_TASKS && env->tasks[i]; i++)
		;
	KUNIT_ASSERT_LT(test, i, KDT_TASKS);
	task = kthread_run(fn, data, "kdtest/%d", i);
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	env->tasks[i] = task;
	return task;
}

void kdt_stop(struct kunit *test, struct task_struct *task)
{
	struct kdt_env *env = kdt_env(test);
	int i;

	for (i = 0; i < KDT_TASKS; i++) {
		if (env->tasks[i] == task)
			env->tasks[i] = NULL;
	}
	kthread_stop(task);
}

int kdt_until_stopped(void)
{
	while (!kthread_should_stop()) {
		set_current_state(TASK_INTERRUPTIBLE);
		if (!kthread_should_stop())
			schedule();
	}
	__set_current_state(TASK_RUNNING);
	return 0;
}

struct kdt_evd *kdt_evd_new(struct kunit *test, struct kdt_ia *ia, int flags)
{
	return kdt_evd_policy(test, ia, flags, 2 * KDT_DTOS, DAT_UPCALL_SINGLE_INSTANCE);
}

struct kdt_buf *kdt_buf_new(struct kunit *test, struct kdt_ia *ia, u32 len)
{
	struct kdt_buf *buf;

	KDT_OK(test, kdt_buf_open(kdt_env(test), ia, ia->pz, len, KDT_RIGHTS, &buf));
	return buf;
}

void kdt_ep_new(struct kunit *test, struct kdt_ep *ep, struct kdt_ia *ia, const DAT_EP_ATTR *attr)
{
	KDT_OK(test, kdt_ep_open(kdt_env(test), ep, ia, attr));
}

struct kdt_pair *kdt_pair_with(struct kunit *test, const struct kdt_pair *evds,
			       const DAT_EP_ATTR *attr_c, const DAT_EP_ATTR *attr_s)
{
	struct kdt_pair *pair = kdt_zalloc(test, sizeof(*pair));

	*pair = *evds;
	KDT_OK(test, pair_open(kdt_env(test), pair, attr_c, attr_s));
	return pair;
}

struct kdt_pair *kdt_pair_new(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct kdt_pair none = {};

	return kdt_pair_with(test, &none, attr, attr);
}

DAT_SRQ_HANDLE kdt_pair_srq(struct kunit *test, struct kdt_pair *pair)
{
	DAT_SRQ_ATTR srq_attr = { 8, KDT_IOV, DAT_SRQ_LW_DEFAULT };
	struct kdt_ep *s = &pair->s;
	DAT_SRQ_HANDLE srq;
	DAT_EP_ATTR attr;

	KDT_OK(test, dat_srq_create(s->ia->h, s->ia->pz, &srq_attr, &srq));
	KDT_OK(test, dat_ep_free(s->h));
	kdt_attr(kdt_env(test), &attr);
	attr.max_recv_dtos = 0;
	KDT_OK(test, dat_ep_create_with_srq(s->ia->h, s->ia->pz, s->recv->h, s->req->h, s->conn->h,
					    srq, &attr, &s->h));
	return srq;
}

DAT_CR_ARRIVAL_EVENT_DATA kdt_arrival(struct kunit *test, struct kdt_evd *cr)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(cr, &event), "no connection request arrived %s",
			      kdt_at(test));
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_REQUEST_EVENT);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, cr->h);
	return event.event_data.cr_arrival_event_data;
}

DAT_CR_HANDLE kdt_pair_request(struct kunit *test, struct kdt_pair *pair)
{
	KDT_OK(test, kdt_connect(&pair->c, pair->s.ia, pair->port));
	return kdt_arrival(test, pair->cr).cr_handle;
}

void kdt_pair_connect(struct kunit *test, struct kdt_pair *pair)
{
	DAT_CR_HANDLE cr = kdt_pair_request(test, pair);

	KDT_OK(test, dat_cr_accept(cr, pair->s.h, 0, NULL));
	kdt_conn(test, &pair->c, DAT_CONNECTION_EVENT_ESTABLISHED);
	kdt_conn(test, &pair->s, DAT_CONNECTION_EVENT_ESTABLISHED);
}

struct kdt_pair *kdt_pair_up(struct kunit *test)
{
	struct kdt_pair *pair = kdt_pair_new(test, NULL);

	kdt_pair_connect(test, pair);
	return pair;
}

struct kdt_pair *kdt_pair_quiet(struct kunit *test, const DAT_EP_ATTR *attr)
{
	struct kdt_pair evds = {}, *pair;

	evds.c.req = kdt_evd_policy(test, &kdt_env(test)->a, DAT_EVD_DTO_FLAG, 2 * KDT_DTOS,
				    DAT_UPCALL_DISABLE);
	pair = kdt_pair_with(test, &evds, attr, attr);
	kdt_pair_connect(test, pair);
	return pair;
}

void kdt_pair_down(struct kunit *test, struct kdt_pair *pair)
{
	kdt_down(test, &pair->c, &pair->s);
}

void kdt_down(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s)
{
	DAT_EVENT_NUMBER end;

	KDT_OK(test, dat_ep_disconnect(c->h, DAT_CLOSE_ABRUPT_FLAG));
	kdt_conn(test, c, DAT_CONNECTION_EVENT_DISCONNECTED);
	/*
	 * When the last data soft-iWARP sent was the answer to a Read, and the
	 * peer goes at once, it may report the answer as failed.
	 */
	end = kdt_end(test, s);
	if (!s->ia->iwarp)
		KUNIT_EXPECT_EQ(test, (int)end, DAT_CONNECTION_EVENT_DISCONNECTED);
}

void kdt_conn(struct kunit *test, struct kdt_ep *ep, DAT_EVENT_NUMBER number)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(ep->conn, &event), "%s: no event 0x%x in time %s",
			      ep->ia->name, number, kdt_at(test));
	KUNIT_ASSERT_TRUE_MSG(test, event.event_number == number, "%s: event 0x%x, not 0x%x %s",
			      ep->ia->name, event.event_number, number, kdt_at(test));
	KUNIT_EXPECT_PTR_EQ(test, event.event_data.connect_event_data.ep_handle, ep->h);
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, ep->conn->h);
}

DAT_EVENT_NUMBER kdt_end(struct kunit *test, struct kdt_ep *ep)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(ep->conn, &event), "the connection did not end %s",
			      kdt_at(test));
	KUNIT_ASSERT_TRUE_MSG(test, event.event_number == DAT_CONNECTION_EVENT_DISCONNECTED ||
			      event.event_number == DAT_CONNECTION_EVENT_BROKEN,
			      "event 0x%x ends no connection %s", event.event_number,
			      kdt_at(test));
	KUNIT_EXPECT_EQ(test, (int)kdt_state(ep->h), DAT_EP_STATE_DISCONNECTED);
	return event.event_number;
}

void kdt_sent(struct kunit *test, struct kdt_ep *ep, u64 cookie, DAT_DTOS op, u32 len)
{
	kdt_dto(test, ep->req, ep, cookie, op, DAT_DTO_SUCCESS, len);
}

void kdt_came(struct kunit *test, struct kdt_ep *ep, u64 cookie, u32 len)
{
	kdt_dto(test, ep->recv, ep, cookie, DAT_DTO_RECEIVE, DAT_DTO_SUCCESS, len);
}

void kdt_flushed(struct kunit *test, struct kdt_ep *ep, u64 cookie, DAT_DTOS op)
{
	kdt_dto(test, op == DAT_DTO_RECEIVE ? ep->recv : ep->req, ep, cookie, op,
		DAT_DTO_ERR_FLUSHED, 0);
}

void kdt_message(struct kunit *test, struct kdt_ep *from, struct kdt_buf *out, struct kdt_ep *to,
		 struct kdt_buf *in, u32 len)
{
	KDT_OK(test, kdt_recv(to, in, 0, len, 0x5e1d));
	KDT_OK(test, kdt_send(from, out, 0, len, 0x5e2d, 0));
	kdt_sent(test, from, 0x5e2d, DAT_DTO_SEND, len);
	kdt_came(test, to, 0x5e1d, len);
}

void kdt_put(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
	     struct kdt_buf *to, u32 to_offset)
{
	KDT_OK(test, kdt_write(ep, buf, offset, len, to, to_offset, 0x3417e, 0));
	kdt_sent(test, ep, 0x3417e, DAT_DTO_RDMA_WRITE, len);
}

void kdt_fetch(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *buf, u32 offset, u32 len,
	       struct kdt_buf *from, u32 from_offset)
{
	KDT_OK(test, kdt_read(ep, buf, offset, len, from, from_offset, 0x4ead, 0));
	kdt_sent(test, ep, 0x4ead, DAT_DTO_RDMA_READ, len);
}

DAT_DTO_COMPLETION_STATUS kdt_any_dto(struct kunit *test, struct kdt_evd *evd, u64 *cookie)
{
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "no completion in time");
	KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT);
	if (cookie)
		*cookie = event.event_data.dto_completion_event_data.user_cookie.as_64;
	return event.event_data.dto_completion_event_data.status;
}

void kdt_dto(struct kunit *test, struct kdt_evd *evd, struct kdt_ep *ep, u64 cookie, DAT_DTOS op,
	     DAT_DTO_COMPLETION_STATUS status, u32 len)
{
	DAT_DTO_COMPLETION_EVENT_DATA *dto;
	DAT_EVENT event;

	KUNIT_ASSERT_TRUE_MSG(test, kdt_get(evd, &event), "no completion of cookie 0x%llx %s",
			      cookie, kdt_at(test));
	KUNIT_ASSERT_EQ_MSG(test, (int)event.event_number, DAT_DTO_COMPLETION_EVENT, "%s",
			    kdt_at(test));
	dto = &event.event_data.dto_completion_event_data;
	KUNIT_EXPECT_PTR_EQ(test, event.evd_handle, evd->h);
	KUNIT_EXPECT_PTR_EQ(test, dto->ep_handle, ep->h);
	KUNIT_EXPECT_TRUE_MSG(test, dto->user_cookie.as_64 == cookie,
			      "cookie 0x%llx, not 0x%llx %s", dto->user_cookie.as_64, cookie,
			      kdt_at(test));
	KUNIT_EXPECT_EQ_MSG(test, (int)dto->operation, (int)op, "%s", kdt_at(test));
	KUNIT_EXPECT_EQ_MSG(test, (int)dto->status, (int)status, "%s", kdt_at(test));
	if (status == DAT_DTO_SUCCESS && dto->status == DAT_DTO_SUCCESS)
		KUNIT_EXPECT_EQ_MSG(test, dto->transfered_length, len, "%s", kdt_at(test));
}

void kdt_settle(struct kunit *test, struct kdt_pair *pair)
{
	KDT_OK(test, dat_ep_post_recv(pair->s.h, 0, NULL, kdt_cookie(0xaaaa), 0));
	KDT_OK(test, dat_ep_post_send(pair->c.h, 0, NULL, kdt_cookie(0xbbbb), 0));
	kdt_sent(test, &pair->c, 0xbbbb, DAT_DTO_SEND, 0);
	kdt_came(test, &pair->s, 0xaaaa, 0);
}

void kdt_reset(struct kunit *test, struct kdt_ep *c, struct kdt_ep *s)
{
	KDT_OK(test, dat_ep_reset(c->h));
	KDT_OK(test, dat_ep_reset(s->h));
}

void kdt_ep_done(struct kunit *test, struct kdt_ep *ep)
{
	DAT_EVENT event;

	if (ep->req->quiet)
		KDT_REFUSED(test, DAT_QUEUE_EMPTY, DAT_NO_SUBTYPE,
			    dat_evd_dequeue(ep->req->h, &event));
	KDT_OK(test, dat_ep_free(ep->h));
	KDT_OK(test, dat_evd_free(ep->conn->h));
	KUNIT_EXPECT_EQ_MSG(test, kdt_queued(ep->conn), 0, "more connection events than expected");
	KDT_OK(test, dat_evd_free(ep->recv->h));
	KUNIT_EXPECT_EQ_MSG(test, kdt_queued(ep->recv), 0, "more receives than expected");
	KDT_OK(test, dat_evd_free(ep->req->h));
	KUNIT_EXPECT_EQ_MSG(test, kdt_queued(ep->req), 0, "more requests than expected");
}

void kdt_pair_done(struct kunit *test, struct kdt_pair *pair)
{
	kdt_ep_done(test, &pair->c);
	kdt_ep_done(test, &pair->s);
}
