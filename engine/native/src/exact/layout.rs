//! What the programs and user space share, as `bpf/layout.h` lays it out: every field is read and written atomically.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

pub const EPOCHS: usize = 2;
pub const DIRECTIONS: usize = 3;
pub const SERIES: usize = 4;
pub const GROUPS_OF_DEVICE: usize = 8;
pub const WAYS: usize = 4;
pub const PENDING_OF_CPU: usize = 8;
pub const OCTAVES: usize = 28;
pub const UNIT_SHIFT: u32 = 6;
pub const BUCKET_BITS: u32 = 4;
pub const BUCKETS_OF_OCTAVE: usize = 1 << BUCKET_BITS;
pub const SLOW_OF_CPU: usize = 128;
pub const COUNTERS: usize = 16;

pub const IO_DEVICE_SHIFT: u32 = 48;
pub const IO_QUEUED: u64 = 1 << 47;
pub const IO_BIO: u64 = 1 << 46;
/// The kernel has it in its own counts of I/Os in flight.
pub const IO_COUNTED: u64 = 1 << 45;
pub const IO_TIME: u64 = (1 << 45) - 1;
pub const IO_PROCESS_SHIFT: u32 = 45;
/// Position above the thread of the leaf that counts it: the shard plus 1, or 0 for the device's own cell.
pub const IO_LEAF_SHIFT: u32 = 22;

/// A member of the root of a busy time; below is which list of groups is in force, above the time of the latest departure.
pub const ROOT_MEMBER: u64 = 2;
pub const ROOT_MEMBERS: u64 = (1 << 18) - 1;
pub const ROOT_TIME_SHIFT: u32 = 19;
pub const ROOT_SLACK_NS: u64 = 1 << 30;

/// `shard_of_cpu` of bpf/maps.h.
pub const MOST_CPUS: usize = 8192;

pub const NESTED: usize = 4;
pub const ASIDES: usize = 32;
pub const ASIDE_TAG_SHIFT: u32 = 24;
pub const ASIDE_EPOCH: u32 = (1 << ASIDE_TAG_SHIFT) - 1;
pub const NO_HISTOGRAM: u32 = u32::MAX;

/// `LOCK_OF_POOLS` of bpf/atomics.h, the last lock.
pub const LOCK_OF_POOLS: usize = 1024 + 512 + 256;

pub const PROCESS_LEAVING: u64 = 1;
pub const PROCESS_BUCKETS: usize = 96;

#[repr(C)]
pub struct Sums {
    pub ios: AtomicU64,
    pub sectors: AtomicU64,
    pub queue_ns: AtomicU64,
    pub service_ns: AtomicU64,
}

/// The I/Os that one CPU completed last, which are not yet added to the cell of its shard.
#[repr(C)]
pub struct Pending {
    /// Grows before and after they move to the cell; odd between.
    pub sequence: AtomicU32,
    in_use: u32,
    /// 0 is no device.
    pub device: AtomicU32,
    pub direction: AtomicU32,
    pub sums: Sums,
    last: u64,
    unused: u64,
}

/// Time that something was busy.
#[repr(C)]
pub struct Busy {
    pub root: AtomicU64,
    /// Ends minus starts of busy intervals: negative while one is open.
    pub sum_ns: AtomicI64,
    /// Part of that time for which an I/O whose completion was missed was taken to be in the driver.
    pub lost_ns: AtomicU64,
    pub lost_until_ns: AtomicU64,
}

#[repr(C)]
pub struct Device {
    pub busy: Busy,
    /// Most leaves that were busy at once.
    pub leaves_peak: [AtomicU64; EPOCHS],
    unused_0: [u64; 2],
    pub slow_ns: AtomicU64,
    pub groups: [[AtomicU16; GROUPS_OF_DEVICE]; 2],
    unused_1: [u64; 3],
}

/// What the CPUs of one shard count of one device.
#[repr(C)]
pub struct Cell {
    /// I/Os in the driver that were issued there.
    pub in_driver: AtomicI32,
    pub queued: AtomicI32,
    pub in_driver_peak: [AtomicU64; EPOCHS],
    unused_0: [u64; 5],
    pub sums: [Sums; DIRECTIONS],
    pub queue_max_ns: [AtomicU64; EPOCHS],
    pub service_max_ns: [AtomicU64; EPOCHS],
    pub latency_max_ns: [AtomicU64; EPOCHS],
    pub tag_waits: AtomicU64,
    pub tag_wait_ns: AtomicU64,
    pub errors: AtomicU32,
    pub unstamped: AtomicU32,
    /// Times that are in no histogram for want of room.
    pub uncounted: AtomicU32,
    /// Number of its `Places` plus 1.
    pub places: AtomicU32,
    /// Times that an I/O was cut in two.
    pub splits: AtomicU64,
    unused_1: u64,
}

/// Octaves of the histograms of a cell: number in the pool plus 1.
#[repr(C)]
pub struct Places {
    pub octave: [[AtomicU32; OCTAVES]; SERIES],
}

/// What a shard has of its own of a device, or of a process on a device.
#[repr(C)]
pub struct Own {
    /// 0 is nothing: it shares what is there for all.
    pub index: AtomicU32,
    asked: u32,
}

