/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* I/Os under way: sets of four, found by address and taken by compare-and-swap; no locks, no allocation. */
#pragma once
#include "busy.h"
#include "device.h"

static __always_inline struct io_set *set_of(u64 key)
{
	u32 index = hash(key, io_set_bits);
	return bpf_map_lookup_elem(&under_way, &index);
}

static __always_inline struct io *find(struct io_set *set, u64 key)
{
#pragma unroll
	for (u32 i = 0; i < WAYS; i++)
		if (set->way[i].key == key)
			return &set->way[i];
	return 0;
}

static __always_inline struct io *claim(struct io_set *set, u64 key)
{
#pragma unroll
	for (u32 i = 0; i < WAYS; i++)
		if (!set->way[i].key && !COMPARE_AND_SWAP(&set->way[i].key, 0, key, LOCK_OF_SET(hash(key, io_set_bits)), 1))
			return &set->way[i];
	count(LOSS_TABLE_FULL);
	return 0;
}

static __always_inline void release(struct io *io)
{
	*(volatile u64 *)&io->key = 0;
}

static __always_inline u64 state_of(u32 device, u64 flags, u64 now)
{
	return (u64)device << IO_DEVICE_SHIFT | flags | (now & IO_TIME);
}

/* The I/O is in the driver from now on: the leaf that counts it goes with it. */
static __always_inline void enter(struct io *io, u32 device, u64 now)
{
	io->thread = (io->thread & IO_THREAD) | enter_driver(device, now) << IO_LEAF_SHIFT;
}

VERIFIED_ONCE int add_queued(u32 device, s32 by)
{
	struct cell *cell = cell_now(device);

	if (cell)
		__sync_fetch_and_add(&cell->queued, by);
	return 0;
}

static __always_inline void leave(u64 state, u32 leaf, u64 now)
{
	u32 device = state >> IO_DEVICE_SHIFT;

	if (state & IO_QUEUED)
		add_queued(device, -1);
	else
		leave_driver(device, leaf, now);
}

/* The request is in use again, so its last completion was not seen. */
static __noinline int forget(struct io *io, u64 now)
{
	u32 leaf;
	u64 state;

	if (!io)
		return 0;
	state = *(volatile u64 *)&io->state;
	leaf = io->thread >> IO_LEAF_SHIFT;
	release(io);
	if (!(state & IO_QUEUED))
		device_loses(state >> IO_DEVICE_SHIFT, now - ((now - state) & IO_TIME), now);
	leave(state, leaf, now);
	count(LOSS_STALE);
	return 0;
}
