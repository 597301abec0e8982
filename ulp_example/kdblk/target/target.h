/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Declarations shared by the files of kdblk_target.
 *
 *	disk	  an exported disk, created by configfs
 *	portal	  a listener: a name of an IA, a port
 *	adapter	  what a portal has of an adapter: the IA, memory for large transfers
 *	session	  one disk in use by one initiator: up to 256 queues
 *	queue	  one connection: an EP, an EVD, Receives, contexts of commands
 *	rx	  a Receive: 64 bytes for the command, followed by room for data
 *	cmd	  a command, from its arrival until the device has sent its answer
 *
 * An rx is reposted as soon as its contents have been used, which is before the command is
 * answered. So there is always a Receive for each tag that the initiator may use.
 *
 * A session ends once, by kdt_session_end() from any context. This marks it dead. A work
 * item then frees its EPs, waits until the underlying disk has completed every command,
 * and only then frees the memory of the commands.
 *
 * A disk that completes nothing must not stall another one. So each disk has a workqueue of
 * its own, each session has some buffers of its own, and of the adapter's buffers one disk
 * gets at most half. Sessions hold what the portal has of its adapter: when that goes, the
 * portal takes the next one without waiting for them.
 *
 * Lock order, outermost first: portal->lock, disk->lock; session->lock; kdt_lock;
 * queue->lock; adapter->buf_lock.
 */
#ifndef _KDBLK_TARGET_H_
#define _KDBLK_TARGET_H_

#include <linux/bio.h>
#include <linux/blkdev.h>
#include <linux/completion.h>
#include <linux/configfs.h>
#include <linux/kref.h>
#include <linux/list.h>
#include <linux/llist.h>
#include <linux/mutex.h>
#include <linux/spinlock.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#include "../auth.h"
#include "../common.h"
#include "../compat.h"
#include "../proto.h"

#define KDT_MAX_INLINE		65536
#define KDT_MAX_RANGE		(64u << 20)	/* of one DISCARD or WRITE_ZEROES */
#define KDT_MAX_HALF_OPEN	16		/* connections without a login, per portal */
#define KDT_LOGIN_MS		5000		/* their time limit */
#define KDT_MAX_BATCH		16	/* answers without a completion in a row */
#define KDT_OWN_BUFFERS		4		/* of a session, besides those of the portal */
#define KDT_ERROR_LEN		160		/* of a reason in last_error */

struct kdt_adapter;
struct kdt_cmd;
struct kdt_disk;
struct kdt_pool;
struct kdt_queue;
struct kdt_session;

/*
 * Memory
 */

struct kdt_chunk {		/* a registered range */
	void *va;
	size_t size;
	bool scattered;		/* vmalloc memory, not physically contiguous */
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT key;
};

/* Buffer for the data of one command: whole pages inside a chunk. */
struct kdt_buf {
	struct list_head node;	/* pool->free */
	struct kdt_pool *pool;	/* where it belongs */
	void *va;
	DAT_LMR_CONTEXT key;
	bool scattered;
	struct bio_vec *bvec;	/* enough for @va: one, unless it is scattered */
	struct bio_vec one;
};

/* Buffers of max_io bytes, for data larger than the buffers of a queue. */
struct kdt_pool {
	struct list_head free;	/* under adapter->buf_lock */
	u32 nbufs;
	struct kdt_buf *bufs;
	struct kdt_chunk *chunks;	/* one per buffer */
};

/* What one disk has of an adapter's buffers. Members are under adapter->buf_lock. */
struct kdt_share {
	struct list_head node;	/* adapter->shares */
	const struct kdt_disk *disk;
	u32 sessions;
	u32 held;
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
bool kdt_pool_get(struct kdt_cmd *cmd);
void kdt_pool_put(struct kdt_cmd *cmd);
void kdt_pool_cancel(struct kdt_session *s);
int kdt_share_join(struct kdt_session *s);
void kdt_share_leave(struct kdt_session *s);

/*
 * Disks
 */

struct kdt_disk {
	struct config_group group;
	struct config_group allowed;
	struct mutex lock;	/* the members down to allow_any; enabling and disabling */
	char *path;
	char serial[KDBLK_SERIAL_LEN];
	bool read_only;
	bool allow_any;
	bool enabled;		/* written under lock and kdt_lock */
	struct list_head node;	/* kdt_disks */
	struct list_head names;	/* struct kdt_name, under kdt_lock */
	char last_error[KDT_ERROR_LEN];

