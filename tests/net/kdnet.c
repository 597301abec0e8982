// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdnet - a consumer that does what a script tells it, while the script changes
 * the network around it (tests/guest/net.sh).
 *
 * A line written to kdnet/do in debugfs is an order; the write returns when it has
 * been carried out, and kdnet/result says how it ended: in the words of
 * dat_strerror(), the name of an event, or what the order was to find out. The
 * script knows what it ought to be. Calls are made by the writing task, that is, in
 * its network namespace. The orders are at the end.
 *
 * Adapters and listeners have a letter, connections a number. Both ends of a
 * connection are here: the request carries the number, and the listener it arrives
 * at makes the other end.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kthread.h>
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/net.h>
#include <linux/nsproxy.h>
#include <linux/rtnetlink.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <linux/string.h>
#include <linux/wait.h>

#include <dat2/kdat_ext.h>

#include "../lib/orders.h"
#include "../lib/peer.h"

#define SIZE	32768		/* of the buffers: half to send, half to receive */
#define HALF	(SIZE / 2)
#define MAGIC	0x6b646e65
#define LONG	(100 * HZ)	/* for anything that must happen */
#define WORDS	6		/* that follow an order */

struct request {
	__be32 magic, number, use;
};

struct listener {
	char letter;
	DAT_PSP_HANDLE psp;
	DAT_CSP_HANDLE csp;
	DAT_EVD_HANDLE evd;
	DAT_IA_HANDLE ia;
};

struct end {
	bool open;
	struct peer_ia ia;	/* a copy, with a PZ of its own */
	struct peer_end end;
	struct peer_mem mem;
	char listener;		/* where the request arrived */
	int done[2], taken[2];	/* completions: 0 requests, 1 Receives */
	DAT_DTO_COMPLETION_STATUS status[2];
	u32 len[2];
};

struct conn {
	struct mutex mutex;	/* the request against the end of the attempt */
	bool wanted;
	u32 use;
	struct end act, pas;
};

static struct peer_ia adapters[26];
static struct listener listeners[26];
static struct conn conns[32];
static char result[1024];
static struct dentry *kdn_dir;
static DEFINE_SPINLOCK(kdn_lock);		/* what upcalls write into ends */
static DECLARE_WAIT_QUEUE_HEAD(kdn_wait);

#define say(fmt, ...)	scnprintf(result, sizeof(result), fmt, ##__VA_ARGS__)
#define add(fmt, ...)	scnprintf(result + strlen(result), sizeof(result) - strlen(result), \
				  fmt, ##__VA_ARGS__)

/* Says how a call ended; whether it succeeded. */
static bool ok(DAT_RETURN ret)
{
	const char *major, *minor;

	if (dat_strerror(ret, &major, &minor) != DAT_SUCCESS)
		say("0x%08x", ret);
	else if (DAT_GET_SUBTYPE(ret) == DAT_NO_SUBTYPE)
		say("%s", major + strlen("DAT_"));
	else
		say("%s %s", major + strlen("DAT_"), minor + strlen("DAT_"));
	return ret == DAT_SUCCESS;
}

#define await(condition)	(wait_event_killable_timeout(kdn_wait, condition, LONG) > 0)

/* ---- one end of a connection ---- */

static void dto_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	struct end *end = instance;
	int i = dto->operation == DAT_DTO_RECEIVE;

	spin_lock_bh(&kdn_lock);
	end->status[i] = dto->status;
	end->len[i] = dto->transfered_length;
	end->done[i]++;
	spin_unlock_bh(&kdn_lock);
	wake_up_all(&kdn_wait);
}

static DAT_RETURN end_open(struct end *end, DAT_IA_HANDLE ia)
{
	const DAT_EP_ATTR attr = {
		.max_message_size = HALF,
		.max_rdma_size = HALF,
		.max_recv_dtos = 2, .max_recv_iov = 1,
		.max_request_dtos = 2, .max_request_iov = 1,
		.srq_soft_hw = DAT_HW_DEFAULT,
	};

	memset(end, 0, sizeof(*end));
	end->open = true;
	end->ia.ia = ia;
	return dat_pz_create(ia, &end->ia.pz) ?:
	       peer_end_open(&end->ia, &end->end, &attr, &kdn_wait, dto_upcall, end);
}

