//! What the program and user space share, as `bpf/rpc.h` lays it out.

use std::sync::atomic::{AtomicU8, AtomicU32, AtomicU64};

use crate::exact::mapping::Shared;
use crate::exact::slowest::text;

pub const BUCKETS: usize = 384;
/// Queue, RTT, execute.
pub const SERIES: usize = 3;
pub const EPOCHS: usize = 2;
pub const NAME_BYTES: usize = 24;
/// Slowest calls for each epoch; half are for maxima.
pub const SLOW: usize = 1024;

/// Calls of one RPC client over one of its transports, of one operation.
#[repr(C)]
pub struct RpcCalls {
    pub client: AtomicU32,
    pub transport: AtomicU32,
    pub version: AtomicU32,
    unused: u32,
    pub operation: [AtomicU8; NAME_BYTES],
    /// 0 while the above is not written yet.
    pub in_use: AtomicU32,
    /// Calls that execute longer are recorded one by one; written here only.
    pub slow_us: AtomicU32,
    pub calls: AtomicU64,
    pub sum_us: [AtomicU64; SERIES],
    pub max_us: [[AtomicU64; SERIES]; EPOCHS],
    pub count: [[AtomicU32; BUCKETS]; SERIES],
}

impl RpcCalls {
    /// A name of the kernel's tables of procedures; anything else shows as replacement characters.
    pub fn operation(&self) -> String {
        String::from_utf8_lossy(&text(&self.operation)).into_owned()
    }
}

#[repr(C)]
pub struct RpcControl {
    /// Places in use; place 0 is nobody's.
    pub next: AtomicU32,
    /// Epoch of the maxima; the programs never write it.
    pub epoch: AtomicU32,
    pub no_place: AtomicU64,
    next_slow: AtomicU32,
    next_maximum: AtomicU32,
    unused: [u64; 5],
}

/// One slow call.
#[repr(C)]
pub struct RpcSlow {
    /// `CLOCK_MONOTONIC`; 0 while it is being written, and when empty.
    pub done_ns: AtomicU64,
    pub took_us: [AtomicU64; SERIES],
    pub place: AtomicU32,
    pub xid: AtomicU32,
    pub process: AtomicU32,
    unused: u32,
    pub command: [AtomicU8; 16],
}

const _: () = {
    assert!(size_of::<RpcCalls>() == 4736);
    assert!(size_of::<RpcControl>() == 64);
    assert!(size_of::<RpcSlow>() == 64);
};

// SAFETY: atomics of integers and padding only.
unsafe impl Shared for RpcCalls {}
// SAFETY: as above.
unsafe impl Shared for RpcControl {}
// SAFETY: as above.
unsafe impl Shared for RpcSlow {}
