/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_iser: what its files share. README.md is the guide to the code.
 */
#ifndef _KDISER_H_
#define _KDISER_H_

#include <linux/completion.h>
#include <linux/list.h>
#include <linux/socket.h>
#include <linux/spinlock.h>
#include <linux/workqueue.h>
#include <scsi/iscsi_proto.h>
#include <scsi/iser.h>
#include <scsi/libiscsi.h>
#include <scsi/scsi_transport_iscsi.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

/* What each message begins with: the iSER header and that of iSCSI. No additional headers. */
struct kdiser_pdu {
	struct iser_ctrl iser;
	struct iscsi_hdr iscsi;
	u8 data[];
} __packed;

static_assert(sizeof(struct kdiser_pdu) == 76);
static_assert(sizeof(struct iser_cm_hdr) == 4);

#define KDISER_TEXT_SIZE	ISCSI_DEF_MAX_RECV_SEG_LEN	/* of a login or text PDU */
#define KDISER_DATA_SIZE	256	/* of other PDUs to us: sense data have up to 254 */
#define KDISER_MAX_PDU		262144	/* data that we send in one PDU */
#define KDISER_LONG_RECEIVES	2	/* for logins and texts */
#define KDISER_MORE_RECEIVES	8	/* for PDUs that answer nothing: pings, events */
#define KDISER_DATA_OUTS	64	/* Data-Out PDUs that may be on their way */
#define KDISER_MAX_COPY		4096	/* WRITEs up to this are copied, not registered */
#define KDISER_MIN_DEPTH	32
#define KDISER_SIGNAL_EVERY	16	/* one of so many Sends has a completion */

/* What a request or Receive was for: the upper half of its cookie; the lower one is an index. */
enum kdiser_cookie {
	KDISER_SENT,		/* nothing depends on it; of slot */
	KDISER_DATA_SENT,	/* a command, with data from its memory; of slot */
	KDISER_SENT_UNANSWERED,	/* a PDU that gets no answer; of slot */
	KDISER_DATA_OUT_SENT,	/* of Data-Out buffer */
	KDISER_TAKEN_BACK,	/* memory; of slot */
	KDISER_RECEIVED,	/* of Receive */
};

/* What a task that is no command waits for, before libiscsi has it back. */
enum kdiser_due {
	KDISER_NOTHING,		/* libiscsi has it back, or it is a command */
	KDISER_ANSWER,		/* to a login, text, ping or logout */
	KDISER_TM_ANSWER,	/* to task management */
	KDISER_SEND,		/* its Send: there is no answer */
};

/*
 * One for each task of the session, by its ITT. Fields are protected by the connection's lock.
 *
 *	itt == RESERVED_ITT	no command is out
 *	itt, registered		a command is out, and its memory is registered: for the target, or
 *				for our own Sends
 *	sends			these still read it
 *	answered, returning	its answer waits until the memory is ours again: first for the
 *				Sends, then for the key
 */
struct kdiser_slot {
	DAT_LMR_HANDLE lmr;
	DAT_RMR_CONTEXT rkey;
	u32 incoming;		/* bytes of a READ */
	itt_t itt;		/* the answer has it, too */
	u32 cmdsn;		/* of a command */
	struct scsi_lun lun;
	u16 answer;		/* index of the Receive with the answer */
	u16 sends;		/* with data from its memory, not completed */
	bool registered;
	bool returning;		/* the invalidation is posted */
	bool answered;
	bool reset;		/* answers to task management wait for it */
	enum kdiser_due due;
};

enum kdiser_state {
	KDISER_CONNECTING,
	KDISER_UP,
	KDISER_DOWN,
};

/*
 * A connection, from ep_connect to ep_disconnect. kdiser_close() frees everything except its
 * memory: afterwards there are no upcalls, and neither the target nor the device can reach the
 * memory of a command.
 */
