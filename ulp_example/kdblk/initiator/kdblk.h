/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * The initiator: a disk of a target as /dev/kdblkN.
 *
 *	configfs.c	the administrator's interface
 *	session.c	connection, login, keepalive; loss and recovery
 *	adapter.c	the adapter that connections go through
 *	paths.c		several paths to one disk: FENCE
 *	cache.c		several paths to one disk: what the target's cache has lost
 *	queue.c		one queue: Endpoint, memory, commands, answers
 *	msgs.c		the messages of a queue, and the data in them
 *	disk.c		the block device
 *	sysfs.c		its parent in sysfs, uevents
 */
#ifndef _KDBLK_H_
#define _KDBLK_H_

#include <linux/blk-mq.h>
#include <linux/configfs.h>
#include <linux/inet.h>
#include <linux/mutex.h>
#include <linux/notifier.h>
#include <linux/ratelimit.h>
#include <linux/scatterlist.h>
#include <linux/socket.h>
#include <linux/wait.h>
#include <linux/workqueue.h>
#include "../auth.h"
#include "../common.h"
#include "../proto.h"

#define KDBLK_ADDRESS_LEN	(INET6_ADDRSTRLEN + 16)	/* including a scope */
#define KDBLK_IO_TIMEOUT	(30 * HZ)	/* of a command; then the session ends */
/* of one WRITE_ZEROES; a disk that writes them has to do a whole queue of these in time */
#define KDBLK_MAX_ZEROES	(8u << 20)
#define KDBLK_CONNECT_TIMEOUT	(5 * HZ)	/* of one queue */
#define KDBLK_AGAIN_MS		100	/* delay before resending after KDBLK_STATUS_RESOURCE */
#define KDBLK_FENCES_TOLD	10	/* log a FENCE if the target is asked so often */
#define KDBLK_LOGIN_TIMEOUT	(30 * HZ)	/* the target may have to end our last session */
#define KDBLK_ERROR_LEN		200		/* of a reason in last_error */
#define KDBLK_INLINE_MAX	16384	/* of data in a message; RDMA is better for more */
#define KDBLK_TAG_DTOS		2	/* a tag may register memory before it sends */

struct kdblk_disk;
struct kdblk_stray;

/*
 * A tag of a queue. It belongs to its request from queue_rq to the answer. Until
 * kdblk_expect() only queue_rq accesses it, and then only the completion handler.
 */
struct kdblk_slot {
	struct request *rq;		/* NULL: the tag is free */
	DAT_LMR_HANDLE lmr;		/* lives as long as the connection */
	DAT_RMR_CONTEXT rkey;		/* of the lent memory */
	bool lent;
	bool data;			/* a READ whose data comes in the answer */
	u8 opcode;
	atomic_t answered;		/* taken by the answer, or by a post that has failed */
	bool cached;			/* a write that may stay in a cache of the target */
	bool covers;			/* a FLUSH, and there were such writes before it */
	atomic_t pending;		/* what the request waits for: the post, the answer */
};

/* Messages in one direction: one for each tag, plus one for administration. */
struct kdblk_chunk {
	void *va;
	DAT_LMR_HANDLE lmr;
	DAT_LMR_CONTEXT lkey;
};

struct kdblk_msgs {
	struct kdblk_chunk *chunks;
	u32 shift;			/* 1 << shift messages in a chunk */
	u32 size;			/* bytes of one, with its data */
	u32 count, nchunks;
};

/* The private part of a request. */
struct kdblk_io {
	blk_status_t status;
	u32 tries;			/* failed ones; at most reconnect_max */
	struct scatterlist sgl[];
};

struct kdblk_queue {
	/* read mostly */
	struct kdblk_disk *disk;
	DAT_EP_HANDLE ep;		/* of the connection */
	u32 inline_size;		/* data bytes in a command, and in an answer */
	u16 index;
	u16 asked, depth;		/* tags requested and allocated; tags granted */
	bool polled;
	struct kdblk_msgs cmds;
	struct kdblk_msgs rsps;		/* Receives */
	struct kdblk_slot *slots;
	DAT_EVD_HANDLE evd;		/* of answers; lives as long as the adapter is used */
	DAT_EVD_HANDLE sent;		/* of requests, of which nothing is to be heard; the same */
	spinlock_t poll_lock;		/* polled: serialises the handling of completions */

	/* while connecting */
	DAT_EVENT_NUMBER conn_event;	/* the last one, or 0 */
	bool conn_data;			/* accept or reject is valid */
	union {
		struct kdblk_accept accept;
		struct kdblk_reject reject;
	};
};

enum kdblk_state {
	KDBLK_IDLE,		/* not connected */
	KDBLK_CONNECTING,	/* for the first time */
	KDBLK_LIVE,
	KDBLK_RECOVERING,	/* commands wait */
	KDBLK_FAILED,		/* commands fail */
};

