// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Registration on devices of all kinds: ports that want a GID in every path, devices that do
 * not connect a queue pair to itself; a call that binds memory while the device goes.
 */
#include <linux/delay.h>
#include <linux/kthread.h>

#include "kd_mem.h"

static int reg_qps(struct kd_env *env)
{
	struct fake_ib_live live;

	fake_ib_live(env->dev, &live);
	return live.qps;
}

/* The memory of the environment has been registered in two PZs. */
static void reg_port_test(struct kunit *test)
{
	static const struct { struct fake_ib_caps caps; int qps; } ports[] = {
		{ {}, 1 }, { { .grh = true }, 1 }, { { .no_self = true }, 2 },
		{ { .no_self = true, .grh = true }, 2 },
	};
	struct km *km;
	int i;

	for (i = 0; i < ARRAY_SIZE(ports); i++) {
		km = km_open(test, &ports[i].caps);
		KUNIT_EXPECT_EQ_MSG(test, reg_qps(&km->env), 2 * ports[i].qps, "port %d", i);
		KUNIT_EXPECT_TRUE(test, km_reads(km, KM_MEM(km)->rmr_context, KM_MEM(km)->addr));
	}
}

static DAT_RETURN reg_try(struct km *km, DAT_PZ_HANDLE pz, struct km_reg *reg)
{
	DAT_REGION_DESCRIPTION region = { .for_va = km->env.buf };

	*reg = (struct km_reg) { .pz = pz, .priv = DAT_MEM_PRIV_LOCAL_READ_FLAG };
	return km_try_reg(km, reg, DAT_MEM_TYPE_VIRTUAL, region, 64);
}

/* A device that refuses any path to its own port says so, and connections register memory. */
static void reg_no_path_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	struct kd_env *env = &km->env;
	DAT_PZ_HANDLE pz = env->pz;
	struct km_keys keys;
	struct km_reg reg;
	DAT_LMR_HANDLE lmr;
	char what[160];
	int i, logged;

	snprintf(what, sizeof(what),
		 "%s-1: cannot build a registration QP: %pe (the device cannot connect a QP to its own port: ",
		 fake_ib_name(env->dev), ERR_PTR(-EINVAL));
	KD_ASSERT_OK(test, dat_pz_create(env->ia, &env->pz));
	km_join(km, 0, NULL);
	fake_ib_refuse_paths(env->dev);
	logged = kd_logged(what);
	for (i = 1; i <= 2; i++) {
		KD_EXPECT_RET(test, reg_try(km, env->pz, &reg), DAT_INSUFFICIENT_RESOURCES,
			      DAT_RESOURCE_MEMORY_REGION);
		KUNIT_EXPECT_EQ(test, kd_logged(what) - logged, i);
	}
	lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	km_bind(km, lmr, 0, 2, KM_ALL, &keys);
	km_unbind(km, lmr);
	km_drop_lmr(km, lmr);
	KUNIT_EXPECT_EQ(test, kd_logged(what) - logged, 2);
	/* a PZ that had its queue pair before keeps it */
	KD_ASSERT_OK(test, reg_try(km, pz, &reg));
	KD_EXPECT_OK(test, dat_lmr_free(reg.lmr));
	km_ep_free(km, 0);
	KD_EXPECT_OK(test, dat_pz_free(env->pz));
	env->pz = pz;
}

/* The queue pair fails, twice: the memory is mapped for each attempt. */
static void reg_again_test(struct kunit *test)
{
	struct km *km = km_open(test, NULL);
	struct kd_env *env = &km->env;
	struct km_reg reg;
	unsigned int maps;

	KD_ASSERT_OK(test, reg_try(km, env->pz, &reg));
	KD_EXPECT_OK(test, dat_lmr_free(reg.lmr));
	maps = fake_ib_count(env->dev, FAKE_IB_MAP_MR_SG);
	fake_ib_auto_reg_status(env->dev, IB_WC_WR_FLUSH_ERR);
	KD_EXPECT_RET(test, reg_try(km, env->pz, &reg), DAT_INSUFFICIENT_RESOURCES,
		      DAT_RESOURCE_MEMORY_REGION);
	KUNIT_EXPECT_EQ(test, fake_ib_count(env->dev, FAKE_IB_MAP_MR_SG) - maps, 2);
	fake_ib_auto_reg_status(env->dev, IB_WC_SUCCESS);
	KD_ASSERT_OK(test, reg_try(km, env->pz, &reg));
	KD_EXPECT_OK(test, dat_lmr_free(reg.lmr));
	KUNIT_EXPECT_EQ_MSG(test, fake_ib_violations(env->dev), 0, "%s",
			    fake_ib_last_violation(env->dev));
}

struct reg_race {
	struct kdapl_device *dev;
	struct fake_ib *fdev;
	struct completion mapping;
	struct completion over;
	bool mapped;
	bool waited;
};

static int reg_unplug(void *arg)
{
	struct reg_race *race = arg;

	wait_for_completion(&race->mapping);
	fake_ib_unplug(race->fdev);
	complete(&race->over);
	return 0;
}

/* The first region goes: nobody may be mapping one. */
static void reg_first_gone(void *arg)
{
	struct reg_race *race = arg;

	race->waited = READ_ONCE(race->mapped);
}

static void reg_hold(void *arg)
{
	struct reg_race *race = arg;
	int i;

	complete(&race->mapping);
	for (i = 0; i < 100000000 && !READ_ONCE(race->dev->gone); i++)
		cpu_relax();
	/* removal has begun, and has nothing else to wait for */
	mdelay(2);
	WRITE_ONCE(race->mapped, true);
}

static void reg_removal_test(struct kunit *test)
{
	struct km *km = km_connected(test, NULL);
	struct reg_race race = { .dev = km->env.kep->obj.ia->dev, .fdev = km->env.dev };
	DAT_LMR_HANDLE lmr = km_lmr(km, 2, DAT_LMR_SCOPE_PZ);
	struct task_struct *task;
	struct km_keys keys;

	init_completion(&race.mapping);
	init_completion(&race.over);
	task = kthread_run(reg_unplug, &race, "kdapl-unplug");
	KUNIT_ASSERT_FALSE(test, IS_ERR(task));
	fake_ib_at(km->env.dev, FAKE_IB_MAPPING, 1, reg_hold, &race);
	fake_ib_at(km->env.dev, FAKE_IB_DESTROY_MR, 1, reg_first_gone, &race);
	KD_EXPECT_OK(test, km_try_fmr(km, lmr, 0, 2, KM_ALL, 0, 1, &keys));
	wait_for_completion(&race.over);
	KUNIT_EXPECT_TRUE(test, race.waited);
	KD_GONE(test, km_try_fmr(km, lmr, 0, 2, KM_ALL, 0, 1, &keys));
}

static struct kunit_case reg_cases[] = {
	KD_CASE(reg_port_test, "LMR-01: ports that want a GID; devices that want a pair"),
	KD_CASE(reg_no_path_test, "LMR-01: a device that connects nothing to its own port"),
	KD_CASE(reg_again_test, "LMR-01,LMR-08: the registration queue pair fails"),
	KD_CASE(reg_removal_test, "FMR-02,ASY-22: the device goes while memory is being bound"),
	{}
};

KD_SUITE("kdapl-reg", reg_cases, km_init, km_exit);