/* The handles are dead already when the adapter was closed abruptly. */
static void end_close(struct end *end)
{
	if (!end->open)
		return;
	peer_end_close(&end->end);
	if (end->mem.lmr)
		dat_lmr_free(end->mem.lmr);
	if (end->ia.pz)
		dat_pz_free(end->ia.pz);
	kfree(end->mem.p);
	memset(end, 0, sizeof(*end));
}

static DAT_RETURN end_memory(struct end *end)
{
	if (end->mem.lmr)
		return DAT_SUCCESS;
	return peer_mem_open(&end->ia, &end->mem, end->mem.p ?: kmalloc(SIZE, GFP_KERNEL), SIZE,
			     PEER_LOCAL);
}

static DAT_RETURN end_post(struct end *end, bool recv, u32 len)
{
	DAT_LMR_TRIPLET iov = {
		.virtual_address = (uintptr_t)end->mem.p + (recv ? HALF : 0),
		.segment_length = len,
		.lmr_context = end->mem.lctx,
	};
	DAT_DTO_COOKIE cookie = {};

	return recv ? dat_ep_post_recv(end->end.ep, 1, &iov, cookie, 0) :
		      dat_ep_post_send(end->end.ep, 1, &iov, cookie, 0);
}

/* The next completion; or why there is none. */
static const char *end_reap(struct end *end, bool recv)
{
	if (!await(READ_ONCE(end->done[recv]) > end->taken[recv]))
		return "missing";
	end->taken[recv]++;
	return end->status[recv] ? kdat_dto_status_name(end->status[recv]) : NULL;
}

static void end_say_address(const struct end *end)
{
	DAT_EP_PARAM param;

	if (dat_ep_query(end->end.ep, DAT_EP_FIELD_ALL, &param) != DAT_SUCCESS) {
		add("? ");
		return;
	}
	if (param.local_ia_address_ptr)
		add("%pISc", param.local_ia_address_ptr);
	else
		add("none");
	if (param.remote_ia_address_ptr)
		add(">%pISc ", param.remote_ia_address_ptr);
	else
		add(">none ");
}

/* ---- connections ---- */

static void conn_close(struct conn *conn)
{
	mutex_lock(&conn->mutex);
	conn->wanted = false;
	end_close(&conn->act);
	end_close(&conn->pas);
	mutex_unlock(&conn->mutex);
}

static void cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct listener *listener = instance;
	struct conn *conn = NULL;
	struct request request;
	DAT_CR_PARAM param;
	DAT_RETURN ret;

	ret = dat_cr_query(cr, DAT_CR_FIELD_ALL, &param);
	if (ret == DAT_SUCCESS && param.private_data_size >= sizeof(request)) {
		memcpy(&request, param.private_data, sizeof(request));
		if (be32_to_cpu(request.magic) == MAGIC &&
		    be32_to_cpu(request.number) < ARRAY_SIZE(conns))
			conn = &conns[be32_to_cpu(request.number)];
	}
	if (!conn) {
		pr_err("a request that is not ours at listener %c\n", listener->letter);
		dat_cr_reject(cr, 0, NULL);
		return;
	}
	mutex_lock(&conn->mutex);
	ret = DAT_INVALID_STATE;
	if (conn->wanted && conn->use == be32_to_cpu(request.use) && !conn->pas.open) {
		ret = end_open(&conn->pas, listener->ia);
		conn->pas.listener = listener->letter;
		if (ret == DAT_SUCCESS)
			ret = dat_cr_accept(cr, conn->pas.end.ep, 0, NULL);
	}
	if (ret != DAT_SUCCESS) {
		pr_err("a request cannot be accepted: 0x%x\n", ret);
		dat_cr_reject(cr, 0, NULL);
	}
	mutex_unlock(&conn->mutex);
}

static struct conn *the_conn(const char *word)
{
	unsigned int n;

	if (!word || kstrtouint(word, 10, &n) || n >= ARRAY_SIZE(conns))
		return NULL;
	return &conns[n];
}

static struct peer_ia *the_adapter(const char *word)
{
	if (!word || *word < 'a' || *word > 'z' || word[1])
		return NULL;
	return &adapters[*word - 'a'];
}

static struct listener *the_listener(const char *word)
{
	if (!word || *word < 'a' || *word > 'z' || word[1])
		return NULL;
	listeners[*word - 'a'].letter = *word;
	return &listeners[*word - 'a'];
}

