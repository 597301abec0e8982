/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Copyright (c) 2026 The kDAPL for Linux authors
 *
 * Test cases named by what they show instead of by their function: the ids of
 * the requirements, a colon, a sentence.
 */
#ifndef KDAPL_KD_CASE_H
#define KDAPL_KD_CASE_H

#include <kunit/test.h>

#define KD_CASE(fn, text)	{ .run_case = (fn), .name = (text) }

/* A debug kernel, on which everything takes many times as long. */
#define KD_SLOW		(IS_ENABLED(CONFIG_KASAN) || IS_ENABLED(CONFIG_PROVE_LOCKING))

/* What takes ten times as long on such a kernel is done a tenth as often there. */
#define KD_TIMES(n)	((n) / (KD_SLOW ? 10 : 1))

#endif /* KDAPL_KD_CASE_H */
