/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* An I/O that has come to its end: taken out of those under way, its times counted. */
#pragma once
#include "slow.h"
#include "sums.h"
#include "under_way.h"

static __always_inline void account(struct device *d, const struct finished *f, bool timed)
{
	u32 direction = direction_of(f->operation), epoch = epoch_now();
	struct sums io = { 1, f->bytes >> 9, timed ? f->queue_ns : 0, f->service_ns };
	u64 latency_ns = f->queue_ns + f->service_ns;

	sum_up(d, f->device, direction, &io);
	if (direction < 2) {
		if (timed)
			count_latency(d, direction, f->queue_ns);
		count_latency(d, 2 + direction, f->service_ns);
		count_process(f->process, direction, f->bytes, (timed ? f->queue_ns : 0) + f->service_ns);
	}
	if (f->queue_ns > d->queue_max_ns[epoch])
		raise_to(&d->queue_max_ns[epoch], f->queue_ns);
	if (f->service_ns > d->service_max_ns[epoch])
		raise_to(&d->service_max_ns[epoch], f->service_ns);
	if (latency_ns > d->latency_max_ns[epoch]) {
		raise_to(&d->latency_max_ns[epoch], latency_ns);
		record_slow(f, epoch, 1);
	} else if (d->slow_ns && latency_ns >= d->slow_ns) {
		record_slow(f, epoch, 0);
	}
}

/* Takes the I/O out and fills in its times; 0 if it was not seen to be in the driver. */
static __always_inline struct device *take_out(struct io *io, struct finished *f, bool *timed)
{
	u64 state = *(volatile u64 *)&io->state, start_ns = io->start_ns & IO_TIME, issued = state & IO_TIME;
	struct device *d;

	f->device = state >> IO_DEVICE_SHIFT;
	f->thread = io->thread;
	f->process = io->start_ns >> IO_PROCESS_SHIFT;
	f->bytes = io->bytes;
	f->service_ns = (f->now - issued) & IO_TIME;
	f->queue_ns = (issued - start_ns) & IO_TIME;
	*timed = start_ns && !(state & IO_BIO);
	/* Started after it was issued: a clock read for several I/Os at once. */
	if (!*timed || f->queue_ns > IO_TIME >> 1)
		f->queue_ns = 0;
	release(io);
	d = device_at(f->device);
	if (!d)
		return 0;
	leave(d, state, f->now);
	/* Ended while queued: an empty flush, or a request that no path took. */
	return state & IO_QUEUED ? 0 : d;
}