#[repr(C)]
pub struct Touched {
    /// Epoch in which the device last had I/O.
    pub epoch: AtomicU32,
    unused: u32,
}

/// Counts of one shard.
#[repr(C)]
pub struct Counts {
    pub count: [AtomicU64; COUNTERS],
}

/// What a program could not count in its place.
#[repr(C)]
pub struct Aside {
    pub value: AtomicU64,
    pub cell: AtomicU32,
    /// What it is plus 1, above the low bits of the epoch; 0 is free.
    pub tag: AtomicU32,
}

/// State of one CPU and level of nesting.
#[repr(C)]
pub struct Asides {
    nesting: u32,
    next: u32,
    unused: u64,
    pub one: [Aside; ASIDES],
}

/// Programs that are built without results of atomic operations have the one that has found its addition alone.
#[repr(C)]
pub struct Lock {
    pub holders: AtomicU64,
}

#[repr(C, align(8))]
pub struct Identity {
    /// major << 20 | minor; 0 while the name is being written.
    pub number: AtomicU32,
    /// Grows when the number is given to another disk.
    pub changes: AtomicU32,
    pub name: [AtomicU8; 32],
}

#[repr(C)]
pub struct Group {
    pub busy: Busy,
    unused: [u64; 4],
}

#[repr(C)]
pub struct Io {
    pub key: AtomicU64,
    pub state: AtomicU64,
    /// Place of its process and accounted start.
    pub start_ns: AtomicU64,
    /// Leaf and thread.
    pub thread: AtomicU32,
    pub bytes: AtomicU32,
}

#[repr(C)]
pub struct IoSet {
    pub way: [Io; WAYS],
}

#[repr(C)]
pub struct Octave {
    pub count: [AtomicU32; BUCKETS_OF_OCTAVE],
}

#[repr(C)]
pub struct SlowIo {
    /// 0 while it is being written and when empty.
    pub done_ns: AtomicU64,
    pub latency_ns: AtomicU64,
    pub queue_ns: AtomicU64,
    pub service_ns: AtomicU64,
    pub tag_wait_ns: AtomicU64,
    pub sector: AtomicU64,
    pub cgroup: AtomicU64,
    pub device: AtomicU32,
    pub bytes: AtomicU32,
    pub process: AtomicU32,
    pub thread: AtomicU32,
    pub operation: AtomicU32,
    unused: u32,
    pub command: [AtomicU8; 16],
    unused_1: [u64; 2],
}

/// One process on one device.
#[repr(C)]
pub struct Process {
    /// 0 is free.
    pub key: AtomicU64,
    pub started_ns: AtomicU64,
    pub cgroup: AtomicU64,
    pub id: AtomicU32,
    /// 0 while the rest is being written.
    pub kind: AtomicU32,
    pub command: [AtomicU8; 32],
}

/// What a process did on a device, as some of the CPUs completed it.
#[repr(C)]
pub struct ProcessSums {
    pub bytes: [AtomicU64; 2],
    pub latency_ns: AtomicU64,
    pub ios: [AtomicU32; 2],
    unused: [u64; 4],
    pub count: [AtomicU32; PROCESS_BUCKETS],
}

#[repr(C)]
pub struct Control {
    /// Grows with every interval.
    pub epoch: AtomicU32,
    /// Device 0 is no device.
    pub next_device: AtomicU32,
    pub next_cell: AtomicU32,
    pub next_places: AtomicU32,
    pub next_octave: AtomicU32,
    pub next_sums: AtomicU32,
    /// Grows when places of processes are taken away.
    pub process_generation: AtomicU32,
    /// Set by user space: the programs count neither busy time nor peaks of I/Os in the driver.
    pub without_busy: AtomicU32,
    /// Waits for tags that began before (`CLOCK_MONOTONIC`) are not timed; 0: none is.
    pub tag_timing_since_ns: AtomicU64,
    /// Set by user space: there is a disk without requests that may send bios on to others.
    pub bios_are_sent_on: AtomicU32,
    unused_0: u32,
    unused_1: [u64; 2],
    /// Times that a submitter slept for a tag, where the kernel has an event for it.
    pub tag_sleeps: AtomicU64,
    unused_2: [u64; 7],
}

const _: () = {
    assert!(size_of::<Device>() == 128);
    assert!(size_of::<Cell>() == 256);
    assert!(size_of::<Places>() == 448);
    assert!(size_of::<Own>() == 8);
    assert!(size_of::<Touched>() == 8);
    assert!(size_of::<Counts>() == 128);
    assert!(size_of::<Pending>() == 64);
    assert!(size_of::<Asides>() == 528);
    assert!(size_of::<Lock>() == 8);
    assert!(size_of::<Identity>() == 40);
    assert!(size_of::<Group>() == 64);
    assert!(size_of::<IoSet>() == 128);
    assert!(size_of::<Octave>() == 64);
    assert!(size_of::<SlowIo>() == 112);
    assert!(size_of::<Process>() == 64);
    assert!(size_of::<ProcessSums>() == 448);
    assert!(size_of::<Control>() == 128);
};
