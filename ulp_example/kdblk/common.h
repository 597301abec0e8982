/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/* Copyright (c) 2026 The kDAPL for Linux authors */
/* Shared by initiator and target, in addition to the protocol. */
#ifndef _KDBLK_COMMON_H_
#define _KDBLK_COMMON_H_

#include <linux/ctype.h>
#include <linux/errno.h>
#include <linux/gfp.h>
#include <linux/mm.h>
#include <linux/printk.h>
#include <linux/socket.h>
#include <linux/string.h>
#include <linux/vmalloc.h>
#include <net/ipv6.h>
#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>

#include "proto.h"

#define KDBLK_LOCAL	(DAT_MEM_PRIV_LOCAL_READ_FLAG | DAT_MEM_PRIV_LOCAL_WRITE_FLAG)

/* Zeroed memory to register, in one piece if there is any; @size is a multiple of PAGE_SIZE. */
static inline void *kdblk_pages_alloc(size_t size)
{
	return alloc_pages_exact(size, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN | __GFP_NORETRY) ?:
	       vzalloc(size);
}

static inline void kdblk_pages_free(void *va, size_t size)
{
	if (is_vmalloc_addr(va))
		vfree(va);
	else if (va)
		free_pages_exact(va, size);
}

/* Texts go over the wire, into the log and into sysfs: printable ASCII only. */
static inline bool kdblk_printable(const char *text, size_t length)
{
	for (; length; text++, length--)
		if (!isascii(*text) || !isprint(*text))
			return false;
	return true;
}

/* A text in a message: it ends with a NUL and is padded with NULs. */
static inline bool kdblk_text_fits(const char *text, size_t size)
{
	size_t length = strnlen(text, size);

	return length < size && kdblk_printable(text, length) &&
	       !memchr_inv(text + length, 0, size - length);
}

/* Names of disks, initiators and portals: also without spaces and '/'. */
static inline int kdblk_check_name(const char *name)
{
	size_t length = strlen(name);

	if (length >= KDBLK_NAME_LEN)
		return -ENAMETOOLONG;
	return length && kdblk_printable(name, length) && !strpbrk(name, " /") ? 0 : -EINVAL;
}

/* kdat_errno(), but also log a failure with the name of the object and of the call. */
static inline int kdblk_check(const char *who, const char *what, DAT_RETURN ret)
{
	const char *major = "unknown error", *minor = "";

	if (ret == DAT_SUCCESS)
		return 0;
	dat_strerror(ret, &major, &minor);
	pr_err_ratelimited("%s: %s: %s %s (0x%08x)\n", who, what, major, minor, ret);
	return kdat_errno(ret);
}

/* KDBLK_TRY(who, dat_call, arguments...): 0, or an errno after logging the failure */
#define KDBLK_TRY(who, call, ...)	kdblk_check(who, #call, call(__VA_ARGS__))

/* Where connections of an IA come from. */
struct kdblk_place {
	char adapter[DAT_NAME_MAX_LENGTH];
	struct sockaddr_storage address;
};

/* Return whether the IA has an address at present. */
static noinline_for_stack __maybe_unused
bool kdblk_ia_place(DAT_IA_HANDLE ia, struct kdblk_place *place)
{
	DAT_IA_ATTR attr;

	memset(place, 0, sizeof(*place));
	if (dat_ia_query(ia, NULL, DAT_IA_FIELD_ALL, &attr, 0, NULL) != DAT_SUCCESS ||
	    !attr.ia_address_ptr)
		return false;
	strscpy(place->adapter, attr.adapter_name, sizeof(place->adapter));
	memcpy(&place->address, attr.ia_address_ptr,
	       attr.ia_address_ptr->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) :
							    sizeof(struct sockaddr_in));
	return true;
}

static __maybe_unused
bool kdblk_same_place(const struct kdblk_place *a, const struct kdblk_place *b)
{
	return !strcmp(a->adapter, b->adapter) &&
	       !memcmp(&a->address, &b->address, sizeof(a->address));
}

#endif /* _KDBLK_COMMON_H_ */
