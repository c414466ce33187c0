// SPDX-License-Identifier: GPL-2.0-only
/* The tracepoint block_rq_tag_wait of Linux 7.2 on kernels before it: called when a task in blk_mq_get_tag is about to
 * sleep. What the task allocates for is remembered at the entry of blk_mq_get_tag, as its callee is not given it. */
#include <linux/kprobes.h>
#include <linux/module.h>
#include <linux/sched.h>
#include <linux/string.h>

#define CREATE_TRACE_POINTS
#include "tag_wait_event.h"

/* The first members of struct blk_mq_alloc_data (block/blk-mq.h), the same in Linux 6.1 and 6.12. */
struct alloc_data {
	struct request_queue *q;
	unsigned int flags;
};

#define TASKS 4096
static struct {
	pid_t pid;
	const struct alloc_data *data;
} allocating[TASKS];

static int on_entry(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int at = current->pid & (TASKS - 1);

	allocating[at].data = (const void *)regs_get_kernel_argument(regs, 0);
	allocating[at].pid = current->pid;
	return 0;
}

static int on_prepare_to_wait(struct kprobe *probe, struct pt_regs *regs)
{
	unsigned int at = current->pid & (TASKS - 1);
	char caller[64];

	snprintf(caller, sizeof(caller), "%ps", (void *)*(unsigned long *)kernel_stack_pointer(regs));
	if (strcmp(caller, "blk_mq_get_tag") == 0 && allocating[at].pid == current->pid)
		trace_block_rq_tag_wait(allocating[at].data->q, NULL, false, allocating[at].data->flags);
	return 0;
}

static struct kprobe entry = { .symbol_name = "blk_mq_get_tag", .pre_handler = on_entry };
static struct kprobe prepare = { .symbol_name = "sbitmap_prepare_to_wait", .pre_handler = on_prepare_to_wait };
static struct kprobe *probes[] = { &entry, &prepare };

static int __init tag_wait_init(void)
{
	return register_kprobes(probes, ARRAY_SIZE(probes));
}

static void __exit tag_wait_exit(void)
{
	unregister_kprobes(probes, ARRAY_SIZE(probes));
}

module_init(tag_wait_init);
module_exit(tag_wait_exit);
MODULE_LICENSE("GPL");
MODULE_DESCRIPTION("tracepoint block_rq_tag_wait on kernels before Linux 7.2");
