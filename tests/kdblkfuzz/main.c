// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdblkfuzz - hostile peers of kdblk. Orders, one line each, go to kdblkfuzz/do in debugfs;
 * a write returns when the order has been carried out, and fails, with the reason in the
 * kernel log, when what the other side did cannot be.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/inet.h>
#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>
#include <net/net_namespace.h>

#include "kdblkfuzz.h"
#include "../orders.h"

static char *ia, *address;
static ulong seed;
char *fz_disk = "d";
ushort fz_port = KDBLK_PORT, fz_own_port = 4800;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, e.g. rxe0-1 (required)");
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "of kdblk_target, IPv4 or IPv6");
module_param_named(port, fz_port, ushort, 0444);
MODULE_PARM_DESC(port, "of kdblk_target (default 4420)");
module_param_named(own_port, fz_own_port, ushort, 0444);
MODULE_PARM_DESC(own_port, "where listen listens (default 4800)");
module_param_named(disk, fz_disk, charp, 0644);
MODULE_PARM_DESC(disk, "of kdblk_target (default d)");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");

struct sockaddr_storage fz_to;
DAT_IA_HANDLE fz_ia;
DAT_PZ_HANDLE fz_pz;
bool fz_iwarp;
DAT_COUNT fz_reads;
atomic_t fz_faults;

static DAT_EVD_HANDLE async_evd;
static DEFINE_SPINLOCK(rnd_lock);	/* rnd_state */
static struct rnd_state rnd_state;
static struct dentry *dir;

/* 0 if it is none */
u32 fz_number(const char *word)
{
	u32 n;

	return kstrtou32(word, 10, &n) ? 0 : n;
}

u32 fz_rnd(u32 below)
{
	u32 n;

	spin_lock(&rnd_lock);
	n = prandom_u32_state(&rnd_state);
	spin_unlock(&rnd_lock);
	return below ? n % below : 0;
}

void fz_rnd_bytes(void *to, u32 size)
{
	spin_lock(&rnd_lock);
	prandom_bytes_state(&rnd_state, to, size);
	spin_unlock(&rnd_lock);
}

/* seed N: the same again */
static int reseed(char *arg)
{
	spin_lock(&rnd_lock);
	prandom_seed_state(&rnd_state, fz_number(arg));
	spin_unlock(&rnd_lock);
	return 0;
}

/* clean: nothing went wrong since the last time */
static int clean(char *arg)
{
	return atomic_xchg(&fz_faults, 0) ? -EIO : 0;
}

static const struct order orders[] = {
	{ "seed", reseed },
	{ "clean", clean },
	{ "good", fz_good },
	{ "bad", fz_bad },
	{ "hello", fz_hello },
	{ "login", fz_login },
	{ "queues", fz_queues },
	{ "guess", fz_guess },
	{ "connects", fz_connects },
	{ "silent", fz_silent },
	{ "keepalive", fz_keepalive },
	{ "inflight", fz_inflight },
	{ "burst", fz_burst },
	{ "deaf", fz_deaf },
	{ "attack", fz_attack },
	{ "random", fz_random },
	{ "random-connect", fz_random_connect },
	{ "listen", fz_listen },
	{ "serve", fz_serve },
	{ "served", fz_served },
	{ }
};

/* The names there are, so that a script need not know them. */
static int names_show(struct seq_file *m, void *unused)
{
	static const char * const stages[] = {
		"accept-", "reject-", "login-", "geo-", "odd-", "answer-", "alive-",
	};
	const char *of = m->private;
	char *page = (char *)get_zeroed_page(GFP_KERNEL), *line, *rest;
	int i, n = 0;

	if (!page)
		return -ENOMEM;
	if (!strcmp(of, "bad"))
		n = fz_bad_names(page, PAGE_SIZE);
	else if (!strcmp(of, "hello"))
		n = fz_hello_names(page, PAGE_SIZE);
	else if (!strcmp(of, "login"))
		n = fz_login_names(page, PAGE_SIZE);
	else
		for (i = 0; i < ARRAY_SIZE(stages); i++)
			n += fz_serve_names(page + n, PAGE_SIZE - n, stages[i]);
	rest = page;
	while ((line = strsep(&rest, "\n")) && *line)
		seq_printf(m, "%s\n", line);
	free_page((unsigned long)page);
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(names);

static int __init fz_init(void)
{
	DAT_PROVIDER_ATTR *provider;
	char port_string[8];
	DAT_IA_ATTR attr;
	DAT_RETURN ret;

	snprintf(port_string, sizeof(port_string), "%u", fz_port);
	if (!ia || (address && inet_pton_with_scope(&init_net, AF_UNSPEC, address, port_string,
						    &fz_to)))
		return -EINVAL;
	if (!seed)
		seed = get_random_u32();
	prandom_seed_state(&rnd_state, seed);
	provider = kzalloc(sizeof(*provider), GFP_KERNEL);
	if (!provider)
		return -ENOMEM;
	ret = dat_ia_open(ia, 8, &async_evd, &fz_ia);
	if (ret == DAT_SUCCESS) {
		ret = dat_ia_query(fz_ia, NULL, DAT_IA_FIELD_ALL, &attr, DAT_PROVIDER_FIELD_ALL,
				   provider);
		fz_iwarp = provider->rdma_write_for_rdma_read_req;
		fz_reads = min(4, min(attr.max_rdma_read_per_ep_in, attr.max_rdma_read_per_ep_out));
		if (ret == DAT_SUCCESS)
			ret = dat_pz_create(fz_ia, &fz_pz);
		if (ret != DAT_SUCCESS)
			dat_ia_close(fz_ia, DAT_CLOSE_ABRUPT_FLAG);
	}
	kfree(provider);
	if (ret != DAT_SUCCESS) {
		pr_err("%s cannot be opened (0x%08x)\n", ia, ret);
		return -ENODEV;
	}
	dir = orders_open(KBUILD_MODNAME, orders);
	debugfs_create_file("bad", 0400, dir, "bad", &names_fops);
	debugfs_create_file("hello", 0400, dir, "hello", &names_fops);
	debugfs_create_file("login", 0400, dir, "login", &names_fops);
	debugfs_create_file("serve", 0400, dir, "serve", &names_fops);
	pr_info("on %s, seed=%lu\n", ia, seed);
	return 0;
}

static void __exit fz_exit(void)
{
	debugfs_remove(dir);
	fz_listen_stop();
	dat_pz_free(fz_pz);
	/* Graceful refuses while anything is left, so a leak shows itself here. */
	if (dat_ia_close(fz_ia, DAT_CLOSE_GRACEFUL_FLAG) != DAT_SUCCESS) {
		pr_err("FAIL something is left\n");
		dat_ia_close(fz_ia, DAT_CLOSE_ABRUPT_FLAG);
	}
}

module_init(fz_init);
module_exit(fz_exit);
MODULE_DESCRIPTION("kdblk test: hostile initiator and target");
MODULE_AUTHOR("The kdapl authors");
MODULE_LICENSE("Dual BSD/GPL");