	/* while enabled */
	struct workqueue_struct *wq;	/* for the work items of commands */
	struct file *file;
	struct block_device *bdev;	/* NULL for a file */
	u64 capacity;		/* grows by kdt_disk_rescan(); read without a lock */
	u32 block_size;
	u32 physical_block_size;
	u32 discard_granularity;
	u16 flags;		/* enum kdblk_disk_flags */
};

struct kdt_name {		/* an initiator that may use a disk */
	struct config_item item;
	struct list_head node;
	struct kdblk_secret secret;	/* under kdt_lock */
};

__printf(3, 4)
int kdt_disk_fail(struct kdt_disk *disk, int err, const char *fmt, ...);
int kdt_disk_open(struct kdt_disk *disk);
void kdt_disk_close(struct kdt_disk *disk);
int kdt_disk_rescan(struct kdt_disk *disk);
void kdt_execute(struct kdt_cmd *cmd);
void kdt_execute_slow(struct kdt_cmd *cmd);

/*
 * Portals
 */

enum kdt_portal_state {
	KDT_PORTAL_DISABLED,
	KDT_PORTAL_LISTENING,
	KDT_PORTAL_WAITING,	/* for its adapter, or an address of it */
};

struct kdt_portal {
	struct config_group group;
	struct list_head node;	/* kdt_portals */
	struct mutex lock;	/* parameters, state, opening and closing */
	char ia_name[DAT_NAME_MAX_LENGTH];
	/* the numeric attributes in configfs */
	u32 cfg_port;
	u32 cfg_depth;
	u32 cfg_queues;
	u32 cfg_max_io;
	u32 cfg_buffers;
	u32 cfg_inline_size;
	u32 cfg_max_sessions;
	enum kdt_portal_state state;
	int last_err;		/* of the last attempt to open the IA, to log it once */
	char last_error[KDT_ERROR_LEN];	/* the same in words */
	struct delayed_work look;	/* looks what has become of adapter and address */
	int looks;			/* times to look again although nothing has happened */

	struct kdt_adapter *adapter;	/* or NULL, in which state ever */
	DAT_EVD_HANDLE cr_evd;	/* these, and place, while listening */
	DAT_PSP_HANDLE psp;
	struct kdblk_place place;
	u32 half_open;		/* under kdt_lock */
	u32 requests;		/* under kdt_lock: connection requests in work items */
	wait_queue_head_t no_requests;
};

/* Held by its portal, by sessions, and by connection requests. */
struct kdt_adapter {
	struct kref ref;
	struct kdt_portal *portal;
	DAT_IA_HANDLE ia;
	DAT_PZ_HANDLE pz;
	spinlock_t buf_lock;	/* all buffers of max_io bytes, and what waits for them */
	struct kdt_pool pool;	/* used by all sessions; has no buffers on iWARP */
	struct list_head shares;	/* of disks in use */
	struct list_head hungry;	/* sessions that wait for a buffer */
	bool iwarp;		/* the peer can write to the sink of an RDMA Read */
	u32 max_depth;		/* of a queue */
	DAT_COUNT max_reads;
	bool closing;		/* under kdt_lock: accept no new session */
};

void kdt_adapter_put(struct kdt_adapter *adapter);

__printf(3, 4)
int kdt_portal_fail(struct kdt_portal *portal, int err, const char *fmt, ...);
void kdt_portal_init(struct kdt_portal *portal);
int kdt_portal_enable(struct kdt_portal *portal);
void kdt_portal_disable(struct kdt_portal *portal);
void kdt_portal_drop(struct kdt_portal *portal);
int kdt_portals_init(void);
void kdt_portals_exit(void);

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
	KDT_DEAD,		/* the session is ending or has ended */
	KDT_LOGIN,		/* LOGIN was received */
	KDT_LIVE,		/* LOGIN was granted */
	KDT_REFUSED,		/* LOGIN was refused */
};

