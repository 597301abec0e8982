// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * State for the administrator: /sys/kernel/debug/kdapl has a file for each kind of object,
 * with a line for each object, and one with a line for each CPU.
 *
 * A reader walks the table of handles under RCU and takes no lock, so it delays nobody. The
 * values of a line were not all read at the same moment.
 */
#include <linux/cpumask.h>
#include <linux/debugfs.h>
#include <linux/percpu.h>
#include <linux/seq_file.h>

#include "ia_api.h"

/**
 * struct kdapl_view - a file
 * @name: its name
 * @types: kinds of objects in it, as bits by DAT_HANDLE_TYPE
 * @head: first line
 * @show: prints a line, from the column after the consumer on; RCU read side
 */
struct kdapl_view {
	const char *name;
	unsigned int types;
	const char *head;
	void (*show)(struct seq_file *m, const struct kdapl_obj *obj);
};

static void debugfs_show_ia(struct seq_file *m, const struct kdapl_obj *obj)
{
	static const char * const states[] = {
		[KDAPL_IA_STATE_OPEN] = "open", [KDAPL_IA_STATE_CLOSING] = "closing",
		[KDAPL_IA_STATE_LOST] = "lost",
	};
	const struct kdapl_ia *ia = container_of(obj, struct kdapl_ia, obj);

	seq_printf(m, " %-10s %-4u %-7s %u\n", ia->dev->name, ia->port,
		   states[kdapl_ia_state(ia)], kdapl_seen(ia->keys.count));
}

static void debugfs_show_pz(struct seq_file *m, const struct kdapl_obj *obj)
{
	seq_printf(m, " %u\n", kdapl_seen(obj->users));
}

static void debugfs_show_address(struct seq_file *m, const struct sockaddr_storage *address)
{
	const struct sockaddr_storage copy = *address;

	if (copy.ss_family == AF_INET || copy.ss_family == AF_INET6)
		seq_printf(m, " %pISpc", &copy);
	else
		seq_puts(m, " -");
}

static void debugfs_show_ep(struct seq_file *m, const struct kdapl_obj *obj)
{
	const struct kdapl_ep *ep = container_of(obj, struct kdapl_ep, obj);
	const struct kdapl_conn *conn = rcu_dereference(ep->conn);
	const struct kdapl_wq *sq, *rq;
	unsigned int error, event;

	seq_printf(m, " %-12s", kdat_ep_state_name(kdapl_seen(ep->state)));
	if (!conn) {
		seq_puts(m, " - - 0/0 0/0 0 0 - -\n");
		return;
	}
	sq = conn->sq;
	rq = conn->rq;
	seq_printf(m, " %-6u", conn->qpn);
	debugfs_show_address(m, &conn->remote);
	seq_printf(m, " %u/%u", kdapl_seen(sq->dtos), kdapl_seen(sq->dtos_done));
	seq_printf(m, " %u/%u", kdapl_seen(rq->head), kdapl_seen(rq->tail));
	seq_printf(m, " %u %u", kdapl_seen(sq->flushed) + kdapl_seen(rq->flushed),
		   kdapl_seen(sq->failed) + kdapl_seen(rq->failed));
	error = kdapl_conn_error(conn);
	event = kdapl_seen(conn->last_event);
	seq_printf(m, " %s %s\n", error ? kdat_dto_status_name(error) : "-",
		   event ? kdat_event_name(event) : "-");
}

static void debugfs_show_evd(struct seq_file *m, const struct kdapl_obj *obj)
{
	static const struct {
		DAT_EVD_FLAGS flag;
		char letter;
	} kinds[] = {
		{ DAT_EVD_DTO_FLAG, 'd' }, { DAT_EVD_CONNECTION_FLAG, 'c' },
		{ DAT_EVD_CR_FLAG, 'r' }, { DAT_EVD_ASYNC_FLAG, 'a' },
		{ DAT_EVD_RMR_BIND_FLAG, 'b' }, { DAT_EVD_SOFTWARE_FLAG, 's' },
	};
	const struct kdapl_evd *evd = container_of(obj, struct kdapl_evd, obj);
	DAT_UPCALL_POLICY policy = kdapl_seen(evd->policy);
	char what[ARRAY_SIZE(kinds) + 1];
	size_t i, n = 0;

	for (i = 0; i < ARRAY_SIZE(kinds); i++)
		if (evd->flags & kinds[i].flag)
			what[n++] = kinds[i].letter;
	what[n] = 0;
	seq_printf(m, " %-6s %-9s %-8s %-6d %u %llu %s\n", what,
		   evd->softirq ? "softirq" : "workqueue",
		   policy == DAT_UPCALL_DISABLE ? "none" :
		   policy == DAT_UPCALL_SINGLE_INSTANCE ? "single" :
		   policy == DAT_UPCALL_MANY ? "many" : "other",
		   kdapl_seen(evd->qlen), kdapl_seen(evd->backlog_count),
		   kdapl_seen(evd->upcall_seq),
		   kdapl_seen(evd->overflow || evd->async_dead) ? "full" : "-");
}