static int address(const char *word, const char *port, struct sockaddr_storage *addr)
{
	memset(addr, 0, sizeof(*addr));
	return inet_pton_with_scope(current->nsproxy->net_ns, AF_UNSPEC, word, port, addr);
}

/* ---- orders: -EINVAL when they make no sense, otherwise the result counts ---- */

/* The words behind an order, NULL after the last. There is no result yet. */
static char **words(char *line)
{
	static char *word[WORDS + 1];
	int n = 0;

	result[0] = '\0';
	memset(word, 0, sizeof(word));
	while (n < WORDS && line) {
		word[n] = strsep(&line, " ");
		n += !!*word[n];
	}
	if (n < WORDS)
		word[n] = NULL;
	return word;
}

/* open A NAME */
static int do_open(char *line)
{
	char **arg = words(line);
	struct peer_ia *a = the_adapter(arg[0]);

	if (!a || a->ia || !arg[1])
		return -EINVAL;
	a->async = DAT_HANDLE_NULL;
	ok(dat_ia_open(arg[1], 8, &a->async, &a->ia));
	return 0;
}

/* to A DESTINATION [SOURCE]: open the adapter that leads there, in the caller's namespace */
static int do_to(char *line)
{
	char **arg = words(line);
	struct peer_ia *a = the_adapter(arg[0]);
	struct sockaddr_storage dst, src;

	if (!a || a->ia || !arg[1] || address(arg[1], NULL, &dst) ||
	    (arg[2] && address(arg[2], NULL, &src)))
		return -EINVAL;
	a->async = DAT_HANDLE_NULL;
	ok(kdat_ia_open_to(current->nsproxy->net_ns, (struct sockaddr *)&dst,
			   arg[2] ? (struct sockaddr *)&src : NULL, 8, &a->async, &a->ia));
	return 0;
}

/* close A [graceful] */
static int do_close(char *line)
{
	char **arg = words(line);
	struct peer_ia *a = the_adapter(arg[0]);

	if (!a || !a->ia)
		return -EINVAL;
	if (ok(dat_ia_close(a->ia, arg[1] ? DAT_CLOSE_GRACEFUL_FLAG : DAT_CLOSE_ABRUPT_FLAG)))
		a->ia = NULL;
	return 0;
}

/* query A: its name and its address */
static int do_query(char *line)
{
	char **arg = words(line);
	struct peer_ia *a = the_adapter(arg[0]);
	DAT_IA_ATTR *attr;

	if (!a || !a->ia)
		return -EINVAL;
	attr = kzalloc(sizeof(*attr), GFP_KERNEL);
	if (!attr)
		return -ENOMEM;
	if (ok(dat_ia_query(a->ia, NULL, DAT_IA_FIELD_ALL, attr, 0, NULL))) {
		say("%s ", attr->adapter_name);
		if (attr->ia_address_ptr)
			add("%pISc", attr->ia_address_ptr);
		else
			add("none");
	}
	kfree(attr);
	return 0;
}

/* async A: the asynchronous events since the last time */
static int do_async(char *line)
{
	char **arg = words(line);
	struct peer_ia *a = the_adapter(arg[0]);
	DAT_EVENT event;

	if (!a || !a->ia)
		return -EINVAL;
	while (dat_evd_dequeue(a->async, &event) == DAT_SUCCESS)
		add("%s%s", *result ? " " : "", kdat_event_name(event.event_number));
	if (!*result)
		say("none");
	return 0;
}

/* ias: what the registry lists */
static int do_ias(char *line)
{
	DAT_PROVIDER_INFO *info = kcalloc(16, sizeof(*info), GFP_KERNEL), *list[16];
	DAT_COUNT n = 0;
	int i;

	words(line);
	if (!info)
		return -ENOMEM;
	for (i = 0; i < 16; i++)
		list[i] = &info[i];
	if (ok(dat_registry_list_providers(16, &n, list)))
		*result = '\0';
	for (i = 0; i < n; i++)
		add("%s%s", i ? " " : "", info[i].ia_name);
	kfree(info);
	return 0;
}

/* Whether there is one; if not, the result says why. */
static bool listener_evd(struct listener *l, DAT_IA_HANDLE ia)
{
	const DAT_UPCALL_OBJECT upcall = { l, cr_upcall };

	if (ok(dat_evd_kcreate(ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &upcall, DAT_EVD_CR_FLAG,
			       &l->evd))) {
		l->ia = ia;
		return true;
	}
	l->evd = NULL;
	return false;
}

