/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Busy time without a counter that all CPUs write: leaves count I/Os, the root counts leaves that are not 0. */
#pragma once
#include "cells.h"
#include "maximum.h"

static __always_inline struct busy *group_at(u32 index)
{
	struct group *group = bpf_map_lookup_elem(&groups, &index);

	return group ? &group->busy : 0;
}

static __always_inline void raise(u64 *maximum, u64 value, u32 lock)
{
	if (raise_to(maximum, value, lock))
		count(COUNT_OVERTAKEN);
}

/* Where additions have no results nobody notices that a leaf becomes busy or idle: there is neither busy time nor a peak, and
 * figures of the kernel stand in for them. */
#ifndef WITHOUT_FETCH

/* The later of a time and of the departure in a root, which keeps 45 bits of it. Programs reach the root in another order
 * than they have read the clock. */
static __always_inline u64 later_of(u64 now, u64 root)
{
	u64 ahead = ((root >> ROOT_TIME_SHIFT) - now) & IO_TIME;

	return ahead < ROOT_SLACK_NS ? now + ahead : now;
}

static __always_inline u64 members_of(u64 root)
{
	return root >> 1 & ROOT_MEMBERS;
}

/* Busy begins with the first member, no earlier than it has ended before. Returns begin << 1 | list; 0: no edge. */
static __always_inline u64 arrive(struct busy *b, u64 now, u64 *members)
{
	u64 before = __sync_fetch_and_add(&b->root, ROOT_MEMBER), begin;

	*members = members_of(before) + 1;
	if (*members > 1)
		return 0;
	begin = later_of(now, before);
	__sync_fetch_and_add(&b->sum_ns, -begin);
	return begin << 1 | (before & 1);
}

#define ROOT_ATTEMPTS 8

/* Busy ends with the last member at the time of the latest departure. Returns end << 1 | list; 0: no edge. */
static __always_inline u64 depart(struct busy *b, u64 now)
{
	u64 before, after, end;

#pragma unroll
	for (int attempt = 0; attempt < ROOT_ATTEMPTS; attempt++) {
		before = *(volatile u64 *)&b->root;
		end = later_of(now, before);
		after = ((before - ROOT_MEMBER) & ((1ull << ROOT_TIME_SHIFT) - 1)) | end << ROOT_TIME_SHIFT;
		if (__sync_val_compare_and_swap(&b->root, before, after) == before)
			goto departed;
	}
	count(COUNT_OVERTAKEN);
	before = __sync_fetch_and_add(&b->root, -ROOT_MEMBER);
	end = later_of(now, before);
departed:
	if (members_of(before) != 1)
		return 0;
	__sync_fetch_and_add(&b->sum_ns, end);
	return end << 1 | (before & 1);
}

VERIFIED_ONCE int group_arrives(u32 index, u64 now)
{
	struct busy *group = group_at(index);
	u64 members;

	if (group)
		arrive(group, now, &members);
	return 0;
}

VERIFIED_ONCE int group_departs(u32 index, u64 now)
{
	struct busy *group = group_at(index);

	if (group)
		depart(group, now);
	return 0;
}

/* The device itself and its groups, which only its edges reach. */
VERIFIED_ONCE int device_arrives(u32 device, u64 now)
{
	struct device *d = device_at(device);
	u32 epoch = epoch_now() & 1;
	u64 edge, leaves;

	if (!d)
		return 0;
	edge = arrive(&d->busy, now, &leaves);
	if (leaves > d->leaves_peak[epoch])
		raise(&d->leaves_peak[epoch], leaves, LOCK_OF_CELL(device));
	if (!edge)
		return 0;
#pragma unroll
	for (u32 i = 0; i < GROUPS_OF_DEVICE; i++) {
		u32 group = d->groups[edge & 1][i];

		if (!group)
			break;
		group_arrives(group, edge >> 1);
	}
	return 0;
}

VERIFIED_ONCE int device_departs(u32 device, u64 now)
{
	struct device *d = device_at(device);
	u64 edge = d ? depart(&d->busy, now) : 0;

	if (!d || !edge)
		return 0;
#pragma unroll
	for (u32 i = 0; i < GROUPS_OF_DEVICE; i++) {
		u32 group = d->groups[edge & 1][i];

		if (!group)
			break;
		group_departs(group, edge >> 1);
	}
	return 0;
}

#endif

static __always_inline void add_to_leaf(struct cell *cell, u32 index, u32 device, u64 now)
{
#ifdef WITHOUT_FETCH
	barrier_var(now); /* Used, as the verifier expects all arguments that a function is declared with. */
	__sync_fetch_and_add(&cell->in_driver, 1);
#else
	u32 epoch = epoch_now() & 1, there = __sync_fetch_and_add(&cell->in_driver, 1) + 1;

	if (there == 1)
		device_arrives(device, now);
	if (there > cell->in_driver_peak[epoch])
		raise(&cell->in_driver_peak[epoch], there, LOCK_OF_CELL(index));
#endif
}

static __always_inline void take_from_leaf(struct cell *cell, u32 device, u64 now)
{
#ifdef WITHOUT_FETCH
	barrier_var(now);
	__sync_fetch_and_add(&cell->in_driver, -1);
#else
	if (__sync_fetch_and_add(&cell->in_driver, -1) == 1)
		device_departs(device, now);
#endif
}

/* Returns the leaf. */
static __always_inline u32 enter_driver(u32 device, u64 now)
{
	u32 shard = shard_now(), index = touch_cell(device, shard);
	struct cell *cell = cell_at(index);

	if (!cell)
		return 0;
	add_to_leaf(cell, index, device, now);
	return index == device ? 0 : shard + 1;
}

static __always_inline void leave_driver(u32 device, u32 leaf, u64 now)
{
	struct cell *cell = cell_of_leaf(device, leaf);

	if (cell)
		take_from_leaf(cell, device, now);
}

static __always_inline void lose(struct busy *b, u64 began, u64 now)
{
	u64 until = *(volatile u64 *)&b->lost_until_ns, from = began > until ? began : until;

	*(volatile u64 *)&b->lost_until_ns = now;
	if (now > from)
		__sync_fetch_and_add(&b->lost_ns, now - from);
}

VERIFIED_ONCE int group_loses(u32 index, u64 began, u64 now)
{
	struct busy *group = group_at(index);

	if (group)
		lose(group, began, now);
	return 0;
}

/* An I/O was taken to be in the driver for so long, because its completion was missed. */
VERIFIED_ONCE int device_loses(u32 device, u64 began, u64 now)
{
	struct device *d = device_at(device);
	u32 list;

	if (!d)
		return 0;
	lose(&d->busy, began, now);
	list = d->busy.root & 1;
#pragma unroll
	for (u32 i = 0; i < GROUPS_OF_DEVICE; i++) {
		u32 group = d->groups[list][i];

		if (!group)
			break;
		group_loses(group, began, now);
	}
	return 0;
}
