//! The counters of all devices as one table.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::cells::{self, Watch};
use super::layout::{Cell, DIRECTIONS};
use super::maps::Maps;
use super::rows::Rows;
use super::sums::{self, Totals};

const SECTOR_BYTES: u64 = 512;

/// Columns of a row, in order; described by the raw table trace.
pub const COLUMNS: [&str; 24] = [
    "reads",
    "writes",
    "others",
    "read_bytes",
    "write_bytes",
    "queue_read_ns",
    "queue_write_ns",
    "service_read_ns",
    "service_write_ns",
    "tag_waits",
    "tag_wait_ns",
    "busy_ns",
    "in_flight_now",
    "in_driver_now",
    "in_driver_peak",
    "queue_max_ns",
    "service_max_ns",
    "latency_max_ns",
    "unstamped",
    "errors",
    "lost_in_driver_ns",
    "in_driver_peak_most",
    "uncounted",
    "splits",
];
/// Columns before are sums.
const TAG_WAITS: usize = 9;
const BUSY: usize = 11;
const FIRST_OF_INTERVAL: usize = 12;
const PEAK: usize = 14;
const PEAK_MOST: usize = 21;
/// The same as collectors.model.MISSING.
const MISSING: u64 = u64::MAX;

#[derive(Default)]
pub struct Counters {
    watch: Watch,
    /// Rows without I/O in the interval last read.
    quiet: Vec<bool>,
    /// I/Os in the driver by cell, when last read.
    leaves: Vec<u64>,
    pub values: Vec<u64>,
    /// Devices that did something in the interval last read, or may have.
    pub active: Vec<usize>,
}

impl Counters {
    /// Reads all rows; peaks are those of `epoch`, which has ended.
    pub fn read(&mut self, maps: &Maps, rows: &mut Rows, epoch: usize) {
        self.quiet.resize(rows.len(), false);
        self.leaves.resize(maps.cells.len(), 0);
        self.values.resize(rows.len() * COLUMNS.len(), 0);
        self.active.clear();
        for row in 0..rows.len() {
            let number = rows.all[row].device;
            let moved = self.watch.has_moved(maps, number);
            if !moved && self.quiet[row] {
                continue;
            }
            let values = &mut self.values[row * COLUMNS.len()..][..COLUMNS.len()];
            self.quiet[row] = !moved && values[FIRST_OF_INTERVAL] == 0;
            if self.quiet[row] {
                values[FIRST_OF_INTERVAL..FIRST_OF_INTERVAL + 6].fill(0);
                values[PEAK_MOST] = 0;
                continue;
            }
            self.active.push(number);
            rows.has_changed(row, maps);
            if let Some(totals) = sums::of_device(maps, number) {
                fill_sums(values, &totals);
            }
            let leaves = Leaves::read(maps, number, epoch, &mut self.leaves);
            fill(values, maps, number, epoch, &leaves);
        }
    }
}

/// I/Os in the driver, by the leaves that count them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Leaves {
    now: u64,
    /// Most I/Os at one time: known exactly while no two leaves were busy at once.
    peak: u64,
    /// No more than these were there at once.
    peak_most: u64,
}

impl Leaves {
    fn read(maps: &Maps, device: usize, epoch: usize, last: &mut [u64]) -> Self {
        let mut leaves = Vec::with_capacity(4);
        for number in cells::numbers(maps, device) {
            let (Some(cell), Some(last)) = (maps.cells.get(number), last.get_mut(number)) else {
                continue;
            };
            let now = u64::try_from(cell.in_driver.load(Acquire)).unwrap_or(0);
            let peak = cell.in_driver_peak[epoch].load(Relaxed);
            leaves.push(Leaf {
                before: std::mem::replace(last, now),
                now,
                peak,
            });
        }
        let at_once = maps.devices[device].leaves_peak[epoch].load(Relaxed);
        Self::of(&leaves, usize::try_from(at_once).unwrap_or(usize::MAX))
    }

    /// `at_once` leaves became busy while no more than these were.
    fn of(leaves: &[Leaf], at_once: usize) -> Self {
        let (now, before): (Vec<u64>, Vec<u64>) =
            leaves.iter().map(|leaf| (leaf.now, leaf.before)).unzip();
        let busy = |counts: &[u64]| counts.iter().filter(|count| **count > 0).count();
        let at_once = at_once.max(busy(&now)).max(busy(&before));
        let mut peaks: Vec<u64> = leaves.iter().map(Leaf::peak).collect();
        peaks.sort_unstable_by_key(|peak| std::cmp::Reverse(*peak));
        let (now, before) = (now.iter().sum(), before.iter().sum());
        let largest = peaks.first().copied().unwrap_or(0);
        let peak = largest.max(now).max(before);
        Self {
            now,
            peak,
            peak_most: peaks.iter().take(at_once).sum::<u64>().max(peak),
        }
    }
}

