/* SPDX-License-Identifier: MIT OR GPL-2.0-only */
/* Times of the calls of NFS clients by RPC client, transport and operation, as the kernel adds them to mountstats
 * (net/sunrpc/stats.c: rpc_count_iostats_metrics). sunrpc is mostly a module, whose types are not in the kernel's own
 * BTF; the fields of its tracepoint have a description that user space reads instead. */
#include "kernel.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include "maximum.h"
#include "rpc.h"

/* Offsets in the record of sunrpc:rpc_stats_latency, set by the loader; constants to the verifier. */
#define NO_FIELD 0xffffu
const volatile u32 at_client = NO_FIELD;
const volatile u32 at_version = NO_FIELD;
const volatile u32 at_program = NO_FIELD;
const volatile u32 at_operation = NO_FIELD;
const volatile u32 at_queue = NO_FIELD;
const volatile u32 at_rtt = NO_FIELD;
const volatile u32 at_execute = NO_FIELD;
const volatile u32 at_transport = NO_FIELD;
const volatile u32 at_xid = NO_FIELD;
const volatile u32 bytes_of_time = 8; /* of an unsigned long */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rpc_control);
} rpc_control SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, 1);
	__type(key, u32);
	__type(value, struct rpc_calls);
} rpc_calls SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, 1);
	__type(key, struct rpc_whose);
	__type(value, u32);
} rpc_places SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(map_flags, BPF_F_MMAPABLE);
	__uint(max_entries, RPC_EPOCHS * RPC_SLOW);
	__type(key, u32);
	__type(value, struct rpc_slow);
} rpc_slow SEC(".maps");

static __always_inline struct rpc_control *the_control(void)
{
	u32 zero = 0;
	return bpf_map_lookup_elem(&rpc_control, &zero);
}

/* A place is a number from 1 on, 0 is nobody's. */
static __always_inline struct rpc_calls *calls_at(u32 place)
{
	return place ? bpf_map_lookup_elem(&rpc_calls, &place) : 0;
}

static __noinline u32 new_place(const struct rpc_whose *whose)
{
	struct rpc_control *control = the_control();
	struct rpc_calls *mine;
	u32 place, *known;

	if (!control || !whose)
		return 0;
	place = __sync_fetch_and_add(&control->next, 1) + 1;
	mine = calls_at(place);
	if (!mine) {
		__sync_fetch_and_add(&control->next, -1);
		__sync_fetch_and_add(&control->no_place, 1);
		return 0;
	}
	if (bpf_map_update_elem(&rpc_places, whose, &place, BPF_NOEXIST)) {
		/* Another CPU was first; this place stays empty. */
		known = bpf_map_lookup_elem(&rpc_places, whose);
		return known ? *known : 0;
	}
	mine->whose = *whose;
	barrier();
	*(volatile u32 *)&mine->in_use = 1;
	return place;
}

static __always_inline u32 read_u32(const void *record, u32 at)
{
	u32 value = 0;
	bpf_probe_read_kernel(&value, sizeof(value), record + at);
	return value;
}

/* Negative times, as of a clock that was set, count as none. */
static __always_inline u64 read_us(const void *record, u32 at)
{
	u64 value = 0;

	if (bytes_of_time == 4)
		return read_u32(record, at);
	bpf_probe_read_kernel(&value, sizeof(value), record + at);
	return value >> 62 ? 0 : value;
}

/* The field of a text holds its offset in the record, and above that its length. */
static __always_inline void read_text(char *to, u32 bytes, const void *record, u32 at)
{
	bpf_probe_read_kernel_str(to, bytes, record + (read_u32(record, at) & 0xffff));
}

static __always_inline u32 rpc_bucket(u64 us)
{
	u32 value = us >> RPC_VALUE_BITS ? (1u << RPC_VALUE_BITS) - 1 : (u32)us, octave = 0;

	/* Shift to five significant bits. */
	if (value >> 20) { value >>= 16; octave += 16; }
	if (value >> 12) { value >>= 8; octave += 8; }
	if (value >> 8) { value >>= 4; octave += 4; }
	if (value >> 6) { value >>= 2; octave += 2; }
	if (value >> 5) { value >>= 1; octave += 1; }
	return (octave << RPC_SUB_BITS) + value;
}

