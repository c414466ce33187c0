//! What can be read of the maps by any number of readers, with or without the right to write them.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::counters::Counters;
use super::healing;
use super::histograms::{Cells, Histograms};
use super::layout::EPOCHS;
use super::maps::Maps;
use super::processes::{ProcessIos, Processes};
use super::rows::Rows;
use super::slowest::{self, Slow};

/// Names of the kernel side's counters, in the order of `enum loss` in bpf/layout.h.
const LOSSES: [&str; 10] = [
    "table_full",
    "unseen",
    "stale",
    "untracked_devices",
    "series_without_histogram",
    "unstamped",
    "rescued",
    "requeued",
    "without_process",
    "overtaken",
];

pub struct View {
    pub maps: Arc<Maps>,
    pub rows: Rows,
    pub counters: Counters,
    histograms: Histograms,
    processes: Processes,
}

impl View {
    pub fn new(maps: Arc<Maps>) -> Self {
        Self {
            maps,
            rows: Rows::default(),
            counters: Counters::default(),
            histograms: Histograms::default(),
            processes: Processes::default(),
        }
    }

    /// Reads all counters; the peaks are those of the interval that the owner of the programs has ended last.
    pub fn read(&mut self) -> &[u64] {
        self.rows.grow(&self.maps);
        let epoch = ended_epoch(&self.maps);
        self.counters.read(&self.maps, &mut self.rows, epoch);
        &self.counters.values
    }

    pub fn cells(&mut self) -> Cells {
        self.histograms.growth(&self.maps, &self.rows)
    }

    pub fn slowest(&self) -> Vec<Slow> {
        slowest::collect(&self.maps, &self.rows, ended_epoch(&self.maps))
    }

    /// What processes did on each device since the last call.
    pub fn processes(&mut self) -> ProcessIos {
        self.processes.growth(&self.maps, &self.rows)
    }

    /// Age of the oldest I/O in flight of every row, in nanoseconds; `u64::MAX` where there is none.
    pub fn oldest(&self) -> Vec<u64> {
        healing::oldest(&self.maps, &self.rows)
    }

    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        let of_shards = &self.maps.counts;
        let total = |which: usize| {
            of_shards
                .iter()
                .map(|one| one.count[which].load(Relaxed))
                .sum()
        };
        let names = LOSSES.into_iter().enumerate();
        names.map(|(which, name)| (name, total(which))).collect()
    }
}

/// The half of the peaks that the programs no longer write.
pub fn ended_epoch(maps: &Maps) -> usize {
    (maps.control().epoch.load(Acquire) as usize + 1) % EPOCHS
}

#[cfg(test)]
mod tests {
    use super::LOSSES;

    /// Names of the kernel side in its order, without its number of counters.
    fn kernel_names() -> Vec<&'static str> {
        let layout = include_str!("../../bpf/layout.h");
        let (_, counters) = layout.split_once("enum loss {").unwrap();
        let (counters, _) = counters.split_once("COUNTERS =").unwrap();
        counters
            .lines()
            .filter_map(|line| Some(line.split_once(',')?.0.trim()))
            .collect()
    }

    #[test]
    fn losses_are_in_the_order_of_the_kernel_side() {
        let meanings = [
            ("LOSS_TABLE_FULL", "table_full"),
            ("LOSS_UNSEEN", "unseen"),
            ("LOSS_STALE", "stale"),
            ("LOSS_UNTRACKED", "untracked_devices"),
            ("LOSS_NO_HISTOGRAM", "series_without_histogram"),
            ("LOSS_UNSTAMPED", "unstamped"),
            ("COUNT_RESCUED", "rescued"),
            ("COUNT_REQUEUED", "requeued"),
            ("LOSS_NO_PROCESS", "without_process"),
            ("COUNT_OVERTAKEN", "overtaken"),
        ];
        let found: Vec<_> = kernel_names().into_iter().zip(LOSSES).collect();
        assert_eq!(found, meanings);
        assert_eq!(kernel_names().len(), LOSSES.len());
    }
}
