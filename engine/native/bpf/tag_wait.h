/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Optional: the wait for a tag. With all tags taken the submitter sleeps before there is a request: invisible to request
 * events and to diskstats. The thread that queues the bio is the one that gets the request for it. */
#pragma once
#include "cells.h"
#include "device.h"
#include "submitter.h"

/* Linux 7.2 and later: nothing runs while nobody waits. Called before each sleep of a wait, of which the first is its
 * begin. Requests without a bio (SCSI and NVMe commands of user space) end their wait without block_getrq. */
SEC("raw_tp/block_rq_tag_wait")
int on_tag_sleep(void *context)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	struct control *c = the_control();
	struct submitter *s;

	if (!c)
		return 0;
	__sync_fetch_and_add(&c->tag_sleeps, 1);
	if (!c->tag_timing_since_ns || !BPF_CORE_READ(task, bio_list))
		return 0;
	s = current_submitter(bpf_get_current_pid_tgid());
	if (s && s->waits_since_ns < c->tag_timing_since_ns)
		s->waits_since_ns = bpf_ktime_get_ns();
	return 0;
}

/* Before Linux 7.2: each I/O counts as a wait, however short. */
PROGRAM(on_wait_begin, block_bio_queue)
{
	struct submitter *s = current_submitter(bpf_get_current_pid_tgid());

	if (s)
		s->waits_since_ns = bpf_ktime_get_ns();
	return 0;
}

static __noinline int note_tag_wait(u32 device, u64 key, u64 wait_ns)
{
	u32 index = hash(key, 12);
	struct tag_wait *wait = bpf_map_lookup_elem(&tag_waits, &index);
	struct cell *cell = cell_now(device);

	if (!cell || !wait)
		return 0;
	__sync_fetch_and_add(&cell->tag_waits, 1);
	__sync_fetch_and_add(&cell->tag_wait_ns, wait_ns);
	wait->key = 0;
	barrier();
	wait->wait_ns = wait_ns;
	barrier();
	wait->key = key;
	return 0;
}

PROGRAM(on_wait_end, block_getrq)
{
	struct bio *bio = (void *)ONLY_ARGUMENT(context, btf_trace_block_getrq___queue_first);
	u64 id = bpf_get_current_pid_tgid(), since_ns;
	struct submitter *s = submitter_at((u32)id);
	struct gendisk *disk = disk_of_bio(bio);
	struct control *c = the_control();
	u32 index;

	if (!c || !s || s->id != id || !s->waits_since_ns)
		return 0;
	since_ns = s->waits_since_ns;
	s->waits_since_ns = 0;
	if (since_ns < c->tag_timing_since_ns)
		return 0;
	index = device_of(READ(disk, queue), disk);
	return index ? note_tag_wait(index, key_of(bio), bpf_ktime_get_ns() - since_ns) : 0;
}
