/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Calls of kDAPL by a test module. A user of TRY() defines fail(fmt, ...), which says what is wrong
 * and is -EIO.
 */
#ifndef TESTS_CALLS_H
#define TESTS_CALLS_H

#include <dat2/kdat.h>
#include <dat2/kdat_ext.h>
#include <linux/kernel.h>

static inline const char *major_name(DAT_RETURN ret)
{
	const char *major, *minor;

	return dat_strerror(ret, &major, &minor) == DAT_SUCCESS ? major : "unknown error";
}

static inline const char *minor_name(DAT_RETURN ret)
{
	const char *major, *minor;

	return dat_strerror(ret, &major, &minor) == DAT_SUCCESS ? minor : "";
}

#define check(what, call)						\
({									\
	DAT_RETURN _ret = (call);					\
	_ret == DAT_SUCCESS ? 0 : fail("%s: %s %s", what, major_name(_ret), minor_name(_ret)); \
})

#define TRY(call, ...)	check(#call, call(__VA_ARGS__))

#endif
