/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* I/Os that are too large for the limits of their device (max_sectors_kb and the like): each cut makes one request more. */
#pragma once
#include "cells.h"
#include "device.h"

/* Nothing runs while no I/O is too large. Devices without requests cut bios for reasons of their own, and are left out: what
 * they send below is counted there. */
PROGRAM(on_split, block_split)
{
	struct bio *bio = (void *)ONLY_ARGUMENT(context, btf_trace_block_split___queue_first);
	struct gendisk *disk = disk_of_bio(bio);
	struct request_queue *queue = READ(disk, queue);
	struct cell *cell;
	u32 index;

	if (!READ(queue, mq_ops))
		return 0;
	index = device_of(queue, disk);
	cell = index ? cell_now(index) : 0;
	if (cell)
		__sync_fetch_and_add(&cell->splits, 1);
	return 0;
}
