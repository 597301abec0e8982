// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Where the parts of a reply are.
 */
#include <linux/highmem.h>
#include <linux/minmax.h>
#include <linux/sunrpc/xdr.h>
#include "place.h"

/* Copy what came behind the header into the pages; return how much. */
static u32 kx_copy_to_pages(const struct xdr_buf *buf, const void *from, u32 length)
{
	struct page **page = buf->pages + (buf->page_base >> PAGE_SHIFT);
	u32 offset = offset_in_page(buf->page_base), left, n;

	length = min(length, buf->page_len);
	for (left = length; left; left -= n) {
		n = min_t(u32, PAGE_SIZE - offset, left);
		memcpy_to_page(*page++, offset, from, n);
		from += n;
		offset = 0;
	}
	return length;
}

/**
 * kx_place - make a reply that has arrived behind a header the contents of a buffer
 * @buf: for the reply; its pages get their data, unless the server has written it
 * @p: the reply
 * @length: its bytes
 * @written: bytes of data that the server has written into the pages
 * @copied: out: bytes that were copied into the pages
 *
 * Head and tail stay where they have arrived, with the length that has arrived. If the server has
 * written the data, what follows the head belongs to the tail. The padding of the data, which was
 * not sent, comes before it, and nothing reads that.
 *
 * sunrpc lengthens the tail as far as @buflen says, so that must not say more than there is.
 *
 * Return: the length of the reply.
 */
u32 kx_place(struct xdr_buf *buf, void *p, u32 length, u32 written, u32 *copied)
{
	u32 left = length, pad = 0, n;

	n = min_t(size_t, left, buf->head[0].iov_len);
	buf->head[0].iov_base = p;
	buf->head[0].iov_len = n;
	p += n;
	left -= n;
	*copied = 0;
	if (written) {
		pad = -written & 3;
	} else {
		*copied = kx_copy_to_pages(buf, p, left);
		p += *copied;
		left -= *copied;
	}
	if (left) {
		buf->tail[0].iov_base = p - pad;
		buf->tail[0].iov_len = min_t(size_t, left + pad, buf->tail[0].iov_len);
	}
	buf->buflen = buf->head[0].iov_len + buf->page_len + buf->tail[0].iov_len;
	return min_t(u32, length + written + pad, buf->buflen);
}