struct kdblk_config {
	char ia[DAT_NAME_MAX_LENGTH];
	char address[KDBLK_ADDRESS_LEN];
	char disk[KDBLK_NAME_LEN];
	char initiator[KDBLK_NAME_LEN];
	u32 port, path, queues, poll_queues, depth, inline_size;
	u32 keepalive_ms, reconnect_delay_ms, reconnect_max, fast_io_fail_ms;
	int tos;			/* KDAT_CONN_DEFAULT: the adapter's */
};

struct kdblk_disk {
	struct config_item item;
	struct kdblk_config config;	/* under @admin; constant while not IDLE or FAILED */
	struct mutex admin;		/* connect, disconnect, attributes */
	struct kdblk_secret secret;	/* the same */
	u8 id[KDBLK_ID_LEN];
	u8 instance[KDBLK_ID_LEN];	/* random, tells us from others with our id */

	int state;			/* enum kdblk_state; leave LIVE only by cmpxchg() */
	bool stopping;			/* make no further attempt */
	bool was_live;			/* under the work item: LIVE since it ran last */
	bool broken;			/* connection lost since the attempt began */
	bool failing;			/* commands fail, even while attempts go on */
	bool heard;			/* the target has answered since the last keepalive */
	bool answered;			/* a command was answered in this session */
	bool alive;			/* a keepalive was answered in this session */
	bool quiesced;			/* under @gate */
	struct mutex gate;		/* @gendisk, @quiesced */
	bool dirty;			/* writes were answered since the last FLUSH */
	u32 covering;			/* FLUSHes under way that cover such writes: cache.c */
	bool covering_lost;		/* another path has told that these may be lost: cache.c */
	bool cache_lost;		/* such writes may be lost: the next FLUSH fails */
	struct list_head mates;		/* the other paths to this disk, for these two: cache.c */
	u64 login;			/* increases with each LOGIN of any disk: cache.c */
	u64 login_after;		/* @login of the last one before our LOGIN was sent */
	const char *lost_why;		/* of the first loss since the attempt began */
	int last_error;
	char reason[KDBLK_ERROR_LEN];	/* the same in words */
	char told[KDBLK_ERROR_LEN];	/* the last one of an attempt */
	struct ratelimit_state log;
	u32 attempts;
	unsigned long due;		/* jiffies: an attempt before it does not count */
	u32 unanswered;			/* commands of the last session */
	u32 fruitless;			/* consecutive sessions without progress */
	u64 connects, losses, replayed;
	struct delayed_work recover;
	struct delayed_work keepalive;
	struct delayed_work fast_fail;
	struct work_struct grow;
	struct list_head paths;
	bool joined;			/* connected, and may take commands of other paths */
	u32 fencing;			/* other paths that use this one for a FENCE */
	u32 fences;			/* how often the target was asked since the loss */
	struct kdblk_stray *stray;	/* what the target may have left of this path */
	bool known;			/* @geometry tells which disk it is */
	struct mutex fence;		/* FENCE and KEEPALIVE: @admin_busy while LIVE */
	wait_queue_head_t wait;		/* woken by connection events, answers, @broken */

	/* of the adapter; they outlive connections */
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE conn_evd;
	DAT_PZ_HANDLE pz;
	struct kdat_mem_limits limits;
	DAT_COUNT read_depth;
	bool faulty;			/* it has reported a fault: open it anew */
	bool unanswered_there;		/* no peer has answered on it: is it still the right one? */
	u64 adapters;			/* taken so far */
	struct notifier_block adapter_nb;

	/* of the connection */
	u64 session;
	u32 max_io;			/* bytes, the limit of both target and device */
	struct sockaddr_storage address;

	/* the single administration command in flight, on queue 0 */
	bool admin_busy;		/* set when posting, cleared by the answer */
	u8 admin_opcode;
	u64 capacity;			/* as the target told it last */
	struct kdblk_login_rsp geometry;	/* the answer to the first LOGIN */
	struct kdblk_login_rsp answer;		/* to the last one */

	u32 nr_alloc;			/* allocated queues */
	u32 nr_queues;			/* queues in use; the last poll_queues are polled */
	u16 depth;			/* of the tag set */
	struct kdblk_queue *queues;
	struct blk_mq_tag_set tags;
	struct gendisk *gendisk;
	int minor;

	/* for user space */
	struct device *dev;		/* the parent of the block device */
	struct device *adapter;		/* not linked to yet; taken by xchg() */
	struct work_struct event;
	int event_state;		/* the last one reported, or about to be; under @gate */
	int event_lost;			/* a loss was not reported yet */
};

extern struct workqueue_struct *kdblk_wq;
extern u8 kdblk_start_id[KDBLK_START_LEN];	/* random, in the instance of all disks */

static inline const char *kdblk_name(const struct kdblk_disk *disk)
{
	return config_item_name((struct config_item *)&disk->item);
}

/* The last queues of a disk have no upcalls: a task waiting for a command polls. */
static inline u32 kdblk_polled(const struct kdblk_disk *disk)
{
	return min(disk->config.poll_queues, disk->nr_queues - 1);
}

