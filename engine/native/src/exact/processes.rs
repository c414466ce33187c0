//! What each process did on each device since the last reading.

use std::collections::HashMap;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::cells;
use super::layout::{IO_DEVICE_SHIFT, PROCESS_BUCKETS, Process, ProcessSums};
use super::maps::Maps;
use super::rows::Rows;

/// Columns of a row; the command comes as its bytes in four little-endian numbers.
pub const COLUMNS: [&str; 14] = [
    "row",
    "process",
    "kind",
    "started_ns",
    "cgroup",
    "reads",
    "writes",
    "read_bytes",
    "write_bytes",
    "latency_ns",
    "command_0",
    "command_1",
    "command_2",
    "command_3",
];
const READS: usize = 5;
const SUMS: usize = 5;
const COMMAND: usize = 10;

/// Rows of processes that did I/O, and the cells of their histograms: position of the row, bucket, count.
#[derive(Default)]
pub struct ProcessIos {
    pub rows: Vec<[u64; COLUMNS.len()]>,
    pub cells: Vec<[u64; 3]>,
}

/// Counts of one place, those of former processes included; those of 32 bits wrap.
struct Totals {
    ios: [u32; 2],
    bytes: [u64; 2],
    latency_ns: u64,
    count: [u32; PROCESS_BUCKETS],
}

impl Default for Totals {
    fn default() -> Self {
        Self {
            ios: [0; 2],
            bytes: [0; 2],
            latency_ns: 0,
            count: [0; PROCESS_BUCKETS],
        }
    }
}

impl Totals {
    fn all_ios(&self) -> u32 {
        self.ios[0].wrapping_add(self.ios[1])
    }

    fn add(&mut self, sums: &ProcessSums) {
        for direction in 0..2 {
            let ios = sums.ios[direction].load(Relaxed);
            self.ios[direction] = self.ios[direction].wrapping_add(ios);
            let bytes = sums.bytes[direction].load(Relaxed);
            self.bytes[direction] = self.bytes[direction].wrapping_add(bytes);
        }
        self.latency_ns = self.latency_ns.wrapping_add(sums.latency_ns.load(Relaxed));
        for (total, count) in self.count.iter_mut().zip(&sums.count) {
            *total = total.wrapping_add(count.load(Relaxed));
        }
    }

    /// Reads, writes, their bytes, and the time of both since before.
    fn since(&self, before: &Self) -> [u64; SUMS] {
        let ios =
            |direction: usize| u64::from(self.ios[direction].wrapping_sub(before.ios[direction]));
        let bytes = |direction: usize| self.bytes[direction].wrapping_sub(before.bytes[direction]);
        let latency_ns = self.latency_ns.wrapping_sub(before.latency_ns);
        [ios(0), ios(1), bytes(0), bytes(1), latency_ns]
    }
}

#[derive(Default)]
pub struct Processes {
    /// Totals by place; only places that were ever in use take memory.
    before: Vec<Option<Box<Totals>>>,
}

/// The parts of one place.
fn parts_of(maps: &Maps, place: usize) -> impl Iterator<Item = &ProcessSums> {
    cells::indices(&maps.sums_of, maps.processes.len(), place)
        .filter_map(|index| maps.process_sums.get(index))
}

/// The sum of all I/Os of a place, which changes with each.
pub fn ios_of(maps: &Maps, place: usize) -> u32 {
    let parts = parts_of(maps, place).flat_map(|part| &part.ios);
    parts.fold(0, |sum, ios| sum.wrapping_add(ios.load(Relaxed)))
}

impl Processes {
    pub fn growth(&mut self, maps: &Maps, rows: &Rows) -> ProcessIos {
        self.before.resize_with(maps.processes.len(), || None);
        let mut found = ProcessIos::default();
        let mut position_of = HashMap::new();
        for (place, (process, before)) in maps.processes.iter().zip(&mut self.before).enumerate() {
            let key = process.key.load(Acquire);
            let last_ios = before.as_ref().map_or(0, |before| before.all_ios());
            if ios_of(maps, place) == last_ios {
                continue;
            }
            let mut now = Totals::default();
            for part in parts_of(maps, place) {
                now.add(part);
            }
            let before = before.get_or_insert_default();
            let row = rows.of_device((key >> IO_DEVICE_SHIFT) as usize);
            if let Some(row) = row.filter(|_| process.kind.load(Acquire) != 0) {
                let position = *position_of
                    .entry(key)
                    .or_insert_with(|| found.push(process, row));
                found.add(position, &now, before);
            }
            **before = now;
        }
        found
    }
}

impl ProcessIos {
    fn push(&mut self, process: &Process, row: usize) -> usize {
        self.rows.push(identity(process, row));
        self.rows.len() - 1
    }

    /// Adds a place; two places of one process on one device, which a race can make, are one row.
    fn add(&mut self, position: usize, now: &Totals, before: &Totals) {
        let sums = &mut self.rows[position][READS..READS + SUMS];
        for (sum, more) in sums.iter_mut().zip(now.since(before)) {
            *sum = sum.wrapping_add(more);
        }
        for (bucket, (now, before)) in now.count.iter().zip(&before.count).enumerate() {
            if now != before {
                let count = u64::from(now.wrapping_sub(*before));
                self.cells.push([position as u64, bucket as u64, count]);
            }
        }
    }
}

fn identity(process: &Process, row: usize) -> [u64; COLUMNS.len()] {
    let mut values = [0; COLUMNS.len()];
    values[..READS].copy_from_slice(&[
        row as u64,
        u64::from(process.id.load(Relaxed)),
        u64::from(process.kind.load(Relaxed)),
        process.started_ns.load(Relaxed),
        process.cgroup.load(Relaxed),
    ]);
    for (word, bytes) in values[COMMAND..].iter_mut().zip(process.command.chunks(8)) {
        *word = bytes.iter().rev().fold(0, |word, byte: &AtomicU8| {
            word << 8 | u64::from(byte.load(Relaxed))
        });
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    fn totals(ios: [u32; 2], bytes: u64, latency_ns: u64) -> Totals {
        Totals {
            ios,
            bytes: [bytes, 0],
            latency_ns,
            ..Totals::default()
        }
    }

    #[test]
    fn counts_of_32_bits_go_on_when_they_wrap() {
        let before = totals([u32::MAX - 1, 5], 100, 1_000);
        let after = totals([3, 5], 5_220, 6_000);
        assert_eq!(after.since(&before), [5, 0, 5_120, 0, 5_000]);
    }

    #[test]
    fn the_parts_of_a_place_add_up() {
        // SAFETY: plain atomic integers, for which zero is a value.
        let parts: [ProcessSums; 2] = unsafe { std::mem::zeroed() };
        for (part, ios) in parts.iter().zip([3, 4]) {
            part.ios[1].store(ios, Relaxed);
            part.bytes[1].store(u64::from(ios) * 512, Relaxed);
            part.count[9].store(ios, Relaxed);
        }
        let mut total = Totals::default();
        for part in &parts {
            total.add(part);
        }
        assert_eq!(
            (total.ios, total.bytes, total.count[9]),
            ([0, 7], [0, 3_584], 7)
        );
    }
}
