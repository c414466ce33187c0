/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* I/Os by process and device. The place of a process is looked up when a thread first submits to a device and remembered
 * with the thread; the I/O carries its number, so that the completion needs no search. */
#pragma once
#include "cells.h"
#include "device.h"
#include "submitter.h"

static __always_inline u64 work_of(const struct submitter *s)
{
	const struct worker *worker = (void *)s->worker;

	return bpf_core_field_exists(worker->current_pwq) ? (u64)BPF_CORE_READ(worker, current_pwq) : 0;
}

/* Name of the workqueue that a worker works for; empty if the kernel does not say. */
static __always_inline void name_work(u64 work, struct name *name)
{
	const struct pool_workqueue *pool = (void *)work;
	const struct workqueue_struct *queue = 0;

	if (!work || !bpf_core_field_exists(pool->wq) || !bpf_core_field_exists(queue->name))
		return;
	queue = BPF_CORE_READ(pool, wq);
	bpf_core_read_str(name, sizeof(*name), &queue->name);
}

#define WORKQUEUE (1ull << 47)
#define MIX 0x9e3779b97f4a7c15ull

static __always_inline u64 what_of_work(const struct name *name)
{
	u64 mixed = (((name->word[0] * MIX ^ name->word[1]) * MIX ^ name->word[2]) * MIX ^ name->word[3]) * MIX;

	return WORKQUEUE | mixed >> 17;
}

/* The worker turned to other work, or places were taken away: nothing remembered holds any longer. */
static __noinline int renew(struct submitter *s, u64 work, u32 generation)
{
	struct name name = {};

	if (!s)
		return 0;
	__builtin_memset(s->place, 0, sizeof(s->place));
	s->generation = generation;
	if (s->worker && s->work != work) {
		name_work(work, &name);
		s->what = what_of_work(&name);
		s->kind = PROCESS_WORKQUEUE;
		s->work = work;
	}
	return 0;
}

static __always_inline void write_process(struct process *p, const struct submitter *s)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct name name = {};

	if (s->kind == PROCESS_WORKQUEUE) {
		name_work(s->work, &name);
		p->id = 0;
		p->started_ns = 0;
	} else {
		BPF_CORE_READ_STR_INTO(&name, task, group_leader, comm);
		p->id = s->id >> 32;
		p->started_ns = started_ns_of(task);
	}
	__builtin_memcpy(p->command, &name, sizeof(p->command));
	p->cgroup = s->cgroup;
	barrier();
	*(volatile u32 *)&p->kind = s->kind;
}

static __always_inline struct process *process_at(u32 place)
{
	return bpf_map_lookup_elem(&processes, &place);
}

/* Place 0 is nobody's; NOT_NOW if another was faster at the only free one. */
static __noinline u32 find_process(const struct submitter *s, u64 key)
{
	u32 first = hash(key, process_bits), free = 0;
	struct process *p;
	u64 there;

	if (!s)
		return 0;
#pragma unroll
	for (u32 i = 0; i < PROCESS_PROBES; i++) {
		u32 place = (first + i) & ((1u << process_bits) - 1);

		p = process_at(place);
		if (!p || !place)
			continue;
		there = *(volatile u64 *)&p->key;
		if (there == key)
			return place;
		if (!there && !free)
			free = place;
	}
	p = free ? process_at(free) : 0;
	if (!p)
		return 0;
	there = COMPARE_AND_SWAP(&p->key, 0, key, LOCK_OF_PROCESS(free), PROCESS_LEAVING);
	if (!there)
		write_process(p, s);
	return !there || there == key ? free : NOT_NOW;
}

static __noinline u32 look_up_process(struct submitter *s, u32 device, u32 generation)
{
	u64 work;
	u32 place;

	if (!s)
		return 0;
	work = s->worker ? work_of(s) : 0;
	if (s->generation != generation || s->work != work)
		renew(s, work, generation);
	place = find_process(s, (u64)device << IO_DEVICE_SHIFT | s->what);
	if (place == NOT_NOW)
		return 0;
	s->place[device & (PLACES_OF_THREAD - 1)] = device << 16 | place;
	return place;
}

/* Place of the process now running on a device. */
static __always_inline u32 process_of(struct submitter *s, u32 device)
{
	struct control *c = the_control();
	u32 known, generation;

	if (!s || !c)
		return 0;
	generation = c->process_generation;
	known = s->place[device & (PLACES_OF_THREAD - 1)];
	if (known >> 16 == device && s->generation == generation && (!s->worker || s->work == work_of(s)))
		return known & 0xffff;
	return look_up_process(s, device, generation);
}

/* Notes thread and process of an I/O that starts, and its start. */
static __always_inline void note_submitter(struct io *io, u32 device, u64 start_ns)
{
	u64 id = bpf_get_current_pid_tgid();
	u32 process = process_of(current_submitter(id), device);

	if (!process)
		count(LOSS_NO_PROCESS);
	io->thread = (u32)id & IO_THREAD;
	io->start_ns = (u64)process << IO_PROCESS_SHIFT | (start_ns & IO_TIME);
}

static __always_inline u32 process_bucket(u64 ns)
{
	u64 units = ns >> PROCESS_UNIT_SHIFT;
	u32 value = units >> 25 ? 0x1ffffff : (u32)units, octave = 0;

	/* Shift to three significant bits. */
	if (value >> 18) { value >>= 16; octave += 16; }
	if (value >> 10) { value >>= 8; octave += 8; }
	if (value >> 6) { value >>= 4; octave += 4; }
	if (value >> 4) { value >>= 2; octave += 2; }
	if (value >> 3) { value >>= 1; octave += 1; }
	return (octave << 2) + value;
}

static __always_inline u32 sums_index(u32 process, u32 shard)
{
	u32 place = process * shards + shard, index;
	struct own *own = bpf_map_lookup_elem(&sums_of, &place);

	index = own ? *(volatile u32 *)&own->index : process;
	return index ? index : ask_for_sums(place, process);
}

VERIFIED_ONCE int count_process(u32 process, u32 direction, u32 bytes, u64 latency_ns)
{
	u32 index, bucket = process_bucket(latency_ns);
	struct process_sums *sums;

	if (!process)
		return 0;
	index = sums_index(process, shard_now());
	sums = bpf_map_lookup_elem(&process_sums, &index);
	if (!sums || bucket >= PROCESS_BUCKETS)
		return 0;
	__sync_fetch_and_add(&sums->ios[direction & 1], 1);
	__sync_fetch_and_add(&sums->bytes[direction & 1], bytes);
	__sync_fetch_and_add(&sums->latency_ns, latency_ns);
	__sync_fetch_and_add(&sums->count[bucket], 1);
	return 0;
}
