/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which device an I/O belongs to; unknown ones register themselves, so a hot-plugged disk loses no I/O. */
#pragma once
#include "access.h"
#include "atomics.h"
#include "maps.h"

struct name {
	u64 word[4];
};

static __always_inline void write_identity(struct identity *identity, u32 number, const struct name *name)
{
	identity->number = 0;
	barrier();
	__builtin_memcpy(identity->name, name, sizeof(*name));
	barrier();
	identity->number = number;
}

static __always_inline bool same_name(const struct identity *identity, const struct name *name)
{
	const struct name *other = (const void *)identity->name;
	return other->word[0] == name->word[0] && other->word[1] == name->word[1] && other->word[2] == name->word[2] &&
	       other->word[3] == name->word[3];
}

/* The number belongs to a disk seen before, perhaps another one by now. */
static __always_inline u32 known_device(u32 index, u32 number, const struct name *name)
{
	struct identity *identity = bpf_map_lookup_elem(&identities, &index);

	if (index && identity && !same_name(identity, name)) {
		__sync_fetch_and_add(&identity->changes, 1);
		write_identity(identity, number, name);
	}
	return index;
}

/* The head of NVMe multipath is served by bios that come back as requests of the hidden path disks and never complete
 * themselves; it is the group of its paths. */
static __always_inline bool is_multipath_head(bool has_requests, const struct name *name)
{
	const char *text = (const char *)name;
	return !has_requests && text[0] == 'n' && text[1] == 'v' && text[2] == 'm' && text[3] == 'e';
}

static __always_inline u32 new_device(u32 number, const struct name *name)
{
	struct control *c = the_control();
	u32 index = 0, nobody = 0, *other;
	struct identity *identity;

	if (!c)
		return 0;
	index = take_number(&c->next_device, NOT_NOW);
	if (index == NOT_NOW)
		return NOT_NOW;
	identity = bpf_map_lookup_elem(&identities, &index);
	if (!identity) {
		__sync_fetch_and_add(&c->next_device, -1);
		bpf_map_update_elem(&numbers, &number, &nobody, BPF_NOEXIST);
		count(LOSS_UNTRACKED);
		return 0;
	}
	if (bpf_map_update_elem(&numbers, &number, &index, BPF_NOEXIST)) {
		/* Another CPU was first, or what this interrupt has interrupted is at it; this place stays empty. */
		other = bpf_map_lookup_elem(&numbers, &number);
		return other ? *other : NOT_NOW;
	}
	write_identity(identity, number, name);
	return index;
}

/* What a queue's id stands for, until the interval ends: another disk may get the same id and number, such as an NVMe disk
 * in the place of another. */
static __always_inline u64 cached_until_next(u32 number)
{
	return (u64)number << 16 | (epoch_now() & 0xffff);
}

static __noinline u32 look_up_device(u32 number, u32 id, const char *disk_name, bool has_requests)
{
	u64 *cached = bpf_map_lookup_elem(&queues, &id);
	struct name name = {};
	u32 *known, index = 0;

	bpf_probe_read_kernel_str(&name, sizeof(name), disk_name);
	if (!is_multipath_head(has_requests, &name)) {
		known = bpf_map_lookup_elem(&numbers, &number);
		index = known ? known_device(*known, number, &name) : new_device(number, &name);
	}
	if (index == NOT_NOW)
		return 0;
	if (cached)
		*cached = cached_until_next(number) << 16 | index;
	return index;
}

/* Index in `devices`, 0 for what is not tracked. */
static __always_inline u32 device_of(struct request_queue *queue, struct gendisk *disk)
{
	u32 id, number;
	u64 *cached;

	if (!disk)
		return 0;
	id = READ(queue, id);
	number = (u32)READ(disk, major) << 20 | (u32)READ(disk, first_minor);
	cached = bpf_map_lookup_elem(&queues, &id);
	if (cached && *cached >> 16 == cached_until_next(number) && number)
		return *cached & 0xffff;
	return look_up_device(number, id, disk->disk_name, READ(queue, mq_ops));
}

static __always_inline u32 device_of_request(struct request *request)
{
	struct request___with_disk *old = (void *)request;
	struct request_queue *queue = READ(request, q);

	if (bpf_core_field_exists(old->rq_disk))
		return device_of(queue, READ(old, rq_disk));
	return device_of(queue, READ(queue, disk));
}

static __always_inline struct gendisk *disk_of_bio(struct bio *bio)
{
	struct bio___with_disk *old = (void *)bio;

	if (bpf_core_field_exists(old->bi_disk))
		return READ(old, bi_disk);
	return READ(READ(bio, bi_bdev), bd_disk);
}
