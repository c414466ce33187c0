/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* How long I/Os wait for the limits of their control group: io.max, blkio.throttle (block/blk-throttle.c). The kernel holds
 * a bio there before any event of the block layer, so only its functions show it. An object of its own: a kernel that
 * does not have these functions, or cannot attach to them, loses nothing else. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "throttle.h"

enum { BPF_F_NO_PREALLOC = 1 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct throttle_control);
} throttle_control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct throttled);
} throttled SEC(".maps");

struct whose {
	u64 cgroup, device;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct whose);
	__type(value, u32);
} throttle_places SEC(".maps");

/* Bios under the limits, by their address. */
struct held {
	u64 since_ns;
	struct whose whose;
};
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, 65536);
	__type(key, u64);
	__type(value, struct held);
} held_bios SEC(".maps");

static __always_inline struct throttle_control *the_control(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&throttle_control, &zero);
}

static __always_inline struct whose whose_is(struct bio *bio)
{
	struct gendisk *disk = bio->bi_bdev->bd_disk;
	struct whose whose = {
		.cgroup = bio->bi_blkg->blkcg->css.cgroup->kn->id,
		.device = (u64)disk->major << 32 | (u32)disk->first_minor,
	};
	return whose;
}

/* Before the bio may be held, as once it is, another CPU may let it go. */
SEC("fentry/__blk_throtl_bio")
int BPF_PROG(on_throttle, struct bio *bio)
{
	u64 key = (u64)bio;
	struct held held = { .since_ns = bpf_ktime_get_ns(), .whose = whose_is(bio) };
	struct throttle_control *control;

	if (bpf_map_update_elem(&held_bios, &key, &held, BPF_ANY)) {
		control = the_control();
		if (control)
			__sync_fetch_and_add(&control->lost, 1);
	}
	return 0;
}

/* It returns whether the bio is held; of a bool only the low byte counts. */
SEC("fexit/__blk_throtl_bio")
int BPF_PROG(on_throttled, struct bio *bio, u64 is_held)
{
	u64 key = (u64)bio;

	if (!(is_held & 0xff))
		bpf_map_delete_elem(&held_bios, &key);
	return 0;
}

static __always_inline struct throttled *throttled_at(u32 place)
{
	return place ? bpf_map_lookup_elem(&throttled, &place) : 0;
}

static __noinline u32 new_place(const struct whose *whose)
{
	struct throttle_control *control = the_control();
	struct throttled *mine;
	u32 place, *known;

	if (!control || !whose)
		return 0;
	place = __sync_fetch_and_add(&control->next, 1) + 1;
	mine = throttled_at(place);
	if (!mine) {
		__sync_fetch_and_add(&control->next, -1);
		__sync_fetch_and_add(&control->no_place, 1);
		return 0;
	}
	if (bpf_map_update_elem(&throttle_places, whose, &place, BPF_NOEXIST)) {
		/* Another CPU was first; this place stays empty. */
		known = bpf_map_lookup_elem(&throttle_places, whose);
		return known ? *known : 0;
	}
	mine->cgroup = whose->cgroup;
	mine->major = whose->device >> 32;
	mine->minor = (u32)whose->device;
	barrier();
	*(volatile u32 *)&mine->in_use = 1;
	return place;
}

static __always_inline u32 throttle_bucket(u64 ns)
{
	u64 units = ns >> THROTTLE_UNIT_SHIFT;
	u32 value = units >> 27 ? (1u << 27) - 1 : (u32)units, octave = 0;

	/* Shift to four significant bits. */
	if (value >> 20) { value >>= 16; octave += 16; }
	if (value >> 12) { value >>= 8; octave += 8; }
	if (value >> 8) { value >>= 4; octave += 4; }
	if (value >> 6) { value >>= 2; octave += 2; }
	if (value >> 5) { value >>= 1; octave += 1; }
	if (value >> 4) { value >>= 1; octave += 1; }
	return (octave << THROTTLE_SUB_BITS) + value;
}

/* Where the limits let a bio go. */
SEC("fentry/submit_bio_noacct_nocheck")
int BPF_PROG(on_let_go, struct bio *bio)
{
	u64 key = (u64)bio, wait_ns;
	struct held *found = bpf_map_lookup_elem(&held_bios, &key), held;
	struct throttled *mine;
	u32 *place, bucket;

	if (!found)
		return 0;
	held = *found;
	bpf_map_delete_elem(&held_bios, &key);
	wait_ns = bpf_ktime_get_ns() - held.since_ns;
	place = bpf_map_lookup_elem(&throttle_places, &held.whose);
	mine = throttled_at(place ? *place : new_place(&held.whose));
	if (!mine)
		return 0;
	__sync_fetch_and_add(&mine->wait_ns, wait_ns);
	bucket = throttle_bucket(wait_ns);
	if (bucket < THROTTLE_BUCKETS)
		__sync_fetch_and_add(&mine->count[bucket], 1);
	__sync_fetch_and_add(&mine->ios, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
