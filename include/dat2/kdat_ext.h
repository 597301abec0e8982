/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * What this provider offers beyond the kernel DAT API 2.0. A consumer that
 * wants to run on other providers does without; everything here has a default
 * that serves most.
 */
#ifndef _KDAT_EXT_H_
#define _KDAT_EXT_H_

#include <dat2/kdat.h>

/* Where the upcalls of an EVD run. */
enum kdat_evd_context {
	KDAT_EVD_CONTEXT_DEFAULT,	/* softirq for DTO and RMR_BIND only, else workqueue */
	KDAT_EVD_CONTEXT_SOFTIRQ,	/* must not sleep; one at a time */
	KDAT_EVD_CONTEXT_WORKQUEUE,	/* may sleep */
};

/* The provider spreads EVDs over the completion vectors of the device. */
#define KDAT_EVD_VECTOR_ANY	(-1)

/**
 * struct kdat_evd_attr - how an EVD is served
 * @context: where its upcalls run; softirq is for the streams DTO, RMR_BIND and
 *	SOFTWARE, since the events of the others belong where one may sleep
 * @comp_vector: completion vector of its CQs, modulo the number of vectors the
 *	device has, so that the number of a CPU is a good choice; or
 *	KDAT_EVD_VECTOR_ANY. Where the interrupt of a vector goes is up to the
 *	driver and the administrator.
 */
struct kdat_evd_attr {
	enum kdat_evd_context context;
	DAT_COUNT comp_vector;
};

#define KDAT_EVD_ATTR_INIT	{ .comp_vector = KDAT_EVD_VECTOR_ANY }

DAT_RETURN kdat_evd_create(DAT_IA_HANDLE ia_handle, DAT_COUNT evd_min_qlen,
			   DAT_UPCALL_POLICY upcall_policy, const DAT_UPCALL_OBJECT *upcall,
			   DAT_EVD_FLAGS evd_flags, const struct kdat_evd_attr *attr,
			   DAT_EVD_HANDLE *evd_handle);

#endif /* _KDAT_EXT_H_ */
