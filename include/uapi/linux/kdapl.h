/* SPDX-License-Identifier: ((GPL-2.0 WITH Linux-syscall-note) OR BSD-3-Clause) */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Generic netlink family "kdapl". Documentation/netlink/specs/kdapl.yaml says what each attribute
 * means; numbers are never changed or used again.
 */
#ifndef _UAPI_LINUX_KDAPL_H
#define _UAPI_LINUX_KDAPL_H

#define KDAPL_FAMILY_NAME	"kdapl"
#define KDAPL_FAMILY_VERSION	1

enum kdapl_ia_state {
	KDAPL_IA_STATE_OPEN,
	KDAPL_IA_STATE_CLOSING,
	KDAPL_IA_STATE_LOST,
};

enum {
	KDAPL_A_IA_ID = 1,
	KDAPL_A_IA_NAME,
	KDAPL_A_IA_DEVICE,
	KDAPL_A_IA_PORT,
	KDAPL_A_IA_STATE,
	KDAPL_A_IA_CONSUMER,

	__KDAPL_A_IA_MAX,
	KDAPL_A_IA_MAX = (__KDAPL_A_IA_MAX - 1)
};

enum {
	KDAPL_A_CONN_ID = 1,
	KDAPL_A_CONN_IA_ID,
	KDAPL_A_CONN_IA_NAME,
	KDAPL_A_CONN_CONSUMER,
	KDAPL_A_CONN_STATE,
	KDAPL_A_CONN_QPN,
	KDAPL_A_CONN_PEER,
	KDAPL_A_CONN_PEER_PORT,
	KDAPL_A_CONN_PASSIVE,
	KDAPL_A_CONN_LAST_EVENT,
	KDAPL_A_CONN_ERROR,
	KDAPL_A_CONN_REQUESTS,
	KDAPL_A_CONN_REQUESTS_DONE,
	KDAPL_A_CONN_RECEIVES,
	KDAPL_A_CONN_RECEIVES_DONE,

	__KDAPL_A_CONN_MAX,
	KDAPL_A_CONN_MAX = (__KDAPL_A_CONN_MAX - 1)
};

enum {
	KDAPL_CMD_IA_GET = 1,
	KDAPL_CMD_CONN_GET,
	KDAPL_CMD_CONN_END,

	__KDAPL_CMD_MAX,
	KDAPL_CMD_MAX = (__KDAPL_CMD_MAX - 1)
};

#endif /* _UAPI_LINUX_KDAPL_H */
