// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* The tracepoints of trace.h, once. */
#include "core.h"

#define CREATE_TRACE_POINTS
#include "trace.h"
