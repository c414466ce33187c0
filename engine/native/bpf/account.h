/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What an I/O adds to its device: busy time, sums, maxima, histograms. All by atomic additions, which commute. */
#pragma once
#include "maps.h"
#include "maximum.h"

/* Only the edges of a device reach its groups, so a busy port costs nothing per I/O. */
static __noinline int edge_of_groups(struct device *d, u32 list, s32 by, s32 at, s64 ns)
{
	if (!d)
		return 0;
#pragma unroll
	for (u32 i = 0; i < GROUPS_OF_DEVICE; i++) {
		u32 index = d->groups[list & 1][i];
		struct group *group;

		if (!index)
			break;
		group = bpf_map_lookup_elem(&groups, &index);
		if (group && __sync_fetch_and_add(&group->busy_devices, by) == at)
			__sync_fetch_and_add(&group->busy_ns, ns);
	}
	return 0;
}

static __always_inline void enter_driver(struct device *d, u64 now)
{
	s32 before = __sync_fetch_and_add(&d->in_driver, 2);
	u32 epoch = epoch_now(), there = (u32)(before >> 1) + 1;

	if (before >> 1 == 0) {
		__sync_fetch_and_add(&d->busy_ns, -(s64)now);
		edge_of_groups(d, before, 1, 0, -(s64)now);
	}
	if (there > d->in_driver_peak[epoch])
		d->in_driver_peak[epoch] = there;
}

static __always_inline void leave_driver(struct device *d, u64 now)
{
	s32 before = __sync_fetch_and_add(&d->in_driver, -2);

	if (before >> 1 == 1) {
		__sync_fetch_and_add(&d->busy_ns, (s64)now);
		edge_of_groups(d, before, -1, 1, (s64)now);
	}
}

static __noinline u32 take_histogram(struct device *d, u32 series)
{
	u32 *place, number, last;
	struct control *c = the_control();

	if (!c || !d)
		return NO_HISTOGRAM;
	place = &d->histogram[series & 3];
	number = __sync_fetch_and_add(&c->next_histogram, 1) + 1;
	last = number * OCTAVES - 1;
	if (!bpf_map_lookup_elem(&octaves, &last)) {
		__sync_fetch_and_add(&c->next_histogram, -1);
		number = NO_HISTOGRAM;
	}
	if (__sync_val_compare_and_swap(place, 0, number) != 0)
		return *(volatile u32 *)place;
	if (number == NO_HISTOGRAM)
		count(LOSS_NO_HISTOGRAM);
	return number;
}

/* Number of the device's histogram in the pool, taken at its first I/O. */
static __always_inline u32 histogram_of(struct device *d, u32 series)
{
	u32 number = *(volatile u32 *)&d->histogram[series & 3];

	return number ? number : take_histogram(d, series);
}

static __always_inline void count_latency(struct device *d, u32 series, u64 ns)
{
	u32 number = histogram_of(d, series), octave = 0, place;
	u64 units = ns >> UNIT_SHIFT;
	u32 value = units > 0x7fffffffull ? 0x7fffffffu : (u32)units;
	struct octave *counts;

	if (number == NO_HISTOGRAM)
		return;
	/* Shift to five significant bits; there is no instruction that counts leading zeros. */
	if (value >> 20) { value >>= 16; octave += 16; }
	if (value >> 12) { value >>= 8; octave += 8; }
	if (value >> 8) { value >>= 4; octave += 4; }
	if (value >> 6) { value >>= 2; octave += 2; }
	if (value >> 5) { value >>= 1; octave += 1; }
	octave += value >> 4 & 1;
	place = (number - 1) * OCTAVES + octave;
	counts = bpf_map_lookup_elem(&octaves, &place);
	if (!counts)
		return;
	__sync_fetch_and_add(&counts->count[value & 15], 1);
	if (!(d->octaves_used[series & 3] >> (octave & 31) & 1))
		__sync_fetch_and_or(&d->octaves_used[series & 3], 1u << (octave & 31));
}

/* As diskstats counts (op_stat_group in blk-mq.h): what writes and is no discard is a write. */
static __always_inline u32 direction_of(u32 flags)
{
	u32 operation = flags & OP_MASK;

	if (operation == OP_READ)
		return 0;
	return (operation & 1) && operation != OP_DISCARD && operation < OP_FIRST_DRIVER_PRIVATE ? 1 : 2;
}
