// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * What the suites need from inside the module: its global state on kernels
 * that run suites before module init, and a connection without a peer.
 */
#include "../ia/ia_api.h"

static DEFINE_MUTEX(hooks_lock);
static int hooks_users;
static bool hooks_started;

/*
 * Have the module's global state up.
 * Where the module has been initialised already this does nothing; else the
 * last kdapl_test_put() takes down what was brought up.
 */
int kdapl_test_get(void)
{
	int ret = 0;

	mutex_lock(&hooks_lock);
	if (!hooks_users && !kdapl_misc_wq) {
		ret = kdapl_start();
		hooks_started = !ret;
	}
	if (!ret)
		hooks_users++;
	mutex_unlock(&hooks_lock);
	return ret;
}

/* The counterpart of kdapl_test_get(). */
void kdapl_test_put(void)
{
	mutex_lock(&hooks_lock);
	if (!--hooks_users && hooks_started) {
		kdapl_stop();
		kdapl_misc_wq = NULL;
		hooks_started = false;
	}
	mutex_unlock(&hooks_lock);
}

/* Bring an EP to CONNECTED as the CM does at ESTABLISHED. */
void kdapl_test_connect(struct kdapl_ep *ep)
{
	struct kdapl_conn *conn;

	mutex_lock(&ep->mutex);
	conn = kdapl_ep_conn(ep);
	mutex_lock(&conn->lock);
	spin_lock_irq(&ep->lock);
	kdapl_ep_step(ep, KDAPL_IN_CONNECT);
	spin_unlock_irq(&ep->lock);
	conn->state = KDAPL_CONN_CONNECTING;
	conn->read_depth = conn->attr.max_rdma_read_out;
	kdapl_conn_established(conn);
	mutex_unlock(&conn->lock);
	mutex_unlock(&ep->mutex);
}
