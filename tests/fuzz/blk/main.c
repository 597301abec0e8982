// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * kdblkfuzz - hostile peers of kdblk. Orders, one line each, go to kdblkfuzz/do in debugfs;
 * a write returns when the order has been carried out, and fails, with the reason in the
 * kernel log, when what the other side did cannot be.
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <linux/prandom.h>
#include <linux/random.h>
#include <linux/seq_file.h>
#include <linux/slab.h>
#include <linux/spinlock.h>

#include "kdblkfuzz.h"
#include "../../lib/orders.h"

static char *ia, *address;
static ulong seed;
char *fz_disk = "d";
ushort fz_port = KDBLK_PORT, fz_own_port = 4800;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter, e.g. rxe0-1 (required)");
module_param(address, charp, 0444);
MODULE_PARM_DESC(address, "of kdblk_target, IPv4 or IPv6");
module_param_named(port, fz_port, ushort, 0444);
MODULE_PARM_DESC(port, "of kdblk_target (default 14420)");
module_param_named(own_port, fz_own_port, ushort, 0444);
MODULE_PARM_DESC(own_port, "where listen listens (default 4800)");
module_param_named(disk, fz_disk, charp, 0644);
MODULE_PARM_DESC(disk, "of kdblk_target (default d)");
module_param(seed, ulong, 0444);
MODULE_PARM_DESC(seed, "of what is done at random (default: a new one, see the log)");

struct sockaddr_storage fz_to;
struct peer_ia fz_ia;
DAT_COUNT fz_reads;
atomic_t fz_faults;

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

int fz_find(const struct fz_table *table, const char *name)
{
	int i;

	for (i = 0; i < table->size / table->stride; i++) {
		if (!strcmp(*(const char **)((void *)table->name + i * table->stride), name))
			return i;
	}
	return -EINVAL;
}

void fz_patch(void *msg, const struct fz_patch *patch)
{
	u8 *to = msg + patch->at;
	int i;

	for (i = 0; i < patch->size; i++)
		to[i] = patch->size > 8 ? patch->value : patch->value >> 8 * i;
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
	{ "identity", fz_identity },
	{ "queues", fz_queues },
	{ "read-only", fz_read_only },
	{ "prove", fz_prove },
	{ "silent", fz_silent },
	{ "keepalive", fz_keepalive },
	{ "inflight", fz_inflight },
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
	const struct fz_table *table = m->private;
	int i;

	for (i = 0; i < table->size / table->stride; i++)
		seq_printf(m, "%s\n", *(const char **)((void *)table->name + i * table->stride));
	return 0;
}
DEFINE_SHOW_ATTRIBUTE(names);

static int __init fz_init(void)
{
	if (!ia || (address && peer_address(&init_net, address, fz_port, &fz_to)))
		return -EINVAL;
	if (!seed)
		seed = get_random_u32();
	prandom_seed_state(&rnd_state, seed);
	if (TRY(peer_ia_open, &fz_ia, ia)) {
		peer_ia_close(&fz_ia);
		return -ENODEV;
	}
	fz_reads = min(4, min(fz_ia.reads_in, fz_ia.reads_out));
	dir = orders_open(KBUILD_MODNAME, orders);
	debugfs_create_file("bad", 0400, dir, (void *)&fz_bads, &names_fops);
	debugfs_create_file("hello", 0400, dir, (void *)&fz_hellos, &names_fops);
	debugfs_create_file("login", 0400, dir, (void *)&fz_logins, &names_fops);
	debugfs_create_file("serve", 0400, dir, (void *)&fz_acts, &names_fops);
	pr_info("on %s, seed=%lu\n", ia, seed);
	return 0;
}

static void __exit fz_exit(void)
{
	debugfs_remove(dir);
	fz_listen_stop();
	peer_ia_close(&fz_ia);
}

module_init(fz_init);
module_exit(fz_exit);
MODULE_DESCRIPTION("kdblk test: hostile initiator and target");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