static __always_inline void count(struct rpc_calls *mine, u32 series, u32 epoch, u64 us)
{
	u32 bucket = rpc_bucket(us);

	__sync_fetch_and_add(&mine->sum_us[series], us);
	if (us > mine->max_us[epoch][series])
		raise_to(&mine->max_us[epoch][series], us, 0);
	if (bucket < RPC_BUCKETS)
		__sync_fetch_and_add(&mine->count[series][bucket], 1);
}

/* A maximum takes the place of the oldest, which newer ones have mostly surpassed; of others the faster gives way. */
static __always_inline struct rpc_slow *slow_place(struct rpc_control *control, u32 epoch, u64 us, u32 is_maximum)
{
	u32 *next = is_maximum ? &control->next_maximum : &control->next_slow;
	u32 index = epoch * RPC_SLOW + (is_maximum ? 0 : RPC_SLOW / 2);
	struct rpc_slow *slow;

	index += __sync_fetch_and_add(next, 1) & (RPC_SLOW / 2 - 1);
	slow = bpf_map_lookup_elem(&rpc_slow, &index);
	return slow && (is_maximum || !slow->done_ns || slow->took_us[RPC_EXECUTE] < us) ? slow : 0;
}

/* Who waits ends a call itself; reads and writes are ended by workers of the kernel, whoever asked for them. */
static __always_inline void describe_process(struct rpc_slow *slow)
{
	struct task_struct *task = (void *)bpf_get_current_task();

	if (BPF_CORE_READ(task, flags) & TASK_KERNEL) {
		slow->process = 0;
		__builtin_memset(slow->command, 0, sizeof(slow->command));
		return;
	}
	slow->process = bpf_get_current_pid_tgid() >> 32;
	bpf_get_current_comm(slow->command, sizeof(slow->command));
}

static __noinline int record_slow(const void *record, u32 place, u32 epoch, u32 is_maximum)
{
	struct rpc_control *control = the_control();
	u64 execute_us = read_us(record, at_execute);
	struct rpc_slow *slow = control ? slow_place(control, epoch, execute_us, is_maximum) : 0;

	if (!slow)
		return 0;
	slow->done_ns = 0;
	barrier();
	slow->took_us[RPC_QUEUE] = read_us(record, at_queue);
	slow->took_us[RPC_RTT] = read_us(record, at_rtt);
	slow->took_us[RPC_EXECUTE] = execute_us;
	slow->place = place;
	slow->xid = at_xid == NO_FIELD ? 0 : read_u32(record, at_xid);
	describe_process(slow);
	barrier();
	slow->done_ns = bpf_ktime_get_ns();
	return 0;
}

SEC("tracepoint/sunrpc/rpc_stats_latency")
int on_call(const void *record)
{
	struct rpc_control *control = the_control();
	struct rpc_whose whose = {};
	char program[4] = {};
	struct rpc_calls *mine;
	u32 *known, place, epoch, is_maximum;
	u64 execute_us;

	/* The program of mounts; others are locks, access control lists, callbacks of a server. */
	read_text(program, sizeof(program), record, at_program);
	if (program[0] != 'n' || program[1] != 'f' || program[2] != 's' || !control)
		return 0;
	whose.client = read_u32(record, at_client);
	whose.version = read_u32(record, at_version);
	whose.transport = at_transport == NO_FIELD ? RPC_NO_TRANSPORT : read_u32(record, at_transport);
	read_text(whose.operation, sizeof(whose.operation), record, at_operation);
	known = bpf_map_lookup_elem(&rpc_places, &whose);
	place = known ? *known : new_place(&whose);
	mine = calls_at(place);
	if (!mine)
		return 0;
	epoch = *(volatile u32 *)&control->epoch & 1;
	execute_us = read_us(record, at_execute);
	is_maximum = execute_us > mine->max_us[epoch][RPC_EXECUTE];
	if (is_maximum || (mine->slow_us && execute_us > mine->slow_us))
		record_slow(record, place, epoch, is_maximum);
	count(mine, RPC_QUEUE, epoch, read_us(record, at_queue));
	count(mine, RPC_RTT, epoch, read_us(record, at_rtt));
	count(mine, RPC_EXECUTE, epoch, execute_us);
	__sync_fetch_and_add(&mine->calls, 1);
	return 0;
}

char LICENSE[] SEC("license") = "Dual MIT/GPL";
