//! Calls that ended since the previous reading: counts, sums, maxima and histograms.

use std::path::Path;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed};

use super::layout::{BUCKETS, EPOCHS, RpcCalls, RpcControl, RpcSlow, SERIES};
use super::programs::RpcPrograms;
use super::slow::{self, Slow};
use crate::exact::failure::Failure;
use crate::exact::mapping::Mapping;

pub const COLUMNS: [&str; 10] = [
    "client",
    "transport",
    "version",
    "calls",
    "queue_us",
    "rtt_us",
    "execute_us",
    "queue_max_us",
    "rtt_max_us",
    "execute_max_us",
];

/// What ended since the previous reading: a row per client, transport and operation, with the name of the operation, and
/// the cells of the histograms: row, series, bucket, count.
#[derive(Default)]
pub struct Calls {
    pub rows: Vec<[u64; COLUMNS.len()]>,
    pub operations: Vec<String>,
    pub cells: Vec<[u64; 4]>,
}

/// What one place had counted at the previous reading; counts of buckets wrap.
#[derive(Clone)]
struct Before {
    calls: u64,
    sum_us: [u64; SERIES],
    count: [[u32; BUCKETS]; SERIES],
}

const NOTHING: Before = Before {
    calls: 0,
    sum_us: [0; SERIES],
    count: [[0; BUCKETS]; SERIES],
};

/// Dropping it detaches the program.
pub struct NfsCalls {
    places: Mapping<RpcCalls>,
    control: Mapping<RpcControl>,
    slow: Mapping<RpcSlow>,
    /// Slowest calls of the interval that the last reading ended.
    slowest: Vec<Slow>,
    before: Vec<Before>,
    programs: RpcPrograms,
}

impl NfsCalls {
    pub fn start(sysfs: &Path, places: u32) -> Result<Self, Failure> {
        let programs = RpcPrograms::attach(sysfs, places)?;
        Ok(Self {
            places: programs.calls()?,
            control: programs.control()?,
            slow: programs.slow()?,
            slowest: Vec::new(),
            before: Vec::new(),
            programs,
        })
    }

    pub fn read(&mut self) -> Calls {
        let control = &self.control[0];
        let epoch = control.epoch.load(Acquire) as usize % EPOCHS;
        slow::clear(&self.slow, 1 - epoch);
        control.epoch.fetch_xor(1, AcqRel);
        let used = (control.next.load(Acquire) as usize).min(self.places.len() - 1);
        self.before.resize(used.max(self.before.len()), NOTHING);
        let calls = growth(&self.places[1..=used], &mut self.before, epoch);
        self.slowest = slow::collect(&self.slow, &self.places, epoch);
        slow::set_thresholds(&self.places, &self.slowest);
        calls
    }

    /// The slowest calls of the last reading, the slowest first.
    pub fn slowest(&self) -> &[Slow] {
        &self.slowest
    }

    /// Calls that could not be counted: beyond the places, and those the kernel skipped the program for.
    pub fn losses(&self) -> (u64, u64) {
        (
            self.control[0].no_place.load(Relaxed),
            self.programs.missed(),
        )
    }
}

fn growth(places: &[RpcCalls], before: &mut [Before], epoch: usize) -> Calls {
    let mut found = Calls::default();
    for (place, before) in places.iter().zip(before) {
        if place.in_use.load(Acquire) == 0 {
            continue;
        }
        let calls = place.calls.load(Acquire);
        if calls != before.calls {
            let row = found.rows.len() as u64;
            found.rows.push(row_of(place, before, calls, epoch));
            found.operations.push(place.operation());
            grow(row, place, before, &mut found.cells);
        }
    }
    found
}

fn row_of(place: &RpcCalls, before: &mut Before, calls: u64, epoch: usize) -> [u64; COLUMNS.len()] {
    let more = calls - before.calls;
    before.calls = calls;
    let sums: [u64; SERIES] = std::array::from_fn(|series| {
        let now = place.sum_us[series].load(Relaxed);
        let more = now.wrapping_sub(before.sum_us[series]);
        before.sum_us[series] = now;
        more
    });
    let maxima = place.max_us[epoch]
        .each_ref()
        .map(|max| max.swap(0, AcqRel));
    [
        place.client.load(Relaxed).into(),
        place.transport.load(Relaxed).into(),
        place.version.load(Relaxed).into(),
        more,
        sums[0],
        sums[1],
        sums[2],
        maxima[0],
        maxima[1],
        maxima[2],
    ]
}

fn grow(row: u64, place: &RpcCalls, before: &mut Before, cells: &mut Vec<[u64; 4]>) {
    for (series, (counts, before)) in place.count.iter().zip(&mut before.count).enumerate() {
        for (bucket, (count, before)) in counts.iter().zip(before).enumerate() {
            let now = count.load(Relaxed);
            let more = now.wrapping_sub(*before);
            if more != 0 {
                cells.push([row, series as u64, bucket as u64, more.into()]);
                *before = now;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_grew_is_read_and_maxima_are_of_one_interval() {
        // SAFETY: plain atomic integers, for which zero is a value.
        let places: Box<[RpcCalls; 2]> = Box::new(unsafe { std::mem::zeroed() });
        let mut before = vec![NOTHING; 2];
        let place = &places[1];
        for (at, byte) in b"READ".iter().enumerate() {
            place.operation[at].store(*byte, Relaxed);
        }
        place.client.store(5, Relaxed);
        place.in_use.store(1, Relaxed);
        place.calls.store(2, Relaxed);
        place.sum_us[1].store(300, Relaxed);
        place.max_us[0][1].store(200, Relaxed);
        place.max_us[1][1].store(700, Relaxed);
        place.count[1][90].store(2, Relaxed);
        let found = growth(&places[..], &mut before, 0);
        assert_eq!(found.rows, [[5, 0, 0, 2, 0, 300, 0, 0, 200, 0]]);
        assert_eq!(found.operations, ["READ"]);
        assert_eq!(found.cells, [[0, 1, 90, 2]]);
        assert!(growth(&places[..], &mut before, 1).rows.is_empty());
        place.calls.store(3, Relaxed);
        place.sum_us[1].store(1_000, Relaxed);
        let found = growth(&places[..], &mut before, 1);
        assert_eq!(found.rows, [[5, 0, 0, 1, 0, 700, 0, 0, 700, 0]]);
        assert!(found.cells.is_empty());
    }
}
