/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What user space maps: src/exact/layout.rs mirrors every structure and both sides assert the sizes. */
#pragma once

#define EPOCHS 2            /* peaks of the running interval and of the one before it */
#define DIRECTIONS 3        /* read, write, other */
#define SERIES 4            /* queue read, queue write, service read, service write */
#define GROUPS_OF_DEVICE 8
#define WAYS 4

/* Log-linear buckets: 64 ns, 16 per octave (at most 6.25 % wide), 28 octaves up to 137 s. One octave is one cache line. */
#define UNIT_SHIFT 6
#define OCTAVES 28
#define BUCKETS_OF_OCTAVE 16

#define NO_HISTOGRAM 0xffffffffu /* the pool was empty when the series asked */

struct sums {
	u64 ios, sectors, queue_ns, service_ns;
};

/* Time that something was busy, by a scalable non-zero indicator (Ellen, Lev, Luchangco, Moir, PODC 2007): what is counted
 * here are the members that are not idle, of a device its leaves, of a group its devices, so that only edges write it. */
struct busy {
	u64 root;    /* time of the latest departure << 19 | members << 1 | which of the two lists of groups is in force */
	s64 sum_ns;  /* ends minus starts of busy intervals: negative while one is open */
	u64 lost_ns; /* of it, time for which an I/O whose completion was missed was taken to be in the driver */
	u64 lost_until_ns; /* CLOCK_MONOTONIC; times of several such I/Os may overlap */
};
#define ROOT_MEMBER 2ull
#define ROOT_MEMBERS ((1ull << 18) - 1)
#define ROOT_TIME_SHIFT 19
/* Further apart in the order of programs than in time no two are: they run between two clock ticks of a CPU. */
#define ROOT_SLACK_NS (1ull << 30)

struct device {
	/* Written when a leaf becomes busy or idle. */
	struct busy busy;
	u64 leaves_peak[EPOCHS]; /* most leaves that were busy at once */
	u64 unused_0[2];

	/* Read by every I/O, written by user space. */
	u64 slow_ns; /* I/Os that take longer are recorded one by one; 0: new maxima of the interval only */
	u16 groups[2][GROUPS_OF_DEVICE]; /* groups that are busy while this device is; 0 ends a list */
	u64 unused_1[3];
};

/* What the CPUs of one shard count of one device. The first cells are those of the devices, one each, for all shards that
 * see few I/Os; the others belong to the shards that have asked for one of their own (struct own). */
struct cell {
	/* Written when an I/O is issued and when it leaves the driver, on any CPU. */
	s32 in_driver; /* leaf: I/Os in the driver that were issued by this shard */
	s32 queued;    /* inserted minus issued here: of all cells together those that wait */
	u64 in_driver_peak[EPOCHS];
	u64 unused_0[5];

	/* Written when one completes. */
	struct sums sums[DIRECTIONS];
	u64 queue_max_ns[EPOCHS], service_max_ns[EPOCHS], latency_max_ns[EPOCHS];
	u64 tag_waits, tag_wait_ns;
	u32 errors, unstamped;
	u32 uncounted; /* times that are in no histogram for want of room */
	u32 places;    /* number of its `struct places` plus 1; 0 before the first I/O */
	u64 splits;    /* times that an I/O was cut in two, to fit the limits of the device */
	u64 unused_1;
};

/* Octaves of the histograms of a cell: number in the pool plus 1, 0 before the first I/O there. */
struct places {
	u32 octave[SERIES][OCTAVES];
};

/* What a shard has of its own of a device (a cell), or of a process on a device (sums). */
struct own {
	u32 index; /* 0: nothing yet, it shares what is there for all */
	u32 asked; /* epoch << 8 | how often it was asked for then; of a cell that is taken the epoch of the last I/O */
};
#define OWN_AFTER 32 /* I/Os in one interval; fewer cost more memory than they save time */

/* Epoch in which a device last had I/O: readers leave others alone. */
struct touched {
	u32 epoch, unused;
};

/* Sums of the I/Os that one CPU completed last, not yet added to the cell of its shard: plain additions need no lock. They
 * move to the cell when another device or direction needs the place. */
struct pending {
	u32 sequence; /* grows before and after they move; odd between */
	u32 in_use;   /* this CPU is adding: an interrupt meanwhile adds to the cell itself */
	u32 device;   /* 0: nobody's */
	u32 direction;
	struct sums sums;
	u64 last; /* in the first places of a CPU: the request that a program saw last there (enum last) */
	u64 unused;
};
#define PENDING_OF_CPU 8 /* a power of two */

/* What a program could not count in its place, because what it needs was held or taken too often meanwhile: user space
 * does so at the end of the interval. */
struct aside {
	u64 value; /* nanoseconds */
	u32 cell;
	u32 tag; /* what it is plus 1 << 24 | low bits of the epoch; 0: free */
};
#define ASIDE_TAG_SHIFT 24
#define ASIDE_EPOCH ((1u << ASIDE_TAG_SHIFT) - 1)
#define ASIDES 32 /* a power of two */

/* What that is: numbers below are those of the series that counts a time. */
enum aside_maximum { ASIDE_QUEUE_MAX = SERIES, ASIDE_SERVICE_MAX, ASIDE_LATENCY_MAX };

/* Of one CPU and level of nesting: programs of one level never run in the midst of each other. */
struct asides {
	u32 nesting; /* in the first of a CPU: how many of its programs put something aside now */
	u32 next;
	u64 unused;
	struct aside one[ASIDES];
};
#define NESTED 4 /* task, soft interrupt, interrupt, NMI */

struct identity {
	u32 number;  /* major << 20 | minor; 0 while the name is being written */
	u32 changes; /* grows when the number is given to another disk */
	char name[32];
};

