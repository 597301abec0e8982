/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdblk_target: what its files share.
 *
 *	disk	  what is exported; configfs makes it
 *	portal	  where is listened: an IA, a port, memory for large transfers
 *	session	  one disk in use by one initiator: up to 256 queues
 *	queue	  one connection: an EP, an EVD, Receives, contexts of commands
 *	rx	  a Receive: 64 bytes of command, and room for data behind it
 *	cmd	  a command, from its arrival until the device is done with its answer
 *
 * A rx goes back to the device as soon as its contents were used, which is before the
 * command is answered. So each tag the initiator may use meets a Receive, always.
 *
 * A session ends once, by kdt_session_end() from anywhere: it is marked dead, and a work
 * item frees its EPs, waits until the disk below has given back every command, and only
 * then frees what these commands point to.
 *
 * Locks, outer ones first: portal->lock, disk->lock; session->lock; kdt_lock; queue->lock;
 * pool->lock.
 */
#ifndef _KDBLK_TARGET_H_
#define _KDBLK_TARGET_H_

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/configfs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#include "../common.h"
#include "../proto.h"

#define KDT_MAX_INLINE		65536
#define KDT_MAX_RANGE		(64u << 20)	/* of one DISCARD or WRITE_ZEROES */
#define KDT_MAX_HALF_OPEN	16		/* connections without a login, per portal */
#define KDT_LOGIN_MS		5000		/* so long they may last */

struct kdt_cmd;
struct kdt_queue;
struct kdt_session;

/*
 * Memory
 */

struct kdt_chunk {		/* a registered range */
	void *va;
	size_t size;
	bool scattered;		/* physically: vmalloc */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
};

/* Where the data of one command may be: whole pages inside a chunk. */
struct kdt_buf {
	struct list_head node;	/* pool->free */
	void *va;
	DAT_LMR_CONTEXT key;
	bool scattered;
	struct bio_vec *bvec;	/* as many as @va may need: one, unless it is scattered */
	struct bio_vec one;
};

/* Buffers of max_io bytes, for what is larger than a queue's own. */
struct kdt_pool {
	spinlock_t lock;	/* free, waiting */
	struct list_head free;
	struct list_head waiting;	/* cmd->node, the longest waiting one first */
	u32 nbufs;
	struct kdt_buf *bufs;
	struct kdt_chunk *chunks;	/* one for each */
};

int kdt_chunk_alloc(struct kdt_chunk *chunk, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, size_t size,
		    int rights);
void kdt_chunk_free(struct kdt_chunk *chunk);
int kdt_buf_init(struct kdt_buf *buf, const struct kdt_chunk *chunk, size_t offset, u32 size);
void kdt_buf_exit(struct kdt_buf *buf);
unsigned short kdt_buf_fill(struct kdt_buf *buf, u32 length);
int kdt_pool_alloc(struct kdt_pool *pool, DAT_IA_HANDLE ia, DAT_PZ_HANDLE pz, u32 nbufs, u32 size,
		   int rights);
void kdt_pool_free(struct kdt_pool *pool);
bool kdt_pool_get(struct kdt_pool *pool, struct kdt_cmd *cmd);
void kdt_pool_put(struct kdt_pool *pool, struct kdt_buf *buf);
void kdt_pool_cancel(struct kdt_pool *pool, struct kdt_session *s);

/*
 * Disks
 */

struct kdt_disk {
	struct config_group group;
	struct config_group allowed;
	struct mutex lock;	/* the members down to allow_any, and switching */
	char *path;
	char serial[KDBLK_SERIAL_LEN];
	bool read_only;
	bool allow_any;
	bool enabled;		/* written under lock and kdt_lock */
	struct list_head node;	/* kdt_disks */
	struct list_head names;	/* struct kdt_name, under kdt_lock */

	/* while enabled */
	struct file *file;
	struct block_device *bdev;	/* NULL: a file */
	u64 capacity;
	u32 block_size;
	u32 physical_block_size;
	u32 discard_granularity;
	u16 flags;		/* enum kdblk_disk_flags */
};

