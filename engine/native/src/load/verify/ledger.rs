//! The write map of one target: which write every grain of it must hold, and which are being written.
//!
//! A grain is the least that the run writes. Its entry is the number of the last write that was begun there, with flags
//! above it; 0 where this run wrote nothing. As no two writes to one grain are ever outstanding at once, numbers only
//! grow, and a read of a grain whose entry stays the same meanwhile must return just that write.

use std::io;
use std::ops::Range;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Release};

use super::journal::Journal;
use super::pages::Pages;

/// A write that has not completed.
const OUTSTANDING: u64 = 1 << 63;
/// A write that completed with an error: what the grain holds is unknown.
const FAILED: u64 = 1 << 62;

/// What a grain must hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expected {
    /// This run wrote nothing here.
    Anything,
    /// This write, which was acknowledged.
    Write(u64),
    /// This write, an older one or parts of both: it was in flight.
    UpTo(u64),
    /// The write failed: nothing is known.
    Unknown,
}

/// The entry of a grain as it was at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry(u64);

impl Entry {
    pub fn expected(self) -> Expected {
        let write = self.0 & !(OUTSTANDING | FAILED);
        if self.0 & FAILED != 0 {
            Expected::Unknown
        } else if self.0 & OUTSTANDING != 0 {
            Expected::UpTo(write)
        } else if write == 0 {
            Expected::Anything
        } else {
            Expected::Write(write)
        }
    }

    /// Whether a read that found this entry before and the other after it met no write.
    pub fn is_settled(self, after: Self) -> bool {
        self == after && self.0 & (OUTSTANDING | FAILED) == 0
    }
}

pub struct WriteMap {
    grain_bytes: u64,
    entries: Pages,
}

impl WriteMap {
    /// An empty map, in memory or in a journal.
    pub fn new(size_bytes: u64, grain_bytes: u64, journal: Option<&Journal>) -> io::Result<Self> {
        let grains = size_bytes / grain_bytes;
        let entries = match journal {
            Some(journal) => journal.pages()?,
            None => Pages::in_memory(grains)?,
        };
        Ok(Self {
            grain_bytes,
            entries,
        })
    }

    fn grains(&self, offset: u64, length: u64) -> Range<usize> {
        let index = |offset: u64| usize::try_from(offset / self.grain_bytes).unwrap_or(usize::MAX);
        index(offset)..index(offset + length)
    }

    /// Takes a range for a write, whose number `draw` gives; None while another write is outstanding on any of it.
    pub fn claim(&self, offset: u64, length: u64, draw: impl FnOnce() -> u64) -> Option<u64> {
        let grains = self.grains(offset, length);
        let mine = &self.entries.words()[grains];
        for (taken, entry) in mine.iter().enumerate() {
            if entry.fetch_or(OUTSTANDING, AcqRel) & OUTSTANDING != 0 {
                for entry in &mine[..taken] {
                    entry.fetch_and(!OUTSTANDING, AcqRel);
                }
                return None;
            }
        }
        // Drawn when the range is held: a later holder of a grain draws a greater one.
        let sequence = draw();
        for entry in mine {
            entry.store(sequence | OUTSTANDING, Release);
        }
        Some(sequence)
    }

    /// Whether no write to any of a range is outstanding.
    pub fn is_free(&self, offset: u64, length: u64) -> bool {
        let held = |entry: &AtomicU64| entry.load(Acquire) & OUTSTANDING != 0;
        let grains = self.grains(offset, length);
        !self.entries.words()[grains].iter().any(held)
    }

    /// Records that the write which holds a range completed.
    pub fn settle(&self, offset: u64, length: u64, good: bool) {
        for entry in &self.entries.words()[self.grains(offset, length)] {
            let write = entry.load(Acquire) & !OUTSTANDING;
            entry.store(
                if good {
                    write & !FAILED
                } else {
                    write | FAILED
                },
                Release,
            );
        }
    }