struct group {
	struct busy busy;
	u64 unused[4];
};

/* An I/O under way, found by the address of its request or bio. */
struct io {
	u64 key;      /* 0: free */
	u64 state;    /* device << 48 | flags | time of the issue (of the insert while queued) */
	u64 start_ns; /* process << 45 | accounted start; a start of 0: unknown */
	u32 thread;   /* leaf << 22 | thread; the leaf is the shard that issued it plus 1, 0: the device's own cell */
	u32 bytes;
};
#define IO_LEAF_SHIFT 22
#define IO_THREAD ((1u << IO_LEAF_SHIFT) - 1)
#define IO_DEVICE_SHIFT 48
#define IO_QUEUED (1ull << 47)
#define IO_BIO (1ull << 46)
#define IO_COUNTED (1ull << 45) /* the kernel has it in its own counts of I/Os in flight */
#define IO_TIME ((1ull << 45) - 1)
#define IO_PROCESS_SHIFT 45

struct io_set {
	struct io way[WAYS];
};

struct octave {
	u32 count[BUCKETS_OF_OCTAVE];
};

/* One slow I/O. */
struct slow_io {
	u64 done_ns; /* CLOCK_MONOTONIC; 0 while it is being written and when empty */
	u64 latency_ns, queue_ns, service_ns;
	u64 tag_wait_ns; /* 0: not known */
	u64 sector;
	u64 cgroup;
	u32 device, bytes;
	u32 process, thread;
	u32 operation, unused;
	char command[16];
	u64 unused_1[2];
};
#define SLOW_OF_CPU 128 /* per CPU and epoch, a power of two; half for maxima */

/* One process on one device, in one of PROCESS_PROBES places from the hash of its key on. */
struct process {
	u64 key;          /* device << 48 | what submits; 0: free; PROCESS_LEAVING: soon free */
	u64 started_ns;   /* CLOCK_BOOTTIME; 0: unknown */
	u64 cgroup;
	u32 id;           /* 0 for a workqueue */
	u32 kind;         /* 0: the rest is not written yet */
	char command[32]; /* name of the process, or of the workqueue */
};
#define PROCESS_LEAVING 1ull
#define PROCESS_USER 1
#define PROCESS_KERNEL 2    /* a thread of the kernel */
#define PROCESS_WORKQUEUE 3 /* all workers of the kernel that work for this workqueue */
#define PROCESS_PROBES 8

/* What a process did on a device; the first are those of the places, the others belong to shards (struct own). Log-linear buckets: 1024 ns,
 * 4 per octave (at most 25 % wide), up to 34 s. */
#define PROCESS_UNIT_SHIFT 10
#define PROCESS_BUCKETS 96
struct process_sums {
	u64 bytes[2];
	u64 latency_ns;
	u32 ios[2];
	u64 unused[4];
	u32 count[PROCESS_BUCKETS];
};

enum loss {
	LOSS_TABLE_FULL,      /* I/Os not timed: no room among those under way */
	LOSS_UNSEEN,          /* completions whose issue was not seen */
	LOSS_STALE,           /* I/Os under way whose completion was not seen, found when the request was used again */
	LOSS_UNTRACKED,       /* devices without a place in the tables */
	LOSS_NO_HISTOGRAM,    /* octaves or series of a device without room in the histograms */
	LOSS_UNSTAMPED,       /* reads and writes with unknown queue time (queue/iostats = 0) */
	COUNT_RESCUED,        /* issues and completions that the kernel skipped the first program for and gave to the second */
	COUNT_REQUEUED,       /* I/Os the driver gave back */
	LOSS_NO_PROCESS,      /* I/Os counted for no process: no room in the table of processes */
	COUNT_OVERTAKEN,      /* ends of busy time, and maxima, that other CPUs overtook too often to be kept, nor put aside */
	COUNTERS = 16,
};

/* Counts of one shard. */
struct counts {
	u64 count[COUNTERS];
};

struct control {
	u32 epoch;
	u32 next_device;    /* device 0 is nobody */
	u32 next_cell, next_places, next_octave, next_sums; /* the next of each pool */
	u32 process_generation; /* grows when places of processes are taken away */
	u32 without_busy; /* set by user space: built WITHOUT_FETCH, neither busy time nor peaks are counted */
	u64 tag_timing_since_ns; /* waits for tags that began before are not timed; 0: none is */
	u32 bios_are_sent_on; /* set by user space: there is a disk without requests that may send bios on to others */
	u32 unused_0;
	u64 unused_1[2];
	u64 tag_sleeps;          /* times that a submitter slept for a tag, counted where the kernel has an event for it */
	u64 unused_2[7];
};

_Static_assert(sizeof(struct device) == 128, "two cache lines");
_Static_assert(sizeof(struct cell) == 256, "four cache lines");
_Static_assert(sizeof(struct places) == 448, "seven cache lines");
_Static_assert(sizeof(struct own) == 8, "layout");
_Static_assert(sizeof(struct touched) == 8, "layout");
_Static_assert(sizeof(struct counts) == 128, "two cache lines");
_Static_assert(sizeof(struct pending) == 64, "one cache line");
_Static_assert(sizeof(struct asides) == 528, "layout");
_Static_assert(sizeof(struct identity) == 40, "layout");
_Static_assert(sizeof(struct group) == 64, "one cache line");
_Static_assert(sizeof(struct io_set) == 128, "two cache lines");
_Static_assert(sizeof(struct slow_io) == 112, "layout");
_Static_assert(sizeof(struct process) == 64, "one cache line");
_Static_assert(sizeof(struct process_sums) == 448, "seven cache lines");
_Static_assert(sizeof(struct control) == 128, "two cache lines");
