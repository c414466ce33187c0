/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The maps; the loader sets their sizes to those of the host. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "layout.h"

#define SHARED_ARRAY(map, of)                      \
	struct {                                   \
		__uint(type, BPF_MAP_TYPE_ARRAY);  \
		__uint(map_flags, BPF_F_MMAPABLE); \
		__uint(max_entries, 1);            \
		__type(key, u32);                  \
		__type(value, of);                 \
	} map SEC(".maps")

SHARED_ARRAY(control, struct control);
SHARED_ARRAY(devices, struct device);
SHARED_ARRAY(cells, struct cell);
SHARED_ARRAY(cell_of, struct own); /* by device and shard */
SHARED_ARRAY(touched, struct touched);
SHARED_ARRAY(counts, struct counts);
SHARED_ARRAY(pending, struct pending);
SHARED_ARRAY(asides, struct asides); /* by CPU and level of nesting */
SHARED_ARRAY(locks, u64); /* taken by programs that are built WITHOUT_FETCH (atomics.h) */
SHARED_ARRAY(identities, struct identity);
SHARED_ARRAY(groups, struct group);
SHARED_ARRAY(under_way, struct io_set);
SHARED_ARRAY(places, struct places);
SHARED_ARRAY(octaves, struct octave);
SHARED_ARRAY(slow_ios, struct slow_io);
SHARED_ARRAY(processes, struct process);
SHARED_ARRAY(process_sums, struct process_sums);
SHARED_ARRAY(sums_of, struct own); /* by place of a process and shard */

/* Device number to index in `devices`; 0: there was no place for it. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u32);
} numbers SEC(".maps");

/* The same by the queue's id, which needs no hash: number << 32 | low bits of the epoch << 16 | index. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, u64);
} queues SEC(".maps");

struct slow_place {
	u32 next_maximum, next;
};
struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct slow_place);
} slow_places SEC(".maps");

/* Who submits, by thread id; written once per thread. */
#define THREADS 4096
#define PLACES_OF_THREAD 8 /* a power of two */
struct submitter {
	u64 id; /* process << 32 | thread */
	u64 waits_since_ns; /* for a tag; 0: it does not */
	u64 cgroup;
	char command[16];
	u64 what;   /* low bits of the keys of its process */
	u64 worker; /* struct worker of a workqueue's thread, else 0 */
	u64 work;   /* struct pool_workqueue that it last worked for */
	u32 generation, kind;
	u32 place[PLACES_OF_THREAD]; /* device << 16 | place of its process on it */
	u64 unused[3];
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, THREADS);
	__type(key, u32);
	__type(value, struct submitter);
} submitters SEC(".maps");

/* How long a bio waited for a tag, by its address; overwritten by the next that falls there. */
#define TAG_WAITS 4096
struct tag_wait {
	u64 key, wait_ns;
};
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, TAG_WAITS);
	__type(key, u32);
	__type(value, struct tag_wait);
} tag_waits SEC(".maps");

/* Set by the loader; constants to the verifier. */
const volatile u32 io_set_bits = 13;
const volatile u32 process_bits = 11;
/* CPUs that write the same lines: one each, or neighbours that share a cache. */
#define MOST_CPUS 8192
const volatile u8 shard_of_cpu[MOST_CPUS];
const volatile u32 shards = 1;
const volatile u32 first_own_cell = 1; /* cells before are those of the devices */
const volatile u32 cells_end = 1;
const volatile u32 sums_end = 1; /* of sums of processes: as many as there are places are those of the places */

static __always_inline struct control *the_control(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&control, &zero);
}

static __always_inline u32 shard_now(void)
{
	return shard_of_cpu[bpf_get_smp_processor_id() & (MOST_CPUS - 1)];
}

static __always_inline void count(enum loss which)
{
	u32 shard = shard_now();
	struct counts *counted = bpf_map_lookup_elem(&counts, &shard);

	if (counted)
		__sync_fetch_and_add(&counted->count[which], 1);
}

/* Grows with every interval; its lowest bit tells which half of the peaks is written. */
static __always_inline u32 epoch_now(void)
{
	struct control *c = the_control();
	return c ? *(volatile u32 *)&c->epoch : 0;
}

static __always_inline struct device *device_at(u32 index)
{
	return bpf_map_lookup_elem(&devices, &index);
}

static __always_inline struct cell *cell_at(u32 index)
{
	return bpf_map_lookup_elem(&cells, &index);
}

/* The address as a plain number. The verifier forbids arithmetic on pointers to kernel objects, but the difference of
 * two pointers is a number to it; the base is the same in all programs. Without types they are numbers anyway. */
static __always_inline u64 key_of(const void *object)
{
	u64 key = (u64)object;
#ifndef RAW
	const volatile void *base = &io_set_bits;
	asm volatile("%0 -= %1" : "+r"(key) : "r"(base));
#endif
	return key;
}

static __always_inline u32 hash(u64 key, u32 bits)
{
	return (u32)((key * 0x9e3779b97f4a7c15ull) >> (64 - bits));
}
