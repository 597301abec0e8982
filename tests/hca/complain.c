// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What a consumer may not do although many devices bear it. A complaint is a line with "BUG:",
 * which fails a run of the tests, and a stack; a few of each kind. And what is done to whoever
 * calls a verb that sleeps: he waits, or his call fails.
 */
#include <linux/delay.h>
#include <linux/kallsyms.h>
#include <linux/sched.h>
#include <linux/sched/mm.h>
#include <linux/workqueue.h>

#include "kdhca.h"

#define COMPLAINTS	3		/* of a kind that are said for a device */

static const char *const fault_name[] = {
	[KDHCA_EMPTY_LIST] = "num_sge is 0 and sg_list not NULL",
	[KDHCA_NOIO] = "may allocate, and a worker calls it without PF_MEMALLOC_NOIO",
	[KDHCA_FENCE] = "a fence the device does not honour",
	[KDHCA_KEY_AGAIN] = "the low byte of the key is that of the key before",
	[KDHCA_LATE_POST] = "a post after ib_client.remove has returned",
	[KDHCA_ATOMIC] = "sleeps, and the caller must not",
	[KDHCA_OFFSET] = "iova and buffer begin at different offsets in their pages",
	[KDHCA_UNMAPPED] = "DMA to an address that is not mapped",
	[KDHCA_PAIR] = "a Write and a Send posted together, and sg_list is NULL",
};

/* Verbs that sleep, how long, and every so-manieth of which fails. */
#define VERB(name, ms, nth) \
	{ name, offsetof(struct kdhca_set, ms), offsetof(struct kdhca_set, nth) }

static const struct {
	const char *name;
	size_t ms, nth;		/* 0, which is none of these: never */
} verbs[] = {
	[KDHCA_CREATE] = VERB("create", create_ms, create_fail),
	[KDHCA_ALLOC] = { "alloc_mr", 0, offsetof(struct kdhca_set, alloc_fail) },
	[KDHCA_MODIFY] = VERB("modify_qp", modify_ms, modify_fail),
	[KDHCA_DESTROY] = { "destroy", offsetof(struct kdhca_set, destroy_ms), 0 },
	[KDHCA_DEREG] = VERB("dereg_mr", dereg_ms, dereg_fail),
};

/* Say that a consumer has done something wrong. Context: any. */
void kdhca_complain(struct kdhca_dev *dev, enum kdhca_fault fault, const char *what, u64 n)
{
	if (!(dev->set.complain & BIT(fault)) ||
	    atomic_inc_return(&dev->complaints[fault]) > COMPLAINTS)
		return;
	pr_err("BUG: kdhca: %s: %s (%#llx): %s\n", dev_name(&dev->ibdev.dev), what, n,
	       fault_name[fault]);
	dump_stack();
}

/* Is what the worker does that of a consumer for whom no memory waits? */
static bool spare_worker(void)
{
	struct work_struct *work = current_work();
	char name[KSYM_SYMBOL_LEN];

	if (!work)
		return false;
	sprint_symbol(name, (unsigned long)work->func);
	return strstr(name, "[kdtest]") || strstr(name, "[kdblk_target]");
}

/* A consumer calls a verb that sleeps. Returns -ENOMEM if this call is to fail. */
int kdhca_sleeps(struct kdhca_dev *dev, enum kdhca_verb verb)
{
	const struct kdhca_set *set = &dev->set;
	u32 ms = verbs[verb].ms ? *(u32 *)((void *)set + verbs[verb].ms) : 0;
	u32 nth = verbs[verb].nth ? *(u32 *)((void *)set + verbs[verb].nth) : 0;

	if (IS_ENABLED(CONFIG_PREEMPT_COUNT) && !preemptible()) {
		kdhca_complain(dev, KDHCA_ATOMIC, verbs[verb].name, preempt_count());
		return 0;
	}
	might_sleep();
	if (set->noio && (current->flags & PF_WQ_WORKER) &&
	    !(current->flags & PF_MEMALLOC_NOIO) && READ_ONCE(dev->remover) != current &&
	    !spare_worker())
		kdhca_complain(dev, KDHCA_NOIO, verbs[verb].name, 0);
	if (ms)
		msleep(ms);
	return nth && !(atomic_inc_return(&dev->calls[verb]) % nth) ? -ENOMEM : 0;
}

/* Look at the list of a work request as a device must not. */
void kdhca_check_list(struct kdhca_dev *dev, const void *sg_list, int num_sge)
{
	if (sg_list && !num_sge)
		kdhca_complain(dev, KDHCA_EMPTY_LIST, "post", (unsigned long)sg_list);
}

/* Something is posted, on other queues than those of QP 1: is it late? */
void kdhca_check_late(struct kdhca_dev *dev)
{
	unsigned long leaving = READ_ONCE(dev->leaving);

	if (READ_ONCE(dev->left))
		kdhca_complain(dev, KDHCA_LATE_POST, "post", jiffies_to_msecs(jiffies - leaving));
}
