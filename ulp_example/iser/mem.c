// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * kdat_iser: the memory of a connection. All messages are in one region, which is registered
 * once. The memory of a command is registered for that command, so each slot has an LMR.
 */
#include <linux/math64.h>
#include <linux/mm.h>
#include <linux/sched/mm.h>
#include <linux/slab.h>
#include "kdiser.h"

#define KDISER_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)
#define KDISER_LONG	ALIGN(sizeof(struct kdiser_pdu) + KDISER_TEXT_SIZE, 64)
#define KDISER_SHORT	ALIGN(sizeof(struct kdiser_pdu) + KDISER_DATA_SIZE, 64)
#define KDISER_DATA_OUT	ALIGN(sizeof(struct kdiser_pdu), 64)

/* Where the parts of the region are; the text of a login is at its beginning. */
static u32 kdiser_receives_at(void)
{
	return KDISER_TEXT_SIZE;
}

static u32 kdiser_slots_at(struct kdiser_conn *conn)
{
	return kdiser_receives_at() + KDISER_LONG_RECEIVES * KDISER_LONG +
	       (conn->depth + KDISER_MORE_RECEIVES) * KDISER_SHORT;
}

static u32 kdiser_data_outs_at(struct kdiser_conn *conn)
{
	return kdiser_slots_at(conn) + conn->depth * conn->slot_size;
}

static u32 kdiser_messages_size(struct kdiser_conn *conn)
{
	return kdiser_data_outs_at(conn) + KDISER_DATA_OUTS * KDISER_DATA_OUT;
}

u8 *kdiser_text(struct kdiser_conn *conn)
{
	return conn->messages;
}

/* The buffer of Receive @i, and its @size. */
struct kdiser_pdu *kdiser_receive(struct kdiser_conn *conn, u32 i, u32 *size)
{
	u8 *at = conn->messages + kdiser_receives_at();

	*size = i < KDISER_LONG_RECEIVES ? KDISER_LONG : KDISER_SHORT;
	if (i < KDISER_LONG_RECEIVES)
		return (void *)(at + i * KDISER_LONG);
	at += KDISER_LONG_RECEIVES * KDISER_LONG;
	return (void *)(at + (i - KDISER_LONG_RECEIVES) * KDISER_SHORT);
}

/* What slot @i sends: a PDU, and room for conn->copy bytes of data behind it. */
struct kdiser_pdu *kdiser_slot_pdu(struct kdiser_conn *conn, u32 i)
{
	return (void *)(conn->messages + kdiser_slots_at(conn) + i * conn->slot_size);
}

struct kdiser_pdu *kdiser_data_pdu(struct kdiser_conn *conn, u32 i)
{
	return (void *)(conn->messages + kdiser_data_outs_at(conn) + i * KDISER_DATA_OUT);
}

/* What one LMR of the device has room for, wherever it begins in a page. */
static u64 kdiser_room(const struct kdiser_conn *conn)
{
	return (u64)(conn->limits.lmr_pages - 1) * PAGE_SIZE;
}

/* The size of all messages if no data is copied. */
static u32 kdiser_least(struct kdiser_conn *conn)
{
	conn->copy = 0;
	conn->slot_size = ALIGN(sizeof(struct kdiser_pdu), 64);
	return kdiser_messages_size(conn);
}

bool kdiser_messages_fit(struct kdiser_conn *conn)
{
	return kdiser_least(conn) <= kdiser_room(conn);
}

/* Small WRITEs get the room that the rest leaves in one LMR of the device. */
static void kdiser_choose_copy(struct kdiser_conn *conn)
{
	u64 room = kdiser_room(conn);
	u32 least = kdiser_least(conn), each = 0;

	if (room > least)
		each = min_t(u64, div_u64(room - least, conn->depth), KDISER_MAX_COPY);
	conn->copy = round_down(each, SECTOR_SIZE);
	conn->slot_size = ALIGN(sizeof(struct kdiser_pdu) + conn->copy, 64);
	if (kdiser_messages_size(conn) > room && conn->copy) {
		conn->copy -= SECTOR_SIZE;	/* for what the alignment has added */
		conn->slot_size = ALIGN(sizeof(struct kdiser_pdu) + conn->copy, 64);
	}
}

int kdiser_messages_create(struct kdiser_conn *conn)
{
	DAT_REGION_DESCRIPTION region = {};
	u32 size, i;

	kdiser_choose_copy(conn);
	size = kdiser_messages_size(conn);
	conn->messages = kvzalloc(size, GFP_KERNEL);
	if (!conn->messages)
		return -ENOMEM;
	for (i = 0; i < KDISER_DATA_OUTS; i++)
		conn->data_outs[i] = i;
	conn->nr_data_outs = KDISER_DATA_OUTS;
	region.for_va = conn->messages;
	return kdat_errno(dat_lmr_kcreate(conn->ia, DAT_MEM_TYPE_VIRTUAL, region, size, conn->pz,
					  KDISER_LOCAL, DAT_VA_TYPE_VA, DAT_MEM_OPTIMIZE_DONT_CARE,
					  &conn->lmr, &conn->lkey, NULL, NULL, NULL));
}

/* The slots of a session with @count tasks. */
int kdiser_slots_create(struct kdiser_conn *conn, u32 count)
{
	unsigned int noio;
	int err = 0;
	u32 i;

	if (count > conn->depth)
		return -EINVAL;
	noio = memalloc_noio_save();	/* disks may wait for this connection */
	conn->slots = kvcalloc(count, sizeof(*conn->slots), GFP_KERNEL);
	if (!conn->slots)
		err = -ENOMEM;
	for (i = 0; i < count && !err; i++) {
		conn->slots[i].itt = RESERVED_ITT;
		err = kdat_errno(dat_lmr_allocate(conn->ia, conn->pz, conn->sg_tablesize + 1,
						  DAT_LMR_SCOPE_EP, &conn->slots[i].lmr));
	}
	memalloc_noio_restore(noio);
	if (!err)
		conn->nr_slots = count;
	return err;
}

/* After kdiser_close(), which has freed what was registered. */
void kdiser_mem_free(struct kdiser_conn *conn)
{
	kvfree(conn->slots);
	kvfree(conn->messages);
}
