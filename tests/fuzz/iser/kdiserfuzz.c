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
#include "../../lib/consumer.h"

#define RECEIVES	160
#define RECEIVE_SIZE	2048
#define ANSWERS		160
#define ANSWER_SIZE	1024
#define DISK_SIZE	(1024 * 1024)
#define BLOCK		512
#define HEADERS		(sizeof(struct iser_ctrl) + sizeof(struct iscsi_hdr))
#define GOOD_READS	10	/* before the fault */

static char *ia;
static ushort port = 3261;
static uint faults, ended, kinds;

module_param(ia, charp, 0444);
MODULE_PARM_DESC(ia, "interface adapter");
module_param(port, ushort, 0444);
module_param(faults, uint, 0444);
module_param(ended, uint, 0444);
module_param(kinds, uint, 0444);

TEST_STATE;

struct fuzz_pdu {
	struct iser_ctrl iser;
	struct iscsi_hdr iscsi;
	u8 data[];
} __packed;

struct fuzz_peer {
	struct list_head node;
	DAT_EP_HANDLE ep;
	struct test_mem mem;	/* Receives, then answers */
	u32 kind;		/* of its fault */
	u32 reads, statsn, answers;
	bool faulted;
};

static struct test_ia fuzz_ia;
static struct test_mem fuzz_disk;
static DAT_EVD_HANDLE fuzz_evd, fuzz_conn_evd, fuzz_cr_evd;
static DAT_PSP_HANDLE fuzz_psp;
static LIST_HEAD(fuzz_peers);	/* of the upcall for requests */
static u32 fuzz_next;

/* ---- answers ---- */

static u32 fuzz_answer_at(struct fuzz_peer *peer)
{
	return RECEIVES * RECEIVE_SIZE + (peer->answers++ % ANSWERS) * ANSWER_SIZE;
}

/* An answer to @req with what all have in common. */
static struct fuzz_pdu *fuzz_begin(struct fuzz_peer *peer, const struct fuzz_pdu *req, u8 opcode,
				   u32 *at)
{
	const struct iscsi_nopout *in = (const void *)&req->iscsi;
	struct iscsi_nopin *out;
	struct fuzz_pdu *pdu;

	*at = fuzz_answer_at(peer);
	pdu = (void *)(peer->mem.p + *at);
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
	DAT_LMR_TRIPLET iov = test_segment(&peer->mem, at, length);

	dat_ep_post_send_with_invalidate(peer->ep, 1, &iov, test_cookie(NULL), 0,
					 key ? DAT_TRUE : DAT_FALSE, key);
}

