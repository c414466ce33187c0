/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Devices with requests: inserted when they must wait, issued to the driver, given back, merged, completed. */
#pragma once
#include "finish.h"

/* Time of the accounted start, 0 if the kernel took none: with queue/iostats = 0 the field holds that of another request. */
static __always_inline u64 stamped_start(struct request *request)
{
	if (bpf_core_enum_value_exists(enum rqf_flags, __RQF_IO_STAT) &&
	    !(READ(request, rq_flags) & 1u << bpf_core_enum_value(enum rqf_flags, __RQF_IO_STAT)))
		return 0;
	return READ(request, start_time_ns);
}

static __always_inline u64 counted(u64 start_ns)
{
	return start_ns ? IO_COUNTED : 0;
}

PROGRAM(on_insert, block_rq_insert)
{
	struct request *request = (void *)ONLY_ARGUMENT(context, btf_trace_block_rq_insert___queue_first);
	u64 now = bpf_ktime_get_ns(), key = key_of(request);
	struct io_set *set = set_of(key);
	struct io *io = set ? find(set, key) : 0;
	u32 index;

	if (!set || (io && io->state & IO_QUEUED))
		return 0;
	if (io)
		forget(io, now);
	index = device_of_request(request);
	if (!index || !(io = claim(set, key)))
		return 0;
	note_submitter(io, index, now);
	io->bytes = 0;
	io->state = state_of(index, counted(stamped_start(request)) | IO_QUEUED, now);
	add_queued(index, 1);
	return 0;
}

/* What a program of this CPU saw last; of each kind in a place of its own. */
enum last { LAST_COMPLETED, LAST_ISSUED };

static __always_inline u64 *last_of(enum last kind)
{
	u32 index = bpf_get_smp_processor_id() * PENDING_OF_CPU + kind;
	struct pending *p = bpf_map_lookup_elem(&pending, &index);

	return p ? &p->last : 0;
}

/* Whether the first copy of a program has seen what the second one now sees. The first writes it before all else, so that an
 * interrupt in the midst of it finds no older request there. */
static __always_inline bool is_seen(enum last kind, u64 key, bool again)
{
	u64 *last = last_of(kind);

	if (last && !again)
		*(volatile u64 *)last = key;
	return last && again && *(volatile u64 *)last == key;
}

/* An interrupt between two copies of a program takes less, unless the hypervisor has stopped the CPU. */
#define BETWEEN_COPIES_NS 10000000

/* Whether this is the issue that an I/O under way has begun with: a request that is used again has another start. */
static __always_inline bool is_same_issue(const struct io *io, u64 start_ns, u64 now)
{
	if (start_ns)
		return !((io->start_ns ^ start_ns) & IO_TIME);
	return ((now - io->state) & IO_TIME) < BETWEEN_COPIES_NS;
}

/* From the queue, or directly when nothing made it wait. */
static __always_inline int issue(struct request *request, bool again)
{
	u64 now = bpf_ktime_get_ns(), key = key_of(request), start_ns;
	struct io_set *set;
	struct io *io;
	bool queued;
	u32 index;

	if (is_seen(LAST_ISSUED, key, again))
		return 0;
	set = set_of(key);
	io = set ? find(set, key) : 0;
	queued = io && io->state & IO_QUEUED;
	start_ns = stamped_start(request);
	if (!set || (again && io && !queued && is_same_issue(io, start_ns, now)))
		return 0;
	if (again)
		count(COUNT_RESCUED);
	if (io && !queued)
		forget(io, now);
	index = queued ? io->state >> IO_DEVICE_SHIFT : device_of_request(request);
	if (!index)
		return 0;
	if (queued) {
		add_queued(index, -1);
		if (start_ns)
			io->start_ns = (io->start_ns & ~IO_TIME) | (start_ns & IO_TIME);
	} else {
		io = claim(set, key);
		if (!io)
			return 0;
		note_submitter(io, index, start_ns);
		io->bytes = 0;
	}
	if (!io->bytes)
		io->bytes = READ(request, __data_len);
	io->state = state_of(index, counted(start_ns), now);
	enter(io, index, now);
	return 0;
}

PROGRAM(on_issue, block_rq_issue)
{
	return issue((void *)ONLY_ARGUMENT(context, btf_trace_block_rq_issue___queue_first), false);
}

/* The kernel skips a program that is already running on this CPU, which happens when an interrupt issues or ends an I/O in
 * the midst of it. The second copy finds what the first was not let see, and nothing otherwise. */
PROGRAM(on_issue_again, block_rq_issue)
{
	return issue((void *)ONLY_ARGUMENT(context, btf_trace_block_rq_issue___queue_first), true);
}

/* The driver gave it back: it waits again, and all until its last issue is queue time. */
PROGRAM(on_requeue, block_rq_requeue)
{
	struct request *request = (void *)ONLY_ARGUMENT(context, btf_trace_block_rq_requeue___queue_first);
	u64 now = bpf_ktime_get_ns(), key = key_of(request), state;
	struct io_set *set = set_of(key);
	struct io *io = set ? find(set, key) : 0;

	if (!io || io->state & IO_QUEUED)
		return 0;
	state = io->state;
	io->state = state_of(state >> IO_DEVICE_SHIFT, (state & IO_COUNTED) | IO_QUEUED, now);
	add_queued(state >> IO_DEVICE_SHIFT, 1);
	leave_driver(state >> IO_DEVICE_SHIFT, io->thread >> IO_LEAF_SHIFT, now);
	count(COUNT_REQUEUED);
	return 0;
}

/* Another request took this one's bios; it never completes itself. */
PROGRAM(on_merge, block_rq_merge)
{
	struct request *request = (void *)ONLY_ARGUMENT(context, btf_trace_block_rq_merge___queue_first);
	u64 key = key_of(request), state;
	struct io_set *set = set_of(key);
	struct io *io = set ? find(set, key) : 0;
	u32 leaf;

	if (!io)
		return 0;
	state = io->state;
	leaf = io->thread >> IO_LEAF_SHIFT;
	release(io);
	leave(state, leaf, bpf_ktime_get_ns());
	return 0;
}

static __always_inline int complete(struct request *request, s32 error, u32 bytes, bool again)
{
	/* The clock is read before all else, as at the issue: what a program does first would make one side later. */
	struct finished f = { .now = again ? 0 : bpf_ktime_get_ns() };
	u64 key = key_of(request);
	struct io_set *set;
	struct io *io;

	if (is_seen(LAST_COMPLETED, key, again))
		return 0;
	if (bytes < READ(request, __data_len))
		return 0;
	set = set_of(key);
	io = set ? find(set, key) : 0;
	if (!io) {
		/* Request-based dm ends twice, the second time with no bytes. */
		if (bytes && !again && device_of_request(request))
			count(LOSS_UNSEEN);
		return 0;
	}
	if (again) {
		f.now = bpf_ktime_get_ns();
		count(COUNT_RESCUED);
	}
	f.operation = READ(request, cmd_flags) & OP_MASK;
	f.sector = READ(request, __sector);
	f.bio = READ(request, bio);
	f.is_request = true;
	f.failed = error;
	if (take_out(io, &f))
		account(&f);
	return 0;
}

PROGRAM(on_complete, block_rq_complete)
{
	return complete((void *)ARGUMENT(context, 0), (u8)ARGUMENT(context, 1), ARGUMENT(context, 2), false);
}

PROGRAM(on_complete_again, block_rq_complete)
{
	return complete((void *)ARGUMENT(context, 0), (u8)ARGUMENT(context, 1), ARGUMENT(context, 2), true);
}
