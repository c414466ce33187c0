/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Exact queue, service and busy time of block devices, counted where the I/Os pass. */
#include "slow.h"
#include "under_way.h"

char LICENSE[] SEC("license") = "Dual MIT/GPL";

/* Time of the accounted start, 0 if the kernel took none: with queue/iostats = 0 the field holds that of another request. */
static __always_inline u64 stamped_start(struct request *request)
{
	if (bpf_core_enum_value_exists(enum rqf_flags, __RQF_IO_STAT) &&
	    !(request->rq_flags & 1u << bpf_core_enum_value(enum rqf_flags, __RQF_IO_STAT)))
		return 0;
	return request->start_time_ns;
}

static __always_inline u64 state_of(u32 device, u64 flags, u64 now)
{
	return (u64)device << IO_DEVICE_SHIFT | flags | (now & IO_TIME);
}

static __always_inline u64 counted(u64 start_ns)
{
	return start_ns ? IO_COUNTED : 0;
}

SEC("tp_btf/block_rq_insert")
int BPF_PROG(on_insert, struct request *request)
{
	u64 now = bpf_ktime_get_ns(), key = key_of(request);
	struct io_set *set = set_of(key);
	struct io *io = set ? find(set, key) : 0;
	struct device *d;
	u32 index;

	if (!set || (io && io->state & IO_QUEUED))
		return 0;
	if (io)
		forget(io, now);
	index = device_of(request->q, disk_of(request));
	d = index ? device_at(index) : 0;
	if (!d || !(io = claim(set, key)))
		return 0;
	io->start_ns = now;
	io->thread = current_thread();
	io->bytes = 0;
	io->state = state_of(index, counted(stamped_start(request)) | IO_QUEUED, now);
	__sync_fetch_and_add(&d->queued, 1);
	return 0;
}

/* From the queue, or directly when nothing made it wait. */
SEC("tp_btf/block_rq_issue")
int BPF_PROG(on_issue, struct request *request)
{
	u64 now = bpf_ktime_get_ns(), key = key_of(request), start_ns;
	struct io_set *set = set_of(key);
	struct io *io = set ? find(set, key) : 0;
	bool queued = io && io->state & IO_QUEUED;
	struct device *d;
	u32 index;

	if (!set)
		return 0;
	if (io && !queued)
		forget(io, now);
	index = queued ? io->state >> IO_DEVICE_SHIFT : device_of(request->q, disk_of(request));
	d = index ? device_at(index) : 0;
	if (!d)
		return 0;
	start_ns = stamped_start(request);
	if (queued) {
		__sync_fetch_and_add(&d->queued, -1);
		if (start_ns)
			io->start_ns = start_ns;
	} else {
		io = claim(set, key);
		if (!io)
			return 0;
		io->thread = current_thread();
		io->bytes = 0;
		io->start_ns = start_ns;
	}
	if (!io->bytes)
		io->bytes = request->__data_len;
	io->state = state_of(index, counted(start_ns), now);
	enter_driver(d, now);
	return 0;
}

/* The driver gave it back: it waits again, and all until its last issue is queue time. */
SEC("tp_btf/block_rq_requeue")
int BPF_PROG(on_requeue, struct request *request)
{
	u64 now = bpf_ktime_get_ns(), key = key_of(request), state;
	struct io_set *set = set_of(key);
	struct io *io = set ? find(set, key) : 0;
	struct device *d;

	if (!io || io->state & IO_QUEUED)
		return 0;
	state = io->state;
	d = device_at(state >> IO_DEVICE_SHIFT);
	if (!d)
		return 0;
	io->state = state_of(state >> IO_DEVICE_SHIFT, (state & IO_COUNTED) | IO_QUEUED, now);
	__sync_fetch_and_add(&d->queued, 1);
	leave_driver(d, now);
	count(COUNT_REQUEUED);
	return 0;
}

/* Another request took this one's bios; it never completes itself. */
SEC("tp_btf/block_rq_merge")
int BPF_PROG(on_merge, struct request *request)
{
	u64 key = key_of(request), state;
	struct io_set *set = set_of(key);
	struct io *io = set ? find(set, key) : 0;
	struct device *d;

	if (!io)
		return 0;
	state = io->state;
	d = device_at(state >> IO_DEVICE_SHIFT);
	release(io);
	if (d)
		leave(d, state, bpf_ktime_get_ns());
	return 0;
}

