//! Waits since the programs were attached, and the histograms of each interval.

use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::layout::{BUCKETS, ThrottleControl, Throttled};
use super::programs::ThrottlePrograms;
use crate::exact::failure::Failure;
use crate::exact::mapping::Mapping;

pub const COLUMNS: [&str; 5] = ["cgroup", "major", "minor", "ios", "wait_ns"];

/// Rows of all groups and devices seen so far, in a constant order, and the cells by which the histograms have grown
/// since the previous reading: row, bucket, count.
#[derive(Default)]
pub struct Waits {
    pub rows: Vec<[u64; COLUMNS.len()]>,
    pub cells: Vec<[u64; 3]>,
}

/// What one place had counted at the previous reading; counts of buckets wrap.
#[derive(Clone)]
struct Before {
    ios: u64,
    count: [u32; BUCKETS],
}

/// Dropping it detaches the programs.
pub struct ThrottleWaits {
    places: Mapping<Throttled>,
    control: Mapping<ThrottleControl>,
    before: Vec<Before>,
    _programs: ThrottlePrograms,
}

impl ThrottleWaits {
    pub fn start(sysfs: &Path, places: u32) -> Result<Self, Failure> {
        let programs = ThrottlePrograms::attach(sysfs, places)?;
        Ok(Self {
            places: programs.places()?,
            control: programs.control()?,
            before: Vec::new(),
            _programs: programs,
        })
    }

    pub fn read(&mut self) -> Waits {
        let used = (self.control[0].next.load(Acquire) as usize).min(self.places.len() - 1);
        let empty = Before {
            ios: 0,
            count: [0; BUCKETS],
        };
        self.before.resize(used.max(self.before.len()), empty);
        growth(&self.places[1..=used], &mut self.before)
    }

    /// I/Os that were not counted, as their group and device had no place, or too many bios were held.
    pub fn losses(&self) -> (u64, u64) {
        let control = &self.control[0];
        (control.no_place.load(Relaxed), control.lost.load(Relaxed))
    }
}

fn growth(places: &[Throttled], before: &mut [Before]) -> Waits {
    let mut found = Waits {
        rows: Vec::with_capacity(places.len()),
        cells: Vec::new(),
    };
    for (place, before) in places.iter().zip(before) {
        if place.in_use.load(Acquire) == 0 {
            continue;
        }
        let row = found.rows.len() as u64;
        let ios = place.ios.load(Acquire);
        found.rows.push([
            place.cgroup.load(Relaxed),
            place.major.load(Relaxed).into(),
            place.minor.load(Relaxed).into(),
            ios,
            place.wait_ns.load(Relaxed),
        ]);
        if ios != before.ios {
            before.ios = ios;
            grow(row, place, before, &mut found.cells);
        }
    }
    found
}

fn grow(row: u64, place: &Throttled, before: &mut Before, cells: &mut Vec<[u64; 3]>) {
    for (bucket, (count, before)) in place.count.iter().zip(&mut before.count).enumerate() {
        let now = count.load(Relaxed);
        let more = now.wrapping_sub(*before);
        if more != 0 {
            cells.push([row, bucket as u64, more.into()]);
            *before = now;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn growth_is_of_places_in_use_only() {
        // SAFETY: plain atomic integers, for which zero is a value.
        let places: [Throttled; 3] = unsafe { std::mem::zeroed() };
        let mut before = vec![
            Before {
                ios: 0,
                count: [0; BUCKETS]
            };
            3
        ];
        for place in &places[1..] {
            place.in_use.store(1, Relaxed);
            place.cgroup.store(77, Relaxed);
            place.ios.store(2, Relaxed);
            place.wait_ns.store(5_000, Relaxed);
            place.count[3].store(2, Relaxed);
        }
        let found = growth(&places, &mut before);
        assert_eq!(found.rows, vec![[77, 0, 0, 2, 5_000]; 2]);
        assert_eq!(found.cells, [[0, 3, 2], [1, 3, 2]]);
        places[2].ios.store(3, Relaxed);
        places[2].count[9].store(1, Relaxed);
        let again = growth(&places, &mut before);
        assert_eq!((again.rows.len(), again.cells), (2, vec![[1, 9, 1]]));
    }
}
