// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdiserfuzz - a target of iSER that breaks the rules, once for each connection (README.md).
 */
#define pr_fmt(fmt) KBUILD_MODNAME ": " fmt

#include <linux/module.h>
#include <scsi/iscsi_proto.h>
#include <scsi/iser.h>
#include <scsi/scsi_proto.h>
#include "../../lib/server.h"

#define RECEIVES	160
#define RECEIVE_SIZE	2048
#define ANSWERS		160
#define ANSWER_SIZE	1024
#define DISK_SIZE	(1024 * 1024)
#define BLOCK		512
#define HEADERS		(sizeof(struct iser_ctrl) + sizeof(struct iscsi_hdr))
#define GOOD_READS	10	/* before the fault */
/* What is taken unasked: one block at a time, so that a WRITE of 4 KiB has Data-Outs. */
#define MAX_DATA	"512"
#define FIRST_BURST	"4096"

static char *ia;
static ushort port = 3261;
static uint faults, ended, kinds, late, bad_logins, mixed, sent;
static bool hold, protect;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(port, ushort, 0444);
module_param(faults, uint, 0444);
module_param(ended, uint, 0444);
module_param(kinds, uint, 0444);
module_param(late, uint, 0444);
module_param(bad_logins, uint, 0644);
MODULE_PARM_DESC(bad_logins, "as many logins get an answer that is too short");
module_param(hold, bool, 0644);
MODULE_PARM_DESC(hold, "answer task management only when more of it comes");
module_param(mixed, uint, 0444);
MODULE_PARM_DESC(mixed, "WRITEs that had a key and data, too, or neither all their data nor a key");
module_param(sent, uint, 0444);
MODULE_PARM_DESC(sent, "WRITEs that had no key, but Data-Outs");
module_param(protect, bool, 0644);
MODULE_PARM_DESC(protect, "refuse WRITEs, before their data are there");

TEST_STATE;

struct fuzz_pdu {
	struct iser_ctrl iser;
	struct iscsi_hdr iscsi;
	u8 data[];
} __packed;

struct fuzz_peer {
	struct test_peer peer;	/* n: of its fault; memory: answers behind the Receives */
	u32 reads, statsn, answers;
	bool faulted;
	DAT_RMR_TRIPLET lent;	/* by a command without an answer */
	bool given_up;		/* that command was, so this memory is lent no more */
	bool holds;		/* the answer to this task management */
	struct iscsi_hdr write;	/* a command without a key whose Data-Outs follow */
	u64 write_at;		/* on the disk */
	u32 write_size, write_left;	/* bytes; 0: there is none */
	struct fuzz_pdu held;
};

static struct test_mem fuzz_disk;

/* ---- answers ---- */

static u32 fuzz_answer_at(struct fuzz_peer *peer)
{
	return RECEIVES * RECEIVE_SIZE + (peer->answers++ % ANSWERS) * ANSWER_SIZE;
}

/* An answer to @req with what all have in common. */
static struct fuzz_pdu *fuzz_begin(struct fuzz_peer *peer, const struct iscsi_hdr *req, u8 opcode,
				   u32 *at)
{
	const struct iscsi_nopout *in = (const void *)req;
	struct iscsi_nopin *out;
	struct fuzz_pdu *pdu;

	*at = fuzz_answer_at(peer);
	pdu = (void *)(peer->peer.mem.p + *at);
	memset(pdu, 0, sizeof(*pdu));
	pdu->iser.flags = ISCSI_CTRL;
	out = (void *)&pdu->iscsi;
	out->opcode = opcode;
	out->flags = ISCSI_FLAG_CMD_FINAL;
	out->itt = in->itt;
	out->ttt = cpu_to_be32(ISCSI_RESERVED_TAG);
	out->statsn = cpu_to_be32(peer->statsn++);
	out->exp_cmdsn = cpu_to_be32(be32_to_cpu(in->cmdsn) + !(in->opcode & ISCSI_OP_IMMEDIATE));
	out->max_cmdsn = cpu_to_be32(be32_to_cpu(out->exp_cmdsn) + 64);
	return pdu;
}

static void fuzz_send(struct fuzz_peer *peer, u32 at, u32 length, u32 key)
{
	test_peer_send(&peer->peer, at, length, key, 0);
}

