//! The data that reads return: zeros and compressible data may not come from the medium.

use std::ptr::NonNull;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// How often one read is judged, over all workers.
pub const JUDGE_INTERVAL_NS: u64 = 10_000_000;
/// How much of one read is judged at most.
const MOST_BYTES: usize = 4096;
/// Chi square of bytes that are all alike likely is about 255, whatever their number; marks of every sector, as lunscope
/// writes them, add about a fifth of their number in 512. Beyond this a twentieth could be saved.
const EVEN: f64 = 255.0;
const UNEVEN_PER_BYTE: f64 = 0.3;

/// What a block holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    Dense,
    Compressible,
    Zeros,
}

impl Content {
    /// Judges the first bytes of a block by how evenly their values are spread.
    pub fn of(bytes: impl Iterator<Item = u8>) -> Self {
        let (mut hits, mut count) = ([0_u32; 256], 0_u32);
        for byte in bytes.take(MOST_BYTES) {
            hits[usize::from(byte)] += 1;
            count += 1;
        }
        if hits[0] == count {
            return Self::Zeros;
        }
        let expected = f64::from(count) / 256.0;
        let chi_square: f64 = hits
            .iter()
            .map(|hit| (f64::from(*hit) - expected).powi(2) / expected)
            .sum();
        if chi_square > EVEN + UNEVEN_PER_BYTE * f64::from(count) {
            Self::Compressible
        } else {
            Self::Dense
        }
    }
}

/// Reads judged so far on one target.
#[derive(Default)]
struct Judged {
    reads: AtomicU64,
    compressible: AtomicU64,
    zeros: AtomicU64,
}

/// Now and then a read is judged; all workers share the clock for it.
pub struct Contents {
    interval_ticks: u64,
    next_ticks: AtomicU64,
    targets: Box<[Judged]>,
}

impl Contents {
    pub fn new(targets: usize, interval_ticks: u64) -> Self {
        Self {
            interval_ticks,
            next_ticks: AtomicU64::new(0),
            targets: (0..targets).map(|_| Judged::default()).collect(),
        }
    }

    /// Whether `choose` may return true now.
    #[inline]
    pub fn is_due(&self, now_ticks: u64) -> bool {
        now_ticks >= self.next_ticks.load(Relaxed)
    }

    /// Whether a read that is issued now is checked when it completes; true once an interval.
    ///
    /// Chosen when issued, not when it completes: slow reads are in flight most of the time, and would nearly always be
    /// the first to complete after a given moment.
    #[inline]
    pub fn choose(&self, now_ticks: u64) -> bool {
        let next = self.next_ticks.load(Relaxed);
        now_ticks >= next
            && self
                .next_ticks
                .compare_exchange(
                    next,
                    now_ticks.saturating_add(self.interval_ticks),
                    Relaxed,
                    Relaxed,
                )
                .is_ok()
    }

    /// Checks the data of a chosen read.
    ///
    /// # Safety
    ///
    /// `length` bytes from the pointer on must be mapped. The kernel may write there meanwhile: what counts is what kind
    /// of data it is, not which.
    #[cold]
    pub unsafe fn judge(&self, target: usize, pointer: NonNull<u8>, length: u32) {
        // SAFETY: the caller's.
        let bytes = (0..length as usize).map(|at| unsafe { pointer.add(at).read_volatile() });
        let judged = &self.targets[target];
        match Content::of(bytes) {
            Content::Dense => {}
            Content::Compressible => drop(judged.compressible.fetch_add(1, Relaxed)),
            Content::Zeros => drop(judged.zeros.fetch_add(1, Relaxed)),
        }
        judged.reads.fetch_add(1, Relaxed);
    }

    /// Reads judged, and how many of them were compressible and zeros, per target.
    pub fn counts(&self) -> Vec<[u64; 3]> {
        self.targets
            .iter()
            .map(|judged| {
                [&judged.reads, &judged.compressible, &judged.zeros]
                    .map(|count| count.load(Relaxed))
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::data::payload;

    fn of(bytes: &[u8]) -> Content {
        Content::of(bytes.iter().copied())
    }

    #[test]
    fn what_lunscope_writes_is_dense_with_its_marks_too() {
        for length in [512, 1024, 4096, 65536] {
            let mut block = vec![0; length];
            payload::fill(&mut block, 3, 0);
            assert_eq!(of(&block), Content::Dense, "{length}");
            payload::stamp(&mut block, 1 << 20, 5);
            assert_eq!(of(&block), Content::Dense, "{length} marked");
        }
    }

    #[test]
    fn text_repetition_and_half_empty_blocks_compress() {
        let text: Vec<u8> = b"2026-11-21 error: device not ready\n".repeat(200);
        assert_eq!(of(&text[..4096]), Content::Compressible);
        let mut sector = [0; 512];
        payload::fill(&mut sector, 1, 0);
        assert_eq!(of(&sector.repeat(8)), Content::Compressible);
        let mut half = vec![0; 4096];
        payload::fill(&mut half[..2048], 1, 0);
        assert_eq!(of(&half), Content::Compressible);
        assert_eq!(of(&[7; 4096]), Content::Compressible);
    }

    #[test]
    fn zeros_are_distinguished_from_nearly_zeros() {
        assert_eq!(of(&[0; 4096]), Content::Zeros);
        let mut nearly = [0; 4096];
        nearly[4095] = 1;
        assert_eq!(of(&nearly), Content::Compressible);
    }

    #[test]
    fn one_read_per_interval_is_judged() {
        let (contents, mut block) = (Contents::new(2, 100), [0_u8; 4096]);
        let pointer = NonNull::new(block.as_mut_ptr()).unwrap();
        for now in 0..1000 {
            if contents.choose(now) {
                // SAFETY: the block lives through the call.
                unsafe { contents.judge(1, pointer, 4096) };
            }
        }
        assert_eq!(contents.counts(), [[0, 0, 0], [10, 0, 10]]);
    }
}
