// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * The registration queue pair: registering while the network under it changes, and while the
 * device goes away with everything bound.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/kthread.h>

#include "kdhammer.h"

/* A registration of the owner and its end. In a PZ of its own if there is none. */
static DAT_RETURN register_once(DAT_PZ_HANDLE pz, struct area *area)
{
	DAT_REGION_DESCRIPTION region = {};
	DAT_PZ_HANDLE own = NULL;
	DAT_LMR_HANDLE lmr;
	DAT_RETURN ret = DAT_SUCCESS;

	if (!pz)
		ret = dat_pz_create(ham_owner.h, &own);
	if (ret != DAT_SUCCESS)
		return ret;
	region.for_va = area->p + area->at;
	ret = dat_lmr_kcreate(ham_owner.h, DAT_MEM_TYPE_VIRTUAL, region, area->length, pz ?: own,
			      DAT_MEM_PRIV_ALL_FLAG, DAT_VA_TYPE_VA, 0, &lmr, NULL, NULL, NULL,
			      NULL);
	if (ret == DAT_SUCCESS && dat_lmr_free(lmr) != DAT_SUCCESS)
		fail("an LMR cannot be freed");
	if (own && dat_pz_free(own) != DAT_SUCCESS)
		fail("a PZ cannot be freed");
	return ret;
}

/* register N [new]: N times; each succeeds. new: in PZs of their own */
int do_register(char *arg)
{
	bool own = strstr(arg, "new");
	struct area area;
	u32 n, i;
	int err = area_open(&area, 3 * PAGE_SIZE);

	if (err)
		return err;
	n = number(strsep(&arg, " "));
	for (i = 0; i < n && !err; i++)
		err = check("register", register_once(own ? NULL : ham_owner.pz, &area));
	area_close(&area);
	return err;
}

/* ---- in the background ---- */

static struct task_struct *registrar;
static bool strict;
static u64 registered, refused;

static int registrar_main(void *arg)
{
	struct area area;
	DAT_RETURN ret;
	u32 i;

	if (area_open(&area, 3 * PAGE_SIZE))
		return -ENOMEM;
	for (i = 0; !kthread_should_stop(); i++) {
		/* every other one on a queue pair that has to be built */
		ret = register_once(i & 1 ? NULL : ham_owner.pz, &area);
		if (ret == DAT_SUCCESS)
			WRITE_ONCE(registered, registered + 1);
		else if (!strict && DAT_GET_TYPE(ret) == DAT_INSUFFICIENT_RESOURCES)
			refused++;
		else
			fail("registering: %s %s", major_name(ret), minor_name(ret));
		wake_up_all(&test_wait);
		schedule();
	}
	area_close(&area);
	return 0;
}

/* registering [strict]: until further notice; strict: each succeeds */
int do_registering(char *arg)
{
	strict = *arg;
	registered = 0;
	refused = 0;
	registrar = kthread_run(registrar_main, NULL, "kdhammer");
	if (IS_ERR(registrar)) {
		registrar = NULL;
		return -ENOMEM;
	}
	return 0;
}

/* registered [N]: N more while it goes on; or the end of it */
int do_registered(char *arg)
{
	u64 from = READ_ONCE(registered);
	u32 n;

	if (!registrar)
		return -EINVAL;
	if (*arg) {
		n = number(arg);
		if (!await(READ_ONCE(registered) - from >= n))
			return fail("no registration succeeds");
		return 0;
	}
	kthread_stop(registrar);
	registrar = NULL;
	pr_info("registered %llu, refused %llu\n", registered, refused);
	return failed() || !registered ? -EIO : 0;
}

/* ---- everything is bound when the device goes ---- */

#define CROWD	8

static struct area crowd_area[2 * CROWD + 1];
static DAT_LMR_HANDLE crowd_lmr[2 * CROWD];
static DAT_RMR_HANDLE crowd_rmr[CROWD];
static struct test_op crowd_op[2];
static struct task_struct *crowd_task;
static DAT_LMR_HANDLE crowd_busy;