static void fuzz_login(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	static const char security[] = "AuthMethod=None\0TargetPortalGroupTag=1";
	static const char operational[] =
		"RDMAExtensions=Yes\0HeaderDigest=None\0DataDigest=None\0ErrorRecoveryLevel=0\0"
		"InitialR2T=No\0ImmediateData=Yes\0MaxBurstLength=262144\0"
		"FirstBurstLength=" FIRST_BURST "\0"
		"DefaultTime2Wait=0\0DefaultTime2Retain=0\0MaxConnections=1\0MaxOutstandingR2T=1\0"
		"DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0"
		"TargetRecvDataSegmentLength=" MAX_DATA "\0"
		"InitiatorRecvDataSegmentLength=262144\0TargetPortalGroupTag=1";
	bool first = !(req->iscsi.flags & 0x0c);
	const char *text = first ? security : operational;
	u32 at, length = first ? sizeof(security) : sizeof(operational);
	struct fuzz_pdu *pdu = fuzz_begin(peer, &req->iscsi, ISCSI_OP_LOGIN_RSP, &at);
	struct iscsi_login_rsp *rsp = (void *)&pdu->iscsi;

	rsp->flags = req->iscsi.flags & (ISCSI_FLAG_LOGIN_TRANSIT | 0x0f);
	memcpy(rsp->isid, ((struct iscsi_login_rsp *)&req->iscsi)->isid, sizeof(rsp->isid));
	rsp->tsih = cpu_to_be16(1);
	rsp->rsvd3 = 0;
	hton24(rsp->dlength, length);
	memcpy(pdu->data, text, length);
	if (READ_ONCE(bad_logins)) {
		WRITE_ONCE(bad_logins, bad_logins - 1);
		length--;
	}
	fuzz_send(peer, at, HEADERS + length, 0);
}

static u32 fuzz_get32(const u8 *p)
{
	return p[0] << 24 | p[1] << 16 | p[2] << 8 | p[3];
}

static void fuzz_put32(u8 *p, u32 value)
{
	__be32 be = cpu_to_be32(value);

	memcpy(p, &be, sizeof(be));
}

/* What a READ or an inquiry asks for: bytes of the disk, or of @data. */
static u32 fuzz_data(const struct iscsi_scsi_req *cmd, u8 *data, u64 *disk_at)
{
	u32 asked = be32_to_cpu(cmd->data_length), length = 0;

	*disk_at = 0;
	switch (cmd->cdb[0]) {
	case READ_10:
	case WRITE_10:
		*disk_at = (u64)fuzz_get32(&cmd->cdb[2]) * BLOCK;
		return *disk_at + asked <= DISK_SIZE ? asked : 0;
	case INQUIRY:
		if (cmd->cdb[1])
			return 0;
		data[2] = 5;
		data[3] = 2;
		data[4] = 31;
		memcpy(data + 8, "KDAPL   HOSTILE         0   ", 28);
		length = 36;
		break;
	case REPORT_LUNS:
		data[3] = 8;
		length = 16;
		break;
	case READ_CAPACITY:
		fuzz_put32(data, DISK_SIZE / BLOCK - 1);
		fuzz_put32(data + 4, BLOCK);
		length = 8;
		break;
	case MODE_SENSE:
		data[0] = 3;
		length = 4;
		break;
	}
	return min(asked, length);
}

/* ---- faults ---- */

