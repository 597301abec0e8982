// SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause
/* Copyright (c) 2026 The kDAPL for Linux authors */
#include <crypto/sha2.h>

static void (*probe)(const u8 *, size_t, const u8 *, size_t, u8 *) __maybe_unused =
	hmac_sha256_usingrawkey;
