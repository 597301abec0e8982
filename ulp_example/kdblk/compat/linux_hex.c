// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <linux/hex.h>

static int (*probe)(u8 *, const char *, size_t) __maybe_unused = hex2bin;