struct kdt_session {
	struct kref ref;
	unsigned long bits;	/* enum kdt_session_bits */
	struct list_head node;	/* kdt_sessions */
	struct kdt_portal *portal;
	struct kdt_adapter *adapter;
	u64 number;
	u64 turn;		/* under kdt_lock: sequence number of the login, or 0 */
	struct kdt_disk *disk;	/* from LOGIN on; set under kdt_lock */
	u8 id[KDBLK_ID_LEN];
	u8 instance[KDBLK_ID_LEN];
	u8 nonce[KDBLK_NONCE_LEN];	/* constant; of the acceptance of queue 0 */
	bool proven;		/* under kdt_lock: the initiator knows its secret */
	u16 path;
	char initiator[KDBLK_NAME_LEN];
	unsigned long since;	/* jiffies of the login */
	unsigned long keepalive;	/* jiffies */
	unsigned long heard;	/* jiffies of the last command */
	struct delayed_work timer;
	struct work_struct end;
	const char *why;	/* reason of the end */
	struct completion ended;
	struct mutex lock;	/* queue[] */
	u32 queues;		/* granted */
	struct kdt_queue *queue[KDBLK_MAX_QUEUES];

	/*
	 * On iWARP, a peer sees the key of the memory that an RDMA Read writes to, and can
	 * write there. So a session uses only buffers of its own there, in a zone of its own.
	 */
	DAT_PZ_HANDLE pz;
	struct kdt_pool pool;	/* its own buffers */
	struct kdt_share *share;
	u32 held;		/* under adapter->buf_lock: buffers of the adapter */
	struct list_head waiting;	/* the same: cmd->node, in order of arrival */
	struct list_head hungry;	/* the same: adapter->hungry, if commands wait */
};

struct kdt_rx {
	struct list_head node;	/* queue->rx_waiting */
	struct kdblk_cmd *wire;
	struct kdt_buf buf;
	DAT_LMR_TRIPLET seg[2];
};

/* The step that the work item of a command continues with. */
enum kdt_stage {
	KDT_STAGE_BEGIN,	/* the command has got its buffer */
	KDT_STAGE_EXECUTE,	/* execution that may block for long */
	KDT_STAGE_LOGIN,
	KDT_STAGE_FENCE,
};

struct kdt_cmd {
	struct list_head node;	/* queue->free, ->unacked, ->read_waiting, or session->waiting */
	struct llist_node done;	/* queue->done */
	struct kdt_queue *q;
	struct kdt_rx *rx;	/* not reposted yet, since it holds our data */
	struct kdt_buf *buf;	/* our data: in rx, in own, or in a buffer of the pool */
	bool pooled;		/* buf comes from kdt_pool_get() */
	u8 opcode;
	u8 flags;
	u16 tag;
	u16 status;
	bool remote;		/* address and rkey are valid */
	u32 length;
	u64 offset;
	enum kdt_stage stage;
	struct work_struct work;
	struct kdblk_login_rsp *rsp;
	DAT_LMR_TRIPLET rsp_seg[2];	/* the answer, and the data in it */
	DAT_LMR_TRIPLET data_seg;
	DAT_RMR_TRIPLET peer;
	struct kdat_request req[2];	/* RDMA Write of the data, Send of the answer */
	struct kdt_buf own;
	struct bio bio;
};

