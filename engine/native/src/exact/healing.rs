//! Completions that no program saw: their I/Os are removed, so that nothing stays in flight without end.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::os::unix::ffi::OsStringExt;
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

use super::grouping::lose_from_driver;
use super::layout::{IO_BIO, IO_COUNTED, IO_DEVICE_SHIFT, IO_LEAF_SHIFT, IO_QUEUED, IO_TIME, Io};
use super::maps::Maps;
use super::rows::{Row, Rows};
use crate::load::system::clock::monotonic_ns;
use crate::sample::sysfs_name;

/// Younger ones may just be on their way.
const SUSPECT_NS: u64 = 20_000_000;
/// The same for those that wait in the queue.
const QUEUED_SUSPECT_NS: u64 = 1_000_000_000;
/// Age of a lost I/O where the kernel does not count: no driver lets one last longer, but to erase or format.
const DEAD_NS: u64 = 600_000_000_000;
/// The driver may have ended it in its own counters a moment before the event arrives.
const RECHECK_AFTER: Duration = Duration::from_millis(1);

/// An I/O in flight: its slot in the table, its state and its age.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    set: usize,
    way: usize,
    key: u64,
    state: u64,
    age_ns: u64,
    /// Issue or insert (`CLOCK_MONOTONIC`).
    began_ns: u64,
}

impl Entry {
    fn device(&self) -> usize {
        (self.state >> IO_DEVICE_SHIFT) as usize
    }

    fn is_in_driver(&self) -> bool {
        self.state & IO_QUEUED == 0
    }

    /// Whether it should be among the kernel's own counts: commands passed through and queues without accounting are not.
    fn is_counted(&self, counts: &KernelCounts) -> bool {
        self.state & IO_COUNTED != 0 || (self.state & IO_BIO != 0 && counts.any)
    }

    fn is_beyond_doubt(&self) -> bool {
        self.age_ns >= DEAD_NS
    }

    fn io<'maps>(&self, maps: &'maps Maps) -> &'maps Io {
        &maps.under_way[self.set].way[self.way]
    }
}

/// All I/Os in flight.
fn entries(maps: &Maps, now_ns: u64) -> impl Iterator<Item = Entry> + '_ {
    let ways = maps.under_way.iter().enumerate().flat_map(|(set, ios)| {
        ios.way
            .iter()
            .enumerate()
            .map(move |(way, io)| (set, way, io))
    });
    ways.filter_map(move |(set, way, io)| {
        let key = io.key.load(Acquire);
        if key == 0 {
            return None;
        }
        let state = io.state.load(Acquire);
        let age_ns = now_ns.wrapping_sub(state) & IO_TIME;
        // Begun after `now`, or taken but not yet filled in.
        let age_ns = if age_ns > IO_TIME >> 1 { 0 } else { age_ns };
        Some(Entry {
            set,
            way,
            key,
            state,
            age_ns,
            began_ns: now_ns.saturating_sub(age_ns),
        })
    })
}

/// Age of the oldest I/O in flight of every row, in nanoseconds; `u64::MAX` where there is none.
pub fn oldest(maps: &Maps, rows: &Rows) -> Vec<u64> {
    let mut ages = vec![u64::MAX; rows.len()];
    for entry in entries(maps, monotonic_ns()) {
        if let Some(row) = rows.of_device(entry.device()) {
            if ages[row] == u64::MAX || ages[row] < entry.age_ns {
                ages[row] = entry.age_ns;
            }
        }
    }
    ages
}

/// Removes what is old and beyond what the kernel itself counts; returns how many.
///
/// Checks twice, because driver and event end an I/O one after the other.
pub fn heal(maps: &Maps, rows: &Rows, sysfs: &Path) -> u64 {
    let suspects = dead(maps, rows, sysfs);
    if suspects.is_empty() {
        return 0;
    }
    std::thread::sleep(RECHECK_AFTER);
    let still = dead(maps, rows, sysfs);
    let same = |entry: &&Entry| {
        suspects
            .iter()
            .any(|one| one.key == entry.key && one.state == entry.state)
    };
    let healed = still.iter().filter(same).filter(|one| take_out(maps, one));
    healed.count() as u64
}

/// Removes everything: what was in flight when the programs were detached may have ended unseen.
pub fn clear(maps: &Maps) {
    for entry in entries(maps, monotonic_ns()) {
        take_out(maps, &entry);
    }
}

/// I/Os that have ended according to the kernel's own counts, which are read after them.
fn dead(maps: &Maps, rows: &Rows, sysfs: &Path) -> Vec<Entry> {
    let mut old: HashMap<usize, Vec<Entry>> = HashMap::new();
    for entry in entries(maps, monotonic_ns()) {
        if entry.age_ns >= SUSPECT_NS {
            old.entry(entry.device()).or_default().push(entry);
        }
    }
    let known = old
        .into_iter()
        .filter_map(|(device, entries)| Some((&rows.all[rows.of_device(device)?], entries)));
    known
        .flat_map(|(row, entries)| excess(entries, KernelCounts::read(sysfs, row).as_ref()))
        .collect()
}

