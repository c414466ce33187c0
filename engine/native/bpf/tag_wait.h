/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Optional: the wait for a tag. */
#pragma once
#include "device.h"
#include "submitter.h"

/* With all tags taken the submitter sleeps before there is a request: invisible to request events and to diskstats.
 * The same thread queues the bio and gets the request for it. */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_wait_begin, struct bio *bio)
{
	struct submitter *s = current_submitter(bpf_get_current_pid_tgid());

	if (s)
		s->bio_queued_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tp_btf/block_getrq")
int BPF_PROG(on_wait_end, struct bio *bio)
{
	u64 id = bpf_get_current_pid_tgid(), key = key_of(bio), wait_ns;
	struct submitter *s = submitter_at((u32)id);
	struct gendisk *disk = bio->bi_bdev->bd_disk;
	struct tag_wait *wait;
	struct device *d;
	u32 index;

	if (!s || s->id != id || !s->bio_queued_ns)
		return 0;
	wait_ns = bpf_ktime_get_ns() - s->bio_queued_ns;
	s->bio_queued_ns = 0;
	index = device_of(disk->queue, disk);
	d = index ? device_at(index) : 0;
	if (!d)
		return 0;
	__sync_fetch_and_add(&d->tag_waits, 1);
	__sync_fetch_and_add(&d->tag_wait_ns, wait_ns);
	index = hash(key, 12);
	wait = bpf_map_lookup_elem(&tag_waits, &index);
	if (wait) {
		wait->key = 0;
		barrier();
		wait->wait_ns = wait_ns;
		barrier();
		wait->key = key;
	}
	return 0;
}
