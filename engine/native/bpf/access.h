/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* The arguments of tracepoints and what they point to. Built for raw tracepoints (-DRAW), for kernels that have no programs
 * with typed arguments (tp_btf) or no type information of their own, the same source reads by bpf_probe_read_kernel. */
#pragma once
#include "kernel.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>

#ifdef RAW

#define PROGRAM(name, tracepoint) \
	SEC("raw_tp/" #tracepoint) \
	int name(u64 *context)

/* A field of an object of the kernel, 0 where it cannot be read. */
#define READ(object, field)                                                      \
	({                                                                       \
		typeof(object) object_ = (object);                               \
		typeof(object_->field) value_ = 0;                               \
		bpf_core_read(&value_, sizeof(value_), &object_->field);         \
		value_;                                                          \
	})

#else

#define PROGRAM(name, tracepoint) \
	SEC("tp_btf/" #tracepoint) \
	int name(u64 *context)

#define READ(object, field) ((object)->field)

#endif

/* An argument of the tracepoint. By assembly, because the verifier wants its offset in the instruction, where the compiler
 * would compute it of two that are told apart. */
#define ARGUMENT(context, number)                                                                        \
	({                                                                                               \
		u64 value_;                                                                              \
		asm volatile("%0 = *(u64 *)(%1 + %2)" : "=r"(value_) : "r"(context), "i"(8 * (number))); \
		value_;                                                                                  \
	})

/* The only argument, which has the queue before it where `queue_first`, a type of the tracepoint, exists. */
#define ONLY_ARGUMENT(context, queue_first) \
	(bpf_core_type_exists(queue_first) ? ARGUMENT(context, 1) : ARGUMENT(context, 0))