static void debugfs_show_rights(struct seq_file *m, DAT_MEM_PRIV_FLAGS rights)
{
	static const struct {
		DAT_MEM_PRIV_FLAGS flag;
		const char *name;
	} names[] = {
		{ DAT_MEM_PRIV_LOCAL_READ_FLAG, "local_read" },
		{ DAT_MEM_PRIV_LOCAL_WRITE_FLAG, "local_write" },
		{ DAT_MEM_PRIV_REMOTE_READ_FLAG, "remote_read" },
		{ DAT_MEM_PRIV_REMOTE_WRITE_FLAG, "remote_write" },
	};
	char separator = ' ';
	size_t i;

	for (i = 0; i < ARRAY_SIZE(names); i++) {
		if (!(rights & names[i].flag))
			continue;
		seq_printf(m, "%c%s", separator, names[i].name);
		separator = ',';
	}
	if (separator == ' ')
		seq_puts(m, " none");
}

static void debugfs_show_lmr(struct seq_file *m, const struct kdapl_obj *obj)
{
	static const char * const names[] = {
		[KDAPL_LMR_UNBOUND] = "unbound", [KDAPL_LMR_BOUND] = "bound",
		[KDAPL_LMR_ENDING] = "ending", [KDAPL_LMR_MAPPED] = "mapped",
		[KDAPL_LMR_STALE] = "stale", [KDAPL_LMR_DEAD] = "dead",
	};
	const struct kdapl_lmr *lmr = container_of(obj, struct kdapl_lmr, obj);

	seq_printf(m, " %-9s %-8s 0x%08x 0x%08x",
		   lmr->reserved ? "reserved" : lmr->fmr ? "fmr" : "memory",
		   names[kdapl_seen(lmr->state)], kdapl_seen(lmr->mr.lkey),
		   kdapl_seen(lmr->mr.rkey));
	debugfs_show_rights(m, kdapl_seen(lmr->priv));
	seq_printf(m, " %llu\n", kdapl_seen(lmr->mr.range.length));
}

static void debugfs_show_rmr(struct seq_file *m, const struct kdapl_obj *obj)
{
	const struct kdapl_rmr *rmr = container_of(obj, struct kdapl_rmr, obj);

	seq_printf(m, " %-8s 0x%08x", kdapl_seen(rmr->now.lmr) ? "bound" : "unbound",
		   kdapl_seen(rmr->now.context));
	debugfs_show_rights(m, kdapl_seen(rmr->now.priv));
	seq_printf(m, " %llu\n", kdapl_seen(rmr->now.range.length));
}

static void debugfs_show_srq(struct seq_file *m, const struct kdapl_obj *obj)
{
	const struct kdapl_srq *srq = container_of(obj, struct kdapl_srq, obj);
	const struct kdapl_pool *pool = rcu_dereference(srq->pool);

	if (pool)
		seq_printf(m, " %-6u %-6u %-6u %-5u %-5u %s\n", kdapl_seen(pool->limit),
			   kdapl_seen(pool->outstanding), kdapl_seen(pool->available),
			   kdapl_seen(pool->lost), kdapl_seen(pool->nconns),
			   kdapl_seen(pool->error) ? "failed" : "-");
	else
		seq_puts(m, " freed\n");
}

static void debugfs_show_sp(struct seq_file *m, const struct kdapl_obj *obj)
{
	const struct kdapl_sp *sp = container_of(obj, struct kdapl_sp, obj);

	seq_printf(m, " %-4s %llu\n", obj->type == DAT_HANDLE_TYPE_PSP ? "psp" :
		   obj->type == DAT_HANDLE_TYPE_RSP ? "rsp" : "csp", (u64)sp->conn_qual);
}

static void debugfs_show_cr(struct seq_file *m, const struct kdapl_obj *obj)
{
	const struct kdapl_cr *cr = container_of(obj, struct kdapl_cr, obj);

	debugfs_show_address(m, &cr->remote);
	seq_puts(m, "\n");
}

