/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Devices without requests (dm, md, zram, brd): only bios pass. */
#pragma once
#include "finish.h"

PROGRAM(on_bio_queue, block_bio_queue)
{
	struct bio *bio = (void *)ONLY_ARGUMENT(context, btf_trace_block_bio_queue___queue_first);
	struct gendisk *disk = disk_of_bio(bio);
	struct request_queue *queue = READ(disk, queue);
	u64 now, key;
	struct io_set *set;
	struct io *io;
	u32 index;

	if (READ(queue, mq_ops))
		return 0;
	now = bpf_ktime_get_ns();
	key = key_of(bio);
	set = set_of(key);
	if (!set)
		return 0;
	io = find(set, key);
	if (io)
		forget(io, now);
	index = device_of(queue, disk);
	if (!index || !(io = claim(set, key)))
		return 0;
	note_submitter(io, index, now);
	io->bytes = READ(bio, bi_iter.bi_size);
	io->state = state_of(index, IO_BIO, now);
	enter(io, index, now);
	return 0;
}

/* Drivers may leave the bio's position as it was or advance it by what is done. */
static __always_inline u64 first_sector(struct bio *bio, u32 bytes)
{
	u32 left = READ(bio, bi_iter.bi_size);
	return READ(bio, bi_iter.bi_sector) - (bytes > left ? bytes - left : 0) / 512;
}

#define UNKNOWN_SECTOR (~0ull)

/* Some drivers send the bio itself on to a disk below, and the kernel names that one when it completes. */
static __always_inline bool are_sent_on(void)
{
	struct control *c = the_control();

	return c && c->bios_are_sent_on;
}

static __always_inline int complete_bio(u64 *context, bool again)
{
	struct request_queue *queue = (void *)ARGUMENT(context, 0);
	struct bio *bio = (void *)ARGUMENT(context, 1);
	struct finished f = {};
	u64 key;
	struct io_set *set;
	struct io *io;

	if (READ(queue, mq_ops) && !are_sent_on())
		return 0;
	f.now = bpf_ktime_get_ns();
	key = key_of(bio);
	set = set_of(key);
	io = set ? find(set, key) : 0;
	/* Parts that were split off complete too, but only the whole was queued. */
	if (!io || !(io->state & IO_BIO))
		return 0;
	if (again)
		count(COUNT_RESCUED);
	f.operation = READ(bio, bi_opf) & OP_MASK;
	f.sector = first_sector(bio, io->bytes);
	if (are_sent_on() && device_of(queue, disk_of_bio(bio)) != io->state >> IO_DEVICE_SHIFT)
		f.sector = UNKNOWN_SECTOR;
	f.bio = bio;
	if (take_out(io, &f))
		account(&f);
	return 0;
}

PROGRAM(on_bio_complete, block_bio_complete)
{
	return complete_bio(context, false);
}

PROGRAM(on_bio_complete_again, block_bio_complete)
{
	return complete_bio(context, true);
}
