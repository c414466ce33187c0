//! The rate limit: moments at which I/Os may be issued, evenly spaced over all workers.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::claims::Claims;
use super::rest::{Rest, Resting};
use super::schedule::Schedule;
use crate::load::system::clock::Clock;

/// How far the schedule may lag before moments are given up. It makes up for late wake-ups, so the mean holds; a device
/// that is slower than the rate gains no credit beyond it.
const CATCH_UP_NS: u64 = 100_000_000;
/// Moments are counted in fractions of a tick, so that high rates hold exactly.
const FRACTION_BITS: u32 = 8;

/// Returns the start times for one rate.
pub struct Pacer {
    rate_iops: f64,
    base_ticks: u64,
    interval: u64,
    catch_up: u64,
    next: AtomicU64,
}

impl Pacer {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "positive, clamped"
    )]
    pub fn new(rate_iops: f64, clock: Clock) -> Self {
        let ticks_per_s = clock.ticks(1_000_000_000) as f64;
        let interval = ticks_per_s * f64::from(1 << FRACTION_BITS) / rate_iops;
        Self {
            rate_iops,
            base_ticks: clock.now(),
            interval: interval.clamp(1.0, 2_f64.powi(62)) as u64,
            catch_up: clock.ticks(CATCH_UP_NS) << FRACTION_BITS,
            next: AtomicU64::new(0),
        }
    }

    pub fn rate_iops(&self) -> f64 {
        self.rate_iops
    }

    /// Takes the next moment; the caller issues one I/O at it or later.
    fn reserve(&self, now_ticks: u64) -> u64 {
        let now = now_ticks.saturating_sub(self.base_ticks) << FRACTION_BITS;
        let earliest = now.saturating_sub(self.catch_up);
        let after = |next: u64| Some(next.max(earliest).saturating_add(self.interval));
        let taken = self
            .next
            .fetch_update(Relaxed, Relaxed, after)
            .unwrap_or_else(|next| next);
        self.base_ticks + (taken.max(earliest) >> FRACTION_BITS)
    }
}

/// One worker's view of the rate, or of arrivals: it holds at most one moment (of each stream) that it has not used.
#[derive(Default)]
pub struct Gate {
    pacer: Option<Arc<Pacer>>,
    reserved_ticks: Option<u64>,
    claims: Claims,
    resting: Resting,
}

impl Gate {
    /// Follows the rate or the arrivals of an epoch.
    pub fn enter(&mut self, pacer: Option<&Arc<Pacer>>, schedule: Option<&Arc<Schedule>>) {
        self.claims.follow(schedule);
        self.follow(pacer);
    }

    /// Gives back arrivals that were claimed, for others or for later.
    pub fn leave(&mut self) {
        self.claims.release();
    }

    /// Follows another rate; a moment of the same one stays valid.
    fn follow(&mut self, pacer: Option<&Arc<Pacer>>) {
        let same = match (&self.pacer, pacer) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            _ => false,
        };
        if !same {
            self.pacer = pacer.cloned();
            self.reserved_ticks = None;
        }
    }

    /// Admits one I/O of a worker that pauses between I/Os, or returns the end of the pause.
    #[inline]
    pub fn rest(&mut self, rest: Option<Rest>, now_ticks: u64) -> Result<(), u64> {
        rest.map_or(Ok(()), |rest| self.resting.pass(rest, now_ticks))
    }

    /// Counts an I/O towards the next pause.
    #[inline]
    pub fn issued(&mut self) {
        self.resting.issued();
    }

    /// Admits one I/O with its intended start (0: now), or returns the earliest time for it.
    ///
    /// `stream` is the stream of arrivals, if there are any.
    #[inline]
    pub fn pass(&mut self, stream: usize, now_ticks: u64) -> Result<u64, u64> {
        if let Some(arrival) = self.claims.pass(stream, now_ticks) {
            return arrival;
        }
        let Some(pacer) = &self.pacer else {
            return Ok(0);
        };
        let due = self
            .reserved_ticks
            .take()
            .unwrap_or_else(|| pacer.reserve(now_ticks));
        if due <= now_ticks {
            return Ok(0);
        }
        self.reserved_ticks = Some(due);
        Err(due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn gates(rate_iops: f64, count: usize) -> (Vec<Gate>, u64, u64) {
        let clock = Clock::shared();
        let pacer = Arc::new(Pacer::new(rate_iops, clock));
        let start = pacer.base_ticks;
        let follow = |_| {
            let mut gate = Gate::default();
            gate.follow(Some(&pacer));
            gate
        };
        (
            (0..count).map(follow).collect(),
            start,
            clock.ticks(1_000_000_000),
        )
    }

    #[test]
    fn the_rate_holds_over_workers_and_is_even() {
        let (mut gates, start, second) = gates(1000.0, 3);
        let mut passed = [0_u32; 10];
        for step in 0..10_000 {
            let now = start + second * step / 10_000;
            for gate in &mut gates {
                passed[usize::try_from(step / 1000).unwrap()] +=
                    u32::from(gate.pass(0, now).is_ok());
            }
        }
        assert!(
            passed.iter().all(|tenth| (98..=102).contains(tenth)),
            "{passed:?}"
        );
    }

    #[test]
    fn lateness_is_made_up_for_but_not_without_bound() {
        let (mut gates, start, second) = gates(1000.0, 1);
        let burst =
            |gate: &mut Gate, now| (0..1000).take_while(|_| gate.pass(0, now).is_ok()).count();
        assert!((10..=12).contains(&burst(&mut gates[0], start + second / 100)));
        assert!((100..=102).contains(&burst(&mut gates[0], start + second)));
    }

    #[test]
    fn a_moment_is_kept_until_it_is_used() {
        let (mut gates, start, second) = gates(1.0, 1);
        assert_eq!(gates[0].pass(0, start), Ok(0));
        let due = gates[0].pass(0, start).unwrap_err();
        assert_eq!(gates[0].pass(0, start + second / 2), Err(due));
        assert_eq!(gates[0].pass(0, due), Ok(0));
    }
}