struct kdt_queue {
	/* constant after setup */
	struct kdt_session *s;
	u32 n;
	u32 depth;
	u32 inline_size;
	u32 answer_size;	/* bytes of a READ that may follow its answer */
	u32 batch;		/* every batch-th answer has a completion */
	u32 nrx;
	u32 ncmds;
	u32 nchunks;
	DAT_EP_HANDLE ep;
	DAT_EVD_HANDLE evd;
	struct kdt_rx *rx;
	struct kdt_cmd *cmds;
	struct kdt_chunk head;	/* commands and answers */
	struct kdt_chunk *chunks;	/* data */
	unsigned long *tags;	/* tags in flight; bit depth is KDBLK_TAG_ADMIN */

	/* used only by the upcall */
	struct task_struct *upcall;
	bool more;		/* another upcall follows at once */
	struct list_head rx_waiting;	/* for a free cmd */

	/*
	 * Never taken with interrupts off. All requests are posted under this lock. So the
	 * EP may rely on serialised posts (kdat_ep_serialise_posts()), and unacked is in the
	 * order of posting.
	 */
	spinlock_t lock;
	struct list_head free;
	struct list_head unacked;	/* answered; the device may still read the answer */
	struct list_head read_waiting;	/* RDMA Reads that did not fit into the queue */
	u32 reads;		/* in flight */
	u32 quiet;		/* answers since the last one with a completion */
	u32 inflight;		/* commands being executed or waiting for memory */
	wait_queue_head_t idle;
	DAT_COUNT npend;	/* answers to be posted as a list, while more is set */
	struct kdat_request pend[KDAT_POST_LIST_MAX];

	/* commands that the disk has completed in a hard interrupt, where nothing is posted */
	struct llist_head done;
	struct kdblk_bh answer_done;
};

static inline bool kdt_dead(const struct kdt_session *s)
{
	return test_bit(KDT_DEAD, &s->bits);
}

/* session.c */
void kdt_session_end(struct kdt_session *s, const char *why);
void kdt_session_refused(struct kdt_session *s);
u16 kdt_session_login(struct kdt_session *s, const struct kdblk_login *login);
void kdt_session_prove(struct kdt_session *s, const struct kdblk_login *login,
		       struct kdblk_login_rsp *rsp);
u16 kdt_session_fence(struct kdt_session *s, u16 path);
void kdt_end_of_disk(struct kdt_disk *disk, const char *why);
void kdt_end_unproven(const struct kdt_disk *disk, const char *initiator);
void kdt_end_of_portal(struct kdt_portal *portal, const char *why);
void kdt_end_of_adapter(struct kdt_adapter *adapter, const char *why);
u32 kdt_count_sessions(struct kdt_disk *disk);
ssize_t kdt_list_sessions(struct kdt_disk *disk, char *buf, size_t size);
int kdt_kick(struct kdt_disk *disk, u64 turn);
u16 kdt_session_connect(struct kdt_adapter *adapter, DAT_CR_HANDLE cr,
			const struct kdblk_connect *hello);
int kdt_session_init(void);
void kdt_session_exit(void);

/* cmd.c */
void kdt_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
void kdt_cmd_work(struct work_struct *work);
void kdt_begin(struct kdt_cmd *cmd);
void kdt_answer(struct kdt_cmd *cmd);
void kdt_answer_soon(struct kdt_cmd *cmd);
void kdt_answer_done(struct kdblk_bh *bh);
void kdt_drop(struct kdt_cmd *cmd);
int kdt_rx_post(struct kdt_queue *q, struct kdt_rx *rx);

/* main.c */
extern struct mutex kdt_lock;	/* protects kdt_disks, kdt_sessions, names */
extern struct list_head kdt_disks;
extern u8 kdt_boot[KDBLK_ID_LEN];	/* identifies this start of the machine */
extern struct workqueue_struct *kdt_ctl_wq;	/* connections; logins, which wait for ends */
extern struct workqueue_struct *kdt_portal_wq;	/* portals, which wait for both */

/* configfs.c */
int kdt_configfs_init(void);
void kdt_configfs_exit(void);

#endif /* _KDBLK_TARGET_H_ */
