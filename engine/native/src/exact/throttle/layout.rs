//! What the programs and user space share, as `bpf/throttle.h` lays it out.

use std::sync::atomic::{AtomicU32, AtomicU64};

use crate::exact::mapping::Shared;

pub const BUCKETS: usize = 200;

/// Waits of one control group on one device.
#[repr(C)]
pub struct Throttled {
    pub cgroup: AtomicU64,
    pub major: AtomicU32,
    pub minor: AtomicU32,
    /// 0 while the above is not written yet.
    pub in_use: AtomicU32,
    unused: u32,
    pub ios: AtomicU64,
    pub wait_ns: AtomicU64,
    unused_1: [u64; 3],
    pub count: [AtomicU32; BUCKETS],
}

#[repr(C)]
pub struct ThrottleControl {
    /// Places in use; place 0 is nobody's.
    pub next: AtomicU32,
    unused: u32,
    pub no_place: AtomicU64,
    pub lost: AtomicU64,
    unused_1: [u64; 5],
}

const _: () = {
    assert!(size_of::<Throttled>() == 864);
    assert!(size_of::<ThrottleControl>() == 64);
};

// SAFETY: atomics of integers and padding only.
unsafe impl Shared for Throttled {}
// SAFETY: as above.
unsafe impl Shared for ThrottleControl {}
