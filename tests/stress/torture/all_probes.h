/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Every argument of every call that is a handle, with the kind it must have, and the call with
 * all else in order: a bad handle h there must be the only thing that is said. Included more than
 * once, as all_calls.h, whose rows these are.
 */
#define HANDLE_ARG(call, parameter, kind, subtype, ...)	PROBE(call, kind, __VA_ARGS__)
#define GOOD(kind)					g[DAT_HANDLE_TYPE_##kind]
#include "../../../kdapl/tests/all_calls.h"
#undef GOOD
