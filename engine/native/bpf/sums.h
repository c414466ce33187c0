/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Counts, bytes and times of completed I/Os: gathered by CPU, so that most I/Os cost no locked addition. */
#pragma once
#include "cells.h"

static __always_inline void add_sums(struct sums *to, const struct sums *more)
{
	__sync_fetch_and_add(&to->ios, more->ios);
	__sync_fetch_and_add(&to->sectors, more->sectors);
	__sync_fetch_and_add(&to->queue_ns, more->queue_ns);
	__sync_fetch_and_add(&to->service_ns, more->service_ns);
}

/* Full barriers on every architecture, which an addition is on x86 only. */
static __always_inline void next_sequence(struct pending *p)
{
#ifdef WITHOUT_FETCH
	__sync_fetch_and_add(&p->sequence, 1);
#else
	__sync_lock_test_and_set(&p->sequence, p->sequence + 1);
#endif
}

static __noinline int move_pending(struct pending *p, u32 device, u32 direction)
{
	struct cell *cell;
	u32 held;

	if (!p)
		return 0;
	cell = p->device ? cell_at(touch_cell(p->device, shard_now())) : 0;
	held = *(volatile u32 *)&p->direction;
	next_sequence(p);
	if (cell && held < DIRECTIONS)
		add_sums(&cell->sums[held], &p->sums);
	__builtin_memset(&p->sums, 0, sizeof(p->sums));
	p->device = device;
	p->direction = direction;
	next_sequence(p);
	return 0;
}

static __always_inline struct pending *pending_of(u32 device, u32 direction)
{
	u32 index = bpf_get_smp_processor_id() * PENDING_OF_CPU;

	index += (device * DIRECTIONS + direction) & (PENDING_OF_CPU - 1);
	return bpf_map_lookup_elem(&pending, &index);
}

static __always_inline void sum_up(struct cell *cell, u32 device, u32 direction, const struct sums *io)
{
	struct pending *p = pending_of(device, direction);

	if (!p || p->in_use) {
		add_sums(&cell->sums[direction], io);
		return;
	}
	p->in_use = 1;
	barrier();
	if (p->device != device || p->direction != direction)
		move_pending(p, device, direction);
	p->sums.ios += io->ios;
	p->sums.sectors += io->sectors;
	p->sums.queue_ns += io->queue_ns;
	p->sums.service_ns += io->service_ns;
	barrier();
	p->in_use = 0;
}
