/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The larger of two numbers, kept in a map that several CPUs write. */
#pragma once
#include "atomics.h"

/* Returns whether others overtook it too often. Kept apart like all that few I/Os need: what every I/O runs through is to stay small. */
static __noinline int raise_to(u64 *maximum, u64 value, u32 lock)
{
	if (!maximum)
		return 0;
	for (int attempt = 0; attempt < 4; attempt++) {
		u64 before = *(volatile u64 *)maximum;

		if (value <= before || COMPARE_AND_SWAP(maximum, before, value, lock, before + 1) == before)
			return 0;
	}
	return 1;
}
