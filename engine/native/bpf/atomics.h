/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Atomic operations that tell what was there before. Kernels before BPF_FETCH (Linux 5.12) have additions without a result
 * only: built for them (-DWITHOUT_FETCH), the same operations hold a lock that is made of such additions. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_helpers.h>

/* Somebody else holds the lock: another CPU for longer than any does, or what this interrupt has interrupted. */
#define NOT_NOW 0xffffffffu

/* Locks, chosen by what is changed; src/exact/layout.rs has the last. */
#define LOCKS_OF_SETS 1024 /* powers of two */
#define LOCKS_OF_CELLS 512
#define LOCKS_OF_PROCESSES 256
#define LOCK_OF_SET(set) ((set) & (LOCKS_OF_SETS - 1))
#define LOCK_OF_CELL(cell) (LOCKS_OF_SETS + ((cell) & (LOCKS_OF_CELLS - 1)))
#define LOCK_OF_PROCESS(place) (LOCKS_OF_SETS + LOCKS_OF_CELLS + ((place) & (LOCKS_OF_PROCESSES - 1)))
#define LOCK_OF_POOLS (LOCKS_OF_SETS + LOCKS_OF_CELLS + LOCKS_OF_PROCESSES)

#ifdef WITHOUT_FETCH

#include "maps.h"

#define HOLD_ATTEMPTS 64

/* Whether the caller has the lock now: of all who add to it only the first finds its own addition alone. Additions order
 * all other accesses on x86, for which alone this is built. */
VERIFIED_ONCE u32 hold(u32 number)
{
	u64 *lock = bpf_map_lookup_elem(&locks, &number);

	if (!lock)
		return 0;
	for (int attempt = 0; attempt < HOLD_ATTEMPTS; attempt++) {
		__sync_fetch_and_add(lock, 1);
		if (*(volatile u64 *)lock == 1)
			return 1;
		__sync_fetch_and_add(lock, -1);
	}
	return 0;
}

static __always_inline void let_go(u32 number)
{
	u64 *lock = bpf_map_lookup_elem(&locks, &number);

	barrier();
	if (lock)
		__sync_fetch_and_add(lock, -1);
}

#define COMPARE_AND_SWAP(place, before, after, number, otherwise)               \
	({                                                                      \
		typeof(*(place)) there_ = (otherwise);                          \
		if (hold(number)) {                                             \
			there_ = *(volatile typeof(there_) *)(place);           \
			if (there_ == (before))                                 \
				*(volatile typeof(there_) *)(place) = (after);  \
			let_go(number);                                         \
		}                                                               \
		there_;                                                         \
	})

#else

#define COMPARE_AND_SWAP(place, before, after, number, otherwise) __sync_val_compare_and_swap(place, before, after)

#endif

/* The next number of a pool, which ends with `end`; `end` if there is none, or NOT_NOW. */
static __always_inline u32 take_number(u32 *next, u32 end)
{
	u32 number = NOT_NOW;

	if (*(volatile u32 *)next >= end)
		return end;
#ifdef WITHOUT_FETCH
	if (hold(LOCK_OF_POOLS)) {
		number = *(volatile u32 *)next;
		*(volatile u32 *)next = number + 1;
		let_go(LOCK_OF_POOLS);
	}
#else
	number = __sync_fetch_and_add(next, 1);
#endif
	return number;
}