static void listener_check(struct listener *l, DAT_RETURN ret)
{
	if (!ok(ret)) {
		dat_evd_free(l->evd);
		memset(l, 0, sizeof(*l));
	}
}

/* listen L A PORT */
static int do_listen(char *line)
{
	char **arg = words(line);
	struct listener *l = the_listener(arg[0]);
	struct peer_ia *a = the_adapter(arg[1]);
	u16 port;

	if (!l || l->evd || !a || !a->ia || !arg[2] || kstrtou16(arg[2], 10, &port))
		return -EINVAL;
	if (listener_evd(l, a->ia))
		listener_check(l, dat_psp_create(a->ia, port, l->evd, DAT_PSP_CONSUMER_FLAG,
						 &l->psp));
	return 0;
}

/* any L A: on a port that is free; it is not said which */
static int do_any(char *line)
{
	char **arg = words(line);
	struct listener *l = the_listener(arg[0]);
	struct peer_ia *a = the_adapter(arg[1]);
	DAT_CONN_QUAL port;

	if (!l || l->evd || !a || !a->ia)
		return -EINVAL;
	if (listener_evd(l, a->ia))
		listener_check(l, dat_psp_create_any(a->ia, &port, l->evd, DAT_PSP_CONSUMER_FLAG,
						     &l->psp));
	return 0;
}

/* common L A ADDRESS PORT: listen on one address of the port of the adapter */
static int do_common(char *line)
{
	char **arg = words(line);
	struct listener *l = the_listener(arg[0]);
	struct peer_ia *a = the_adapter(arg[1]);
	struct sockaddr_storage addr;
	DAT_COMM comm = {};

	if (!l || l->evd || !a || !a->ia || !arg[3] || address(arg[2], arg[3], &addr))
		return -EINVAL;
	comm.domain = addr.ss_family;
	comm.type = SOCK_STREAM;
	if (listener_evd(l, a->ia))
		listener_check(l, dat_csp_create(a->ia, &comm, (DAT_IA_ADDRESS_PTR)&addr, l->evd,
						 &l->csp));
	return 0;
}

/* unlisten L */
static int do_unlisten(char *line)
{
	char **arg = words(line);
	struct listener *l = the_listener(arg[0]);
	DAT_RETURN ret = DAT_SUCCESS;

	if (!l || !l->evd)
		return -EINVAL;
	if (l->psp)
		ret = dat_psp_free(l->psp);
	if (l->csp)
		ret = dat_csp_free(l->csp);
	if (ret == DAT_SUCCESS)
		ret = dat_evd_free(l->evd);
	l->psp = NULL;
	l->csp = NULL;
	l->evd = NULL;
	ok(ret);
	return 0;
}

/*
 * connect N A ADDRESS PORT [SECONDS]: the outcome, after both ends have theirs;
 * 0 seconds: as long as the transport tries
 */
static int do_connect(char *line)
{
	char **arg = words(line);
	struct conn *conn = the_conn(arg[0]);
	struct peer_ia *a = the_adapter(arg[1]);
	struct sockaddr_storage addr;
	struct request request;
	int seconds = 60;
	DAT_EP_STATE state;
	DAT_RETURN ret;
	u16 port;

	if (!conn || conn->act.open || !a || !a->ia || !arg[3] || kstrtou16(arg[3], 10, &port) ||
	    (arg[4] && kstrtoint(arg[4], 10, &seconds)) || address(arg[2], "0", &addr))
		return -EINVAL;
	mutex_lock(&conn->mutex);
	conn->wanted = true;
	conn->use++;
	mutex_unlock(&conn->mutex);
	request.magic = cpu_to_be32(MAGIC);
	request.number = cpu_to_be32(conn - conns);
	request.use = cpu_to_be32(conn->use);
	ret = end_open(&conn->act, a->ia);
	if (ret == DAT_SUCCESS)
		ret = peer_connect(&conn->act.end, &addr, port,
				   seconds ? seconds * USEC_PER_SEC : DAT_TIMEOUT_INFINITE,
				   sizeof(request), &request);
	if (!ok(ret)) {
		/* then nothing has happened, unless the device has gone */
		if (conn->act.end.ep && DAT_GET_TYPE(ret) != DAT_INTERNAL_ERROR &&
		    (dat_ep_get_status(conn->act.end.ep, &state, NULL, NULL) != DAT_SUCCESS ||
		     state != DAT_EP_STATE_UNCONNECTED))
			add(", not UNCONNECTED");
		conn_close(conn);
		return 0;
	}
	if (!await(READ_ONCE(conn->act.end.outcomes)))
		say("no outcome");
	else
		say("%s", kdat_event_name(conn->act.end.outcome));
	if (conn->act.end.outcome != DAT_CONNECTION_EVENT_ESTABLISHED) {
		conn_close(conn);
		return 0;
	}
	if (!await(READ_ONCE(conn->pas.end.outcomes)) ||
	    conn->pas.end.outcome != DAT_CONNECTION_EVENT_ESTABLISHED)
		add(", passive %s", kdat_event_name(conn->pas.end.outcome));
	if (conn->act.end.outcomes != 1 || conn->pas.end.outcomes != 1)
		add(", outcomes %d %d", conn->act.end.outcomes, conn->pas.end.outcomes);
	return 0;
}