/* How an answer to a READ differs from a good one. */
static const struct fault {
	s32 longer;		/* than its headers */
	u32 said;		/* length of the data, as it says */
	u8 iser, hlength, opcode, flags;
	u32 itt, itt_set;	/* bits of the tag: turned round; set */
	bool no_tag, twice;
	s32 key;		/* beside the one that was lent, or: */
	bool keep;		/* it takes none */
	u8 late;		/* no answer, but data once this task management function is over */
	bool asks;		/* for a PDU that gets no answer, and gives it one at once */
	bool rejects;		/* the READ, as if it had been a ping */
} fuzz_faults[] = {
	{ .longer = -1 }, { .longer = -(s32)HEADERS },
	/* less data than it says, and more; and very much said */
	{ .said = 100, .longer = 96 }, { .said = 20, .longer = 24 }, { .said = 0xffffff },
	{ .hlength = 1 },
	/* Data-In with a status, which would end the command; R2T; what there is not */
	{ .opcode = ISCSI_OP_SCSI_DATA_IN, .flags = ISCSI_FLAG_DATA_STATUS, .keep = true },
	{ .opcode = ISCSI_OP_R2T, .keep = true },
	{ .opcode = 0x3e },
	/* another task, none there is, one of before */
	{ .itt = 1 }, { .itt_set = 0x1ff0 }, { .itt = 0x10000000 },
	{ .twice = true },
	{ .key = 0x100 },
	/* a ping takes the key */
	{ .opcode = ISCSI_OP_NOOP_IN, .no_tag = true },
	{ .opcode = ISCSI_OP_SCSI_TMFUNC_RSP, .keep = true },
	{ .opcode = ISCSI_OP_SCSI_TMFUNC_RSP },
	/* of no task; a reject of a ping that was none */
	{ .opcode = ISCSI_OP_SCSI_TMFUNC_RSP, .itt_set = 0x1ff0, .keep = true },
	{ .opcode = ISCSI_OP_REJECT, .rejects = true, .keep = true,
	  .said = sizeof(struct iscsi_hdr), .longer = sizeof(struct iscsi_hdr) },
	/* of a task that is free */
	{ .opcode = ISCSI_OP_LOGOUT_RSP, .itt = 1, .keep = true },
	{ .opcode = ISCSI_OP_NOOP_IN, .itt = 1, .keep = true },
	/* of a task that is no login; of iSER */
	{ .opcode = ISCSI_OP_LOGIN_RSP, .keep = true }, { .iser = ISER_HELLORPLY },
	{ .said = 900, .longer = 900 },
	/* what an initiator sends */
	{ .opcode = ISCSI_OP_SCSI_CMD, .keep = true },
	{ .late = ISCSI_TM_FUNC_ABORT_TASK }, { .late = ISCSI_TM_FUNC_LOGICAL_UNIT_RESET },
	{ .opcode = ISCSI_OP_NOOP_IN, .asks = true, .keep = true },
};

static const struct fault *fuzz_fault_of(const struct fuzz_peer *peer)
{
	return &fuzz_faults[peer->peer.n % ARRAY_SIZE(fuzz_faults)];
}

static void fuzz_committed(struct fuzz_peer *peer)
{
	peer->faulted = true;
	WRITE_ONCE(faults, faults + 1);
}

static void fuzz_ask(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	struct fuzz_pdu *pdu;
	u32 at;

	pdu = fuzz_begin(peer, &req->iscsi, ISCSI_OP_NOOP_IN, &at);
	pdu->iscsi.itt = RESERVED_ITT;
	((struct iscsi_nopin *)&pdu->iscsi)->ttt = cpu_to_be32(1);
	fuzz_send(peer, at, HEADERS, 0);
}

static void fuzz_reject_ping(struct fuzz_pdu *pdu, const struct fuzz_pdu *req)
{
	struct iscsi_hdr *ping = (void *)pdu->data;

	((struct iscsi_reject *)&pdu->iscsi)->reason = ISCSI_REASON_IMM_CMD_REJECT;
	pdu->iscsi.itt = RESERVED_ITT;
	*ping = req->iscsi;
	ping->opcode = ISCSI_OP_NOOP_OUT | ISCSI_OP_IMMEDIATE;
}

/* The tag after that of @req: libiscsi gives 1 to 127 in turns, 0 is that of logins. */
static itt_t fuzz_next_itt(const struct fuzz_pdu *req)
{
	u32 itt = (__force u32)req->iscsi.itt;

	return (__force itt_t)((itt & 127) == 127 ? itt - 126 : itt + 1);
}

