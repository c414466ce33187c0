/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* What user space maps of the calls of NFS clients: src/exact/rpc/layout.rs mirrors it. */
#pragma once
#include "kernel.h"

/* Log-linear buckets: 1 us, the unit of the tracepoint, 16 per octave (at most 6.25 % wide), up to 134 s. */
#define RPC_SUB_BITS 4
#define RPC_VALUE_BITS 27
#define RPC_BUCKETS 384

enum rpc_series { RPC_QUEUE, RPC_RTT, RPC_EXECUTE, RPC_SERIES };
#define RPC_EPOCHS 2

/* Whose calls: an RPC client, one of its transports, one operation. */
struct rpc_whose {
	u32 client, transport; /* transport: RPC_NO_TRANSPORT where the kernel does not say */
	u32 version, unused;
	char operation[24];
};
#define RPC_NO_TRANSPORT 0xffffffffu

struct rpc_calls {
	struct rpc_whose whose;
	u32 in_use;  /* 0: the above is not written yet */
	u32 slow_us; /* calls that execute longer are recorded one by one; 0: new maxima of the interval only */
	u64 calls;
	u64 sum_us[RPC_SERIES];
	u64 max_us[RPC_EPOCHS][RPC_SERIES];
	u32 count[RPC_SERIES][RPC_BUCKETS];
};

struct rpc_control {
	u32 next;  /* place */
	u32 epoch; /* of the maxima, set by user space */
	u64 no_place; /* calls beyond the places */
	u32 next_slow, next_maximum; /* in each half of the slow calls of an epoch */
	u64 unused[5];
};

/* One slow call. */
struct rpc_slow {
	u64 done_ns; /* CLOCK_MONOTONIC; 0 while it is being written and when empty */
	u64 took_us[RPC_SERIES];
	u32 place;   /* in rpc_calls, which has its operation */
	u32 xid;     /* as in its packets; 0: not known */
	u32 process; /* 0: a worker of the kernel ended it, as of reads and writes */
	u32 unused;
	char command[16];
};
#define RPC_SLOW 1024 /* per epoch, a power of two; half for maxima */

_Static_assert(sizeof(struct rpc_whose) == 40, "layout");
_Static_assert(sizeof(struct rpc_calls) == 4736, "layout");
_Static_assert(sizeof(struct rpc_slow) == 64, "one cache line");
_Static_assert(sizeof(struct rpc_control) == 64, "one cache line");
