//! Log-linear latency histograms: 64 buckets per octave of nanoseconds, memory only for octaves that were hit.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Buckets per octave as a power of two: half a bucket is at most 0.8 % of its value.
pub const SUB_BITS: u32 = 6;
const CELLS: usize = 1 << SUB_BITS;
const OCTAVES: usize = 35;
/// Number of buckets; the last one also takes everything above.
pub const BUCKETS: usize = OCTAVES * CELLS;
/// 18 minutes; the exact largest latency is kept beside the histogram.
const LARGEST_NS: u64 = (1 << (OCTAVES + 5)) - 1;

/// Octave and cell of a latency; bucket = octave * 64 + cell as in `collectors.model.HistogramScale`.
#[inline]
fn position(latency_ns: u64) -> (usize, usize) {
    let value = latency_ns.min(LARGEST_NS);
    let exponent = (value | 1).ilog2();
    if exponent < SUB_BITS {
        return (0, value as usize);
    }
    let shift = exponent - SUB_BITS;
    (shift as usize + 1, (value >> shift) as usize & (CELLS - 1))
}

/// The smallest value of a bucket.
pub fn lower_bound(bucket: u16) -> u64 {
    let (octave, cell) = (
        u64::from(bucket) >> SUB_BITS,
        u64::from(bucket) % (1 << SUB_BITS),
    );
    match octave {
        0 => cell,
        _ => (cell + (1 << SUB_BITS)) << (octave - 1),
    }
}

/// A histogram that one thread writes and any may read.
pub struct Histogram {
    octaves: [OnceLock<Box<[AtomicU64; CELLS]>>; OCTAVES],
}

impl Default for Histogram {
    fn default() -> Self {
        Self {
            octaves: [const { OnceLock::new() }; OCTAVES],
        }
    }
}

impl Histogram {
    /// Counts one latency. Only the owner may call it: load and store are not one step.
    #[inline]
    pub fn record(&self, latency_ns: u64) {
        let (octave, cell) = position(latency_ns);
        let cells =
            self.octaves[octave].get_or_init(|| Box::new([const { AtomicU64::new(0) }; CELLS]));
        cells[cell].store(cells[cell].load(Relaxed) + 1, Relaxed);
    }
}

/// Plain counts: a sum of histograms.
pub struct Counts {
    octaves: [Option<Box<[u64; CELLS]>>; OCTAVES],
}

impl Default for Counts {
    fn default() -> Self {
        Self {
            octaves: [const { None }; OCTAVES],
        }
    }
}

impl Counts {
    pub fn add(&mut self, histogram: &Histogram) {
        for (sum, octave) in self.octaves.iter_mut().zip(&histogram.octaves) {
            let Some(cells) = octave.get() else { continue };
            let sum = sum.get_or_insert_with(|| Box::new([0; CELLS]));
            for (total, cell) in sum.iter_mut().zip(cells.iter()) {
                *total += cell.load(Relaxed);
            }
        }
    }

    pub fn add_counts(&mut self, other: &Self) {
        for (sum, octave) in self.octaves.iter_mut().zip(&other.octaves) {
            let Some(cells) = octave else { continue };
            let sum = sum.get_or_insert_with(|| Box::new([0; CELLS]));
            for (total, cell) in sum.iter_mut().zip(cells.iter()) {
                *total += cell;
            }
        }
    }

    /// Buckets that hold something, in rising order, with their counts.
    pub fn cells(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        let buckets = self.octaves.iter().enumerate().flat_map(|(octave, cells)| {
            cells.iter().flat_map(move |cells| {
                cells
                    .iter()
                    .enumerate()
                    .map(move |(cell, count)| (bucket(octave, cell), *count))
            })
        });
        buckets.filter(|(_, count)| *count > 0)
    }

    /// What grew since `seen`, which becomes this.
    pub fn advance(&self, seen: &mut Self) -> Vec<(u16, u64)> {
        let mut grown = Vec::new();
        for (octave, (now, before)) in self.octaves.iter().zip(seen.octaves.iter_mut()).enumerate()
        {
            let Some(now) = now else { continue };
            let before = before.get_or_insert_with(|| Box::new([0; CELLS]));
            for (cell, (now, before)) in now.iter().zip(before.iter_mut()).enumerate() {
                if *now > *before {
                    grown.push((bucket(octave, cell), *now - *before));
                    *before = *now;
                }
            }
        }
        grown
    }
}

#[expect(clippy::cast_possible_truncation, reason = "BUCKETS is 2240")]
fn bucket(octave: usize, cell: usize) -> u16 {
    (octave * CELLS + cell) as u16
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bucket_of(latency_ns: u64) -> usize {
        let (octave, cell) = position(latency_ns);
        octave * CELLS + cell
    }

    fn least(bucket: usize) -> u64 {
        lower_bound(u16::try_from(bucket).unwrap())
    }

    #[test]
    fn every_bucket_begins_where_the_scale_says() {
        for bucket in 0..BUCKETS {
            assert_eq!(bucket_of(least(bucket)), bucket);
            assert_eq!(bucket_of(least(bucket + 1) - 1), bucket);
        }
    }

    #[test]
    fn what_is_beyond_the_scale_goes_into_the_last_bucket() {
        assert_eq!(bucket_of(u64::MAX), BUCKETS - 1);
    }

    #[test]
    fn growth_is_reported_once() {
        let (histogram, mut seen) = (Histogram::default(), Counts::default());
        let report = |histogram: &Histogram, seen: &mut Counts| {
            let mut now = Counts::default();
            now.add(histogram);
            now.advance(seen)
        };
        histogram.record(5);
        histogram.record(1_000_000);
        histogram.record(5);
        assert_eq!(
            report(&histogram, &mut seen)
                .iter()
                .map(|cell| cell.1)
                .sum::<u64>(),
            3
        );
        histogram.record(5);
        assert_eq!(report(&histogram, &mut seen), vec![(5, 1)]);
        assert_eq!(report(&histogram, &mut seen), vec![]);
    }
}
