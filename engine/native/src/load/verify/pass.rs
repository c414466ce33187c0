//! Reads a whole target and judges every unit of it: large reads by several threads, judged in order.

use std::collections::BTreeMap;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use super::damage::DamagedRange;
use super::finding::Finding;
use super::home::Home;
use super::judge::{Judge, Sums};
use super::ledger::{Entry, Expected, WriteMap};
use super::reading::read_findings;
use super::unit::UNIT_BYTES;
use crate::load::counts::outstanding::{Outstanding, Waiting};
use crate::load::data::memory::Memory;
use crate::load::system::clock::{Clock, Instant, monotonic_ns};
use crate::load::system::lock::lock;
use crate::load::targets::target::Target;

const CHUNK_BYTES: u64 = 1 << 20;
/// Chunks per thread that may be read ahead of the one to be judged next.
const AHEAD: u64 = 4;

/// The write map to compare with, and the run that wrote it.
pub struct Reference {
    pub home: Home,
    pub write_map: Arc<WriteMap>,
}

/// What a pass found.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    pub sums: Sums,
    /// Bytes of loads on something else stored here, such as a file on this disk.
    pub elsewhere_bytes: u64,
    /// Bytes that were not read, as the run wrote nothing there.
    pub skipped_bytes: u64,
    pub damaged_bytes: u64,
    /// Damage by offset.
    pub damage: Vec<DamagedRange>,
    /// Run of the latest unit at its own offset; 0 if there is none.
    pub latest_run: u64,
}

pub struct Pass {
    target: Arc<Target>,
    reference: Option<Reference>,
    /// Whether to read only what the write map says was written.
    only_written: bool,
    next: AtomicU64,
    done_bytes: AtomicU64,
    cancelled: AtomicBool,
    clock: Clock,
    /// Reads by the numbers of the threads that make them, and the call that writes cached data back before them.
    outstanding: Outstanding,
}

/// What waits to be judged.
struct Line {
    due: u64,
    waiting: BTreeMap<u64, Vec<Finding>>,
    judge: Judge,
    skipped_bytes: u64,
}

impl Pass {
    pub fn new(target: Arc<Target>, reference: Option<Reference>, only_written: bool) -> Self {
        Self {
            target,
            reference,
            only_written,
            next: AtomicU64::new(0),
            done_bytes: AtomicU64::new(0),
            cancelled: AtomicBool::new(false),
            clock: Clock::shared(),
            outstanding: Outstanding::default(),
        }
    }

    /// Makes `run` return soon, without an outcome.
    pub fn cancel(&self) {
        self.cancelled.store(true, Relaxed);
    }

    /// Share done, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a share for people")]
    pub fn progress(&self) -> f64 {
        self.done_bytes.load(Relaxed) as f64 / self.target.size_bytes as f64
    }

    /// How many reads have been outstanding for that time, and since when the oldest has on the monotonic clock.
    pub fn outstanding(&self, at_least: Duration) -> Waiting {
        let now = Instant {
            ticks: self.clock.now(),
            ns: monotonic_ns(),
        };
        let mut waiting = Waiting::default();
        let since = self.outstanding.since(self.clock, now, at_least);
        since.for_each(|(_, since_ns)| waiting.add(since_ns, now.ns));
        waiting
    }

