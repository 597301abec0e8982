// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Private data of all sizes, and the same way again with dat_ep_dup_connect. */
#include <linux/slab.h>

#include "kdtest_conn.h"

/* Every residue of four; with checkers that cost much, fewer between the ends. */
#define STEP (KD_SLOW ? 9 : 3)
#define ROOM 260

struct talk {
	struct kdt_pair *pair;
	struct kdat_pdata_limits max;
	u8 *data;
};

static struct talk *talk_new(struct kunit *test)
{
	struct talk *t = kdt_zalloc(test, sizeof(*t));
	struct kdat_pdata_limits b = {};

	t->data = kdt_zalloc(test, ROOM);
	t->pair = kdt_pair_new(test, NULL);
	KDT_OK(test, kdat_ia_pdata_limits(t->pair->c.ia->h, &t->max));
	KDT_OK(test, kdat_ia_pdata_limits(t->pair->s.ia->h, &b));
	KUNIT_ASSERT_EQ(test, memcmp(&t->max, &b, sizeof(b)), 0);
	KUNIT_ASSERT_LT(test, max3(t->max.accept, t->max.connect, t->max.reject), ROOM);
	return t;
}

static DAT_CR_HANDLE ask(struct kunit *test, struct talk *t, int len, u32 seed)
{
	struct kdt_pair *pair = t->pair;

	kdt_fill(t->data, ROOM, seed);
	KDT_OK(test, kdt_ask(&pair->c, pair->s.ia, pair->port, 60 * USEC_PER_SEC, t->data, len));
	memset(t->data, 0xd1, ROOM);	/* copied during the call */
	return kdt_arrival(test, pair->cr).cr_handle;
}

/* @fixed: what this transport makes of any size, 0: the exact size arrives */
static void arrived(struct kunit *test, const void *p, int size, int len, int fixed, u32 seed)
{
	if (fixed) {
		KUNIT_EXPECT_EQ(test, size, fixed);
		KUNIT_EXPECT_TRUE_MSG(test, size <= len || kdt_all(p + len, size - len, 0),
				      "not padded with zeros behind %d bytes", len);
	} else {
		KUNIT_EXPECT_EQ(test, size, len);
	}
	if (len && size >= len)
		KUNIT_EXPECT_TRUE_MSG(test, kdt_same(p, len, seed), "%d bytes are not these", len);
}

/* The next sizes to try: up by a step, and the ends exactly. */
static int next(int len, int max)
{
	return len == max ? max + 1 : min(len + STEP, max);
}

static void every_accept(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_pair *pair = t->pair;
	bool iwarp = pair->c.ia->iwarp;
	DAT_CONNECTION_EVENT_DATA conn;
	DAT_CR_PARAM param = {};
	DAT_CR_HANDLE cr;
	DAT_EVENT event;
	int len, n;

	for (len = 0; len <= t->max.accept; len = next(len, t->max.accept)) {
		n = min(len, t->max.connect);
		cr = ask(test, t, n, len);
		KDT_OK(test, dat_cr_query(cr, DAT_CR_FIELD_ALL, &param));
		arrived(test, param.private_data, param.private_data_size, n, iwarp ? 0 : 56, len);
		kdt_fill(t->data, ROOM, 1000 + len);
		KDT_OK(test, dat_cr_accept(cr, pair->s.h, len, t->data));
		memset(t->data, 0xd2, ROOM);
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->c.conn, &event));
		KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		conn = event.event_data.connect_event_data;
		KUNIT_ASSERT_TRUE(test, kdt_get(pair->s.conn, &event));
		KUNIT_ASSERT_EQ(test, (int)event.event_number, DAT_CONNECTION_EVENT_ESTABLISHED);
		KUNIT_EXPECT_EQ(test, event.event_data.connect_event_data.private_data_size, 0);
		kdt_pair_down(test, pair);
		/* it lives as long as the connection is not reset */
		arrived(test, conn.private_data, conn.private_data_size, len, iwarp ? 0 : 196,
			1000 + len);
		kdt_reset(test, &pair->c, &pair->s);
	}
	kdt_pair_done(test, pair);
}

static void every_reject(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_pair *pair = t->pair;
	int len, lost = 0, n = 0;
	DAT_CR_HANDLE cr;

	for (len = 0; len <= t->max.reject; len = next(len, t->max.reject)) {
		cr = ask(test, t, 0, 0);
		kdt_fill(t->data, ROOM, 2000 + len);
		kdt_reject(test, &pair->c, pair->cr, cr, t->data, len);
		n++;
		if (!kdt_rejected(test, &pair->c, len, 2000 + len))
			lost++;
		KDT_OK(test, dat_ep_reset(pair->c.h));
	}
	kunit_info(test, "%d of %d lost\n", lost, n);
	/* soft-iWARP loses one of a hundred; see kdt_rejected() */
	KUNIT_EXPECT_LE(test, lost, pair->c.ia->iwarp ? n / 10 : 0);
	kdt_pair_done(test, pair);
}

