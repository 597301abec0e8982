// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * What a device is like: a text of the form NAME=NUMBER,NAME=NUMBER,... A personality is such
 * a text with a name; what is written behind its name changes it.
 */
#include <linux/slab.h>

#include "kdhca.h"

#define SETTING(field, usual)	{ #field, offsetof(struct kdhca_set, field), usual }

/* README.md explains them in the same order. */
static const struct {
	const char *name;
	size_t at;
	u32 usual;
} settings[] = {
	SETTING(iwarp, 0),
	SETTING(driver, RDMA_DRIVER_UNKNOWN),
	SETTING(dma, 1),
	SETTING(shift, 0),
	SETTING(mask, 64),
	SETTING(max_qp_wr, 16384),
	SETTING(max_cqe, 65536),
	SETTING(max_send_sge, 16),
	SETTING(max_recv_sge, 16),
	SETTING(max_sge_rd, 16),
	SETTING(max_inline, 128),
	SETTING(sq_units, 0),
	SETTING(round, 0),
	SETTING(max_pages, 512),
	SETTING(max_block, 31),
	SETTING(dma_lkey, 1),
	SETTING(max_srq_wr, 16384),
	SETTING(max_srq_sge, 16),
	SETTING(rd_in, 128),
	SETTING(rd_out, 128),
	SETTING(negotiate, 1),
	SETTING(req_depths, 0),
	SETTING(rep_depths, 0),
	SETTING(fence, 31),
	SETTING(reads_late, 1),
	SETTING(pair, 0),
	SETTING(access_late, 1),
	SETTING(self, 1),
	SETTING(loop, 1),
	SETTING(grh, 1),
	SETTING(comm_est, 1),
	SETTING(cq_ctx, KDHCA_SOFTIRQ),
	SETTING(event_ctx, KDHCA_THREAD),
	SETTING(missed, 1),
	SETTING(purge, 1),
	SETTING(modify_ms, 0),
	SETTING(create_ms, 0),
	SETTING(destroy_ms, 0),
	SETTING(dereg_ms, 0),
	SETTING(flush_ms, 0),
	SETTING(modify_fail, 0),
	SETTING(create_fail, 0),
	SETTING(dereg_fail, 0),
	SETTING(alloc_fail, 0),
	SETTING(mad_loss, 0),
	SETTING(complain, U32_MAX),
	SETTING(noio, 0),
};

/*
 * Those with a driver's name stand for what that driver of 7.2 says of its devices and does in
 * software, as read in its source; what firmware does beyond that is not known here.
 */
static const struct {
	const char *name;
	enum rdma_driver_id driver;	/* for whom the consumer is to take it */
	const char *text;
} profiles[] = {
	{ "plain", RDMA_DRIVER_UNKNOWN, "" },
	{ "plain-iw", RDMA_DRIVER_UNKNOWN, "iwarp=1,rd_in=32,rd_out=32" },
	/* a handler in hard interrupts; the size of a queue is that of its segments */
	{ "mlx5", RDMA_DRIVER_MLX5,
	  "shift=1024,cq_ctx=2,missed=0,round=1,max_send_sge=30,max_recv_sge=32,max_sge_rd=30;"
	  "max_qp_wr=32768,sq_units=32768,max_cqe=1048576,max_pages=65536,rd_in=16,rd_out=16;"
	  "max_inline=512,fence=15" },
	/* the two depths of Reads differ, long page lists */
	{ "irdma", RDMA_DRIVER_IRDMA,
	  "shift=1024,cq_ctx=1,max_send_sge=13,max_recv_sge=13,max_sge_rd=13,max_qp_wr=4064;"
	  "sq_units=8192,max_cqe=262144,max_pages=65536,max_block=30,rd_in=127,rd_out=255;"
	  "max_inline=101" },
	/* the same adapter on iWARP: who is asked is not told how many Reads the peer begins */
	{ "irdma-iw", RDMA_DRIVER_IRDMA,
	  "iwarp=1,shift=1024,cq_ctx=1,max_send_sge=13,max_recv_sge=13,max_sge_rd=1;"
	  "max_qp_wr=4064,sq_units=8192,max_cqe=262144,max_pages=65536,max_block=30,rd_in=127;"
	  "rd_out=255,max_inline=101,req_depths=2,rep_depths=1,fence=27" },
	/* not a size of anything is a power of two */
	{ "bnxt", RDMA_DRIVER_BNXT_RE,
	  "shift=1024,cq_ctx=1,max_send_sge=6,max_recv_sge=6,max_sge_rd=6,max_qp_wr=8191;"
	  "max_cqe=65535,max_pages=512,max_block=21,rd_in=126,rd_out=126,max_inline=96;"
	  "event_ctx=1,fence=7" },
	/*
	 * iWARP; fences for Sends and invalidations only, short page lists. It looks at the lists
	 * of a Write and a Send that are posted together.
	 */
	{ "cxgb4", RDMA_DRIVER_CXGB4,
	  "iwarp=1,shift=1024,cq_ctx=1,fence=9,max_send_sge=4,max_recv_sge=4,max_sge_rd=1;"
	  "max_qp_wr=1024,max_cqe=16384,max_pages=128,max_block=27,rd_in=32,rd_out=32;"
	  "max_inline=64,event_ctx=1,pair=1,access_late=0" },
	/* iWARP; one segment to receive into; nobody is told the peer's depths of Reads */
	{ "erdma", RDMA_DRIVER_ERDMA,
	  "iwarp=1,shift=1024,cq_ctx=1,round=1,max_send_sge=6,max_recv_sge=1,max_sge_rd=1;"
	  "max_qp_wr=8192,max_cqe=65536,max_pages=512,max_block=31,rd_in=128,rd_out=128;"
	  "max_inline=96,max_srq_sge=1,req_depths=1,rep_depths=2,fence=27" },
	/* nobody's: everything small, everything refused, everything from hard interrupts */
	{ "strict", RDMA_DRIVER_UNKNOWN,
	  "shift=1024,cq_ctx=2,event_ctx=2,missed=0,max_send_sge=7,max_recv_sge=5;"
	  "max_sge_rd=1,max_qp_wr=512,sq_units=1024,max_cqe=1023,max_pages=64,max_block=23;"
	  "rd_in=8,rd_out=16,max_inline=0,dma_lkey=0,max_srq_wr=511,max_srq_sge=5" },
	/* nobody's: its firmware takes its time */
	{ "slow", RDMA_DRIVER_UNKNOWN,
	  "shift=1024,cq_ctx=0,create_ms=2,modify_ms=5,destroy_ms=5,dereg_ms=2,mad_loss=10" },
};