static inline struct kdblk_chunk *kdblk_msg_chunk(const struct kdblk_msgs *msgs, u32 i)
{
	return &msgs->chunks[i >> msgs->shift];
}

static inline void *kdblk_msg(const struct kdblk_msgs *msgs, u32 i)
{
	return kdblk_msg_chunk(msgs, i)->va + (i & ((1u << msgs->shift) - 1)) * msgs->size;
}

/* Where queue 0 has its LOGIN. */
static inline struct kdblk_login *kdblk_login_msg(const struct kdblk_queue *q)
{
	return kdblk_msg(&q->cmds, q->asked) + sizeof(struct kdblk_cmd);
}

/* session.c */
const char *kdblk_state_name(enum kdblk_state state);
void kdblk_session_init(struct kdblk_disk *disk);
int kdblk_start(struct kdblk_disk *disk);
void kdblk_interrupt(struct kdblk_disk *disk);
void kdblk_stop(struct kdblk_disk *disk);
void kdblk_lost(struct kdblk_disk *disk, const char *why);
void kdblk_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
__printf(3, 4)
int kdblk_why(struct kdblk_disk *disk, int err, const char *fmt, ...);
int kdblk_refuse(struct kdblk_disk *disk, int err);

/* adapter.c */
int kdblk_attach(struct kdblk_disk *disk);
void kdblk_detach(struct kdblk_disk *disk);
void kdblk_adapter_watch(struct kdblk_disk *disk);
void kdblk_adapter_unwatch(struct kdblk_disk *disk);

/* paths.c */
int kdblk_fence(struct kdblk_disk *disk);
int kdblk_join(struct kdblk_disk *disk);
void kdblk_part(struct kdblk_disk *disk);
void kdblk_path_known(struct kdblk_disk *disk);
int kdblk_paths_add(struct kdblk_disk *disk);
void kdblk_paths_del(struct kdblk_disk *disk);
void kdblk_paths_exit(void);

/* cache.c */
void kdblk_mates_add(struct kdblk_disk *disk, struct kdblk_disk *mate);
void kdblk_mates_del(struct kdblk_disk *disk);
void kdblk_login_sent(struct kdblk_disk *disk);
void kdblk_compare_boot(struct kdblk_disk *disk, const struct kdblk_login_rsp *geo);
void kdblk_unflushed(struct kdblk_disk *disk);
bool kdblk_flush_covers(struct kdblk_disk *disk);
void kdblk_flush_over(struct kdblk_disk *disk, bool failed);
bool kdblk_flush_fails(struct kdblk_disk *disk);

/* queue.c */
int kdblk_queue_alloc(struct kdblk_queue *q, const struct kdblk_config *config);
void kdblk_queue_free(struct kdblk_queue *q);
void kdblk_queue_detach(struct kdblk_queue *q);
int kdblk_queue_connect(struct kdblk_queue *q);
bool kdblk_queue_peer_there(const struct kdblk_queue *q);
void kdblk_queue_disconnect(struct kdblk_queue *q);
void kdblk_queue_close(struct kdblk_queue *q);
int kdblk_queue_memory(struct kdblk_queue *q, u32 max_io);
int kdblk_queue_admin(struct kdblk_queue *q, u8 opcode, u16 path);
void kdblk_queue_conn_event(struct kdblk_queue *q, const DAT_EVENT *event);
blk_status_t kdblk_queue_post(struct kdblk_queue *q, struct request *rq);
int kdblk_queue_poll(struct kdblk_queue *q);
void kdblk_queue_poll_all(struct kdblk_queue *q);

/* msgs.c */
int kdblk_msgs_alloc(struct kdblk_msgs *msgs, u32 count, u32 size);
void kdblk_msgs_free(struct kdblk_msgs *msgs);
int kdblk_msgs_register(struct kdblk_msgs *msgs, struct kdblk_disk *disk);
void kdblk_msgs_unregister(struct kdblk_msgs *msgs);
void kdblk_copy_from(struct request *rq, void *to);
void kdblk_copy_to(struct request *rq, const void *from);

/* disk.c */
int kdblk_disk_add(struct kdblk_disk *disk);
void kdblk_disk_remove(struct kdblk_disk *disk);
void kdblk_disk_exit(void);
void kdblk_disk_quiesce(struct kdblk_disk *disk);
void kdblk_disk_release(struct kdblk_disk *disk);
bool kdblk_disk_exists(struct kdblk_disk *disk);

/* sysfs.c */
int kdblk_sysfs_init(void);
void kdblk_sysfs_exit(void);
int kdblk_sysfs_add(struct kdblk_disk *disk);
void kdblk_sysfs_remove(struct kdblk_disk *disk);
void kdblk_sysfs_adapter(struct kdblk_disk *disk);
void kdblk_sysfs_no_adapter(struct kdblk_disk *disk);
void kdblk_sysfs_event(struct kdblk_disk *disk);

#endif /* _KDBLK_H_ */
