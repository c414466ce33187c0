//! Growth of the histograms since the last reading.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::cells::{self, Watch};
use super::layout::{BUCKETS_OF_OCTAVE, OCTAVES, Places, SERIES};
use super::maps::Maps;
use super::rows::Rows;

type Counts = [u32; BUCKETS_OF_OCTAVE];

/// Cells that grew: row, series, bucket, count.
#[derive(Default)]
pub struct Cells {
    pub row: Vec<u32>,
    pub series: Vec<u8>,
    pub bucket: Vec<u16>,
    pub count: Vec<u64>,
}

#[derive(Default)]
pub struct Histograms {
    watch: Watch,
    /// Counts when last read, by number of the octave in the pool; memory only for those in use.
    before: Vec<Counts>,
    growth: Growth,
    /// Number of cells that grew last: about as many will grow the next time.
    last_cells: usize,
}

impl Histograms {
    pub fn growth(&mut self, maps: &Maps, rows: &Rows) -> Cells {
        let mut cells = Cells::with_capacity(self.last_cells + self.last_cells / 8);
        if self.before.is_empty() {
            self.before = vec![[0; BUCKETS_OF_OCTAVE]; maps.octaves.len()];
        }
        for (row, one) in rows.all.iter().enumerate() {
            if !self.watch.has_moved(maps, one.device) {
                continue;
            }
            for cell in cells::of_device(maps, one.device) {
                let places = (cell.places.load(Acquire) as usize).checked_sub(1);
                if let Some(places) = places.and_then(|number| maps.places.get(number)) {
                    self.growth.collect(maps, places, &mut self.before);
                }
            }
            let row = u32::try_from(row).unwrap_or(u32::MAX);
            self.growth
                .take(|series, bucket, count| cells.push(row, series, bucket, count));
        }
        self.last_cells = cells.row.len();
        cells
    }
}

/// The increase of the histograms of one device, over all of its cells.
#[derive(Default)]
struct Growth {
    counts: [[Counts; OCTAVES]; SERIES],
    /// Bit per octave that has grown.
    grown: [u32; SERIES],
}

impl Growth {
    fn collect(&mut self, maps: &Maps, places: &Places, before: &mut [Counts]) {
        for (series, octaves) in places.octave.iter().enumerate() {
            for (octave, number) in octaves.iter().enumerate() {
                let Some(number) = (number.load(Acquire) as usize).checked_sub(1) else {
                    continue;
                };
                let (Some(now), Some(before)) = (maps.octaves.get(number), before.get_mut(number))
                else {
                    continue;
                };
                let counts = std::array::from_fn(|bucket| now.count[bucket].load(Relaxed));
                if counts == *before {
                    continue;
                }
                let growth = &mut self.counts[series][octave];
                for ((sum, now), before) in growth.iter_mut().zip(&counts).zip(&*before) {
                    *sum = sum.wrapping_add(now.wrapping_sub(*before));
                }
                *before = counts;
                self.grown[series] |= 1 << octave;
            }
        }
    }

    /// Gives away what has grown: series, bucket, count.
    fn take(&mut self, mut push: impl FnMut(usize, u16, u32)) {
        for series in 0..SERIES {
            let mut grown = std::mem::take(&mut self.grown[series]);
            while grown != 0 {
                let octave = grown.trailing_zeros() as usize;
                grown &= grown - 1;
                let counts = std::mem::take(&mut self.counts[series][octave]);
                let counts = counts.into_iter().enumerate();
                for (index, count) in counts.filter(|(_, count)| *count != 0) {
                    push(series, bucket(octave, index), count);
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
