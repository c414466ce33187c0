//! The statistics of an epoch that no worker writes to any more.

use crate::load::counts::cpu_span::CpuTimes;
use crate::load::counts::histogram::Counts;
use crate::load::counts::packed::PackedCells;
use crate::load::counts::peaks::Peaks;
use crate::load::counts::sums::Sums;

/// An epoch as it is kept after its end: a few hundred bytes.
pub struct ClosedEpoch {
    pub turned_ns: u64,
    pub start_ns: Option<u64>,
    pub end_ns: Option<u64>,
    pub transient_ios: u64,
    /// Sums by level and row.
    pub sums: [Vec<[Sums; 2]>; 3],
    pub fsyncs: Vec<Sums>,
    pub cpu: Option<CpuTimes>,
    pub peaks: Peaks,
    pub logical_peaks: Peaks,
    /// Skipped arrivals for each target; empty where nothing arrives by a schedule.
    pub skipped: Vec<u64>,
    pub service_cells: Vec<[PackedCells; 2]>,
    /// Cells by level and row.
    pub cells: [Vec<[PackedCells; 2]>; 3],
    pub delays: Vec<[u64; 2]>,
    pub policy_ticks: Option<u64>,
}

/// The histograms of every row without their empty buckets.
pub fn packed(counts: &[[Counts; 2]]) -> Vec<[PackedCells; 2]> {
    let of_target = |counts: &[Counts; 2]| counts.each_ref().map(PackedCells::pack);
    counts.iter().map(of_target).collect()
}
