/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Which filesystems are frozen, and since when (freeze_super and thaw_super, fs/super.c): FIFREEZE, snapshots of device
 * mapper, xfs_freeze. The kernel shows it nowhere. An object of its own: a kernel that does not have these functions, or
 * cannot attach to them, loses nothing else. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "freeze.h"

#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)

struct sb_writers {
	u16 frozen; /* the low half of an int before Linux 6.5 */
};

struct super_block {
	u32 s_dev;
	char s_id[32];
	struct sb_writers s_writers;
};

#pragma clang attribute pop

enum { SB_UNFROZEN = 0, SB_FREEZE_COMPLETE = 4 };

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, FREEZES);
	__type(key, u32);
	__type(value, struct freeze);
} freezes SEC(".maps");

/* Those that are frozen now: their place. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, FREEZES);
	__type(key, u32);
	__type(value, u32);
} frozen_places SEC(".maps");

static __always_inline u16 state_of(struct super_block *sb)
{
	u16 state = SB_UNFROZEN;

	bpf_probe_read_kernel(&state, sizeof(state), &sb->s_writers.frozen);
	return state;
}

/* The state tells more than the result: a second holder of a frozen filesystem freezes and thaws nothing. */
SEC("fexit/freeze_super")
int BPF_PROG(on_freeze, struct super_block *sb)
{
	u32 zero = 0, device = sb->s_dev, place;
	struct freeze *control = bpf_map_lookup_elem(&freezes, &zero), *mine;

	if (!control || state_of(sb) != SB_FREEZE_COMPLETE || bpf_map_lookup_elem(&frozen_places, &device))
		return 0;
	place = 1 + (__sync_fetch_and_add(&control->device, 1) % (FREEZES - 1));
	mine = bpf_map_lookup_elem(&freezes, &place);
	if (!mine || bpf_map_update_elem(&frozen_places, &device, &place, BPF_NOEXIST))
		return 0;
	*(volatile u64 *)&mine->began_ns = 0;
	mine->ended_ns = 0;
	mine->device = device;
	bpf_probe_read_kernel_str(mine->name, sizeof(mine->name), sb->s_id);
	barrier();
	*(volatile u64 *)&mine->began_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("fexit/thaw_super")
int BPF_PROG(on_thaw, struct super_block *sb)
{
	u32 device = sb->s_dev, *place;
	struct freeze *mine;

	if (state_of(sb) != SB_UNFROZEN)
		return 0;
	place = bpf_map_lookup_elem(&frozen_places, &device);
	mine = place ? bpf_map_lookup_elem(&freezes, place) : 0;
	bpf_map_delete_elem(&frozen_places, &device);
	if (mine && mine->device == device)
		*(volatile u64 *)&mine->ended_ns = bpf_ktime_get_ns();
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
