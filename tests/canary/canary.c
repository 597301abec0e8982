// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Plants one bug on load, to prove that a debug kernel of the test rig still
 * reports it. Only ever loaded in a guest made for it.
 */
#include <linux/module.h>
#include <linux/mutex.h>
#include <linux/slab.h>
#include <linux/workqueue.h>

static char *bug = "";
module_param(bug, charp, 0444);
MODULE_PARM_DESC(bug, "what to plant: kasan (use after free), lockdep (lock order), kcsan (data race), leak");

static DEFINE_MUTEX(canary_a);
static DEFINE_MUTEX(canary_b);

static void canary_use_after_free(void)
{
	char *p = kmalloc(64, GFP_KERNEL);
	char *stale = p;

	if (!p)
		return;
	OPTIMIZER_HIDE_VAR(stale);
	kfree(p);
	pr_info("canary: read %d after free\n", READ_ONCE(stale[8]));
}

static void canary_lock_order(void)
{
	mutex_lock(&canary_a);
	mutex_lock(&canary_b);
	mutex_unlock(&canary_b);
	mutex_unlock(&canary_a);
	mutex_lock(&canary_b);
	mutex_lock(&canary_a);
	mutex_unlock(&canary_a);
	mutex_unlock(&canary_b);
}

static struct canary_race {
	struct work_struct work;
	unsigned long until;
} canary_race[2];
static unsigned int canary_count;

static void canary_count_up(struct work_struct *work)
{
	struct canary_race *race = container_of(work, struct canary_race, work);

	while (time_before(jiffies, race->until)) {
		canary_count++;
		barrier();
		cond_resched();
	}
}

static void canary_data_race(void)
{
	int i;

	for (i = 0; i < 2; i++) {
		canary_race[i].until = jiffies + 5 * HZ;
		INIT_WORK(&canary_race[i].work, canary_count_up);
		schedule_work_on(i, &canary_race[i].work);
	}
	for (i = 0; i < 2; i++)
		flush_work(&canary_race[i].work);
	pr_info("canary: counted to %u without a lock\n", canary_count);
}

static void canary_leak(void)
{
	char *p = kmalloc(64, GFP_KERNEL);

	OPTIMIZER_HIDE_VAR(p);	/* or the compiler leaves the call out */
	pr_info("canary: %s 64 bytes for good\n", p ? "took" : "did not get");
}

static int __init canary_init(void)
{
	if (!strcmp(bug, "kasan"))
		canary_use_after_free();
	else if (!strcmp(bug, "lockdep"))
		canary_lock_order();
	else if (!strcmp(bug, "kcsan"))
		canary_data_race();
	else if (!strcmp(bug, "leak"))
		canary_leak();
	else
		return -EINVAL;
	return 0;
}

static void __exit canary_exit(void)
{
}

module_init(canary_init);
module_exit(canary_exit);
MODULE_DESCRIPTION("Planted bugs for the test rig");
MODULE_LICENSE("Dual BSD/GPL");