static void fuzz_login(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	static const char security[] = "AuthMethod=None\0TargetPortalGroupTag=1";
	static const char operational[] =
		"RDMAExtensions=Yes\0HeaderDigest=None\0DataDigest=None\0ErrorRecoveryLevel=0\0"
		"InitialR2T=Yes\0ImmediateData=No\0MaxBurstLength=262144\0FirstBurstLength=65536\0"
		"DefaultTime2Wait=0\0DefaultTime2Retain=0\0MaxConnections=1\0MaxOutstandingR2T=1\0"
		"DataPDUInOrder=Yes\0DataSequenceInOrder=Yes\0TargetRecvDataSegmentLength=8192\0"
		"InitiatorRecvDataSegmentLength=128\0TargetPortalGroupTag=1";
	bool first = !(req->iscsi.flags & 0x0c);
	const char *text = first ? security : operational;
	u32 at, length = first ? sizeof(security) : sizeof(operational);
	struct fuzz_pdu *pdu = fuzz_begin(peer, req, ISCSI_OP_LOGIN_RSP, &at);
	struct iscsi_login_rsp *rsp = (void *)&pdu->iscsi;

	rsp->flags = req->iscsi.flags & (ISCSI_FLAG_LOGIN_TRANSIT | 0x0f);
	memcpy(rsp->isid, ((struct iscsi_login_rsp *)&req->iscsi)->isid, sizeof(rsp->isid));
	rsp->tsih = cpu_to_be16(1);
	rsp->rsvd3 = 0;
	hton24(rsp->dlength, length);
	memcpy(pdu->data, text, length);
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

enum fuzz_kind {
	FUZZ_SHORT, FUZZ_EMPTY, FUZZ_LESS_THAN_SAID, FUZZ_MORE_THAN_SAID, FUZZ_MUCH_SAID,
	FUZZ_HEADERS, FUZZ_DATA_IN, FUZZ_R2T, FUZZ_OPCODE, FUZZ_OTHER_ITT, FUZZ_HIGH_ITT,
	FUZZ_OLD_ITT, FUZZ_TWICE, FUZZ_OTHER_KEY, FUZZ_PING_TAKES_KEY, FUZZ_TM, FUZZ_TM_TAKES_KEY,
	FUZZ_LOGIN, FUZZ_HELLO, FUZZ_TOO_LONG, FUZZ_REQUEST, FUZZ_KINDS,
};

/* Answer @req with the fault of this connection. */
static void fuzz_fault(struct fuzz_peer *peer, const struct fuzz_pdu *req, u32 key)
{
	u32 at, length = HEADERS;
	struct fuzz_pdu *pdu = fuzz_begin(peer, req, ISCSI_OP_SCSI_CMD_RSP, &at);

	switch ((enum fuzz_kind)(peer->kind % FUZZ_KINDS)) {
	case FUZZ_SHORT:
		length = HEADERS - 1;
		break;
	case FUZZ_EMPTY:
		length = 0;
		break;
	case FUZZ_LESS_THAN_SAID:
		hton24(pdu->iscsi.dlength, 100);
		length += 96;
		break;
	case FUZZ_MORE_THAN_SAID:
		hton24(pdu->iscsi.dlength, 20);
		length += 24;
		break;
	case FUZZ_MUCH_SAID:
		hton24(pdu->iscsi.dlength, 0xffffff);
		break;
	case FUZZ_HEADERS:
		pdu->iscsi.hlength = 1;
		break;
	case FUZZ_DATA_IN:	/* with a status, which would end the command */
		pdu->iscsi.opcode = ISCSI_OP_SCSI_DATA_IN;
		pdu->iscsi.flags |= ISCSI_FLAG_DATA_STATUS;
		key = 0;
		break;
	case FUZZ_R2T:
		pdu->iscsi.opcode = ISCSI_OP_R2T;
		key = 0;
		break;
	case FUZZ_OPCODE:
		pdu->iscsi.opcode = 0x3e;
		break;
	case FUZZ_OTHER_ITT:
		pdu->iscsi.itt = (__force itt_t)((__force u32)req->iscsi.itt ^ 1);
		break;
	case FUZZ_HIGH_ITT:
		pdu->iscsi.itt = (__force itt_t)((__force u32)req->iscsi.itt | 0x1ff0);
		break;
	case FUZZ_OLD_ITT:
		pdu->iscsi.itt = (__force itt_t)((__force u32)req->iscsi.itt ^ 0x10000000);
		break;
	case FUZZ_TWICE:
		fuzz_send(peer, at, length, key);
		key = 0;
		break;
	case FUZZ_OTHER_KEY:
		key += 0x100;
		break;
	case FUZZ_PING_TAKES_KEY:
		pdu->iscsi.opcode = ISCSI_OP_NOOP_IN;
		pdu->iscsi.itt = RESERVED_ITT;
		break;
	case FUZZ_TM:
	case FUZZ_TM_TAKES_KEY:
		pdu->iscsi.opcode = ISCSI_OP_SCSI_TMFUNC_RSP;
		if (peer->kind % FUZZ_KINDS == FUZZ_TM)
			key = 0;
		break;
	case FUZZ_LOGIN:	/* of a task that is no login */
		pdu->iscsi.opcode = ISCSI_OP_LOGIN_RSP;
		key = 0;
		break;
	case FUZZ_HELLO:
		pdu->iser.flags = ISER_HELLORPLY;
		break;
	case FUZZ_TOO_LONG:
		hton24(pdu->iscsi.dlength, 900);
		length += 900;
		break;
	case FUZZ_REQUEST:	/* what an initiator sends */
		pdu->iscsi.opcode = ISCSI_OP_SCSI_CMD;
		key = 0;
		break;
	case FUZZ_KINDS:
		break;
	}
	fuzz_send(peer, at, length, key);
	peer->faulted = true;
	WRITE_ONCE(faults, faults + 1);
}

/* ---- commands ---- */

static void fuzz_command(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	const struct iscsi_scsi_req *cmd = (const void *)&req->iscsi;
	bool read = cmd->flags & ISCSI_FLAG_CMD_READ, write = cmd->flags & ISCSI_FLAG_CMD_WRITE;
	u32 at, data_at = fuzz_answer_at(peer), length;
	u32 asked = be32_to_cpu(cmd->data_length);
	u32 key = be32_to_cpu(read ? req->iser.read_stag : req->iser.write_stag);
	struct iscsi_scsi_rsp *rsp;
	DAT_RMR_TRIPLET remote = {};
	struct fuzz_pdu *pdu;
	DAT_LMR_TRIPLET iov;
	u64 disk_at;

	memset(peer->mem.p + data_at, 0, 64);
	length = fuzz_data(cmd, peer->mem.p + data_at, &disk_at);
	iov = cmd->cdb[0] == READ_10 || cmd->cdb[0] == WRITE_10 ?
	      test_segment(&fuzz_disk, disk_at, length) :
	      test_segment(&peer->mem, data_at, length);
	remote.rmr_context = key;
	remote.segment_length = length;
	if (read && length) {
		remote.virtual_address = be64_to_cpu(req->iser.read_va);
		dat_ep_post_rdma_write(peer->ep, 1, &iov, test_cookie(NULL), &remote, 0);
	} else if (write && length) {
		remote.virtual_address = be64_to_cpu(req->iser.write_va);
		dat_ep_post_rdma_read(peer->ep, 1, &iov, test_cookie(NULL), &remote, 0);
	}
	if (cmd->cdb[0] == READ_10 && ++peer->reads > GOOD_READS && !peer->faulted) {
		fuzz_fault(peer, req, key);
		return;
	}
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
		static const u8 sense[] = { 0, 18, 0x70, 0, ILLEGAL_REQUEST, 0, 0, 0, 0, 10,
					    0, 0, 0, 0, 0x20 };

		rsp->cmd_status = SAM_STAT_CHECK_CONDITION;
		hton24(rsp->dlength, 20);
		memset(pdu->data, 0, 20);
		memcpy(pdu->data, sense, sizeof(sense));
		fuzz_send(peer, at, HEADERS + 20, key);
		return;
	}
	/* A Send does not wait for a Read. */
	iov = test_segment(&peer->mem, at, HEADERS);
	dat_ep_post_send_with_invalidate(peer->ep, 1, &iov, test_cookie(NULL),
					 write ? DAT_COMPLETION_BARRIER_FENCE_FLAG : 0,
					 key ? DAT_TRUE : DAT_FALSE, key);
}

