/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Platform-specific parts of the API, for the Linux kernel: scalar types, socket
 * addresses and the calling convention.
 */
#ifndef _DAT_PLATFORM_SPECIFIC_H_
#define _DAT_PLATFORM_SPECIFIC_H_

#include <linux/in.h>
#include <linux/in6.h>
#include <linux/socket.h>
#include <linux/stddef.h>
#include <linux/types.h>
#include <asm/byteorder.h>

#ifndef IN
#define IN
#endif
#ifndef OUT
#define OUT
#endif
#ifndef INOUT
#define INOUT
#endif

#define DAT_API
#define DAT_EXPORT	extern

#ifndef UINT64_C
#define UINT64_C(c)	c ## ULL
#endif

typedef u32 DAT_UINT32;			/* host byte order */
typedef u64 DAT_UINT64;			/* host byte order; print it with %llx */
typedef unsigned long long DAT_UVERYLONG;

/* "const DAT_PVOID" is a constant pointer, not a pointer to constant data. */
typedef void *DAT_PVOID;
typedef int DAT_COUNT;
typedef DAT_UINT64 DAT_PADDR;
typedef int DAT_FD;

typedef struct sockaddr DAT_SOCK_ADDR;
typedef struct sockaddr_in6 DAT_SOCK_ADDR6;

#define DAT_AF_INET	AF_INET
#define DAT_AF_INET6	AF_INET6

/**
 * struct dat_comm - communicator: the arguments a socket would be created with
 * @domain: address family
 * @type: socket type
 * @protocol: protocol number
 */
typedef struct dat_comm {
	int domain;
	int type;
	int protocol;
} DAT_COMM;

#endif /* _DAT_PLATFORM_SPECIFIC_H_ */