    /// Entries of a range as they are now, behind those in `to`.
    pub fn copy(&self, offset: u64, length: u64, to: &mut Vec<Entry>) {
        let entries = &self.entries.words()[self.grains(offset, length)];
        to.extend(entries.iter().map(|entry| Entry(entry.load(Acquire))));
    }

    /// The entry of the grain at an offset; none past the end.
    pub fn at(&self, offset: u64) -> Option<Entry> {
        let grain = usize::try_from(offset / self.grain_bytes).ok()?;
        let entry = self.entries.words().get(grain)?;
        Some(Entry(entry.load(Acquire)))
    }

    pub fn grain_bytes(&self) -> u64 {
        self.grain_bytes
    }

    /// Whether this run wrote anything in a range, which may reach beyond the end.
    pub fn is_written(&self, offset: u64, length: u64) -> bool {
        let grains = self.grains(offset, length.next_multiple_of(self.grain_bytes));
        let end = grains.end.min(self.entries.words().len());
        let written = |entry: &AtomicU64| entry.load(Acquire) != 0;
        grains.start < end && self.entries.words()[grains.start..end].iter().any(written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write_map() -> WriteMap {
        WriteMap::new(1 << 20, 4096, None).unwrap()
    }

    fn expected(write_map: &WriteMap, offset: u64) -> Expected {
        write_map.at(offset).unwrap().expected()
    }

    #[test]
    fn one_write_at_a_time_holds_a_grain() {
        let write_map = write_map();
        assert_eq!(write_map.claim(8192, 8192, || 5), Some(5));
        assert_eq!(write_map.claim(4096, 8192, || 6), None);
        assert_eq!(
            write_map.claim(4096, 4096, || 7),
            Some(7),
            "what was given back"
        );
        assert_eq!(expected(&write_map, 12288), Expected::UpTo(5));
        write_map.settle(8192, 8192, true);
        write_map.settle(4096, 4096, false);
        assert_eq!(expected(&write_map, 12799), Expected::Write(5));
        assert_eq!(expected(&write_map, 4096), Expected::Unknown);
        assert_eq!(expected(&write_map, 0), Expected::Anything);
        assert_eq!(write_map.claim(4096, 8192, || 8), Some(8));
        write_map.settle(4096, 8192, true);
        assert_eq!(expected(&write_map, 4096), Expected::Write(8));
        assert_eq!(write_map.at(1 << 20), None);
    }

    #[test]
    fn a_read_that_met_a_write_is_not_settled() {
        let write_map = write_map();
        let copy = || {
            let mut entries = Vec::new();
            write_map.copy(0, 4096, &mut entries);
            entries[0]
        };
        let before = copy();
        assert!(before.is_settled(copy()));
        write_map.claim(0, 4096, || 1);
        let during = copy();
        assert!(!before.is_settled(during) && !during.is_settled(during));
        write_map.settle(0, 4096, true);
        let after = copy();
        assert!(!during.is_settled(after) && !before.is_settled(after) && after.is_settled(copy()));
    }

    #[test]
    fn what_was_written_shows() {
        let write_map = write_map();
        write_map.claim(4096, 4096, || 1);
        assert!(!write_map.is_written(0, 4096) && write_map.is_written(0, 8192));
        assert!(!write_map.is_written(8192, 1 << 30));
    }

    #[test]
    fn of_many_who_want_a_grain_each_gets_it_once() {
        let (write_map, drawn) = (write_map(), AtomicU64::new(1));
        let held = AtomicU64::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    let mut won = 0;
                    while won < 2000 {
                        let draw = || drawn.fetch_add(1, AcqRel);
                        if let Some(sequence) = write_map.claim(0, 8192, draw) {
                            assert!(held.swap(sequence, AcqRel) < sequence);
                            write_map.settle(0, 8192, true);
                            won += 1;
                        }
                    }
                });
            }
        });
        assert_eq!(expected(&write_map, 0), Expected::Write(8000));
    }
}
