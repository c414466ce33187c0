/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What user space maps of the waits that limits of control groups cause: src/exact/throttle/layout.rs mirrors it. */
#pragma once
#include "kernel.h"

/* Log-linear buckets: 1024 ns, 8 per octave (at most 12.5 % wide), up to 137 s. */
#define THROTTLE_UNIT_SHIFT 10
#define THROTTLE_SUB_BITS 3
#define THROTTLE_BUCKETS 200

/* One control group on one device; place 0 is nobody's. */
struct throttled {
	u64 cgroup; /* inode of its folder */
	u32 major, minor;
	u32 in_use; /* 0: the above is not written yet */
	u32 unused;
	u64 ios;
	u64 wait_ns;
	u64 unused_1[3];
	u32 count[THROTTLE_BUCKETS];
};

struct throttle_control {
	u32 next;     /* place */
	u32 unused;
	u64 no_place; /* I/Os of groups and devices beyond the places */
	u64 lost;     /* I/Os held that there was no room for */
	u64 unused_1[5];
};

_Static_assert(sizeof(struct throttled) == 864, "layout");
_Static_assert(sizeof(struct throttle_control) == 64, "one cache line");