static void dup_connect(struct kunit *test)
{
	struct talk *t = talk_new(test);
	struct kdt_pair *pair = t->pair;
	struct kdt_scene *u = kdt_scene_new(test);
	DAT_CR_ARRIVAL_EVENT_DATA arrival;
	DAT_EP_PARAM one = {}, two = {};
	u32 sec = 60 * USEC_PER_SEC;
	DAT_CR_PARAM cr = {};
	struct kdt_ep back;
	DAT_EVENT event;

	kdt_pair_connect(test, pair);
	/* To the same place, with words of its own. */
	kdt_fill(t->data, ROOM, 31);
	KDT_OK(test, dat_ep_dup_connect(u->c.h, pair->c.h, sec, t->max.connect, t->data, 0));
	memset(t->data, 0, ROOM);
	arrival = kdt_arrival(test, pair->cr);
	KUNIT_EXPECT_EQ(test, arrival.conn_qual, pair->port);
	KUNIT_EXPECT_PTR_EQ(test, arrival.sp_handle.psp_handle, pair->psp);
	KDT_OK(test, dat_cr_query(arrival.cr_handle, DAT_CR_FIELD_ALL, &cr));
	KUNIT_EXPECT_TRUE(test, kdt_same_address(cr.remote_ia_address_ptr, u->c.ia));
	KUNIT_EXPECT_EQ(test, cr.private_data_size, t->max.connect);
	KUNIT_EXPECT_TRUE(test, kdt_same(cr.private_data, t->max.connect, 31));
	kdt_accept(test, arrival.cr_handle, u->s.h, &u->c, &u->s);
	KDT_OK(test, dat_ep_query(pair->c.h, DAT_EP_FIELD_ALL, &one));
	KDT_OK(test, dat_ep_query(u->c.h, DAT_EP_FIELD_ALL, &two));
	KUNIT_EXPECT_EQ(test, one.remote_port_qual, two.remote_port_qual);
	KUNIT_EXPECT_NE(test, one.local_port_qual, two.local_port_qual);
	KUNIT_EXPECT_TRUE(test, kdt_same_address(two.remote_ia_address_ptr, u->s.ia));
	/* Two connections that have nothing to do with each other. */
	kdt_talk(test, &u->c, &u->s, u->from, u->to, 1);
	kdt_talk(test, &pair->c, &pair->s, u->from, u->to, 2);
	kdt_pair_down(test, pair);
	kdt_talk(test, &u->c, &u->s, u->from, u->to, 3);
	kdt_reset(test, &pair->c, &pair->s);
	/* The copy can be followed as well, but not what has ended. */
	KDT_OK(test, dat_ep_dup_connect(pair->c.h, u->c.h, sec, 0, NULL, 0));
	kdt_accept(test, kdt_arrival(test, pair->cr).cr_handle, pair->s.h, &pair->c, &pair->s);
	kdt_down(test, &u->c, &u->s);
	kdt_ep_new(test, &back, u->s.ia, NULL);
	KDT_REFUSED(test, DAT_INVALID_STATE, DAT_INVALID_STATE_EP_DISCONNECTED,
		    dat_ep_dup_connect(back.h, u->s.h, sec, 0, NULL, 0));
	/* The passive end knows where its peer is, but nobody listens there. */
	KDT_OK(test, dat_ep_dup_connect(back.h, pair->s.h, sec, 0, NULL, 0));
	KUNIT_ASSERT_TRUE(test, kdt_get(back.conn, &event));
	KUNIT_EXPECT_TRUE_MSG(test, event.event_number == DAT_CONNECTION_EVENT_NON_PEER_REJECTED ||
			      (back.ia->iwarp &&
			       event.event_number != DAT_CONNECTION_EVENT_ESTABLISHED),
			      "event 0x%x", event.event_number);
	KUNIT_EXPECT_EQ(test, (int)kdt_state(pair->s.h), DAT_EP_STATE_CONNECTED);
	kdt_ep_done(test, &back);
	kdt_pair_down(test, pair);
	kdt_scene_done(test, u);
	kdt_pair_done(test, pair);
}

static struct kunit_case cases[] = {
	KD_CASE(every_accept,
		"CONN-06,CR-ACC-07,CR-QRY-01,EVD-EV-02,EVD-EV-03,EVD-EV-06: sizes, both ways"),
	KD_CASE(every_reject, "CR-REJ-01,EVD-EV-04: sizes with a reject"),
	KD_CASE(dup_connect, "CONN-13,CONN-09: the same way again"),
	{}
};

struct kunit_suite kdt_pdata_suite = { .name = "kdtest-pdata", KDT_CASES };