struct kdiser_conn {
	struct list_head node;		/* under kdiser_mutex */
	struct iscsi_endpoint *endpoint;
	struct sockaddr_storage target;
	u32 max_sectors;		/* of a command, wanted */

	struct work_struct connect_work;
	DAT_IA_HANDLE ia;
	DAT_EVD_HANDLE async_evd, dto_evd, conn_evd;
	DAT_PZ_HANDLE pz;
	DAT_EP_HANDLE ep;
	DAT_LMR_HANDLE lmr;		/* of the messages */
	DAT_LMR_CONTEXT lkey;
	struct kdat_mem_limits limits;
	u32 sg_tablesize;		/* pages of data in a command */

	struct completion settled;	/* the state is no longer CONNECTING */
	enum kdiser_state state;
	DAT_EVENT_NUMBER event;		/* why it is DOWN, or: */
	int err;
	bool started;			/* see kdiser_start_conn() */
	bool told;			/* libiscsi knows of its end; under lock */

	/* Messages: text, Receives (long ones first), slots, Data-Outs. */
	u8 *messages;
	u32 depth;			/* slots there is room for */
	u32 copy;			/* bytes of a WRITE that fit behind a slot's header */
	u32 slot_size;

	spinlock_t lock;		/* protects all that follows */
	struct iscsi_conn *iscsi;	/* while it is bound */
	bool full_feature;		/* the login is over */
	u32 nr_slots;
	struct kdiser_slot *slots;
	u16 data_outs[KDISER_DATA_OUTS];	/* the free ones */
	u16 data_slots[KDISER_DATA_OUTS];	/* of which command the others are */
	u32 nr_data_outs;
	u32 quiet;			/* Sends since one had a completion */
	struct iscsi_tm tm;		/* the last task management that was sent */
	u32 tm_waits;			/* slots that answers to it wait for */
	unsigned long late;		/* long Receives with answers for late_work */
	struct delayed_work late_work;	/* see kdiser_deliver_late() */
};

static inline DAT_DTO_COOKIE kdiser_cookie(enum kdiser_cookie what, u32 index)
{
	return (DAT_DTO_COOKIE){ .as_64 = (u64)what << 32 | index };
}

/* mem.c: the messages, and the memory that is lent */
bool kdiser_messages_fit(struct kdiser_conn *conn);
int kdiser_messages_create(struct kdiser_conn *conn);
int kdiser_slots_create(struct kdiser_conn *conn, u32 count);
void kdiser_mem_free(struct kdiser_conn *conn);
u8 *kdiser_text(struct kdiser_conn *conn);
struct kdiser_pdu *kdiser_receive(struct kdiser_conn *conn, u32 i, u32 *size);
struct kdiser_pdu *kdiser_slot_pdu(struct kdiser_conn *conn, u32 i);
struct kdiser_pdu *kdiser_data_pdu(struct kdiser_conn *conn, u32 i);

/* conn.c: connections */
extern struct workqueue_struct *kdiser_wq;
struct kdiser_conn *kdiser_open(const struct sockaddr *target, u32 depth, u32 max_sectors);
int kdiser_errno(struct kdiser_conn *conn);
void kdiser_fail(struct kdiser_conn *conn, enum iscsi_err err, const char *why);
void kdiser_close(struct kdiser_conn *conn);
void kdiser_free(struct kdiser_conn *conn);

/* recv.c: completions */
DAT_RETURN kdiser_post_receives(struct kdiser_conn *conn, u32 first, u32 count);
void kdiser_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more);
void kdiser_deliver_late(struct work_struct *work);

/* task.c: what libiscsi sends */
int kdiser_alloc_pdu(struct iscsi_task *task, u8 opcode);
int kdiser_xmit_task(struct iscsi_task *task);
void kdiser_cleanup_task(struct iscsi_task *task);

/* session.c: the other operations of the transport */
extern struct iscsi_transport kdiser_transport;
int kdiser_register(u32 depth, u32 max_sectors);
void kdiser_unregister(void);

#endif /* _KDISER_H_ */
