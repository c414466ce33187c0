/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Cells by device and shard of CPUs: what an I/O counts lies on lines that other shards do not write. Shards that see few
 * I/Os of a device share the cell that every device has; a pool gives the others one of their own. */
#pragma once
#include "atomics.h"
#include "maps.h"

/* Whether a shard that shares has come often enough in this interval to get something of its own. */
static __always_inline bool has_asked(struct own *own)
{
	u32 epoch = epoch_now() << 8, asked = *(volatile u32 *)&own->asked;

	if ((asked ^ epoch) >> 8)
		asked = epoch;
	if ((asked & 0xff) >= OWN_AFTER)
		return true;
	*(volatile u32 *)&own->asked = asked + 1;
	return false;
}

/* Takes the next of a pool. Another CPU of the shard may have been first; then the one taken here stays empty. */
static __always_inline u32 take_own(struct own *own, u32 shared, u32 *next, u32 end)
{
	u32 index;

	index = take_number(next, end);
	if (index >= end)
		return shared;
	COMPARE_AND_SWAP(&own->index, 0, index, LOCK_OF_POOLS, 0);
	index = *(volatile u32 *)&own->index;
	return index ? index : shared;
}

/* Index of the cell of a shard, or of that of all: for a while, or because the pool is empty. Marks the device, as readers
 * look at those alone that were touched, and the shard's place, so that this is done once in an interval. */
VERIFIED_ONCE u32 ask_for_cell(u32 place, u32 device)
{
	struct own *own = bpf_map_lookup_elem(&cell_of, &place);
	struct touched *at = bpf_map_lookup_elem(&touched, &device);
	struct control *c = the_control();
	u32 epoch = epoch_now(), index;

	if (!own || !c || !at)
		return device;
	if (*(volatile u32 *)&at->epoch != epoch)
		*(volatile u32 *)&at->epoch = epoch;
	index = *(volatile u32 *)&own->index;
	if (!index && has_asked(own))
		index = take_own(own, 0, &c->next_cell, cells_end);
	if (!index)
		return device;
	*(volatile u32 *)&own->asked = epoch;
	return index;
}

VERIFIED_ONCE u32 ask_for_sums(u32 place, u32 process)
{
	struct own *own = bpf_map_lookup_elem(&sums_of, &place);
	struct control *c = the_control();

	return own && c && has_asked(own) ? take_own(own, process, &c->next_sums, sums_end) : process;
}

/* Index of the cell that is about to be written. */
static __always_inline u32 touch_cell(u32 device, u32 shard)
{
	u32 place = device * shards + shard, index;
	struct own *own = bpf_map_lookup_elem(&cell_of, &place);

	index = own ? *(volatile u32 *)&own->index : 0;
	return index && *(volatile u32 *)&own->asked == epoch_now() ? index : ask_for_cell(place, device);
}

static __always_inline struct cell *cell_now(u32 device)
{
	return cell_at(touch_cell(device, shard_now()));
}

/* The cell in which an I/O was counted when it was issued. */
static __always_inline struct cell *cell_of_leaf(u32 device, u32 leaf)
{
	u32 place = device * shards + leaf - 1;
	struct own *own;

	if (!leaf)
		return cell_at(device);
	own = bpf_map_lookup_elem(&cell_of, &place);
	return own ? cell_at(own->index) : 0;
}
