//! Completions that no program saw: their I/Os are taken out, so that nothing stays in flight for ever.

use std::collections::HashMap;
use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};
use std::time::Duration;

use super::grouping::leave_driver;
use super::layout::{IO_DEVICE_SHIFT, IO_QUEUED, IO_TIME, Io};
use super::maps::Maps;
use super::rows::{Row, Rows};
use crate::load::clock::monotonic_ns;
use crate::sample::sysfs_name;

/// Younger ones may just be on their way.
const SUSPECT_NS: u64 = 20_000_000;
/// Without a count of the kernel's own, longer than any timeout of a driver.
const DEAD_NS: u64 = 120_000_000_000;
/// The driver may have ended it in its own books a moment before the event comes.
const SECOND_LOOK: Duration = Duration::from_millis(1);

/// An I/O under way: where it stands and since when.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Entry {
    set: usize,
    way: usize,
    key: u64,
    state: u64,
    age_ns: u64,
}

impl Entry {
    fn device(&self) -> usize {
        (self.state >> IO_DEVICE_SHIFT) as usize
    }

    fn io<'maps>(&self, maps: &'maps Maps) -> &'maps Io {
        &maps.under_way[self.set].way[self.way]
    }
}

/// All I/Os under way.
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
        })
    })
}

/// Age of the oldest I/O under way of every row, in nanoseconds; `u64::MAX` where there is none.
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

/// Takes out what is old and beyond what the kernel itself counts; returns how many.
///
/// Looks twice, because driver and event end an I/O one after the other.
pub fn heal(maps: &Maps, rows: &Rows, sysfs: &Path) -> u64 {
    let suspects = dead(maps, rows, sysfs);
    if suspects.is_empty() {
        return 0;
    }
    std::thread::sleep(SECOND_LOOK);
    let still = dead(maps, rows, sysfs);
    let same = |entry: &&Entry| {
        suspects
            .iter()
            .any(|one| one.key == entry.key && one.state == entry.state)
    };
    let healed = still.iter().filter(same).filter(|one| take_out(maps, one));
    healed.count() as u64
}

/// Takes out everything: what was under way when the programs were detached may have ended unseen.
pub fn clear(maps: &Maps) {
    for entry in entries(maps, monotonic_ns()) {
        take_out(maps, &entry);
    }
}

/// The oldest I/Os of each device in excess of those that SYSFS/block/NAME tells, read after them.
fn dead(maps: &Maps, rows: &Rows, sysfs: &Path) -> Vec<Entry> {
    let mut old: HashMap<usize, Vec<Entry>> = HashMap::new();
    for entry in entries(maps, monotonic_ns()) {
        if entry.age_ns >= SUSPECT_NS {
            old.entry(entry.device()).or_default().push(entry);
        }
    }
    let mut dead = Vec::new();
    for (device, mut entries) in old {
        let Some(row) = rows.of_device(device) else {
            continue;
        };
        let alive = in_flight(sysfs, &rows.all[row]);
        if alive.is_none() {
            entries.retain(|one| one.age_ns >= DEAD_NS);
        }
        let excess = entries.len().saturating_sub(alive.unwrap_or(0));
        entries.sort_by_key(|one| std::cmp::Reverse(one.age_ns));
        dead.extend(entries.into_iter().take(excess));
    }
    dead
}

/// I/Os that the kernel counts for a device; before 6.12 both files tell those in the driver only, later `stat` tells
/// all. None where neither file can be read.
fn in_flight(sysfs: &Path, row: &Row) -> Option<usize> {
    let name = sysfs_name(&row.name);
    let folder = sysfs
        .join("block")
        .join(std::ffi::OsStr::new(&*String::from_utf8_lossy(&name)));
    let driver = fs::read_to_string(folder.join("inflight")).ok()?;
    let stat = fs::read_to_string(folder.join("stat")).ok()?;
    let driver: usize = driver
        .split_whitespace()
        .filter_map(|figure| figure.parse::<usize>().ok())
        .sum();
    let all: usize = stat.split_whitespace().nth(8)?.parse().ok()?;
    Some(driver.max(all))
}

/// Closes the books of one I/O as of the device's last completion, unless it has moved meanwhile.
fn take_out(maps: &Maps, entry: &Entry) -> bool {
    let io = entry.io(maps);
    let same = io.state.load(Acquire) == entry.state;
    if !same
        || io
            .key
            .compare_exchange(entry.key, 0, AcqRel, Relaxed)
            .is_err()
    {
        return false;
    }
    let Some(device) = maps.devices.get(entry.device()) else {
        return true;
    };
    if entry.state & IO_QUEUED != 0 {
        device.queued.fetch_sub(1, AcqRel);
        return true;
    }
    let began_ns = monotonic_ns().saturating_sub(entry.age_ns);
    let end_ns = device.last_done_ns.load(Acquire).max(began_ns);
    leave_driver(maps, device, end_ns);
    true
}
