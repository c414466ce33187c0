/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Times and maxima that could not be counted in their place: an interrupt cannot wait for what it has interrupted, nor a CPU
 * for one that the hypervisor has stopped. */
#pragma once
#include "maps.h"

/* Whether there was room. */
VERIFIED_ONCE int put_aside(u32 cell, u32 what, u64 value)
{
	u32 first = bpf_get_smp_processor_id() * NESTED, tag = (what + 1) << ASIDE_TAG_SHIFT | (epoch_now() & ASIDE_EPOCH);
	struct asides *mine = bpf_map_lookup_elem(&asides, &first), *level = 0;
	struct aside *one;
	u32 nesting;
	int kept = 0;

	if (!mine)
		return 0;
	/* What interrupts this program has gone again before it reads. */
	__sync_fetch_and_add(&mine->nesting, 1);
	nesting = *(volatile u32 *)&mine->nesting - 1;
	first += nesting;
	if (nesting < NESTED)
		level = bpf_map_lookup_elem(&asides, &first);
	if (level) {
		one = &level->one[level->next++ & (ASIDES - 1)];
		if (!*(volatile u32 *)&one->tag) {
			one->value = value;
			one->cell = cell;
			barrier();
#ifdef WITHOUT_FETCH
			*(volatile u32 *)&one->tag = tag;
#else
			__sync_lock_test_and_set(&one->tag, tag);
#endif
			kept = 1;
		}
	}
	__sync_fetch_and_add(&mine->nesting, -1);
	return kept;
}
