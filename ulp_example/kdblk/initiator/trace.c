// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#define CREATE_TRACE_POINTS
#include "trace.h"