/* Answer @req with the fault of this connection. */
static void fuzz_fault(struct fuzz_peer *peer, const struct fuzz_pdu *req, u32 key)
{
	const struct fault *f = fuzz_fault_of(peer);
	struct fuzz_pdu *pdu;
	u32 at;

	fuzz_committed(peer);	/* first: the client may end the connection at once */
	if (f->asks)
		fuzz_ask(peer, req);
	pdu = fuzz_begin(peer, &req->iscsi, f->opcode ?: ISCSI_OP_SCSI_CMD_RSP, &at);
	if (f->iser)
		pdu->iser.flags = f->iser;
	pdu->iscsi.hlength = f->hlength;
	pdu->iscsi.flags |= f->flags;
	hton24(pdu->iscsi.dlength, f->said);
	pdu->iscsi.itt = f->no_tag ? RESERVED_ITT :
			 (__force itt_t)(((__force u32)req->iscsi.itt ^ f->itt) | f->itt_set);
	if (f->asks)
		pdu->iscsi.itt = fuzz_next_itt(req);
	if (f->rejects)
		fuzz_reject_ping(pdu, req);
	key = f->keep ? 0 : key + f->key;
	fuzz_send(peer, at, HEADERS + f->longer, key);
	if (f->twice)
		fuzz_send(peer, at, HEADERS, 0);
}

/* ---- commands ---- */

/* A command that is never answered. */
static void fuzz_forget(struct fuzz_peer *peer, const DAT_RMR_TRIPLET *lent)
{
	peer->lent = *lent;
	fuzz_committed(peer);
}

/* Its pages may be anybody's by now. */
static void fuzz_late_data(struct fuzz_peer *peer)
{
	u32 at = fuzz_answer_at(peer);
	DAT_LMR_TRIPLET iov = test_segment(&peer->peer.mem, at, BLOCK);

	memset(peer->peer.mem.p + at, 0xdd, BLOCK);
	peer->lent.segment_length = BLOCK;
	WRITE_ONCE(late, late + 1);
	dat_ep_post_rdma_write(peer->peer.end.ep, 1, &iov, test_cookie(NULL), &peer->lent, 0);
}

/* Those before the one that the fault waits for are refused, once a command has no answer. */
static void fuzz_answer_management(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	u8 function = req->iscsi.flags & ISCSI_FLAG_TM_FUNC_MASK;
	struct iscsi_tm_rsp *rsp;
	struct fuzz_pdu *pdu;
	u32 at;

	pdu = fuzz_begin(peer, &req->iscsi, ISCSI_OP_SCSI_TMFUNC_RSP, &at);
	rsp = (void *)&pdu->iscsi;
	if (peer->lent.segment_length) {
		peer->given_up |= function == fuzz_fault_of(peer)->late;
		rsp->response = peer->given_up ? ISCSI_TMF_RSP_COMPLETE : ISCSI_TMF_RSP_REJECTED;
	}
	fuzz_send(peer, at, HEADERS, 0);
}

static void fuzz_management(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	bool held = peer->holds;

	peer->holds = READ_ONCE(hold) && !held;
	if (peer->holds) {
		peer->held = *req;
		return;
	}
	if (held)
		fuzz_answer_management(peer, &peer->held);
	fuzz_answer_management(peer, req);
}

/* As long as sense data may be: iscsid has said that 256 KiB are welcome. */
static void fuzz_check(struct fuzz_peer *peer, struct fuzz_pdu *pdu, u32 at, u32 key, bool write)
{
	static const u8 sense[] = { 0, 252, 0x70, 0, 0, 0, 0, 0, 0, 244 };

	((struct iscsi_scsi_rsp *)&pdu->iscsi)->cmd_status = SAM_STAT_CHECK_CONDITION;
	hton24(pdu->iscsi.dlength, 254);
	memset(pdu->data, 0, 256);
	memcpy(pdu->data, sense, sizeof(sense));
	pdu->data[4] = write ? DATA_PROTECT : ILLEGAL_REQUEST;
	pdu->data[14] = write ? 0x27 : 0x20;
	fuzz_send(peer, at, HEADERS + 256, key);
}