struct kdt_name {		/* an initiator that may use a disk */
	struct config_item item;
	struct list_head node;
};

int kdt_disk_open(struct kdt_disk *disk);
void kdt_disk_close(struct kdt_disk *disk);
void kdt_execute(struct kdt_cmd *cmd);
void kdt_execute_slow(struct kdt_cmd *cmd);

/*
 * Portals
 */

enum kdt_portal_state {
	KDT_PORTAL_DISABLED,
	KDT_PORTAL_LISTENING,
	KDT_PORTAL_WAITING,	/* for its IA */
};

struct kdt_portal {
	struct config_group group;
	struct mutex lock;	/* the parameters, state, opening and closing */
	char ia_name[DAT_NAME_MAX_LENGTH];
	/* the numbers of configfs */
	u32 cfg_port;
	u32 cfg_depth;
	u32 cfg_queues;
	u32 cfg_max_io;
	u32 cfg_buffers;
	u32 cfg_inline_size;
	enum kdt_portal_state state;
	int last_err;		/* of the last look for the IA, to log it once */
	struct delayed_work look;
	struct work_struct gone;	/* the IA */

	/* while listening */
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd;
	DAT_EVD_HANDLE cr_evd;
	DAT_PSP_HANDLE psp;
	DAT_PZ_HANDLE pz;
	struct kdt_pool pool;
	bool iwarp;		/* the sink of an RDMA Read is open to the peer */
	DAT_COUNT max_dtos;
	DAT_COUNT max_reads;
	bool closing;		/* under kdt_lock: no new session */
	u32 half_open;		/* under kdt_lock */
	u32 requests;		/* under kdt_lock: connection requests in work items */
	wait_queue_head_t no_requests;
	bool ia_gone;
};

void kdt_portal_init(struct kdt_portal *portal);
int kdt_portal_enable(struct kdt_portal *portal);
void kdt_portal_disable(struct kdt_portal *portal);
void kdt_portal_drop(struct kdt_portal *portal);

static inline const char *kdt_portal_name(const struct kdt_portal *portal)
{
	return portal->group.cg_item.ci_name;
}

static inline const char *kdt_disk_name(const struct kdt_disk *disk)
{
	return disk->group.cg_item.ci_name;
}

/*
 * Sessions and queues
 */

enum kdt_session_bits {
	KDT_DEAD,		/* it ends or has ended */
	KDT_LOGIN,		/* LOGIN has come */
	KDT_LIVE,		/* and was answered with yes */
	KDT_REFUSED,		/* and was answered with no */
};

struct kdt_session {
	struct kref ref;
	unsigned long bits;	/* enum kdt_session_bits */
	struct list_head node;	/* kdt_sessions */
	struct kdt_portal *portal;
	u64 number;
	u64 turn;		/* under kdt_lock: order of logins, 0 before */
	struct kdt_disk *disk;	/* from LOGIN on; set under kdt_lock */
	u8 id[KDBLK_ID_LEN];
	char initiator[KDBLK_NAME_LEN];
	unsigned long keepalive;	/* jiffies */
	unsigned long heard;
	struct delayed_work timer;
	struct work_struct end;
	const char *why;	/* it ends */
	struct completion ended;
	struct mutex lock;	/* queue[] */
	u32 queues;		/* granted */
	struct kdt_queue *queue[KDBLK_MAX_QUEUES];

	/*
	 * Peers of iWARP see the keys of the memory their data is read into, and may
	 * write there. So each session has memory of its own there.
	 */
	DAT_PZ_HANDLE pz;
	struct kdt_pool *pool;
	struct kdt_pool own_pool;
};

struct kdt_rx {
	struct list_head node;	/* queue->rx_waiting */
	struct kdblk_cmd *wire;
	struct kdt_buf buf;
	DAT_LMR_TRIPLET seg[2];
};

/* Why a command comes out of a work item. */
enum kdt_stage {
	KDT_STAGE_BEGIN,	/* it got its buffer */
	KDT_STAGE_EXECUTE,	/* what may block for long */
	KDT_STAGE_ANSWER,	/* the disk was done in a hard interrupt, where nothing is posted */
	KDT_STAGE_LOGIN,
};

