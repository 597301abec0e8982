// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdtest: scenarios of the kDAPL API against real providers.
 *
 * The suites need the module's parameters and run before the load returns. So
 * they are handed to KUnit from the init function: on some kernels KUnit starts
 * a module's own list of suites before its parameters are known.
 */
#include <linux/module.h>
#include <linux/slab.h>
#include <linux/string.h>

#include "kdtest.h"

char *kdt_ia_a, *kdt_ia_b, *kdt_traits;
unsigned int kdt_rounds = KD_SLOW ? 30 : 200;
static char *mode = "run", *suite = "", *tests = "";
static unsigned int part = 1, parts = 1;

module_param_named(ia_a, kdt_ia_a, charp, 0444);
MODULE_PARM_DESC(ia_a, "interface adapter of the active side, e.g. rxe0-1 (required)");
module_param_named(ia_b, kdt_ia_b, charp, 0444);
MODULE_PARM_DESC(ia_b, "interface adapter of the passive side (default: the same)");
module_param_named(traits, kdt_traits, charp, 0444);
MODULE_PARM_DESC(traits, "of the provider: none or some of tcp,grants,lax,unsolicited,srq-pd; "
		 "default: those of soft-RoCE or soft-iWARP");
module_param(mode, charp, 0444);
MODULE_PARM_DESC(mode, "run: the suites; hold: connections with traffic until rmmod; "
		 "states: endpoints in every state until rmmod");
module_param(suite, charp, 0444);
MODULE_PARM_DESC(suite, "run only suites with this in their name");
module_param_named(case, tests, charp, 0444);
MODULE_PARM_DESC(case, "run only cases with this in their name");
module_param(part, uint, 0444);
module_param(parts, uint, 0444);
MODULE_PARM_DESC(part, "which share of the suites to run, 1 to parts (1)");
MODULE_PARM_DESC(parts, "how many guests share the suites (1)");
module_param_named(rounds, kdt_rounds, uint, 0444);
MODULE_PARM_DESC(rounds, "how often one endpoint is connected again (200, 30 on slow kernels)");

static struct kunit_suite *kdt_suites[] = {
	&kdt_open_suite,
	&kdt_mem_suite,
	&kdt_fmr_suite,
	&kdt_sinv_suite,
	&kdt_immed_suite,
	&kdt_list_suite,
	&kdt_evd_suite,
	&kdt_conn_suite,
	&kdt_csp_suite,
	&kdt_rsp_suite,
	&kdt_cr_suite,
	&kdt_pdata_suite,
	&kdt_outcome_suite,
	&kdt_state_suite,
	&kdt_attr_suite,
	&kdt_data_suite,
	&kdt_xfer_suite,
	&kdt_error_suite,
	&kdt_srq_suite,
	&kdt_close_suite,
};

static struct kunit_suite *kdt_chosen[ARRAY_SIZE(kdt_suites)];
static int kdt_num_chosen;

/* Drops the cases that are not wanted; the arrays are ours. */
static bool kdt_choose_cases(struct kunit_suite *s)
{
	struct kunit_case *from, *to = s->test_cases;

	for (from = s->test_cases; from->run_case; from++) {
		if (strstr(from->name, tests))
			*to++ = *from;
	}
	to->run_case = NULL;
	return to != s->test_cases;
}

static int kdt_run(void)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(kdt_suites); i++) {
		if (i % parts == part - 1 && strstr(kdt_suites[i]->name, suite) &&
		    kdt_choose_cases(kdt_suites[i]))
			kdt_chosen[kdt_num_chosen++] = kdt_suites[i];
	}
	if (!kdt_num_chosen) {
		pr_err("kdtest: no case matches suite=%s case=%s\n", suite, tests);
		return -EINVAL;
	}
	/* KUnit prints this for the suites it finds by itself. */
	pr_info("kdtest: ia_a=%s ia_b=%s\n", kdt_ia_a, kdt_ia_b);
	pr_info("KTAP version 1\n");
	pr_info("1..%d\n", kdt_num_chosen);
#ifdef KDTEST_HAVE_RUN_TESTS
	return __kunit_test_suites_init(kdt_chosen, kdt_num_chosen, true);
#else
	return __kunit_test_suites_init(kdt_chosen, kdt_num_chosen);
#endif
}

static int __init kdt_module_init(void)
{
	int err;

	if (!kdt_ia_a) {
		pr_err("kdtest: ia_a= is required\n");
		return -EINVAL;
	}
	if (!parts || !part || part > parts) {
		pr_err("kdtest: part is 1 to parts\n");
		return -EINVAL;
	}
	if (!kdt_ia_b)
		kdt_ia_b = kdt_ia_a;
	if (!strcmp(mode, "run"))
		err = kdt_run();
	else if (!strcmp(mode, "hold"))
		err = kdt_hold_start();
	else if (!strcmp(mode, "states"))
		err = kdt_states_start();
	else
		err = -EINVAL;
	if (err == -EINVAL)
		pr_err("kdtest: see the parameters\n");
	return err;
}

static void __exit kdt_module_exit(void)
{
	if (!strcmp(mode, "hold"))
		kdt_hold_stop();
	else if (!strcmp(mode, "states"))
		kdt_states_stop();
	else
		__kunit_test_suites_exit(kdt_chosen, kdt_num_chosen);
}

module_init(kdt_module_init);
module_exit(kdt_module_exit);
MODULE_DESCRIPTION("kDAPL scenarios against real providers");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