/* The answer to a command that has moved @length bytes. */
static void fuzz_answer(struct fuzz_peer *peer, const struct iscsi_hdr *req, u32 length, u32 key)
{
	const struct iscsi_scsi_req *cmd = (const void *)req;
	bool write = cmd->flags & ISCSI_FLAG_CMD_WRITE;
	u32 at, asked = be32_to_cpu(cmd->data_length);
	struct iscsi_scsi_rsp *rsp;
	struct fuzz_pdu *pdu;

	if (peer->faulted)
		return;
	pdu = fuzz_begin(peer, req, ISCSI_OP_SCSI_CMD_RSP, &at);
	rsp = (void *)&pdu->iscsi;
	rsp->rsvd1 = 0;
	if (asked > length) {
		rsp->flags |= ISCSI_FLAG_CMD_UNDERFLOW;
		rsp->residual_count = cpu_to_be32(asked - length);
	}
	if (cmd->cdb[0] != TEST_UNIT_READY && cmd->cdb[0] != SYNCHRONIZE_CACHE && !length) {
		fuzz_check(peer, pdu, at, key, write);
		return;
	}
	/* A Send does not wait for a Read. */
	test_peer_send(&peer->peer, at, HEADERS, key,
		       write ? DAT_COMPLETION_BARRIER_FENCE_FLAG : 0);
}

/* Data of a WRITE without a key. Those of the next one do not come before its last. */
static void fuzz_take(struct fuzz_peer *peer, const struct fuzz_pdu *pdu)
{
	u32 size = ntoh24(pdu->iscsi.dlength);

	if (size > peer->write_left)
		return;
	memcpy(fuzz_disk.p + peer->write_at, pdu->data, size);
	peer->write_at += size;
	peer->write_left -= size;
	if (!peer->write_left)
		fuzz_answer(peer, &peer->write, peer->write_size, 0);
}

static void fuzz_data_out(struct fuzz_peer *peer, const struct fuzz_pdu *pdu)
{
	if (peer->write_left && pdu->iscsi.itt == peer->write.itt)
		fuzz_take(peer, pdu);
}

/* Where are the data of this WRITE? Either all come unasked, or all are lent. */
static bool fuzz_mixed(const struct fuzz_pdu *req, u32 asked)
{
	bool final = req->iscsi.flags & ISCSI_FLAG_CMD_FINAL;
	u32 size = ntoh24(req->iscsi.dlength);

	if (req->iser.flags & ISER_WSV)
		return size || !final;
	return final && size != asked;
}

static void fuzz_command(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	const struct iscsi_scsi_req *cmd = (const void *)&req->iscsi;
	bool read = cmd->flags & ISCSI_FLAG_CMD_READ, write = cmd->flags & ISCSI_FLAG_CMD_WRITE;
	u32 data_at = fuzz_answer_at(peer), length, asked = be32_to_cpu(cmd->data_length);
	u32 key = be32_to_cpu(read ? req->iser.read_stag : req->iser.write_stag);
	DAT_RMR_TRIPLET remote = {};
	DAT_LMR_TRIPLET iov;
	u64 disk_at;
	bool due;

	memset(peer->peer.mem.p + data_at, 0, 64);
	length = fuzz_data(cmd, peer->peer.mem.p + data_at, &disk_at);
	peer->write_left = 0;
	if (write && fuzz_mixed(req, asked)) {
		WRITE_ONCE(mixed, mixed + 1);
		length = 0;
	}
	if (write && READ_ONCE(protect))
		length = 0;
	iov = cmd->cdb[0] == READ_10 || cmd->cdb[0] == WRITE_10 ?
	      test_segment(&fuzz_disk, disk_at, length) :
	      test_segment(&peer->peer.mem, data_at, length);
	remote.rmr_context = key;
	remote.segment_length = length;
	due = cmd->cdb[0] == READ_10 && ++peer->reads > GOOD_READS && !peer->faulted;
	if (peer->given_up)
		fuzz_late_data(peer);
	if (read && length) {
		remote.virtual_address = be64_to_cpu(req->iser.read_va);
		if (due && fuzz_fault_of(peer)->late) {
			fuzz_forget(peer, &remote);
			return;
		}
		dat_ep_post_rdma_write(peer->peer.end.ep, 1, &iov, test_cookie(NULL), &remote, 0);
	} else if (write && length && !(req->iser.flags & ISER_WSV)) {
		if (!(cmd->flags & ISCSI_FLAG_CMD_FINAL))
			WRITE_ONCE(sent, sent + 1);
		peer->write = req->iscsi;
		peer->write_at = disk_at;
		peer->write_size = length;
		peer->write_left = length;
		fuzz_take(peer, req);
		return;
	} else if (write && length) {
		remote.virtual_address = be64_to_cpu(req->iser.write_va);
		dat_ep_post_rdma_read(peer->peer.end.ep, 1, &iov, test_cookie(NULL), &remote, 0);
	}
	if (due)
		fuzz_fault(peer, req, key);
	else
		fuzz_answer(peer, &req->iscsi, length, key);
}

