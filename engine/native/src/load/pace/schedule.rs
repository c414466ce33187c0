//! The open loop: moments at which I/Os arrive, whether or not a slot is free for them.
//!
//! Every target has a stream of arrivals of its own, so that one which lags is not spared. An arrival waits for a free
//! slot of its target's queue depth, and its latency counts from its scheduled time; after `PATIENCE_NS` it is
//! skipped and counted.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

use super::arrival::Arrival;
use crate::load::pattern::Rng;
use crate::load::system::clock::Clock;
use crate::load::system::lock::lock;

/// How long an arrival waits for a free slot.
const PATIENCE_NS: u64 = 1_000_000_000;
/// Moments are counted in fractions of a tick, so that high rates hold exactly.
const FRACTION_BITS: u32 = 8;
const SECOND_NS: u64 = 1_000_000_000;
/// How long before an arrival a worker stays awake: longer than it takes to be woken, even in a guest.
pub const WATCH_NS: u64 = 100_000;
/// Gaps are drawn from 53 random bits, all a double holds.
const UNIFORM_BITS: u32 = 53;

/// Arrivals skipped since the start of the run, per target.
pub type Skipped = Arc<[AtomicU64]>;

/// How a schedule begins.
pub struct Beginning {
    pub arrival: Arrival,
    /// Arrivals per second over all streams.
    pub rate_iops: f64,
    pub streams: usize,
    pub start_ticks: u64,
    pub seed: Rng,
}

/// The arrivals of one rate, on one or more streams.
pub struct Schedule {
    rate_iops: f64,
    poisson: bool,
    base_ticks: u64,
    /// Mean distance within a stream, in fractions of a tick.
    gap: f64,
    patience_ticks: u64,
    streams: Box<[Mutex<Stream>]>,
    skipped: Skipped,
}

struct Stream {
    watched: bool,
    /// Next arrival in fractions of a tick since the base; none after the end.
    next: u64,
    /// Claimed, but not used.
    returned: Vec<u64>,
    ended_ticks: u64,
    rng: Rng,
}

