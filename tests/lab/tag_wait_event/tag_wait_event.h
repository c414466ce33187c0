/* SPDX-License-Identifier: GPL-2.0-only */
#undef TRACE_SYSTEM
#define TRACE_SYSTEM block

#if !defined(TAG_WAIT_EVENT_H) || defined(TRACE_HEADER_MULTI_READ)
#define TAG_WAIT_EVENT_H
#include <linux/tracepoint.h>

struct request_queue;
struct blk_mq_hw_ctx;

/* Name and arguments of the tracepoint of Linux 7.2 (include/trace/events/block.h). */
TRACE_EVENT(block_rq_tag_wait,
	TP_PROTO(struct request_queue *q, struct blk_mq_hw_ctx *hctx, bool is_sched_tag, unsigned int alloc_flags),
	TP_ARGS(q, hctx, is_sched_tag, alloc_flags),
	TP_STRUCT__entry(
		__field(bool, is_sched_tag)
		__field(unsigned int, alloc_flags)
	),
	TP_fast_assign(
		__entry->is_sched_tag = is_sched_tag;
		__entry->alloc_flags = alloc_flags;
	),
	TP_printk("scheduler tags %d flags %u", __entry->is_sched_tag, __entry->alloc_flags)
);
#endif

#undef TRACE_INCLUDE_PATH
#define TRACE_INCLUDE_PATH .
#undef TRACE_INCLUDE_FILE
#define TRACE_INCLUDE_FILE tag_wait_event
#include <trace/define_trace.h>