static __always_inline void account(struct device *d, const struct finished *f, bool timed)
{
	u32 direction = direction_of(f->operation), epoch = epoch_now();
	struct sums *sums = &d->sums[direction];
	u64 latency_ns = f->queue_ns + f->service_ns;

	__sync_fetch_and_add(&sums->ios, 1);
	__sync_fetch_and_add(&sums->sectors, f->bytes >> 9);
	__sync_fetch_and_add(&sums->service_ns, f->service_ns);
	if (timed)
		__sync_fetch_and_add(&sums->queue_ns, f->queue_ns);
	if (direction < 2) {
		if (timed)
			count_latency(d, direction, f->queue_ns);
		count_latency(d, 2 + direction, f->service_ns);
	}
	if (f->queue_ns > d->queue_max_ns[epoch])
		raise_to(&d->queue_max_ns[epoch], f->queue_ns);
	if (f->service_ns > d->service_max_ns[epoch])
		raise_to(&d->service_max_ns[epoch], f->service_ns);
	if (latency_ns > d->latency_max_ns[epoch]) {
		raise_to(&d->latency_max_ns[epoch], latency_ns);
		record_slow(f, epoch);
	} else if (d->slow_ns && latency_ns >= d->slow_ns) {
		record_slow(f, epoch);
	}
}

/* Takes the I/O out and fills in its times; 0 if it was not seen to be in the driver. */
static __always_inline struct device *take_out(struct io *io, struct finished *f, bool *timed)
{
	u64 state = *(volatile u64 *)&io->state, start_ns = io->start_ns, issued = state & IO_TIME;
	struct device *d;

	f->device = state >> IO_DEVICE_SHIFT;
	f->thread = io->thread;
	f->bytes = io->bytes;
	f->service_ns = (f->now - issued) & IO_TIME;
	f->queue_ns = (issued - start_ns) & IO_TIME;
	*timed = start_ns && !(state & IO_BIO);
	/* Started after it was issued: a clock read for several I/Os at once. */
	if (!*timed || f->queue_ns > IO_TIME >> 1)
		f->queue_ns = 0;
	release(io);
	d = device_at(f->device);
	if (!d)
		return 0;
	leave(d, state, f->now);
	/* Ended while queued: an empty flush, or a request that no path took. */
	return state & IO_QUEUED ? 0 : d;
}

static __always_inline int complete(struct request *request, s32 error, u32 bytes, bool again)
{
	struct finished f = {};
	u64 key = key_of(request);
	struct io_set *set;
	struct io *io;
	struct device *d;
	bool timed;

	if (bytes < request->__data_len)
		return 0;
	set = set_of(key);
	io = set ? find(set, key) : 0;
	if (!io) {
		/* Request-based dm ends twice, the second time with no bytes. */
		if (bytes && !again && device_of(request->q, disk_of(request)))
			count(LOSS_UNSEEN);
		return 0;
	}
	if (again)
		count(COUNT_RESCUED);
	f.now = bpf_ktime_get_ns();
	f.operation = request->cmd_flags & OP_MASK;
	f.sector = request->__sector;
	f.bio = request->bio;
	d = take_out(io, &f, &timed);
	if (!d)
		return 0;
	/* Flushes never have a stamp. */
	if (!timed && direction_of(f.operation) < 2) {
		__sync_fetch_and_add(&d->unstamped, 1);
		count(LOSS_UNSTAMPED);
	}
	if (error)
		__sync_fetch_and_add(&d->errors, 1);
	account(d, &f, timed);
	*(volatile u64 *)&d->last_done_ns = f.now;
	return 0;
}

SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete, struct request *request, u8 error, u32 bytes)
{
	return complete(request, error, bytes, false);
}

/* The kernel skips a program that is already running on this CPU, which happens when an interrupt ends an I/O in the
 * midst of it. The second copy finds what the first was not let see, and nothing otherwise. */
SEC("tp_btf/block_rq_complete")
int BPF_PROG(on_complete_again, struct request *request, u8 error, u32 bytes)
{
	return complete(request, error, bytes, true);
}

/* Devices without requests (dm, md, zram, brd): only bios pass. */
SEC("tp_btf/block_bio_queue")
int BPF_PROG(on_bio_queue, struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;
	struct request_queue *queue = disk->queue;
	u64 now, key;
	struct io_set *set;
	struct device *d;
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
	d = index ? device_at(index) : 0;
	if (!d || !(io = claim(set, key)))
		return 0;
	io->thread = current_thread();
	io->bytes = bio->bi_iter.bi_size;
	io->start_ns = now;
	io->state = state_of(index, IO_BIO, now);
	enter_driver(d, now);
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
	struct device *d;
	bool timed;

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
	d = take_out(io, &f, &timed);
	if (!d)
		return 0;
	account(d, &f, false);
	*(volatile u64 *)&d->last_done_ns = f.now;
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
