/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The slowest I/Os of an interval, one by one: every new maximum of a device, and all above the threshold that user
 * space sets from the last interval. Each kind has half of a CPU's places, so that a device of which many are slow does
 * not push out the slowest of the others. */
#pragma once
#include "process.h"

struct finished {
	u64 now, queue_ns, service_ns, sector;
	struct bio *bio;
	u32 operation, bytes, thread, device, process;
	bool is_request, timed, failed; /* timed: its queue time is known */
};

static __always_inline u64 cgroup_of_bio(struct bio *bio)
{
	if (!bio || !bpf_core_field_exists(bio->bi_blkg))
		return 0;
	return BPF_CORE_READ(bio, bi_blkg, blkcg, css.cgroup, kn, id);
}

/* A maximum takes the place of the oldest, which newer ones have mostly surpassed; of others the faster gives way. */
static __always_inline struct slow_io *slow_place(u32 epoch, u64 latency_ns, u32 is_maximum)
{
	u32 zero = 0, index;
	struct slow_place *place = bpf_map_lookup_elem(&slow_places, &zero);
	struct slow_io *slow;

	if (!place)
		return 0;
	index = (bpf_get_smp_processor_id() * EPOCHS + epoch) * SLOW_OF_CPU;
	if (is_maximum)
		index += place->next_maximum++ & (SLOW_OF_CPU / 2 - 1);
	else
		index += SLOW_OF_CPU / 2 + (place->next++ & (SLOW_OF_CPU / 2 - 1));
	slow = bpf_map_lookup_elem(&slow_ios, &index);
	return slow && (is_maximum || !slow->done_ns || slow->latency_ns < latency_ns) ? slow : 0;
}

static __always_inline u64 tag_wait_of(struct bio *bio)
{
	u64 key = key_of(bio);
	u32 index = hash(key, 12);
	struct tag_wait *wait = bpf_map_lookup_elem(&tag_waits, &index);

	return bio && wait && wait->key == key ? wait->wait_ns : 0;
}

/* cgroup 1 is the root: the bio's own is better where writeback works for others, the thread's where the I/O
 * controller is off. */
static __always_inline void describe_submitter(struct slow_io *slow, const struct finished *f)
{
	struct submitter *s = submitter_at(f->thread);
	u64 cgroup = cgroup_of_bio(f->bio);
	bool known = s && (u32)s->id == f->thread;

	slow->thread = f->thread;
	slow->process = known ? s->id >> 32 : 0;
	slow->cgroup = cgroup > 1 || !known ? cgroup : s->cgroup;
	if (known)
		__builtin_memcpy(slow->command, s->command, sizeof(slow->command));
	else
		__builtin_memset(slow->command, 0, sizeof(slow->command));
}

static __noinline int record_slow(const struct finished *f, u32 epoch, u32 is_maximum)
{
	u64 latency_ns = f->queue_ns + f->service_ns;
	struct slow_io *slow = slow_place(epoch, latency_ns, is_maximum);

	if (!slow)
		return 0;
	slow->done_ns = 0;
	barrier();
	slow->latency_ns = latency_ns;
	slow->queue_ns = f->queue_ns;
	slow->service_ns = f->service_ns;
	slow->tag_wait_ns = tag_wait_of(f->bio);
	slow->sector = f->sector;
	slow->device = f->device;
	slow->bytes = f->bytes;
	slow->operation = f->operation;
	describe_submitter(slow, f);
	barrier();
	slow->done_ns = f->now;
	return 0;
}
