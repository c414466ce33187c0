//! What the programs and user space share, as `bpf/layout.h` lays it out: every field is read and written atomically.

use std::sync::atomic::{AtomicI32, AtomicI64, AtomicU8, AtomicU16, AtomicU32, AtomicU64};

pub const EPOCHS: usize = 2;
pub const DIRECTIONS: usize = 3;
pub const SERIES: usize = 4;
pub const GROUPS_OF_DEVICE: usize = 8;
pub const WAYS: usize = 4;
pub const PENDING_OF_CPU: usize = 8;
pub const OCTAVES: usize = 28;
pub const BUCKETS_OF_OCTAVE: usize = 16;
pub const NO_HISTOGRAM: u32 = u32::MAX;
pub const SLOW_OF_CPU: usize = 128;
pub const COUNTERS: usize = 16;

pub const IO_DEVICE_SHIFT: u32 = 48;
pub const IO_QUEUED: u64 = 1 << 47;
pub const IO_BIO: u64 = 1 << 46;
/// The kernel has it in its own counts of I/Os in flight.
pub const IO_COUNTED: u64 = 1 << 45;
pub const IO_TIME: u64 = (1 << 45) - 1;
pub const IO_PROCESS_SHIFT: u32 = 45;

pub const PROCESS_LEAVING: u64 = 1;
pub const PROCESS_BUCKETS: usize = 96;

#[repr(C)]
pub struct Sums {
    pub ios: AtomicU64,
    pub sectors: AtomicU64,
    pub queue_ns: AtomicU64,
    pub service_ns: AtomicU64,
}

/// Of the I/Os that one CPU completed last, not yet added to their device.
#[repr(C)]
pub struct Pending {
    /// Grows before and after they move to the device; odd between.
    pub sequence: AtomicU32,
    in_use: u32,
    /// 0 is no device.
    pub device: AtomicU32,
    pub direction: AtomicU32,
    pub sums: Sums,
    completed: u64,
    unused: u64,
}

#[repr(C)]
pub struct Device {
    /// Twice the number of I/Os in the driver, plus which of the two lists of groups is in force.
    pub in_driver: AtomicI32,
    pub queued: AtomicI32,
    /// Ends minus starts of busy intervals: negative while one is open.
    pub busy_ns: AtomicI64,
    pub in_driver_peak: [AtomicU32; EPOCHS],
    pub last_done_ns: AtomicU64,
    pub tag_waits: AtomicU64,
    pub tag_wait_ns: AtomicU64,
    pub errors: AtomicU32,
    pub unstamped: AtomicU32,
    /// How long I/Os whose completion was missed were taken to be in the driver.
    pub lost_in_driver_ns: AtomicU64,
    pub sums: [Sums; DIRECTIONS],
    /// Number in the pool plus 1.
    pub histogram: [AtomicU32; SERIES],
    pub octaves_used: [AtomicU32; SERIES],
    pub queue_max_ns: [AtomicU64; EPOCHS],
    pub service_max_ns: [AtomicU64; EPOCHS],
    pub latency_max_ns: [AtomicU64; EPOCHS],
    pub slow_ns: AtomicU64,
    unused_1: u64,
    pub groups: [[AtomicU16; GROUPS_OF_DEVICE]; 2],
    unused_2: [u64; 4],
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
    pub busy_devices: AtomicI32,
    unused_0: u32,
    pub busy_ns: AtomicI64,
    unused_1: [u64; 6],
}

#[repr(C)]
pub struct Io {
    pub key: AtomicU64,
    pub state: AtomicU64,
    /// Place of its process and accounted start.
    pub start_ns: AtomicU64,
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
    pub epoch: AtomicU32,
    /// Device 0 is no device.
    pub next_device: AtomicU32,
    pub next_histogram: AtomicU32,
    /// Grows when places of processes are taken away.
    pub process_generation: AtomicU32,
    /// Times that a submitter slept for a tag, where the kernel has an event for it.
    pub tag_sleeps: AtomicU64,
    /// Waits for tags that began before (`CLOCK_MONOTONIC`) are not timed; 0: none is.
    pub tag_timing_since_ns: AtomicU64,
    unused_0: [u32; 8],
    pub counters: [AtomicU64; COUNTERS],
}

const _: () = {
    assert!(size_of::<Device>() == 320);
    assert!(size_of::<Pending>() == 64);
    assert!(size_of::<Identity>() == 40);
    assert!(size_of::<Group>() == 64);
    assert!(size_of::<IoSet>() == 128);
    assert!(size_of::<Octave>() == 64);
    assert!(size_of::<SlowIo>() == 112);
    assert!(size_of::<Process>() == 64);
    assert!(size_of::<ProcessSums>() == 448);
    assert!(size_of::<Control>() == 192);
};