static u32 *setting_at(struct kdhca_set *set, int i)
{
	return (void *)set + settings[i].at;
}

static int setting_find(const char *name)
{
	int i;

	for (i = 0; i < ARRAY_SIZE(settings); i++) {
		if (!strcmp(settings[i].name, name))
			return i;
	}
	return -EINVAL;
}

static int settings_check(const struct kdhca_set *set)
{
	if (max(max(set->max_send_sge, set->max_recv_sge),
		max(set->max_sge_rd, set->max_srq_sge)) <= KDHCA_SEGS)
		return 0;
	pr_err("no device has more than %d segments\n", KDHCA_SEGS);
	return -EINVAL;
}

/* Change settings: NAME=NUMBER, separated by commas, semicolons, blanks or newlines. */
int kdhca_settings_parse(struct kdhca_set *set, const char *text)
{
	char *copy = kstrdup(text, GFP_KERNEL), *rest = copy, *word, *value;
	int i, ret = copy ? 0 : -ENOMEM;
	struct kdhca_set new = *set;

	while (!ret && (word = strsep(&rest, ",;\n "))) {
		if (!*word)
			continue;
		value = strchr(word, '=');
		if (value)
			*value++ = 0;
		i = setting_find(word);
		ret = i < 0 || !value ? -EINVAL : kstrtou32(value, 0, setting_at(&new, i));
		if (ret)
			pr_err("no setting or no number: %s\n", word);
	}
	kfree(copy);
	if (!ret)
		ret = settings_check(&new);
	if (!ret)
		*set = new;
	return ret;
}

/* The settings of a personality, whose name +NAME=NUMBER... may follow. */
int kdhca_settings_profile(struct kdhca_set *set, const char *name)
{
	const char *more = strchrnul(name, '+');
	int i, ret;

	for (i = 0; i < ARRAY_SIZE(settings); i++)
		*setting_at(set, i) = settings[i].usual;
	for (i = 0; i < ARRAY_SIZE(profiles); i++) {
		if (strlen(profiles[i].name) != more - name ||
		    strncmp(profiles[i].name, name, more - name))
			continue;
		set->driver = profiles[i].driver;
		ret = kdhca_settings_parse(set, profiles[i].text);
		return ret || !*more ? ret : kdhca_settings_parse(set, more + 1);
	}
	pr_err("no personality %s\n", name);
	return -EINVAL;
}

/* Say what a device is like. Returns the length of the text. */
int kdhca_settings_name(char *buf, size_t size, const struct kdhca_set *set)
{
	int i, n = 0;

	for (i = 0; i < ARRAY_SIZE(settings); i++)
		n += scnprintf(buf + n, size - n, "%s=%u\n", settings[i].name,
			       *setting_at((struct kdhca_set *)set, i));
	return n;
}