static const struct kdapl_view views[] = {
	{ "ias", BIT(DAT_HANDLE_TYPE_IA), "device port state mrs", debugfs_show_ia },
	{ "pzs", BIT(DAT_HANDLE_TYPE_PZ), "users", debugfs_show_pz },
	{ "eps", BIT(DAT_HANDLE_TYPE_EP),
	  "state qpn peer requests/done receives/done flushed failed error event",
	  debugfs_show_ep },
	{ "evds", BIT(DAT_HANDLE_TYPE_EVD), "events context upcalls length queued called full",
	  debugfs_show_evd },
	{ "lmrs", BIT(DAT_HANDLE_TYPE_LMR), "kind state lmr_context rmr_context rights length",
	  debugfs_show_lmr },
	{ "rmrs", BIT(DAT_HANDLE_TYPE_RMR), "state rmr_context rights length",
	  debugfs_show_rmr },
	{ "srqs", BIT(DAT_HANDLE_TYPE_SRQ), "limit outstanding available lost eps error",
	  debugfs_show_srq },
	{ "points", BIT(DAT_HANDLE_TYPE_PSP) | BIT(DAT_HANDLE_TYPE_RSP) | BIT(DAT_HANDLE_TYPE_CSP),
	  "kind qualifier", debugfs_show_sp },
	{ "requests", BIT(DAT_HANDLE_TYPE_CR), "peer", debugfs_show_cr },
};

/* Position 0 is the first line, position n the object with index n - 1. */
static void *debugfs_seq_find(struct seq_file *m, loff_t *pos)
{
	const struct kdapl_view *view = m->private;
	struct kdapl_obj *obj;
	unsigned long index;

	if (!*pos)
		return SEQ_START_TOKEN;
	for (index = *pos - 1; (obj = kdapl_handle_next(&index, ULONG_MAX)); index++) {
		if (!(view->types & BIT(obj->type)))
			continue;
		*pos = index + 1;
		return obj;
	}
	*pos = index + 1;
	return NULL;
}

static void *debugfs_seq_start(struct seq_file *m, loff_t *pos)
	__acquires(RCU)
{
	rcu_read_lock();
	return debugfs_seq_find(m, pos);
}

static void *debugfs_seq_next(struct seq_file *m, void *v, loff_t *pos)
{
	++*pos;
	return debugfs_seq_find(m, pos);
}

static void debugfs_seq_stop(struct seq_file *m, void *v)
	__releases(RCU)
{
	rcu_read_unlock();
}

static int debugfs_seq_show(struct seq_file *m, void *v)
{
	const struct kdapl_view *view = m->private;
	const struct kdapl_obj *obj = v;

	if (v == SEQ_START_TOKEN) {
		seq_printf(m, "id ia name consumer %s\n", view->head);
		return 0;
	}
	/* the handle is in the table a moment before it is in the object */
	if (!kdapl_seen(obj->handle))
		return SEQ_SKIP;
	seq_printf(m, "%-6u %-6u %-16s %-12s", kdapl_id(obj->handle),
		   kdapl_id(kdapl_seen(obj->ia->obj.handle)), obj->ia->name, obj->ia->consumer);
	view->show(m, obj);
	return 0;
}

static const struct seq_operations debugfs_seq_sops = {
	.start = debugfs_seq_start,
	.next = debugfs_seq_next,
	.stop = debugfs_seq_stop,
	.show = debugfs_seq_show,
};

DEFINE_SEQ_ATTRIBUTE(debugfs_seq);

DEFINE_PER_CPU(struct kdapl_stats, kdapl_stats);

static int debugfs_cpus_show(struct seq_file *m, void *v)
{
	unsigned int cpu;

	seq_puts(m, "cpu softirq work upcalls full again flushed failed refused dropped\n");
	for_each_possible_cpu(cpu) {
		const struct kdapl_stats *s = per_cpu_ptr(&kdapl_stats, cpu);

		seq_printf(m, "%-4u %lu %lu %lu %lu %lu %lu %lu %lu %lu\n", cpu,
			   kdapl_seen(s->softirq), kdapl_seen(s->work), kdapl_seen(s->upcalls),
			   kdapl_seen(s->full), kdapl_seen(s->again), kdapl_seen(s->flushed),
			   kdapl_seen(s->failed), kdapl_seen(s->refused), kdapl_seen(s->dropped));
	}
	return 0;
}

DEFINE_SHOW_ATTRIBUTE(debugfs_cpus);

static struct dentry *kdapl_debugfs;

/* Errors are ignored, as always with debugfs. */
void kdapl_debugfs_init(void)
{
	size_t i;

	kdapl_debugfs = debugfs_create_dir("kdapl", NULL);
	for (i = 0; i < ARRAY_SIZE(views); i++)
		debugfs_create_file(views[i].name, 0400, kdapl_debugfs, (void *)&views[i],
				    &debugfs_seq_fops);
	debugfs_create_file("cpus", 0400, kdapl_debugfs, NULL, &debugfs_cpus_fops);
}

void kdapl_debugfs_exit(void)
{
	debugfs_remove(kdapl_debugfs);
}