static void fuzz_simple(struct fuzz_peer *peer, const struct fuzz_pdu *req, u8 opcode)
{
	u32 at;

	fuzz_begin(peer, &req->iscsi, opcode, &at);
	fuzz_send(peer, at, HEADERS, 0);
}

/* Before the answer to a logout pings, after it once more the same, and answers to nothing. */
static void fuzz_logout(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	fuzz_ask(peer, req);
	fuzz_ask(peer, req);
	fuzz_simple(peer, req, ISCSI_OP_LOGOUT_RSP);
	fuzz_ask(peer, req);
	fuzz_simple(peer, req, ISCSI_OP_LOGOUT_RSP);
	fuzz_simple(peer, req, ISCSI_OP_SCSI_CMD_RSP);
	fuzz_simple(peer, req, ISCSI_OP_SCSI_TMFUNC_RSP);
}

static void fuzz_heard(struct test_peer *of, void *message)
{
	struct fuzz_peer *peer = container_of(of, struct fuzz_peer, peer);
	const struct fuzz_pdu *req = message;

	switch (req->iscsi.opcode & ISCSI_OPCODE_MASK) {
	case ISCSI_OP_LOGIN:
		fuzz_login(peer, req);
		break;
	case ISCSI_OP_SCSI_CMD:
		fuzz_command(peer, req);
		break;
	case ISCSI_OP_SCSI_DATA_OUT:
		fuzz_data_out(peer, req);
		break;
	case ISCSI_OP_NOOP_OUT:
		if (req->iscsi.itt != RESERVED_ITT)
			fuzz_simple(peer, req, ISCSI_OP_NOOP_IN);
		break;
	case ISCSI_OP_LOGOUT:
		fuzz_logout(peer, req);
		break;
	case ISCSI_OP_SCSI_TMFUNC:
		fuzz_management(peer, req);
		break;
	}
}

/* ---- connections ---- */

static void fuzz_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct fuzz_peer *peer = test_context(event->event_data.connect_event_data.ep_handle);

	if (peer && test_is_end(event->event_number) && peer->faulted)
		WRITE_ONCE(ended, ended + 1);
}

static const struct iser_cm_hdr fuzz_hello = { .flags = ISERT_ZBVA_NOT_USED };

static struct test_server fuzz_server = {
	.attr = {
		.max_message_size = RECEIVE_SIZE, .max_rdma_size = DISK_SIZE,
		.max_recv_dtos = RECEIVES, .max_recv_iov = 1,
		.max_request_dtos = 2 * ANSWERS, .max_request_iov = 1,
		.max_rdma_read_out = 4,
		.srq_soft_hw = DAT_HW_DEFAULT,
	},
	.more = ANSWERS * ANSWER_SIZE,
	.peer_size = sizeof(struct fuzz_peer),
	.hello = &fuzz_hello, .hello_size = sizeof(fuzz_hello),
	.heard = fuzz_heard,
};

static void fuzz_stop(void)
{
	test_server_close(&fuzz_server);
	test_mem_close(&fuzz_disk);
	test_ia_close(&fuzz_server.ia);
}

static int __init fuzz_init(void)
{
	struct test_ia *open = &fuzz_server.ia;
	int err;

	kinds = ARRAY_SIZE(fuzz_faults);
	err = test_ia_open(open, ia) ?:
	      test_mem_open(open, &fuzz_disk, DISK_SIZE,
			    LOCAL_RIGHTS | (open->iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0)) ?:
	      test_server_open(&fuzz_server, port, fuzz_conn_upcall);
	if (err)
		fuzz_stop();
	return err;
}

module_init(fuzz_init);
module_exit(fuzz_stop);
MODULE_DESCRIPTION("a hostile target of iSER");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
