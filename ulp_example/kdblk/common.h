/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* Shared by initiator and target, in addition to the protocol. */
#ifndef _KDBLK_COMMON_H_
#define _KDBLK_COMMON_H_

#include <linux/errno.h>
#include <linux/printk.h>
#include <linux/string.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#define KDBLK_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

/* Compare only DAT_SUCCESS directly. All other values need DAT_GET_TYPE(). */
static inline int kdblk_errno(DAT_RETURN ret)
{
	if (ret == DAT_SUCCESS)
		return 0;
	switch (DAT_GET_TYPE(ret)) {
	case DAT_PROVIDER_NOT_FOUND:		return -ENODEV;
	case DAT_INSUFFICIENT_RESOURCES:	return -ENOMEM;
	case DAT_INVALID_ADDRESS:		return -EADDRNOTAVAIL;
	case DAT_CONN_QUAL_IN_USE:		return -EADDRINUSE;
	case DAT_INVALID_PARAMETER:		return -EINVAL;
	case DAT_INVALID_STATE:			return -ENOTCONN;
	default:				return -EIO;
	}
}

/* The same, but also log a failure with the name of the object and of the call. */
static inline int kdblk_check(const char *who, const char *what, DAT_RETURN ret)
{
	const char *major = "unknown error", *minor = "";

	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &major, &minor);
	pr_err("%s: %s: %s %s (0x%08x)\n", who, what, major, minor, ret);
	return kdblk_errno(ret);
}

/* KDBLK_TRY(who, dat_call, arguments...): 0, or an errno after logging the failure */
#define KDBLK_TRY(who, call, ...)	kdblk_check(who, #call, call(__VA_ARGS__))

#endif /* _KDBLK_COMMON_H_ */