/// I/Os in the driver that one leaf counted.
struct Leaf {
    before: u64,
    now: u64,
    /// Most at once after one was issued.
    peak: u64,
}

impl Leaf {
    fn peak(&self) -> u64 {
        self.peak.max(self.now).max(self.before)
    }
}

fn fill_sums(values: &mut [u64], [read, write, other]: &[Totals; DIRECTIONS]) {
    let filled: [u64; TAG_WAITS] = [
        read.ios,
        write.ios,
        other.ios,
        read.sectors * SECTOR_BYTES,
        write.sectors * SECTOR_BYTES,
        read.queue_ns,
        write.queue_ns,
        read.service_ns,
        write.service_ns,
    ];
    values[..TAG_WAITS].copy_from_slice(&filled);
}

fn fill(values: &mut [u64], maps: &Maps, device: usize, epoch: usize, leaves: &Leaves) {
    let cells = || cells::of_device(maps, device);
    let sum = |of: fn(&Cell) -> u64| cells().map(of).fold(0, u64::wrapping_add);
    let largest = |of: fn(&Cell, usize) -> u64| cells().map(|cell| of(cell, epoch)).max();
    let queued: i64 = cells()
        .map(|cell| i64::from(cell.queued.load(Relaxed)))
        .sum();
    let busy = &maps.devices[device].busy;
    let filled: [u64; COLUMNS.len() - TAG_WAITS] = [
        sum(|cell| cell.tag_waits.load(Relaxed)),
        sum(|cell| cell.tag_wait_ns.load(Relaxed)),
        busy.least_ns().max(values[BUSY]),
        leaves.now + u64::try_from(queued).unwrap_or(0),
        leaves.now,
        leaves.peak,
        largest(|cell, epoch| cell.queue_max_ns[epoch].load(Relaxed)).unwrap_or(0),
        largest(|cell, epoch| cell.service_max_ns[epoch].load(Relaxed)).unwrap_or(0),
        largest(|cell, epoch| cell.latency_max_ns[epoch].load(Relaxed)).unwrap_or(0),
        sum(|cell| u64::from(cell.unstamped.load(Relaxed))),
        sum(|cell| u64::from(cell.errors.load(Relaxed))),
        busy.lost_ns.load(Acquire),
        leaves.peak_most,
        sum(|cell| u64::from(cell.uncounted.load(Relaxed))),
        sum(|cell| cell.splits.load(Relaxed)),
    ];
    values[TAG_WAITS..].copy_from_slice(&filled);
    if !maps.has_busy() {
        for column in [BUSY, PEAK, PEAK_MOST] {
            values[column] = MISSING;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;
    use std::sync::atomic::Ordering::Release;

    use super::super::grouping::lose_from_driver;
    use super::super::histograms::Histograms;
    use super::super::sizes::Sizes;
    use super::*;
    use crate::load::system::clock::monotonic_ns;

    const SHARDS: usize = 2;

    /// A host with two shards; the second shard has a cell of its own for the disk in row 0.
    fn host() -> (Maps, Rows) {
        let mut sizes = Sizes::of_host(Path::new("/no-such-folder"), 16);
        sizes.shards.number = u32::try_from(SHARDS).unwrap();
        let maps = Maps::anonymous(&sizes);
        maps.control().next_device.store(2, Release);
        maps.identities[1].number.store(8 << 20, Relaxed);
        maps.identities[1].name[0].store(b'a', Relaxed);
        let [own, _, _] = sizes.bounds();
        maps.cell_of[SHARDS + 1].index.store(own, Relaxed);
        let mut rows = Rows::default();
        rows.grow(&maps);
        (maps, rows)
    }

    fn own_cell(maps: &Maps) -> &Cell {
        cells::of_leaf(maps, 1, 2).unwrap()
    }

    fn touch(maps: &Maps) {
        let epoch = maps.control().epoch.load(Relaxed);
        maps.touched[1].epoch.store(epoch, Relaxed);
    }

    fn column(counters: &Counters, name: &str) -> u64 {
        let position = COLUMNS.iter().position(|one| *one == name).unwrap();
        counters.values[position]
    }

    #[test]
    fn the_cells_of_a_disk_add_up() {
        let (maps, mut rows) = host();
        for (cell, ios) in [(&maps.cells[1], 3), (own_cell(&maps), 4)] {
            cell.sums[1].ios.store(ios, Relaxed);
            cell.latency_max_ns[1].store(ios * 100, Relaxed);
            cell.unstamped.store(1, Relaxed);
        }
        // Inserted on one shard, issued on the other.
        maps.cells[1].queued.store(5, Relaxed);
        own_cell(&maps).queued.store(-3, Relaxed);
        own_cell(&maps).in_driver.store(1, Relaxed);
        touch(&maps);
        let mut counters = Counters::default();
        counters.read(&maps, &mut rows, 1);
        let names = [
            "writes",
            "latency_max_ns",
            "unstamped",
            "in_flight_now",
            "in_driver_peak_most",
        ];
        assert_eq!(names.map(|name| column(&counters, name)), [7, 400, 2, 3, 1]);
        assert_eq!(counters.active, [1]);
    }

    #[test]
    fn a_disk_is_left_alone_two_intervals_after_its_last_io() {
        let (maps, mut rows) = host();
        let mut counters = Counters::default();
        touch(&maps);
        maps.cells[1].service_max_ns[0].store(9, Relaxed);
        let mut active = Vec::new();
        for _ in 0..5 {
            counters.read(&maps, &mut rows, 0);
            active.push((counters.active.len(), column(&counters, "service_max_ns")));
            maps.control().epoch.fetch_add(1, Relaxed);
        }
        assert_eq!(active, [(1, 9), (1, 9), (1, 9), (0, 0), (0, 0)]);
        touch(&maps);
        counters.read(&maps, &mut rows, 0);
        assert_eq!(counters.active, [1]);
    }

    #[test]
    fn what_is_in_the_driver_is_looked_at_however_long_it_takes() {
        let (maps, mut rows) = host();
        let mut counters = Counters::default();
        touch(&maps);
        own_cell(&maps).in_driver.store(1, Relaxed);
        for _ in 0..5 {
            counters.read(&maps, &mut rows, 0);
            maps.control().epoch.fetch_add(1, Relaxed);
        }
        assert_eq!(
            (counters.active.len(), column(&counters, "in_driver_now")),
            (1, 1)
        );
    }

    #[test]
    fn a_completion_that_was_missed_leaves_bounds_of_busy_time_and_nothing_in_the_driver() {
        let (maps, mut rows) = host();
        let (device, group, began) = (
            &maps.devices[1],
            &maps.groups[3],
            monotonic_ns() - 2_000_000_000,
        );
        device.groups[0][0].store(3, Relaxed);
        // Seen for half a second; then one that was never seen to end.
        for (busy, end) in [(&device.busy, 500_000_000), (&group.busy, 500_000_000)] {
            busy.arrive(began);
            busy.depart(began + end);
            busy.arrive(began + 1_000_000_000);
        }
        own_cell(&maps).in_driver.store(1, Relaxed);
        lose_from_driver(&maps, 1, 2, began + 1_000_000_000);
        touch(&maps);
        let mut counters = Counters::default();
        counters.read(&maps, &mut rows, 1);
        let least = column(&counters, "busy_ns");
        assert_eq!(least, 500_000_000);
        assert!(column(&counters, "lost_in_driver_ns") >= 1_000_000_000);
        assert_eq!(
            (column(&counters, "in_driver_now"), device.busy.members()),
            (0, 0)
        );
        assert_eq!(group.busy.members(), 0);
        assert_eq!(group.busy.least_ns(), least);
    }

    #[test]
    fn histograms_of_all_cells_are_one() {
        let (maps, rows) = host();
        maps.cells[1].places.store(1, Relaxed);
        own_cell(&maps).places.store(2, Relaxed);
        for (places, octave, count) in [(0, 0, 5), (1, 1, 6)] {
            maps.places[places].octave[2][7].store(octave + 1, Relaxed);
            maps.octaves[octave as usize].count[3].store(count, Relaxed);
        }
        touch(&maps);
        let mut histograms = Histograms::default();
        let grown = histograms.growth(&maps, &rows);
        assert_eq!((grown.row, grown.series), (vec![0], vec![2]));
        assert_eq!((grown.bucket, grown.count), (vec![7 * 16 + 3], vec![11]));
        maps.octaves[1].count[3].store(8, Relaxed);
        assert_eq!(histograms.growth(&maps, &rows).count, [2]);
        assert!(histograms.growth(&maps, &rows).count.is_empty());
    }

    fn leaves(counts: &[[u64; 3]], at_once: usize) -> [u64; 3] {
        let leaf = |[before, now, peak]: &[u64; 3]| Leaf {
            before: *before,
            now: *now,
            peak: *peak,
        };
        let found = Leaves::of(&counts.iter().map(leaf).collect::<Vec<_>>(), at_once);
        [found.now, found.peak, found.peak_most]
    }

    #[test]
    fn the_peak_is_known_while_no_two_leaves_were_busy_at_once() {
        assert_eq!(leaves(&[[0, 0, 1], [0, 0, 1], [0, 0, 1]], 1), [0, 1, 1]);
        assert_eq!(leaves(&[[0, 0, 3], [0, 0, 7]], 1), [0, 7, 7]);
        assert_eq!(leaves(&[], 0), [0, 0, 0]);
    }

    #[test]
    fn of_several_leaves_it_lies_between_the_largest_and_their_sum() {
        assert_eq!(leaves(&[[0, 1, 4], [0, 2, 8], [0, 0, 5]], 2), [3, 8, 13]);
        // Busy all the time, so that none became busy.
        assert_eq!(leaves(&[[4, 3, 0], [5, 2, 0]], 0), [5, 9, 9]);
    }
}
