/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The few kernel types used here. Only names count: the loader relocates every access against the running kernel's BTF. */
#pragma once

typedef unsigned char __u8;
typedef signed char __s8;
typedef unsigned short __u16;
typedef short __s16;
typedef unsigned int __u32;
typedef int __s32;
typedef unsigned long long __u64;
typedef long long __s64;
typedef __u16 __be16;
typedef __u32 __be32;
typedef __u32 __wsum;
typedef __u8 u8;
typedef __u16 u16;
typedef __u32 u32;
typedef __u64 u64;
typedef __s32 s32;
typedef __s64 s64;
typedef _Bool bool;
#define true 1
#define false 0

enum bpf_map_type {
	BPF_MAP_TYPE_HASH = 1,
	BPF_MAP_TYPE_ARRAY = 2,
	BPF_MAP_TYPE_PERCPU_ARRAY = 6,
};
enum { BPF_ANY = 0, BPF_NOEXIST = 1 };
enum { BPF_F_MMAPABLE = 1024 };

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct request_queue;
struct bio;

struct gendisk {
	int major;
	int first_minor;
	char disk_name[32];
	struct request_queue *queue;
};

struct request_queue {
	const void *mq_ops;
	int id;
	struct gendisk *disk;
};

struct request {
	struct request_queue *q;
	u32 cmd_flags;
	u32 rq_flags;
	u32 __data_len;
	u64 __sector;
	struct bio *bio;
	u64 start_time_ns;
};

struct request___with_disk { /* Linux 5.16 and older */
	struct gendisk *rq_disk;
};

struct block_device {
	struct gendisk *bd_disk;
};

struct bvec_iter {
	u64 bi_sector;
	u32 bi_size;
};

struct kernfs_node {
	u64 id;
};

struct cgroup {
	struct kernfs_node *kn;
};

struct cgroup_subsys_state {
	struct cgroup *cgroup;
};

struct blkcg {
	struct cgroup_subsys_state css;
};

struct blkcg_gq {
	struct blkcg *blkcg;
};

struct bio {
	struct block_device *bi_bdev;
	u32 bi_opf;
	struct bvec_iter bi_iter;
	struct blkcg_gq *bi_blkg;
};

struct bio___with_disk { /* Linux 5.11 and older */
	struct gendisk *bi_disk;
};

struct css_set {
	struct cgroup *dfl_cgrp;
};

struct task_struct {
	u32 flags;
	struct css_set *cgroups;
	struct task_struct *group_leader;
	u64 start_boottime;
	void *bio_list; /* not 0 while a bio is being submitted */
	void *worker_private; /* from 5.17 on */
	void *set_child_tid;  /* before, of threads of the kernel */
	char comm[16];
};

struct kthread {
	void *data;
};

struct workqueue_struct {
	char name[32];
};

struct pool_workqueue {
	struct workqueue_struct *wq;
};

struct worker {
	struct pool_workqueue *current_pwq;
};

/* From 6.11 on; before, start_time_ns of a request without a time stamp is 0. */
enum rqf_flags { __RQF_IO_STAT = 8 };

#pragma clang attribute pop

/* Types of tracepoints that have the queue as their first argument (Linux 5.10 and older, but not all of 5.10). */
typedef void (*btf_trace_block_rq_insert___queue_first)(void *, struct request_queue *, struct request *);
typedef void (*btf_trace_block_rq_issue___queue_first)(void *, struct request_queue *, struct request *);
typedef void (*btf_trace_block_rq_requeue___queue_first)(void *, struct request_queue *, struct request *);
typedef void (*btf_trace_block_rq_merge___queue_first)(void *, struct request_queue *, struct request *);
typedef void (*btf_trace_block_bio_queue___queue_first)(void *, struct request_queue *, struct bio *);
typedef void (*btf_trace_block_split___queue_first)(void *, struct request_queue *, struct bio *, unsigned int);
typedef void (*btf_trace_block_getrq___queue_first)(void *, struct request_queue *, struct bio *, int);

/* Flags of a task (sched.h); these values have never changed. */
enum { TASK_WORKER = 0x20, TASK_KERNEL = 0x200000 };

/* Operations (blk_types.h); these values have never changed. */
enum { OP_READ = 0, OP_DISCARD = 3, OP_FIRST_DRIVER_PRIVATE = 32, OP_MASK = 0xff };

/* Functions with numbers as arguments only, which the kernel verifies once each (5.6 and later) instead of at every call. */
#define VERIFIED_ONCE __attribute__((noinline))
