//! The outstanding I/Os, and since when they are: the thread that issues them writes this, any thread reads it.

use std::sync::OnceLock;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use crate::load::system::clock::{Clock, Instant};

/// `engine.job.spec.MAX_TARGETS` needs ten.
const TARGET_BITS: u32 = 16;
const TARGET_MASK: u64 = (1 << TARGET_BITS) - 1;
/// I/Os in the first piece of the table; each further piece has twice as many as the one before.
const FIRST: usize = 8;
const PIECES: usize = 24;

/// The I/Os of one thread by their numbers, which are reused.
///
/// One word for an I/O holds its target and the moment it was issued, to 65,536 ticks (some 20 to 65 us): neither can be
/// read without the other, and an I/O costs its thread two plain stores.
#[derive(Default)]
pub struct Outstanding {
    pieces: [OnceLock<Box<[AtomicU64]>>; PIECES],
}

impl Outstanding {
    /// The word of a number, for `word_of` while its I/O is outstanding, else 0; it stays where it is.
    #[inline]
    pub fn word(&self, number: usize) -> &AtomicU64 {
        let (piece, index) = locate(number);
        let piece = self.pieces[piece]
            .get_or_init(|| (0..FIRST << piece).map(|_| AtomicU64::new(0)).collect());
        &piece[index]
    }

    /// Records an I/O that is issued at this time.
    #[inline]
    pub fn set(&self, number: usize, target: usize, ticks: u64) {
        self.word(number).store(word_of(target, ticks), Relaxed);
    }

    /// Records that an I/O completed.
    #[inline]
    pub fn clear(&self, number: usize) {
        let (piece, index) = locate(number);
        if let Some(piece) = self.pieces[piece].get() {
            piece[index].store(0, Relaxed);
        }
    }

    /// Target of every I/O that has been outstanding for that time, and since when on the monotonic clock.
    pub fn since(
        &self,
        clock: Clock,
        now: Instant,
        at_least: Duration,
    ) -> impl Iterator<Item = (usize, u64)> {
        let least_ns = u64::try_from(at_least.as_nanos()).unwrap_or(u64::MAX);
        self.each().filter_map(move |(target, ticks)| {
            let waited_ns = clock.ns(now.ticks.saturating_sub(ticks));
            (waited_ns >= least_ns).then(|| (target, now.ns.saturating_sub(waited_ns)))
        })
    }

    /// Whether an I/O is outstanding that was issued before a moment, to the resolution of the table.
    pub fn has_older(&self, moment_ticks: u64) -> bool {
        let least = moment_ticks & !TARGET_MASK;
        self.each().any(|(_, ticks)| ticks < least)
    }

    /// Target and moment, in ticks, of every I/O that is outstanding.
    pub fn each(&self) -> impl Iterator<Item = (usize, u64)> {
        let words = self.pieces.iter().filter_map(OnceLock::get).flatten();
        let words = words.map(|word| word.load(Relaxed));
        words.filter(|word| *word != 0).filter_map(|word| {
            let target = usize::try_from(word & TARGET_MASK).ok()?;
            Some((target, word & !TARGET_MASK))
        })
    }
}

/// Target and moment of an I/O as one word.
#[inline]
pub fn word_of(target: usize, ticks: u64) -> u64 {
    // Never 0, which means no I/O.
    let moment = ticks.max(1 << TARGET_BITS) & !TARGET_MASK;
    moment | (target as u64 & TARGET_MASK)
}

/// How many I/Os wait, since when the oldest does, and how long all of them have, summed; 0 while there is none.
#[derive(Clone, Copy, Debug, Default)]
pub struct Waiting {
    pub ios: u64,
    pub since_ns: u64,
    pub waited_ns: u64,
}

impl Waiting {
    pub fn add(&mut self, since_ns: u64, now_ns: u64) {
        self.waited_ns += now_ns.saturating_sub(since_ns);
        self.since_ns = if self.ios == 0 {
            since_ns
        } else {
            self.since_ns.min(since_ns)
        };
        self.ios += 1;
    }
}

/// The piece of a number, and its index there.
#[inline]
fn locate(number: usize) -> (usize, usize) {
    let piece = ((number / FIRST + 1).ilog2() as usize).min(PIECES - 1);
    (piece, number - FIRST * ((1 << piece) - 1))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_number_has_a_place_of_its_own() {
        let mut located: Vec<_> = (0..10_000).map(locate).collect();
        assert!(located.iter().all(|(piece, index)| *index < FIRST << piece));
        located.dedup();
        assert_eq!(located.len(), 10_000);
        assert_eq!([locate(0), locate(7), locate(8)], [(0, 0), (0, 7), (1, 0)]);
    }

    #[test]
    fn what_is_outstanding_is_reported_with_its_target_and_moment() {
        let outstanding = Outstanding::default();
        let moment = 5 << TARGET_BITS;
        outstanding.set(0, 3, moment + 7);
        outstanding.set(4000, 1023, moment);
        outstanding.set(9, 1, moment);
        outstanding.clear(9);
        outstanding.clear(70_000);
        let mut found: Vec<_> = outstanding.each().collect();
        found.sort_unstable();
        assert_eq!(found, [(3, moment), (1023, moment)]);
        outstanding.set(0, 2, 0);
        assert_eq!(outstanding.each().count(), 2, "an early moment is one too");
    }

    #[test]
    fn what_was_issued_before_a_moment_is_older_until_it_is_back() {
        let outstanding = Outstanding::default();
        let moment = (9 << TARGET_BITS) + 7;
        assert!(!outstanding.has_older(moment));
        outstanding.set(0, 1, 8 << TARGET_BITS);
        outstanding.set(1, 1, moment + 5);
        assert!(outstanding.has_older(moment));
        outstanding.clear(0);
        assert!(!outstanding.has_older(moment));
    }

    #[test]
    fn only_what_has_waited_for_so_long_is_named() {
        let (clock, outstanding) = (Clock::shared(), Outstanding::default());
        let second = clock.ticks(1_000_000_000);
        let now = Instant {
            ticks: 1000 * second,
            ns: 77_000_000_000,
        };
        for (number, age) in [(0, 3), (1, 2), (2, 0)] {
            outstanding.set(number, number, now.ticks - age * second);
        }
        let mut waiting = Waiting::default();
        let since = outstanding.since(clock, now, Duration::from_millis(1500));
        since.for_each(|(_, since_ns)| waiting.add(since_ns, now.ns));
        assert_eq!(waiting.ios, 2);
        assert!(waiting.since_ns.abs_diff(74_000_000_000) < 1_000_000);
        assert!(waiting.waited_ns.abs_diff(5_000_000_000) < 1_000_000);
    }
}
