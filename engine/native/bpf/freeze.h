/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What user space maps of frozen filesystems: src/exact/freeze.rs mirrors it. */
#pragma once
#include "kernel.h"

/* Place 0 counts the freezes so far; the others have the latest ones. */
#define FREEZES 65

struct freeze {
	u64 device;   /* number, as the kernel encodes it: major << 20 | minor */
	u64 began_ns; /* CLOCK_MONOTONIC; 0: nothing here, or the rest is not written yet */
	u64 ended_ns; /* 0: frozen still */
	char name[32];
	u64 unused;
};

_Static_assert(sizeof(struct freeze) == 64, "layout");