/* fmr and invalidate as fast as they can be posted, until the device has gone. */
static int crowd_main(void *arg)
{
	struct area *area = arg;
	struct kdat_sg sg = { .sgl = area->sg, .nents = area->nents, .length = area->length };
	DAT_EP_HANDLE ep = ham_other.owner.conn.ep;
	bool gone = false;
	DAT_RETURN ret;
	u32 i;

	for (i = 0; !kthread_should_stop() && !gone; i++) {
		if (i & 1)
			ret = dat_lmr_invalidate(crowd_busy, ep, test_cookie(&crowd_op[0]), 0);
		else
			ret = kdat_lmr_fmr_sg(crowd_busy, &sg, DAT_MEM_PRIV_ALL_FLAG,
					      DAT_VA_TYPE_VA, ep, test_cookie(&crowd_op[1]), 0,
					      NULL, NULL, NULL);
		switch (DAT_GET_TYPE(ret)) {
		case DAT_SUCCESS:
		case DAT_INVALID_STATE:
		case DAT_INVALID_HANDLE:
		case DAT_INSUFFICIENT_RESOURCES:
			break;
		case DAT_INTERNAL_ERROR:
			gone = true;
			break;
		default:
			fail("fmr or invalidate: %s %s", major_name(ret), minor_name(ret));
		}
		if (ret != DAT_SUCCESS)
			register_once(ham_owner.pz, area);
		schedule();
	}
	wait_event_idle(test_wait, kthread_should_stop());
	return 0;
}

static int crowd_bind(int i)
{
	struct area *area = &crowd_area[i];
	DAT_RMR_CONTEXT key;

	return TRY(dat_rmr_create, ham_owner.pz, &crowd_rmr[i]) ?:
	       rmr_bound(crowd_rmr[i], crowd_lmr[i], (uintptr_t)area->p + 1, area->size - 1,
			 REMOTE_RIGHTS, &key);
}

/* crowd: LMRs of both kinds, RMRs, all bound; the hammer at work; fmr under way */
int do_crowd(char *arg)
{
	DAT_LMR_CONTEXT lkey;
	DAT_RMR_CONTEXT rkey = 0;
	struct area *area;
	u64 addr = 0;
	int i, err = 0;

	for (i = 0; i < ARRAY_SIZE(crowd_op); i++)
		test_op_init(&crowd_op[i], NULL, NULL);
	for (i = 0; i < CROWD && !err; i++) {
		area = &crowd_area[i];
		err = area_open(area, 3 * PAGE_SIZE) ?:
		      lmr_over(area, true, DAT_MEM_PRIV_ALL_FLAG, &crowd_lmr[i], &lkey,
			       &rkey);
	}
	for (i = CROWD; i < 2 * CROWD && !err; i++) {
		area = &crowd_area[i];
		err = area_open(area, 3 * PAGE_SIZE) ?:
		      fmr_new(&crowd_lmr[i]) ?:
		      fmr_over(&ham_link, crowd_lmr[i], area, &lkey, &rkey, &addr);
	}
	for (i = 0; i < CROWD && !err; i++)
		err = crowd_bind(i);
	area = &crowd_area[2 * CROWD];
	err = err ?: area_open(area, 2 * PAGE_SIZE) ?: area_sg(area) ?:
	      fmr_new(&crowd_busy) ?:
	      hammer_start(&ham_link, rkey, addr, 3 * PAGE_SIZE) ?: hammer_wait(&ham_link, 100);
	if (err)
		return err;
	crowd_task = kthread_run(crowd_main, area, "kdhammer");
	if (IS_ERR(crowd_task)) {
		crowd_task = NULL;
		return -ENOMEM;
	}
	return hammer_wait(&ham_link, 100);
}

/*
 * crowded: after the owner's device has gone: the connections have ended, once at
 * each end, and what is left can be freed, in an order of its own
 */
int do_crowded(char *arg)
{
	int i, err = link_over(&ham_link) ?: link_over(&ham_other);

	if (crowd_task)
		kthread_stop(crowd_task);
	crowd_task = NULL;
	for (i = 0; i < CROWD && !err; i++)
		err = TRY(dat_rmr_free, crowd_rmr[i]);
	for (i = 2 * CROWD - 1; i >= 0 && !err; i -= 2)
		err = TRY(dat_lmr_free, crowd_lmr[i]);
	return err ?: failed() ? -EIO : 0;
}

void reg_close(void)
{
	if (registrar)
		kthread_stop(registrar);
	if (crowd_task)
		kthread_stop(crowd_task);
}

/* When all handles are dead. */
void reg_free(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(crowd_area); i++)
		area_close(&crowd_area[i]);
}
