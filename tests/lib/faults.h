/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What is wrong goes to the kernel log, and counts. TEST_STATE; in one file of a module
 * defines what this declares. Before this is included, fail() may be defined by modules with
 * faults of kinds of their own, and TEST_LONG by those that take longer.
 */
#ifndef TESTS_FAULTS_H
#define TESTS_FAULTS_H

#include <linux/atomic.h>
#include <linux/printk.h>
#include <linux/wait.h>

#define TEST_FAULTS	20	/* that are described */
#ifndef TEST_LONG
#define TEST_LONG	(60 * HZ)	/* for anything that must happen */
#endif

extern atomic_t test_faults;
extern const char *test_now;		/* what is being done, for messages; or NULL */
extern wait_queue_head_t test_wait;	/* woken when something has happened */

#define TEST_STATE		\
	atomic_t test_faults;	\
	const char *test_now;	\
	DECLARE_WAIT_QUEUE_HEAD(test_wait)

#ifndef fail
__printf(1, 2) static inline int fail(const char *fmt, ...)
{
	struct va_format vaf = { .fmt = fmt };
	va_list args;

	if (atomic_inc_return(&test_faults) > TEST_FAULTS)
		return -EIO;
	va_start(args, fmt);
	vaf.va = &args;
	pr_err("FAULT: %s%s%pV\n", test_now ?: "", test_now ? ": " : "", &vaf);
	va_end(args);
	return -EIO;
}
#endif

static inline bool failed(void)
{
	return atomic_read(&test_faults);
}

/* True when it has happened. */
#define await(condition)	(wait_event_killable_timeout(test_wait, condition, TEST_LONG) > 0)

/* And nothing has gone wrong; then nobody waits for long. */
#define in_order(condition)	(await((condition) || failed()) && !failed())

#endif