/* One message; NULL, or what went wrong. */
static const char *send(struct end *from, struct end *to, u32 len, u32 seed)
{
	const char *wrong;
	u32 i;

	for (i = 0; i < len; i++)
		from->mem.p[i] = seed + i + (i >> 8);
	memset(to->mem.p + HALF, 0, HALF);
	if (end_post(to, true, HALF) != DAT_SUCCESS)
		return "the Receive is refused";
	if (end_post(from, false, len) != DAT_SUCCESS)
		return "the Send is refused";
	wrong = end_reap(from, false) ?: end_reap(to, true);
	if (wrong)
		return wrong;
	if (to->len[1] != len)
		return "the length is wrong";
	if (memcmp(from->mem.p, to->mem.p + HALF, len))
		return "the data are wrong";
	return NULL;
}

/* talk N: data both ways */
static int do_talk(char *line)
{
	char **arg = words(line);
	static const u32 sizes[] = { 64, 4097, HALF };
	struct conn *conn = the_conn(arg[0]);
	const char *wrong = NULL;
	int i;

	if (!conn || !conn->act.open || !conn->pas.open)
		return -EINVAL;
	if (!ok(end_memory(&conn->act)) || !ok(end_memory(&conn->pas)))
		return 0;
	for (i = 0; i < ARRAY_SIZE(sizes) && !wrong; i++)
		wrong = send(&conn->act, &conn->pas, sizes[i], i + 1) ?:
			send(&conn->pas, &conn->act, sizes[i], i + 7);
	say("%s", wrong ?: "data");
	return 0;
}

/* addresses N: LOCAL>REMOTE of both ends, and the listener the request arrived at */
static int do_addresses(char *line)
{
	char **arg = words(line);
	struct conn *conn = the_conn(arg[0]);

	if (!conn || !conn->act.open || !conn->pas.open)
		return -EINVAL;
	end_say_address(&conn->act);
	end_say_address(&conn->pas);
	add("%c", conn->pas.listener);
	return 0;
}

static void end_say_state(const struct end *end)
{
	DAT_EP_STATE state;

	if (dat_ep_get_status(end->end.ep, &state, NULL, NULL) == DAT_SUCCESS)
		add("%s", kdat_ep_state_name(state));
	else
		add("dead");
}

/* state N: of both ends */
static int do_state(char *line)
{
	char **arg = words(line);
	struct conn *conn = the_conn(arg[0]);

	if (!conn || !conn->act.open || !conn->pas.open)
		return -EINVAL;
	end_say_state(&conn->act);
	add(" ");
	end_say_state(&conn->pas);
	return 0;
}

static void conn_say_ends(struct conn *conn)
{
	bool over = await(READ_ONCE(conn->act.end.ends) && READ_ONCE(conn->pas.end.ends));

	say("%s %s", kdat_event_name(conn->act.end.end), kdat_event_name(conn->pas.end.end));
	if (!over || conn->act.end.ends > 1 || conn->pas.end.ends > 1)
		add(", ends %d %d", conn->act.end.ends, conn->pas.end.ends);
}

/* ended N: how the connection has ended, at both ends, once it has */
static int do_ended(char *line)
{
	char **arg = words(line);
	struct conn *conn = the_conn(arg[0]);

	if (!conn || !conn->act.open || !conn->pas.open)
		return -EINVAL;
	conn_say_ends(conn);
	return 0;
}

