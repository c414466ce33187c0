/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Who submits: looked up once per thread, so that an I/O carries nothing but the thread's number. */
#pragma once
#include "maps.h"

static __always_inline struct submitter *submitter_at(u32 thread)
{
	u32 index = thread & (THREADS - 1);
	return bpf_map_lookup_elem(&submitters, &index);
}

static __always_inline u64 cgroup_of_current(void)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (!bpf_core_field_exists(task->cgroups))
		return 0;
	return BPF_CORE_READ(task, cgroups, dfl_cgrp, kn, id);
}

static __noinline int remember_current(struct submitter *s, u64 id)
{
	if (!s)
		return 0;
	s->id = 0;
	barrier();
	s->bio_queued_ns = 0;
	s->cgroup = cgroup_of_current();
	bpf_get_current_comm(s->command, sizeof(s->command));
	barrier();
	s->id = id;
	return 0;
}

/* The thread now running, remembered with its name and cgroup. */
static __always_inline struct submitter *current_submitter(u64 id)
{
	struct submitter *s = submitter_at((u32)id);

	if (s && s->id != id)
		remember_current(s, id);
	return s;
}

static __always_inline u32 current_thread(void)
{
	u64 id = bpf_get_current_pid_tgid();

	current_submitter(id);
	return (u32)id;
}
