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

#define NO_HISTOGRAM 0xffffffffu /* the pool was empty when the device asked */

struct sums {
	u64 ios, sectors, queue_ns, service_ns;
};

struct device {
	/* Written when an I/O is issued and when it completes. */
	s32 in_driver; /* twice the number of I/Os in the driver, plus which of the two lists of groups is in force */
	s32 queued;
	s64 busy_ns;   /* ends minus starts of busy intervals: negative while one is open */
	u32 in_driver_peak[EPOCHS];
	u64 last_done_ns;
	u64 tag_waits, tag_wait_ns;
	u32 errors, unstamped;
	u64 lost_in_driver_ns; /* how long I/Os whose completion was missed were taken to be in the driver */

	/* Written when it completes. */
	struct sums sums[DIRECTIONS];
	u32 histogram[SERIES];    /* number in the pool plus 1; 0 before the first I/O */
	u32 octaves_used[SERIES]; /* bit per octave that was ever counted in */

	u64 queue_max_ns[EPOCHS], service_max_ns[EPOCHS], latency_max_ns[EPOCHS];
	u64 slow_ns; /* I/Os that take longer are recorded one by one; 0: new maxima of the interval only */
	u64 unused_1;

	/* Groups that are busy while this device is; 0 ends a list. */
	u16 groups[2][GROUPS_OF_DEVICE];
	u64 unused_2[4];
};

/* Sums of the I/Os that one CPU completed last, not yet added to their device: additions to a line of one's own need no
 * lock. They move to the device when another device or direction needs the place. */
struct pending {
	u32 sequence; /* grows before and after they move; odd between */
	u32 in_use;   /* this CPU is adding: an interrupt meanwhile adds to the device itself */
	u32 device;   /* 0: nobody's */
	u32 direction;
	struct sums sums;
	u64 completed; /* in the first place of a CPU: the request that on_complete saw last there */
	u64 unused;
};
#define PENDING_OF_CPU 8 /* a power of two */

struct identity {
	u32 number;  /* major << 20 | minor; 0 while the name is being written */
	u32 changes; /* grows when the number is given to another disk */
	char name[32];
};

struct group {
	s32 busy_devices;
	u32 unused_0;
	s64 busy_ns;
	u64 unused_1[6];
};

/* An I/O under way, found by the address of its request or bio. */
struct io {
	u64 key;      /* 0: free */
	u64 state;    /* device << 48 | flags | time of the issue (of the insert while queued) */
	u64 start_ns; /* process << 45 | accounted start; a start of 0: unknown */
	u32 thread;
	u32 bytes;
};
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

/* What a process did on a device; one of several parts, chosen by the CPU of the completion. Log-linear buckets: 1024 ns,
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
	LOSS_NO_HISTOGRAM,    /* device series without a histogram */
	LOSS_UNSTAMPED,       /* reads and writes with unknown queue time (queue/iostats = 0) */
	COUNT_RESCUED,        /* completions that the kernel skipped the first program for and gave to the second */
	COUNT_REQUEUED,       /* I/Os the driver gave back */
	LOSS_NO_PROCESS,      /* I/Os counted for no process: no room in the table of processes */
	COUNTERS = 16,
};

struct control {
	u32 epoch;
	u32 next_device;    /* device 0 is nobody */
	u32 next_histogram;
	u32 process_generation; /* grows when places of processes are taken away */
	u64 tag_sleeps;          /* times that a submitter slept for a tag, counted where the kernel has an event for it */
	u64 tag_timing_since_ns; /* waits for tags that began before are not timed; 0: none is */
	u32 unused_0[8];
	u64 counters[COUNTERS];
};

_Static_assert(sizeof(struct device) == 320, "five cache lines");
_Static_assert(sizeof(struct pending) == 64, "one cache line");
_Static_assert(sizeof(struct identity) == 40, "layout");
_Static_assert(sizeof(struct group) == 64, "one cache line");
_Static_assert(sizeof(struct io_set) == 128, "two cache lines");
_Static_assert(sizeof(struct slow_io) == 112, "layout");
_Static_assert(sizeof(struct process) == 64, "one cache line");
_Static_assert(sizeof(struct process_sums) == 448, "seven cache lines");
_Static_assert(sizeof(struct control) == 192, "layout");