/* drop N: a graceful disconnect; how it ends at both ends; then all is freed */
static int do_drop(char *line)
{
	char **arg = words(line);
	struct conn *conn = the_conn(arg[0]);

	if (!conn || !conn->act.open || !conn->pas.open)
		return -EINVAL;
	if (ok(dat_ep_disconnect(conn->act.end.ep, DAT_CLOSE_GRACEFUL_FLAG)))
		conn_say_ends(conn);
	conn_close(conn);
	return 0;
}

/* free N: whatever its state */
static int do_free(char *line)
{
	char **arg = words(line);
	struct conn *conn = the_conn(arg[0]);

	if (!conn)
		return -EINVAL;
	conn_close(conn);
	say("SUCCESS");
	return 0;
}

static void close_all(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(adapters); i++) {
		if (adapters[i].ia)
			dat_ia_close(adapters[i].ia, DAT_CLOSE_ABRUPT_FLAG);
		adapters[i].ia = NULL;
	}
	/* Of these only the buffers are left. */
	for (i = 0; i < ARRAY_SIZE(conns); i++)
		conn_close(&conns[i]);
	memset(listeners, 0, sizeof(listeners));
}

/* clean: everything is closed, abruptly */
static int do_clean(char *line)
{
	words(line);
	close_all();
	say("SUCCESS");
	return 0;
}

static const struct order orders[] = {
	{ "open", do_open },
	{ "to", do_to },
	{ "close", do_close },
	{ "query", do_query },
	{ "async", do_async },
	{ "ias", do_ias },
	{ "listen", do_listen },
	{ "any", do_any },
	{ "common", do_common },
	{ "unlisten", do_unlisten },
	{ "connect", do_connect },
	{ "talk", do_talk },
	{ "addresses", do_addresses },
	{ "state", do_state },
	{ "ended", do_ended },
	{ "drop", do_drop },
	{ "free", do_free },
	{ "clean", do_clean },
	{}
};

static ssize_t kdn_read(struct file *file, char __user *to, size_t len, loff_t *pos)
{
	return simple_read_from_buffer(to, len, pos, result, strlen(result));
}

static const struct file_operations kdn_fops = {
	.owner = THIS_MODULE,
	.read = kdn_read,
};

/* ---- RTNL, held as somebody does who waits for memory meanwhile ---- */

static struct task_struct *rtnl_holder;
static DEFINE_MUTEX(rtnl_mutex);	/* the holder */
static DECLARE_COMPLETION(rtnl_held);

static int rtnl_hold(void *arg)
{
	rtnl_lock();
	complete(&rtnl_held);
	for (;;) {
		set_current_state(TASK_IDLE);
		if (kthread_should_stop())
			break;
		schedule();
	}
	__set_current_state(TASK_RUNNING);
	rtnl_unlock();
	return 0;
}

/* 1 takes it, 0 gives it back; the task that writes has it in neither case. */
static int kdn_rtnl_set(void *data, u64 hold)
{
	int err = 0;

	mutex_lock(&rtnl_mutex);
	if (!hold && rtnl_holder) {
		kthread_stop(rtnl_holder);
		rtnl_holder = NULL;
	} else if (hold && !rtnl_holder) {
		reinit_completion(&rtnl_held);
		rtnl_holder = kthread_run(rtnl_hold, NULL, "kdnet_rtnl");
		err = PTR_ERR_OR_ZERO(rtnl_holder);
		if (err)
			rtnl_holder = NULL;
		else
			wait_for_completion(&rtnl_held);
	}
	mutex_unlock(&rtnl_mutex);
	return err;
}
DEFINE_DEBUGFS_ATTRIBUTE(kdn_rtnl_fops, NULL, kdn_rtnl_set, "%llu\n");

static int __init kdn_init(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(conns); i++)
		mutex_init(&conns[i].mutex);
	kdn_dir = orders_open("kdnet", orders);
	debugfs_create_file("result", 0400, kdn_dir, NULL, &kdn_fops);
	debugfs_create_file_unsafe("rtnl", 0200, kdn_dir, NULL, &kdn_rtnl_fops);
	return 0;
}

static void __exit kdn_exit(void)
{
	debugfs_remove_recursive(kdn_dir);
	kdn_rtnl_set(NULL, 0);
	close_all();
}

module_init(kdn_init);
module_exit(kdn_exit);
MODULE_DESCRIPTION("kDAPL test: adapters, names and addresses");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