static void fuzz_simple(struct fuzz_peer *peer, const struct fuzz_pdu *req, u8 opcode)
{
	u32 at;

	fuzz_begin(peer, req, opcode, &at);
	fuzz_send(peer, at, HEADERS, 0);
}

static void fuzz_request(struct fuzz_peer *peer, const struct fuzz_pdu *req)
{
	switch (req->iscsi.opcode & ISCSI_OPCODE_MASK) {
	case ISCSI_OP_LOGIN:
		fuzz_login(peer, req);
		break;
	case ISCSI_OP_SCSI_CMD:
		fuzz_command(peer, req);
		break;
	case ISCSI_OP_NOOP_OUT:
		if (req->iscsi.itt != RESERVED_ITT)
			fuzz_simple(peer, req, ISCSI_OP_NOOP_IN);
		break;
	case ISCSI_OP_LOGOUT:
		fuzz_simple(peer, req, ISCSI_OP_LOGOUT_RSP);
		break;
	case ISCSI_OP_SCSI_TMFUNC:
		fuzz_simple(peer, req, ISCSI_OP_SCSI_TMFUNC_RSP);
		break;
	}
}

static int fuzz_receive(struct fuzz_peer *peer, u32 i)
{
	DAT_LMR_TRIPLET iov = test_segment(&peer->mem, i * RECEIVE_SIZE, RECEIVE_SIZE);

	return dat_ep_post_recv(peer->ep, 1, &iov, (DAT_DTO_COOKIE){ .as_64 = i + 1 }, 0);
}

static void fuzz_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_DTO_COMPLETION_EVENT_DATA *dto = &event->event_data.dto_completion_event_data;
	u32 i = dto->user_cookie.as_64 - 1;
	struct fuzz_peer *peer;

	if (dto->status != DAT_DTO_SUCCESS || !dto->user_cookie.as_64)
		return;
	peer = test_context(dto->ep_handle);
	fuzz_request(peer, (void *)(peer->mem.p + i * RECEIVE_SIZE));
	fuzz_receive(peer, i);
}

