// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * A peer that speaks 2.0, for what 1.2 does not show: the private data of a refusal.
 */
#include <linux/completion.h>
#include <linux/jiffies.h>
#include <linux/string.h>
#include <linux/time64.h>
#include <dat2/kdat.h>

#include "peer.h"

static DAT_EVD_HANDLE peer_evd;
static DAT_EP_HANDLE peer_ep;
static DECLARE_COMPLETION(peer_over);
static DAT_EVENT_NUMBER peer_event;
static bool peer_silent;

/* Private data of InfiniBand's messages are filled up with zeroes. */
static void peer_upcall(DAT_PVOID instance, const DAT_EVENT *event, DAT_BOOLEAN more)
{
	const DAT_CONNECTION_EVENT_DATA *data = &event->event_data.connect_event_data;

	peer_event = event->event_number;
	peer_silent = !memchr_inv(data->private_data, 0, data->private_data_size);
	complete(&peer_over);
}

/* Ask for a connection. Whether kdo_peer_refused() is due. */
bool kdo_peer_connect(void *ia, void *pz, void *address, u16 port)
{
	const DAT_UPCALL_OBJECT upcall = { .upcall_func = peer_upcall };

	if (dat_evd_kcreate(ia, 4, DAT_UPCALL_SINGLE_INSTANCE, &upcall, DAT_EVD_CONNECTION_FLAG,
			    &peer_evd) != DAT_SUCCESS)
		return false;
	if (dat_ep_create(ia, pz, DAT_HANDLE_NULL, DAT_HANDLE_NULL, peer_evd, NULL,
			  &peer_ep) == DAT_SUCCESS) {
		if (dat_ep_connect(peer_ep, address, port, 10 * USEC_PER_SEC, 0, NULL,
				   DAT_QOS_BEST_EFFORT, DAT_CONNECT_DEFAULT_FLAG) == DAT_SUCCESS)
			return true;
		dat_ep_free(peer_ep);
	}
	dat_evd_free(peer_evd);
	return false;
}

/* Whether the answer was no, without a word. */
bool kdo_peer_refused(void)
{
	bool answered = wait_for_completion_timeout(&peer_over, 20 * HZ);
	bool freed = dat_ep_free(peer_ep) == DAT_SUCCESS;

	if (dat_evd_free(peer_evd) != DAT_SUCCESS)
		freed = false;
	return freed && answered && peer_event == DAT_CONNECTION_EVENT_PEER_REJECTED &&
	       peer_silent;
}
