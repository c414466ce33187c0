//! Loads of eight workers on eight targets, and what their workers must write together.

use std::os::fd::{FromRawFd, OwnedFd};
use std::sync::Arc;

use crate::load::engine::Options;
use crate::load::knobs::{Knobs, Limits, RingUse};
use crate::load::pace::arrival::Arrival;
use crate::load::pace::fsyncs::Flush;
use crate::load::pace::priority::Priorities;
use crate::load::pattern::{BlockShare, Distribution, StreamPlan};
use crate::load::policy::PolicyName;
use crate::load::running::backend::Backend;
use crate::load::targets::mode::Mode;
use crate::load::targets::node::Node;
use crate::load::targets::target::Target;

pub const WORKERS: usize = 8;
const TARGETS: usize = 8;
const SIZE_BYTES: u64 = 8 << 20;
const UNIT_BYTES: u64 = 64 << 10;

/// What any load writes on lines of several workers, by module, and seldom: one read in 10 ms is judged; the slowest 16
/// I/Os since the last reading are kept.
const ANY: [&str; 2] = ["data::content", "running::slowest"];

/// A load to be started.
pub struct Load {
    pub targets: Vec<Arc<Target>>,
    pub knobs: Knobs,
    pub options: Options,
}

pub struct Form {
    pub name: &'static str,
    /// Modules whose functions write lines of several workers, beside `ANY`; the first is one that must.
    pub shares: &'static [&'static str],
    paths: usize,
    change: fn(&mut Load),
}

pub const FORMS: [Form; 8] = [
    Form {
        name: "plain",
        shares: &[],
        paths: 1,
        change: |_| {},
    },
    // The parts of a logical I/O wait for a free slot of any worker, and complete on several.
    Form {
        name: "stripe",
        shares: &["layout::fanout", "counts::logical", "pattern"],
        paths: 1,
        change: |load| load.knobs.blocks[0].block_bytes = 4 * UNIT_BYTES,
    },
    // A copy is chosen by what all workers have outstanding on it; one choice in 64 is timed, in a histogram of all workers.
    Form {
        name: "mirror",
        shares: &[
            "layout::fanout",
            "layout::mirror",
            "policy",
            "counts::logical",
            "pattern",
            "counts::policy_cost",
            "counts::histogram",
        ],
        paths: 1,
        change: |load| load.options.limits.copies = 2,
    },
    // Whoever has a free slot takes the next arrival of a target.
    Form {
        name: "open loop",
        shares: &["pace::schedule", "pattern"],
        paths: 1,
        change: |load| {
            load.options.limits.arrival = Arrival::Poisson;
            // Every write of an arrival costs a fault: more would arrive than is issued.
            load.knobs.rate_iops = Some(100.0);
        },
    },
    // A path is chosen by what all workers have outstanding on it; one choice in 64 is timed, in a histogram of all.
    Form {
        name: "paths",
        shares: &[
            "targets::multipath",
            "policy",
            "counts::policy_cost",
            "counts::histogram",
        ],
        paths: 2,
        change: |_| {},
    },
    // A write holds its range against those of other workers, and has the next number; bytes are counted by target.
    Form {
        name: "verify",
        shares: &["verify"],
        paths: 1,
        change: |load| {
            load.knobs.read_pct = 50.0;
            load.options.limits.ring_use = RingUse::Sleep;
            load.options.journals = Some(load.targets.iter().map(|_| None).collect());
        },
    },
    // Workers take the blocks of a stream in turn.
    Form {
        name: "sequential",
        shares: &["pattern"],
        paths: 1,
        change: |load| {
            load.options.limits.streams = Some(StreamPlan {
                count: 1,
                step_bytes: None,
                jump_bytes: 0,
                separate: false,
            });
        },
    },
    // What is left to transfer on a target is taken by any worker.
    Form {
        name: "bytes",
        shares: &["targets::budget"],
        paths: 1,
        change: |load| load.options.limits.io_bytes = Some(1 << 50),
    },
];

impl Form {
    pub fn load(&self) -> Load {
        let mut load = Load {
            targets: (0..TARGETS)
                .map(|number| target(number, self.paths))
                .collect(),
            knobs: knobs(),
            options: options(),
        };
        (self.change)(&mut load);
        load
    }

    /// Whether a function may write a line that several workers write.
    pub fn allows(&self, function: &str) -> bool {
        let is_of = |module: &str| {
            let rest = function.strip_prefix(module);
            rest.is_some_and(|rest| rest.starts_with("::"))
        };
        self.shares.iter().chain(&ANY).any(|module| is_of(module))
    }
}

fn target(number: usize, paths: usize) -> Arc<Target> {
    let node = || {
        // SAFETY: the name is a literal, and the descriptor is ours alone.
        let file = unsafe {
            OwnedFd::from_raw_fd(libc::memfd_create(c"target".as_ptr(), libc::MFD_CLOEXEC))
        };
        let file = std::fs::File::from(file);
        file.set_len(SIZE_BYTES).unwrap();
        Node::new(file.into(), "target".into())
    };
    Arc::new(Target {
        nodes: (0..paths).map(|_| node()).collect(),
        name: format!("target {number}"),
        size_bytes: SIZE_BYTES,
        align_bytes: 512,
        writable: true,
    })
}

fn knobs() -> Knobs {
    Knobs {
        queue_depth: 2 * WORKERS,
        stripe_width: TARGETS,
        blocks: vec![BlockShare {
            block_bytes: 4096,
            percent: 100.0,
        }],
        write_blocks: None,
        read_pct: 100.0,
        rate_iops: None,
        policy: PolicyName::default(),
        distributions: [Distribution::Uniform, Distribution::Uniform],
        mode: Mode::Direct,
        threads: WORKERS,
        fsync_every: None,
        flush: Flush::Fsync,
    }
}

fn options() -> Options {
    Options {
        backend: Backend::Uring,
        limits: Limits {
            max_queue_depth: 2 * WORKERS,
            stripe_unit_bytes: UNIT_BYTES,
            thread_per_io: false,
            copies: 1,
            total_depth: false,
            arrival: Arrival::Closed,
            ring_use: RingUse::Dry,
            streams: None,
            offset_bytes: 0,
            align_bytes: None,
            io_bytes: None,
            loops: None,
            ramp_ns: 0,
            rest: None,
            priorities: Priorities::default(),
            grain_bytes: None,
        },
        seed: 1,
        runtime: None,
        journals: None,
        flow: None,
    }
}
