/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What the suites about memory share: memory by its pages, LMRs of
 * dat_lmr_allocate() over it, and peers that try a key.
 *
 * In all of them the server's memory is the one that is exposed, and the client
 * the peer that reaches for it.
 */
#ifndef KDTEST_MEM_H
#define KDTEST_MEM_H

#include <linux/scatterlist.h>

#include "kdtest.h"

#define KDT_R	DAT_MEM_PRIV_REMOTE_READ_FLAG
#define KDT_W	DAT_MEM_PRIV_REMOTE_WRITE_FLAG
#define KDT_SUPPRESS	DAT_COMPLETION_SUPPRESS_FLAG
#define KDT_INV_FENCE	DAT_COMPLETION_LMR_INVALIDATE_FENCE_FLAG

/*
 * Zeroed memory without an LMR, in whole pages, with guards: scattered, or
 * physically contiguous and 64 KiB aligned if it is that long.
 */
struct kdt_buf *kdt_mem_new(struct kunit *test, u32 len, bool contiguous);
/* Forget what was around and inside: guards as they were, p filled with a value. */
void kdt_mem_wipe(struct kdt_buf *mem, u8 value);

void kdt_mem_limits(struct kunit *test, struct kdt_ia *ia, struct kdat_mem_limits *limits);

/* ---- LMRs of dat_lmr_allocate() ---- */

/* Memory of so many pages and an unbound LMR for it, at the server. */
struct kdt_buf *kdt_fmr_new(struct kunit *test, struct kdt_ia *ia, int npages, DAT_LMR_SCOPE scope);
/* Binds all of it; contexts and shift of @mem follow. Any context. */
DAT_RETURN kdt_fmr(struct kdt_ep *ep, struct kdt_buf *mem, int rights, DAT_VA_TYPE va_type,
		   u64 cookie, int flags);
DAT_RETURN kdt_inv(struct kdt_ep *ep, struct kdt_buf *mem, u64 cookie, int flags);
/* The same, and the completion has come. */
void kdt_fmr_done(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *mem, int rights);
void kdt_inv_done(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *mem);
/* ---- windows, at the server ---- */

struct kdt_window {
	DAT_RMR_HANDLE h;
	struct kdt_buf buf;		/* how a peer names it */
};

struct kdt_window *kdt_window_new(struct kunit *test);
/* Over so many bytes of the memory. Any context. */
DAT_RETURN kdt_bind(struct kdt_ep *ep, struct kdt_window *w, struct kdt_buf *mem, u32 offset,
		    u32 len, u64 cookie, int flags);
DAT_RETURN kdt_unbind(struct kdt_ep *ep, struct kdt_window *w, u64 cookie, int flags);
/* The same as kdt_bind(), and the completion has come. */
void kdt_bind_done(struct kunit *test, struct kdt_ep *ep, struct kdt_window *w,
		   struct kdt_buf *mem, u32 offset, u32 len);

/* What dat_lmr_query() says of it. */
bool kdt_bound(struct kunit *test, DAT_LMR_HANDLE lmr);

/* ---- peers ---- */

/* A pair whose EVDs of requests carry binds of RMRs, too. */
struct kdt_pair *kdt_mem_pair(struct kunit *test, const DAT_EP_ATTR *attr);
/* As kdt_settle(), for the requests of the server: all before it have come back. */
void kdt_settle_back(struct kunit *test, struct kdt_pair *pair);
/* The client writes a pattern there and reads it back; the rest does not change. */
void kdt_peer_works(struct kunit *test, struct kdt_pair *pair, struct kdt_buf *mem, u32 offset,
		    u32 len, u32 seed);
/*
 * The client tries what it may not, over a connection of its own: that ends, and
 * nothing inside or around @mem has changed, nor come to the client.
 */
void kdt_peer_fails(struct kunit *test, struct kdt_buf *mem, const DAT_RMR_TRIPLET *remote,
		    bool write);
/* Both ways, with its contexts as they were. */
void kdt_key_dead(struct kunit *test, struct kdt_buf *mem);
/* The server's own requests do not know the key, either. */
void kdt_lctx_dead(struct kunit *test, struct kdt_ep *ep, struct kdt_buf *mem);

/* ---- regions of every kind ---- */

#define KDT_REG_PAGES	5
#define KDT_REG_LEN	(KDT_REG_PAGES * PAGE_SIZE)

enum kdt_kind {
	/* of dat_lmr_kcreate(): three of DAT_MEM_TYPE_VIRTUAL, two of PHYSICAL_VAR_PAGES */
	KDT_VMALLOC, KDT_KMALLOC, KDT_MODULE, KDT_PHYSICAL, KDT_SMALL, KDT_LARGE, KDT_PLATFORM,
	KDT_BUS, KDT_LMR,
	/* bound on a connection: an LMR, a window over one */
	KDT_FMR, KDT_FMR_SG, KDT_RMR, KDT_RMR_PAGES, KDT_RMR_FMR,
	KDT_KINDS,
};

struct kdt_region {
	struct kdt_pair *pair;
	enum kdt_kind kind;
	char name[48];
	struct kdt_buf *mem;	/* what it lies in; with the LMR below a window */
	struct kdt_buf buf;	/* what it covers; lctx is 0 where it is for peers only */
	DAT_REGION_DESCRIPTION desc;
	struct sg_table sgt;
	struct scatterlist sg[KDT_REG_PAGES + 1];
	struct kdat_dma_map bus;
	DAT_RMR_HANDLE rmr;
	u64 length;		/* as the call wants it */
	DAT_VLEN reg_len;
	DAT_VADDR reg_addr;
};

/* May it start and end inside of pages? */
bool kdt_kind_odd(enum kdt_kind kind);
/*
 * At the server, in effect: over memory of its own, part of it if odd or a window.
 * false: this device has no such regions, and says so.
 */
bool kdt_region_new(struct kunit *test, struct kdt_region *r, struct kdt_pair *pair,
		    enum kdt_kind kind, bool odd, int rights, DAT_VA_TYPE va);
/* In effect again, after its end. */
void kdt_region_bind(struct kunit *test, struct kdt_region *r, int rights, DAT_VA_TYPE va);
/* Nobody reaches it any more. hard: what is bound is freed as it is. */
void kdt_region_end(struct kunit *test, struct kdt_region *r, bool hard);
/* The rest of it: what is below. */
void kdt_region_free(struct kunit *test, struct kdt_region *r);

/* ---- a message that carries a key ---- */

struct kdt_offer {
	u64 va;
	u32 len;
	u32 rctx;
	u32 number;
};

/* The next event of this EVD is this bind. */
void kdt_bind_event(struct kunit *test, struct kdt_evd *evd, DAT_RMR_HANDLE rmr, u64 cookie,
		    DAT_RMR_BIND_COMPLETION_STATUS status);

/*
 * As kdt_pair_down(), once the server knows that what it has sent has arrived: what is
 * suppressed and under way is reported when the connection ends.
 */
void kdt_mem_down(struct kunit *test, struct kdt_pair *pair);
/* The same, once all is quiet both ways, and both endpoints are freed. */
void kdt_mem_done(struct kunit *test, struct kdt_pair *pair);

#endif /* KDTEST_MEM_H */
