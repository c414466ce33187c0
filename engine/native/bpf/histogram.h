/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Histograms of a cell: octaves come from a pool when the first I/O falls into them. */
#pragma once
#include "aside.h"
#include "busy.h"
#include "maximum.h"

/* The cells of shards have theirs; those that all shards share take theirs from the rest of the pool. */
static __noinline u32 take_places(struct cell *cell, u32 index)
{
	struct control *c = the_control();
	u32 number;

	if (!c || !cell)
		return NO_HISTOGRAM;
	if (index >= first_own_cell)
		number = index - first_own_cell;
	else
		number = take_number(&c->next_places, NOT_NOW);
	if (number == NOT_NOW)
		return 0;
	if (!bpf_map_lookup_elem(&places, &number)) {
		count(LOSS_NO_HISTOGRAM);
		number = NO_HISTOGRAM - 1;
	}
	COMPARE_AND_SWAP(&cell->places, 0, number + 1, LOCK_OF_CELL(index), 0);
	return *(volatile u32 *)&cell->places;
}

static __noinline u32 take_octave(u32 *place)
{
	struct control *c = the_control();
	u32 number;

	if (!c || !place)
		return NO_HISTOGRAM;
	number = take_number(&c->next_octave, NOT_NOW);
	if (number == NOT_NOW)
		return 0;
	if (!bpf_map_lookup_elem(&octaves, &number)) {
		__sync_fetch_and_add(&c->next_octave, -1);
		count(LOSS_NO_HISTOGRAM);
		number = NO_HISTOGRAM - 1;
	}
	COMPARE_AND_SWAP(place, 0, number + 1, LOCK_OF_POOLS, 0);
	return *(volatile u32 *)place;
}

/* Number of the octave plus 1; 0: not now. */
static __always_inline u32 octave_of(struct cell *cell, u32 index, u32 series, u32 octave)
{
	u32 number = *(volatile u32 *)&cell->places, *place;
	struct places *there;

	if (!number)
		number = take_places(cell, index);
	if (!number)
		return 0;
	number--;
	there = bpf_map_lookup_elem(&places, &number);
	if (!there || octave >= OCTAVES)
		return NO_HISTOGRAM;
	place = &there->octave[series & 3][octave];
	number = *(volatile u32 *)place;
	return number ? number : take_octave(place);
}

VERIFIED_ONCE int count_latency(u32 index, u32 series, u64 ns)
{
	struct cell *cell = cell_at(index);
	u64 units = ns >> UNIT_SHIFT;
	u32 value = units > 0x7fffffffull ? 0x7fffffffu : (u32)units, octave = 0, number;
	struct octave *counts;

	if (!cell)
		return 0;
	/* Shift to five significant bits; there is no instruction that counts leading zeros. */
	if (value >> 20) { value >>= 16; octave += 16; }
	if (value >> 12) { value >>= 8; octave += 8; }
	if (value >> 8) { value >>= 4; octave += 4; }
	if (value >> 6) { value >>= 2; octave += 2; }
	if (value >> 5) { value >>= 1; octave += 1; }
	octave += value >> 4 & 1;
	number = octave_of(cell, index, series, octave);
	if (!number && put_aside(index, series, ns))
		return 0;
	number--;
	counts = bpf_map_lookup_elem(&octaves, &number);
	__sync_fetch_and_add(counts ? &counts->count[value & 15] : &cell->uncounted, 1);
	return 0;
}

/* As diskstats counts (op_stat_group in blk-mq.h): what writes and is no discard is a write. */
static __always_inline u32 direction_of(u32 flags)
{
	u32 operation = flags & OP_MASK;

	if (operation == OP_READ)
		return 0;
	return (operation & 1) && operation != OP_DISCARD && operation < OP_FIRST_DRIVER_PRIVATE ? 1 : 2;
}
