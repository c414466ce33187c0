//! What one worker counts in one phase of an epoch: I/Os on targets, on their paths, and logical I/Os over several
//! targets.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::logical::Finished;
use super::stats::{Block, Direction, Lane};

/// What is counted; the index of the level in every array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    Target = 0,
    /// Paths of targets with several; failed attempts that another path made good count here alone.
    Path = 1,
    Logical = 2,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Target, Self::Path, Self::Logical];
}

/// How many rows each level has in a run.
#[derive(Clone, Copy, Debug)]
pub struct Rows {
    pub targets: usize,
    /// 0 where no target has several.
    pub paths: usize,
}

impl Rows {
    pub fn of(self, level: Level) -> usize {
        match level {
            Level::Target => self.targets,
            Level::Path => self.paths,
            Level::Logical => 1,
        }
    }
}

/// The rows that a worker writes.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub first: usize,
    pub count: usize,
    pub first_path: usize,
    pub paths: usize,
}

impl Served {
    /// Whether its worker takes several targets in turn.
    pub fn several(&self) -> bool {
        self.count > 1
    }
}

/// How often a target was the last of a logical I/O, and for how long the others had waited for it then.
#[derive(Default)]
pub struct Delay {
    last_ios: AtomicU64,
    waited_ns: AtomicU64,
}

impl Delay {
    pub fn read(&self) -> [u64; 2] {
        [self.last_ios.load(Relaxed), self.waited_ns.load(Relaxed)]
    }
}

/// Counters of all levels; only their worker writes them.
pub struct Levels {
    blocks: [Block; 3],
    delays: OnceLock<Box<[Delay]>>,
    targets: usize,
}

impl Levels {
    pub fn new(served: &Served, rows: Rows) -> Self {
        Self {
            blocks: [
                Block::new(served.first, served.count),
                Block::new(served.first_path, served.paths),
                Block::new(0, 1),
            ],
            delays: OnceLock::new(),
            targets: rows.targets,
        }
    }

    #[inline]
    pub fn lane(&self, level: Level, row: usize, direction: Direction) -> &Lane {
        self.blocks[level as usize].lane(row, direction)
    }

    pub fn fsync_lane(&self, target: usize) -> &Lane {
        self.blocks[Level::Target as usize].fsync_lane(target)
    }

    /// The lane of a target's fsyncs if it was ever used.
    pub fn used_fsyncs(&self, target: usize) -> Option<&Lane> {
        self.blocks[Level::Target as usize].used_fsyncs(target)
    }

    /// The lane if it was ever used.
    pub fn used(&self, level: Level, row: usize, direction: Direction) -> Option<&Lane> {
        self.blocks[level as usize].used(row, direction)
    }

    /// Counts a logical I/O whose last part has completed.
    pub fn finish(&self, finished: &Finished) {
        let lane = self.lane(Level::Logical, 0, finished.direction);
        if finished.failed {
            return lane.record_error();
        }
        lane.record(finished.bytes, finished.slowest_ns);
        if let Some(waited_ns) = finished.waited_ns() {
            let delays = self
                .delays
                .get_or_init(|| (0..self.targets).map(|_| Delay::default()).collect());
            let delay = &delays[finished.slowest_target];
            // One writer: no locked instruction is needed.
            let add = |counter: &AtomicU64, amount: u64| {
                counter.store(counter.load(Relaxed) + amount, Relaxed);
            };
            add(&delay.last_ios, 1);
            add(&delay.waited_ns, waited_ns);
        }
    }

    /// What a target held up.
    pub fn delay(&self, target: usize) -> Option<&Delay> {
        self.delays.get()?.get(target)
    }
}
