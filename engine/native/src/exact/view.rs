//! What can be read of the maps by any number of readers, with or without the right to write them.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::counters::Counters;
use super::histograms::{Cells, Histograms};
use super::layout::EPOCHS;
use super::maps::Maps;
use super::rows::Rows;
use super::slowest::{self, Slow};

/// Names of the kernel side's counters, in the order of `enum loss` in bpf/layout.h.
const LOSSES: [&str; 8] = [
    "table_full",
    "unseen",
    "stale",
    "untracked_devices",
    "series_without_histogram",
    "unstamped",
    "rescued",
    "requeued",
];

#[derive(Default)]
pub struct View {
    pub rows: Rows,
    pub counters: Counters,
    histograms: Histograms,
}

impl View {
    pub fn read(&mut self, maps: &Maps) {
        self.rows.grow(maps);
        let epoch = ended_epoch(maps);
        self.counters.read(maps, &mut self.rows, epoch);
    }

    pub fn cells(&mut self, maps: &Maps) -> Cells {
        self.histograms.growth(maps, &self.rows)
    }

    pub fn slowest(&self, maps: &Maps) -> Vec<Slow> {
        slowest::collect(maps, &self.rows, ended_epoch(maps))
    }
}

pub fn losses(maps: &Maps) -> Vec<(&'static str, u64)> {
    let counters = &maps.control().counters;
    LOSSES
        .into_iter()
        .zip(counters.iter().map(|counter| counter.load(Relaxed)))
        .collect()
}

/// The half of the peaks that the programs no longer write.
pub fn ended_epoch(maps: &Maps) -> usize {
    (maps.control().epoch.load(Acquire) as usize + 1) % EPOCHS
}