/* ---- connections ---- */

static void fuzz_conn_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	struct fuzz_peer *peer = test_context(event->event_data.connect_event_data.ep_handle);

	if (peer && test_is_end(event->event_number) && peer->faulted)
		WRITE_ONCE(ended, ended + 1);
}

static void fuzz_cr_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	static const struct iser_cm_hdr hello = { .flags = ISERT_ZBVA_NOT_USED };
	DAT_CR_HANDLE cr = event->event_data.cr_arrival_event_data.cr_handle;
	struct fuzz_peer *peer = kzalloc(sizeof(*peer), GFP_KERNEL);
	DAT_EP_ATTR attr = DAT_EP_ATTR_INIT;
	int i, err;

	if (!peer) {
		dat_cr_reject(cr, 0, NULL);
		return;
	}
	peer->kind = fuzz_next++;
	list_add(&peer->node, &fuzz_peers);
	attr.max_message_size = RECEIVE_SIZE;
	attr.max_rdma_size = DISK_SIZE;
	attr.max_recv_dtos = RECEIVES;
	attr.max_recv_iov = 1;
	attr.max_request_dtos = 2 * ANSWERS;
	attr.max_request_iov = 1;
	attr.max_rdma_read_out = 4;
	err = test_mem_open(&fuzz_ia, &peer->mem, RECEIVES * RECEIVE_SIZE + ANSWERS * ANSWER_SIZE,
			    LOCAL_RIGHTS) ?:
	      TRY(dat_ep_create, fuzz_ia.h, fuzz_ia.pz, fuzz_evd, fuzz_evd, fuzz_conn_evd, &attr,
		  &peer->ep) ?:
	      TRY(dat_set_consumer_context, peer->ep, test_cookie(peer));
	for (i = 0; !err && i < RECEIVES; i++)
		err = fuzz_receive(peer, i);
	if (err || dat_cr_accept(cr, peer->ep, sizeof(hello), (DAT_PVOID)&hello) != DAT_SUCCESS)
		dat_cr_reject(cr, 0, NULL);
}

static void fuzz_stop(void)
{
	struct fuzz_peer *peer, *next;

	FREE(dat_psp_free, &fuzz_psp);
	FREE(dat_evd_free, &fuzz_cr_evd);
	list_for_each_entry_safe(peer, next, &fuzz_peers, node) {
		if (peer->ep)
			kdat_ep_drain(peer->ep);
		FREE(dat_ep_free, &peer->ep);
		test_mem_close(&peer->mem);
		kfree(peer);
	}
	FREE(dat_evd_free, &fuzz_evd);
	FREE(dat_evd_free, &fuzz_conn_evd);
	test_mem_close(&fuzz_disk);
	test_ia_close(&fuzz_ia);
}

static int __init fuzz_init(void)
{
	int err;

	kinds = FUZZ_KINDS;
	err = test_ia_open(&fuzz_ia, ia) ?:
	      test_mem_open(&fuzz_ia, &fuzz_disk, DISK_SIZE,
			    LOCAL_RIGHTS | (fuzz_ia.iwarp ? DAT_MEM_PRIV_REMOTE_WRITE_FLAG : 0)) ?:
	      test_evd(&fuzz_ia, 16, DAT_EVD_DTO_FLAG, fuzz_upcall, NULL, &fuzz_evd) ?:
	      test_evd(&fuzz_ia, 1024, DAT_EVD_CONNECTION_FLAG, fuzz_conn_upcall, NULL,
		       &fuzz_conn_evd) ?:
	      test_evd(&fuzz_ia, 32, DAT_EVD_CR_FLAG, fuzz_cr_upcall, NULL, &fuzz_cr_evd) ?:
	      TRY(dat_psp_create, fuzz_ia.h, port, fuzz_cr_evd, DAT_PSP_CONSUMER_FLAG, &fuzz_psp);
	if (err)
		fuzz_stop();
	return err;
}

module_init(fuzz_init);
module_exit(fuzz_stop);
MODULE_DESCRIPTION("a hostile target of iSER");
MODULE_AUTHOR("The kDAPL for Linux authors");
MODULE_LICENSE("Dual BSD/GPL");
MODULE_VERSION("1.0");
