//! Growth of the histograms since the last reading.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::layout::{BUCKETS_OF_OCTAVE, Device, NO_HISTOGRAM, OCTAVES, SERIES};
use super::maps::Maps;
use super::rows::Rows;

/// Counts of one histogram when last read.
type Counts = [[u32; BUCKETS_OF_OCTAVE]; OCTAVES];

/// Cells that grew: row, series, bucket, count.
#[derive(Default)]
pub struct Cells {
    pub row: Vec<u32>,
    pub series: Vec<u8>,
    pub bucket: Vec<u16>,
    pub count: Vec<u64>,
}

/// Readings of a device that found its last completion unchanged.
#[derive(Clone, Copy, Default)]
struct Seen {
    last_done_ns: u64,
    still: bool,
}

#[derive(Default)]
pub struct Histograms {
    seen: Vec<Seen>,
    /// By number in the pool; memory only for those in use.
    counts: Vec<Option<Box<Counts>>>,
    /// About as many will grow the next time.
    last_cells: usize,
}

impl Histograms {
    pub fn growth(&mut self, maps: &Maps, rows: &Rows) -> Cells {
        let mut cells = Cells::with_capacity(self.last_cells + self.last_cells / 8);
        self.seen.resize(rows.len(), Seen::default());
        for (row, (one, seen)) in rows.all.iter().zip(&mut self.seen).enumerate() {
            let device = &maps.devices[one.device];
            let last_done_ns = device.last_done_ns.load(Acquire);
            let moved = last_done_ns != seen.last_done_ns;
            // One more reading after the last completion, because its counts may have come after it.
            if !moved && seen.still {
                continue;
            }
            *seen = Seen {
                last_done_ns,
                still: !moved,
            };
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            for series in 0..SERIES {
                self.counts.collect(maps, device, series, |bucket, count| {
                    cells.push(row, series, bucket, count);
                });
            }
        }
        self.last_cells = cells.row.len();
        cells
    }
}

trait Collect {
    fn collect(&mut self, maps: &Maps, device: &Device, series: usize, push: impl FnMut(u16, u32));
}

impl Collect for Vec<Option<Box<Counts>>> {
    fn collect(
        &mut self,
        maps: &Maps,
        device: &Device,
        series: usize,
        mut push: impl FnMut(u16, u32),
    ) {
        let number = device.histogram[series].load(Acquire);
        if number == 0 || number == NO_HISTOGRAM {
            return;
        }
        let number = number as usize - 1;
        let Some(octaves) = maps.octaves.get(number * OCTAVES..(number + 1) * OCTAVES) else {
            return;
        };
        if self.len() <= number {
            self.resize_with(number + 1, || None);
        }
        let before =
            self[number].get_or_insert_with(|| Box::new([[0; BUCKETS_OF_OCTAVE]; OCTAVES]));
        let mut used = device.octaves_used[series].load(Acquire);
        while used != 0 {
            let octave = used.trailing_zeros() as usize;
            used &= used - 1;
            if octave >= OCTAVES {
                break;
            }
            for (index, (now, before)) in octaves[octave]
                .count
                .iter()
                .zip(&mut before[octave])
                .enumerate()
            {
                let now = now.load(Relaxed);
                if now != *before {
                    push(bucket(octave, index), now.wrapping_sub(*before));
                    *before = now;
                }
            }
        }
    }
}

impl Cells {
    fn with_capacity(cells: usize) -> Self {
        Self {
            row: Vec::with_capacity(cells),
            series: Vec::with_capacity(cells),
            bucket: Vec::with_capacity(cells),
            count: Vec::with_capacity(cells),
        }
    }

    fn push(&mut self, row: u32, series: usize, bucket: u16, count: u32) {
        self.row.push(row);
        self.series.push(u8::try_from(series).unwrap_or(u8::MAX));
        self.bucket.push(bucket);
        self.count.push(u64::from(count));
    }
}

/// Bucket of 64 ns units, 16 per octave, as in `collectors.model.HistogramScale`.
fn bucket(octave: usize, index: usize) -> u16 {
    u16::try_from(octave * BUCKETS_OF_OCTAVE + index).unwrap_or(u16::MAX)
}