impl Schedule {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "positive, clamped"
    )]
    pub fn new(beginning: &Beginning, clock: Clock, skipped: Skipped) -> Self {
        let count = beginning.streams.max(1);
        let second = clock.ticks(SECOND_NS) as f64 * f64::from(1 << FRACTION_BITS);
        let gap = (second / beginning.rate_iops * count as f64).clamp(1.0, 2_f64.powi(60));
        let poisson = beginning.arrival == Arrival::Poisson;
        let mut seed = beginning.seed.clone();
        let stream = |index: usize| {
            let rng = Rng::new(seed.next(), index as u64, 0);
            let mut stream = Stream {
                watched: false,
                next: (gap * index as f64 / count as f64) as u64,
                returned: Vec::new(),
                ended_ticks: u64::MAX,
                rng,
            };
            if poisson {
                stream.next = stream.distance(gap);
            }
            Mutex::new(stream)
        };
        Self {
            rate_iops: beginning.rate_iops,
            poisson,
            base_ticks: beginning.start_ticks,
            gap,
            patience_ticks: clock.ticks(PATIENCE_NS),
            streams: (0..count).map(stream).collect(),
            skipped,
        }
    }

    pub fn rate_iops(&self) -> f64 {
        self.rate_iops
    }

    pub fn streams(&self) -> usize {
        self.streams.len()
    }

    /// Takes the next arrival of a stream, which the caller issues then or later, or returns.
    pub fn claim(&self, stream: usize, now_ticks: u64) -> u64 {
        let mut arrivals = lock(&self.streams[stream]);
        self.skip(stream, &mut arrivals, self.oldest(now_ticks));
        if let Some(moment) = arrivals.returned.pop() {
            return moment;
        }
        self.draw(&mut arrivals)
    }

    /// Gives back what was claimed and not used.
    pub fn give_back(&self, stream: usize, moment_ticks: u64) {
        let mut arrivals = lock(&self.streams[stream]);
        if moment_ticks == u64::MAX || moment_ticks > arrivals.ended_ticks {
            return;
        }
        if arrivals.ended_ticks != u64::MAX {
            self.count(stream, 1);
            return;
        }
        let later = |other: &u64| *other > moment_ticks;
        let index = arrivals.returned.partition_point(later);
        arrivals.returned.insert(index, moment_ticks);
    }

    /// Whether an arrival of this moment has waited for too long; it is counted as skipped then.
    pub fn is_over(&self, stream: usize, moment_ticks: u64, now_ticks: u64) -> bool {
        let over = moment_ticks < self.oldest(now_ticks);
        if over {
            self.count(stream, 1);
        }
        over
    }

    /// Asks to be the one thread of many that watches the clock for a stream; the others sleep.
    pub fn watch(&self, stream: usize) -> bool {
        !std::mem::replace(&mut lock(&self.streams[stream]).watched, true)
    }

    /// Lets another one watch.
    pub fn unwatch(&self, stream: usize) {
        lock(&self.streams[stream]).watched = false;
    }

    /// Skips what has waited for too long, where no worker had a free slot to take it.
    pub fn expire(&self, now_ticks: u64) {
        for (stream, arrivals) in self.streams.iter().enumerate() {
            self.skip(stream, &mut lock(arrivals), self.oldest(now_ticks));
        }
    }

    /// Skips all that is due and ends the schedule.
    pub fn end(&self, now_ticks: u64) {
        for (stream, arrivals) in self.streams.iter().enumerate() {
            let mut arrivals = lock(arrivals);
            self.skip(stream, &mut arrivals, now_ticks + 1);
            arrivals.returned.clear();
            arrivals.ended_ticks = now_ticks;
            arrivals.next = u64::MAX;
        }
    }

    /// Whether every arrival before this moment was claimed or skipped.
    pub fn has_passed(&self, moment_ticks: u64) -> bool {
        self.streams.iter().all(|arrivals| {
            let arrivals = lock(arrivals);
            self.ticks(arrivals.next) >= moment_ticks
                && arrivals
                    .returned
                    .last()
                    .is_none_or(|first| *first >= moment_ticks)
        })
    }

    /// Arrivals skipped so far, per target, those of earlier schedules too.
    pub fn skipped(&self) -> Box<[u64]> {
        self.skipped
            .iter()
            .map(|count| count.load(Relaxed))
            .collect()
    }

    fn oldest(&self, now_ticks: u64) -> u64 {
        now_ticks.saturating_sub(self.patience_ticks)
    }

    fn ticks(&self, position: u64) -> u64 {
        if position == u64::MAX {
            return u64::MAX;
        }
        self.base_ticks + (position >> FRACTION_BITS)
    }

    /// Skips arrivals before a moment.
    fn skip(&self, stream: usize, arrivals: &mut Stream, before_ticks: u64) {
        let mut count = 0;
        while arrivals
            .returned
            .last()
            .is_some_and(|first| *first < before_ticks)
        {
            arrivals.returned.pop();
            count += 1;
        }
        while self.ticks(arrivals.next) < before_ticks {
            self.draw(arrivals);
            count += 1;
        }
        if count > 0 {
            self.count(stream, count);
        }
    }

    fn count(&self, stream: usize, arrivals: u64) {
        self.skipped[stream].fetch_add(arrivals, Relaxed);
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "positive, clamped"
    )]
    fn draw(&self, arrivals: &mut Stream) -> u64 {
        let moment = arrivals.next;
        if moment != u64::MAX {
            let distance = if self.poisson {
                arrivals.distance(self.gap)
            } else {
                self.gap as u64
            };
            arrivals.next = moment.saturating_add(distance);
        }
        self.ticks(moment)
    }
}

impl Stream {
    /// An exponentially distributed distance with this mean.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "53 bits fit a double; the logarithm of at least 2^-53 is at most 37"
    )]
    fn distance(&mut self, mean: f64) -> u64 {
        let uniform = ((self.rng.next() >> (u64::BITS - UNIFORM_BITS)) + 1) as f64
            / (1_u64 << UNIFORM_BITS) as f64;
        (-uniform.ln() * mean) as u64
    }
}

#[cfg(test)]
mod tests;
