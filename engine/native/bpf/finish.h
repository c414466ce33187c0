/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* An I/O that has come to its end: taken out of those under way, its times counted. */
#pragma once
#include "histogram.h"
#include "slow.h"
#include "sums.h"
#include "under_way.h"

static __always_inline void raise_in_cell(u64 *maximum, u64 value, u32 index, enum aside_maximum what)
{
	if (raise_to(maximum, value, LOCK_OF_CELL(index)) && !put_aside(index, what, value))
		count(COUNT_OVERTAKEN);
}

static __always_inline void note_maxima(struct cell *cell, u32 index, const struct finished *f)
{
	u32 epoch = epoch_now() & 1;
	struct device *d = device_at(f->device);
	u64 latency_ns = f->queue_ns + f->service_ns;
	bool is_maximum;

	if (f->queue_ns > cell->queue_max_ns[epoch])
		raise_in_cell(&cell->queue_max_ns[epoch], f->queue_ns, index, ASIDE_QUEUE_MAX);
	if (f->service_ns > cell->service_max_ns[epoch])
		raise_in_cell(&cell->service_max_ns[epoch], f->service_ns, index, ASIDE_SERVICE_MAX);
	is_maximum = latency_ns > cell->latency_max_ns[epoch];
	if (is_maximum)
		raise_in_cell(&cell->latency_max_ns[epoch], latency_ns, index, ASIDE_LATENCY_MAX);
	if (is_maximum || (d && d->slow_ns && latency_ns >= d->slow_ns))
		record_slow(f, epoch, is_maximum);
}

static __always_inline void account(const struct finished *f)
{
	u32 direction = direction_of(f->operation), index = touch_cell(f->device, shard_now());
	struct sums io = { 1, f->bytes >> 9, f->queue_ns, f->service_ns };
	struct cell *cell = cell_at(index);

	if (!cell)
		return;
	sum_up(cell, f->device, direction, &io);
	if (direction < 2) {
		if (f->timed)
			count_latency(index, direction, f->queue_ns);
		count_latency(index, 2 + direction, f->service_ns);
		count_process(f->process, direction, f->bytes, f->queue_ns + f->service_ns);
		/* Flushes never have a stamp. */
		if (!f->timed && f->is_request) {
			__sync_fetch_and_add(&cell->unstamped, 1);
			count(LOSS_UNSTAMPED);
		}
	}
	if (f->failed)
		__sync_fetch_and_add(&cell->errors, 1);
	note_maxima(cell, index, f);
}

/* Takes the I/O out and fills in its times; false if it was not seen to be in the driver. */
static __always_inline bool take_out(struct io *io, struct finished *f)
{
	u64 state = *(volatile u64 *)&io->state, start_ns = io->start_ns & IO_TIME, issued = state & IO_TIME;
	u32 leaf = io->thread >> IO_LEAF_SHIFT;

	f->device = state >> IO_DEVICE_SHIFT;
	f->thread = io->thread & IO_THREAD;
	f->process = io->start_ns >> IO_PROCESS_SHIFT;
	f->bytes = io->bytes;
	f->service_ns = (f->now - issued) & IO_TIME;
	f->queue_ns = (issued - start_ns) & IO_TIME;
	f->timed = start_ns && !(state & IO_BIO);
	/* Started after it was issued: a clock read for several I/Os at once. */
	if (!f->timed || f->queue_ns > IO_TIME >> 1)
		f->queue_ns = 0;
	release(io);
	leave(state, leaf, f->now);
	/* Ended while queued: an empty flush, or a request that no path took. */
	return !(state & IO_QUEUED);
}