    /// Reads and judges all of the target; None if it was cancelled. To be called once.
    pub fn run(&self, threads: u64) -> io::Result<Option<Outcome>> {
        self.forget_cached();
        let home = self.reference.as_ref().map(|reference| reference.home);
        let line = Mutex::new(Line {
            due: 0,
            waiting: BTreeMap::new(),
            judge: Judge::new(home),
            skipped_bytes: 0,
        });
        let moved = Condvar::new();
        std::thread::scope(|scope| {
            let started: Vec<_> = (0..usize::try_from(threads).unwrap_or(1))
                .map(|number| {
                    let (line, moved) = (&line, &moved);
                    scope.spawn(move || self.work(number, line, moved, threads * AHEAD))
                })
                .collect();
            let ended = started.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(io::Error::other("a thread of the pass panicked")))
            });
            ended
                .collect::<Vec<_>>()
                .into_iter()
                .collect::<io::Result<Vec<()>>>()
        })?;
        if self.cancelled.load(Relaxed) {
            return Ok(None);
        }
        let line = line
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        Ok(Some(outcome(line, home)))
    }

    /// Has what is cached written back and dropped, so that the medium is read, where the mode reads through the cache.
    fn forget_cached(&self) {
        self.outstanding.set(0, 0, self.clock.now());
        for node in &self.target.nodes {
            // SAFETY: neither call takes a pointer; what they cannot do costs truth about the medium, not safety.
            unsafe {
                libc::fdatasync(node.fd.as_raw_fd());
                libc::posix_fadvise(node.fd.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED);
            }
        }
        self.outstanding.clear(0);
    }

    fn work(
        &self,
        number: usize,
        line: &Mutex<Line>,
        moved: &Condvar,
        ahead: u64,
    ) -> io::Result<()> {
        let outcome = self.read_chunks(number, line, moved, ahead);
        if outcome.is_err() {
            self.cancel();
        }
        moved.notify_all();
        outcome
    }

    fn read_chunks(
        &self,
        number: usize,
        line: &Mutex<Line>,
        moved: &Condvar,
        ahead: u64,
    ) -> io::Result<()> {
        let memory = Memory::new(usize::try_from(CHUNK_BYTES).map_err(io::Error::other)?)?;
        loop {
            let chunk = self.next.fetch_add(1, Relaxed);
            let offset = chunk * CHUNK_BYTES;
            if offset >= self.target.size_bytes || self.cancelled.load(Relaxed) {
                return Ok(());
            }
            let length = CHUNK_BYTES.min(self.target.size_bytes - offset);
            let wanted = !self.only_written
                || self
                    .reference
                    .as_ref()
                    .is_none_or(|reference| reference.write_map.is_written(offset, length));
            let findings = if wanted {
                self.outstanding.set(number, 0, self.clock.now());
                let findings = read_findings(&self.target, &memory, offset, length);
                self.outstanding.clear(number);
                findings
            } else {
                Vec::new()
            };
            let late = |line: &mut Line| chunk > line.due + ahead && !self.cancelled.load(Relaxed);
            let Ok(mut line) = moved.wait_while(lock(line), late) else {
                return Err(io::Error::other("a thread of the pass panicked"));
            };
            if findings.is_empty() {
                line.skipped_bytes += length;
            }
            line.waiting.insert(chunk, findings);
            self.judge(&mut line);
            drop(line);
            moved.notify_all();
            self.done_bytes.fetch_add(length, Relaxed);
        }
    }

    /// Judges all chunks that are next in order.
    fn judge(&self, line: &mut Line) {
        while let Some(findings) = line.waiting.remove(&line.due) {
            let offset = line.due * CHUNK_BYTES;
            line.due += 1;
            if findings.is_empty() {
                line.judge.skip();
            }
            for (finding, offset) in findings.iter().zip((offset..).step_by(UNIT_BYTES)) {
                line.judge.push(offset, finding, self.expected(offset));
            }
        }
    }

    fn expected(&self, offset: u64) -> Expected {
        let entry = self
            .reference
            .as_ref()
            .and_then(|reference| reference.write_map.at(offset));
        entry.map_or(Expected::Anything, Entry::expected)
    }
}

fn outcome(mut line: Line, home: Option<Home>) -> Outcome {
    line.judge.skip();
    let Judge {
        log, groups, sums, ..
    } = line.judge;
    let (misplaced, elsewhere_bytes) = groups.resolve(home);
    let misplaced_bytes: u64 = misplaced.iter().map(|range| range.length).sum();
    let mut damage = log.ranges().to_vec();
    damage.extend(misplaced);
    damage.sort_by_key(|range| range.offset);
    Outcome {
        sums,
        elsewhere_bytes,
        skipped_bytes: line.skipped_bytes,
        damaged_bytes: log.bytes() + misplaced_bytes,
        damage,
        latest_run: groups.latest_run(),
    }
}