struct kdt_cmd {
	struct list_head node;	/* queue->free, ->unacked, ->read_waiting, or pool->waiting */
	struct kdt_queue *q;
	struct kdt_rx *rx;	/* not given back yet: it has our data */
	struct kdt_buf *buf;	/* our data: that of rx, our own, or one of the pool */
	bool pooled;		/* the latter */
	u8 opcode;
	u8 flags;
	u16 tag;
	u16 status;
	bool remote;		/* address and rkey count */
	u32 length;
	u64 offset;
	enum kdt_stage stage;
	struct work_struct work;
	struct kdblk_login_rsp *rsp;
	DAT_LMR_TRIPLET rsp_seg;
	DAT_LMR_TRIPLET data_seg;
	DAT_RMR_TRIPLET peer;
	struct kdat_request req[2];	/* RDMA Write of the data, Send of the answer */
	struct kdt_buf own;
	struct bio bio;
};

struct kdt_queue {
	/* set up, then read only */
	struct kdt_session *s;
	u32 n;
	u32 depth;
	u32 inline_size;
	u32 batch;		/* each batch-th answer has a completion */
	u32 nrx;
	u32 ncmds;
	u32 nchunks;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	struct kdt_rx *rx;
	struct kdt_cmd *cmds;
	struct kdt_chunk head;	/* commands and answers */
	struct kdt_chunk *chunks;	/* data */
	unsigned long *tags;	/* in flight; bit depth is KDBLK_TAG_ADMIN */

	/* by the upcall only */
	struct task_struct *upcall;
	bool more;		/* upcalls will follow this one at once */
	struct list_head rx_waiting;	/* for a free cmd */

	/*
	 * Never taken with interrupts off. All requests are posted under this lock: the
	 * EP is told so (kdat_ep_serialise_posts()), and unacked is in the order of posting.
	 */
	spinlock_t lock;
	struct list_head free;
	struct list_head unacked;	/* answered; the device may still read what it sends */
	struct list_head read_waiting;	/* RDMA Reads there was no room for */
	u32 reads;		/* under way */
	u32 quiet;		/* answers since the last one with a completion */
	u32 inflight;		/* commands that somebody works on or that wait for memory */
	wait_queue_head_t idle;
	DAT_COUNT npend;	/* answers that wait for company, while more is set */
	struct kdat_request pend[KDAT_POST_LIST_MAX];
};

static inline bool kdt_dead(const struct kdt_session *s)
{
	return test_bit(KDT_DEAD, &s->bits);
}

/* session.c */
void kdt_session_end(struct kdt_session *s, const char *why);
void kdt_session_refused(struct kdt_session *s);
u16 kdt_session_login(struct kdt_session *s, const struct kdblk_login *login);
void kdt_end_of_disk(struct kdt_disk *disk, const char *why);
void kdt_end_of_portal(struct kdt_portal *portal, const char *why);
u32 kdt_count_sessions(struct kdt_disk *disk);
u16 kdt_session_connect(struct kdt_portal *portal, DAT_CR_HANDLE cr,
			const struct kdblk_connect *hello);
int kdt_session_init(void);
void kdt_session_exit(void);

/* cmd.c */
void kdt_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
void kdt_cmd_work(struct work_struct *work);
void kdt_begin(struct kdt_cmd *cmd);
void kdt_answer(struct kdt_cmd *cmd);
void kdt_drop(struct kdt_cmd *cmd);
int kdt_rx_post(struct kdt_queue *q, struct kdt_rx *rx);

/* main.c */
extern struct mutex kdt_lock;	/* what is known: kdt_disks, kdt_sessions, names */
extern struct list_head kdt_disks;
extern struct workqueue_struct *kdt_io_wq;	/* commands */
extern struct workqueue_struct *kdt_ctl_wq;	/* connections and logins, which wait for ends */
extern struct workqueue_struct *kdt_portal_wq;	/* portals, which wait for both */

/* configfs.c */
int kdt_configfs_init(void);
void kdt_configfs_exit(void);

#endif /* _KDBLK_TARGET_H_ */
