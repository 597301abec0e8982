// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The registration queue pair: registering while the network under it changes. */
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

void reg_close(void)
{
	if (registrar)
		kthread_stop(registrar);
}
