/* SPDX-License-Identifier: GPL-2.0 OR BSD-3-Clause */
/*
 * Test cases named by what they show instead of by their function: the ids of
 * the requirements, a colon, a sentence.
 */
#ifndef KDAPL_KD_CASE_H
#define KDAPL_KD_CASE_H

#include <kunit/test.h>

#define KD_CASE(fn, text)	{ .run_case = (fn), .name = (text) }

#endif /* KDAPL_KD_CASE_H */