/// The old I/Os of a device that the kernel does not count, the oldest first.
fn excess(entries: Vec<Entry>, counts: Option<&KernelCounts>) -> Vec<Entry> {
    let Some(counts) = counts else {
        return entries.into_iter().filter(Entry::is_beyond_doubt).collect();
    };
    let (mut in_driver, others): (Vec<Entry>, Vec<Entry>) = entries
        .into_iter()
        .partition(|one| one.is_in_driver() && one.is_counted(counts));
    in_driver.sort_by_key(|one| std::cmp::Reverse(one.age_ns));
    in_driver.truncate(in_driver.len().saturating_sub(counts.in_driver));
    let gone = |one: &Entry| {
        // Kernels before 6.12 do not count what is queued, but they count what the queue waits for.
        one.is_counted(counts) && counts.all == 0 && one.age_ns >= QUEUED_SUSPECT_NS
    };
    let others = others
        .into_iter()
        .filter(|one| gone(one) || one.is_beyond_doubt());
    in_driver.into_iter().chain(others).collect()
}

/// What the kernel itself has in flight on a device.
struct KernelCounts {
    in_driver: usize,
    /// Those in the driver and, from Linux 6.12 on, in the queue.
    all: usize,
    /// Whether it counts anything here: some disks without requests never do.
    any: bool,
}

impl KernelCounts {
    /// SYSFS/block/NAME/inflight and stat; None where they cannot be read.
    fn read(sysfs: &Path, row: &Row) -> Option<Self> {
        let name = OsString::from_vec(sysfs_name(&row.name));
        let folder = sysfs.join("block").join(name);
        let in_driver = figures(&folder.join("inflight"))?.iter().sum::<u64>();
        let stat = figures(&folder.join("stat"))?;
        Some(Self {
            in_driver: usize::try_from(in_driver).ok()?,
            all: usize::try_from(*stat.get(8)?).ok()?,
            any: stat[0] + stat[4] > 0,
        })
    }
}

fn figures(path: &Path) -> Option<Vec<u64>> {
    let text = fs::read_to_string(path).ok()?;
    let figures = text.split_whitespace().map(|figure| figure.parse().ok());
    figures.collect()
}

/// Ends one I/O, unless it changed state meanwhile.
fn take_out(maps: &Maps, entry: &Entry) -> bool {
    let io = entry.io(maps);
    let leaf = io.thread.load(Acquire) >> IO_LEAF_SHIFT;
    let same = io.state.load(Acquire) == entry.state;
    if !same
        || io
            .key
            .compare_exchange(entry.key, 0, AcqRel, Relaxed)
            .is_err()
    {
        return false;
    }
    if entry.is_in_driver() {
        lose_from_driver(maps, entry.device(), leaf as usize, entry.began_ns);
    } else if let Some(cell) = maps.cells.get(entry.device()) {
        cell.queued.fetch_sub(1, AcqRel);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(flags: u64, age_ns: u64) -> Entry {
        Entry {
            set: 0,
            way: 0,
            key: age_ns,
            state: flags,
            age_ns,
            began_ns: 0,
        }
    }

    fn ages(entries: Vec<Entry>, in_driver: usize, all: usize, any: bool) -> Vec<u64> {
        let counts = KernelCounts {
            in_driver,
            all,
            any,
        };
        let found = excess(entries, Some(&counts));
        found.iter().map(|one| one.age_ns).collect()
    }

    #[test]
    fn the_oldest_beyond_the_kernels_count_are_over() {
        let three = |flags| [30, 50, 40].map(|age| entry(flags, age)).to_vec();
        assert_eq!(ages(three(IO_COUNTED), 1, 1, true), [50, 40]);
        assert!(ages(three(IO_COUNTED), 3, 3, true).is_empty());
        assert_eq!(ages(three(IO_BIO), 2, 2, true), [50]);
    }

    #[test]
    fn what_the_kernel_does_not_count_is_left_alone_for_minutes() {
        let passed_through = vec![entry(0, DEAD_NS - 1), entry(0, DEAD_NS)];
        assert_eq!(ages(passed_through, 0, 0, true), [DEAD_NS]);
        assert!(ages(vec![entry(IO_BIO, 60_000_000_000)], 0, 0, false).is_empty());
        let unreadable = vec![entry(IO_COUNTED, DEAD_NS - 1), entry(IO_COUNTED, DEAD_NS)];
        assert_eq!(excess(unreadable, None).len(), 1);
    }

    #[test]
    fn what_is_queued_is_over_only_when_nothing_is_in_flight() {
        let queued = || vec![entry(IO_COUNTED | IO_QUEUED, 2_000_000_000)];
        assert!(ages(queued(), 1, 1, true).is_empty());
        assert_eq!(ages(queued(), 0, 0, true), [2_000_000_000]);
    }
}
