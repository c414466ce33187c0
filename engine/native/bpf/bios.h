/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Devices without requests (dm, md, zram, brd): only bios pass. */
#pragma once
#include "finish.h"

SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;
	struct request_queue *queue = disk->queue;
	u64 now, key;
	struct io_set *set;
	struct io *io;
	u32 index;

	if (queue->mq_ops)
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
	io->bytes = bio->bi_iter.bi_size;
	io->state = state_of(index, IO_BIO, now);
	enter(io, index, now);
	return 0;
}

/* Drivers may leave the bio's position as it was or advance it by what is done. */
static __always_inline u64 first_sector(struct bio *bio, u32 bytes)
{
	u32 left = bio->bi_iter.bi_size;
	return bio->bi_iter.bi_sector - (bytes > left ? bytes - left : 0) / 512;
}

static __always_inline int complete_bio(struct request_queue *queue, struct bio *bio, bool again)
{
	struct finished f = {};
	u64 key;
	struct io_set *set;
	struct io *io;

	if (queue->mq_ops)
		return 0;
	key = key_of(bio);
	set = set_of(key);
	io = set ? find(set, key) : 0;
	/* Parts that were split off complete too, but only the whole was queued. */
	if (!io)
		return 0;
	if (again)
		count(COUNT_RESCUED);
	f.now = bpf_ktime_get_ns();
	f.operation = bio->bi_opf & OP_MASK;
	f.sector = first_sector(bio, io->bytes);
	f.bio = bio;
	if (take_out(io, &f))
		account(&f);
	return 0;
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete, struct request_queue *queue, struct bio *bio)
{
	return complete_bio(queue, bio, false);
}

SEC("tp_btf/block_bio_complete")
int BPF_PROG(on_bio_complete_again, struct request_queue *queue, struct bio *bio)
{
	return complete_bio(queue, bio, true);
}
