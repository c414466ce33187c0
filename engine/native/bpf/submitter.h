/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Who submits: looked up once per thread, so that an I/O carries nothing but numbers of the thread and its process. */
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

/* What tells processes apart: id and start, as ids are used again. */
static __always_inline u64 what_of_process(u64 id, u64 started_ns)
{
	return (started_ns >> 20 & 0x1ffffff) << 22 | (id >> 32 & 0x3fffff);
}

static __always_inline u64 started_ns_of(struct task_struct *task)
{
	return bpf_core_field_exists(task->start_boottime) ? BPF_CORE_READ(task, group_leader, start_boottime) : 0;
}

static __always_inline u64 worker_of(struct task_struct *task, u32 flags)
{
	const struct kthread *thread = 0;

	if (!(flags & TASK_WORKER) || !bpf_core_field_exists(struct worker, current_pwq) ||
	    !bpf_core_field_exists(struct kthread, data))
		return 0;
	if (bpf_core_field_exists(task->worker_private))
		thread = BPF_CORE_READ(task, worker_private);
	else
		thread = BPF_CORE_READ(task, set_child_tid);
	return (u64)BPF_CORE_READ(thread, data);
}

static __always_inline void remember_process(struct submitter *s, u64 id)
{
	struct task_struct *task = (void *)bpf_get_current_task();
	u32 flags = BPF_CORE_READ(task, flags);

	s->kind = flags & TASK_KERNEL ? PROCESS_KERNEL : PROCESS_USER;
	s->what = what_of_process(id, started_ns_of(task));
	s->worker = worker_of(task, flags);
	s->work = 0;
	__builtin_memset(s->place, 0, sizeof(s->place));
}

static __noinline int remember_current(struct submitter *s, u64 id)
{
	if (!s)
		return 0;
	s->id = 0;
	barrier();
	s->waits_since_ns = 0;
	s->cgroup = cgroup_of_current();
	bpf_get_current_comm(s->command, sizeof(s->command));
	remember_process(s, id);
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
