//! Time: the processor's counter where the kernel itself trusts it, `CLOCK_MONOTONIC` elsewhere.

use std::sync::OnceLock;
use std::time::Duration;

const CLOCK_SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
const CALIBRATION: Duration = Duration::from_millis(20);

/// `CLOCK_MONOTONIC` in nanoseconds, comparable with Python's `time.monotonic_ns`.
pub fn monotonic_ns() -> u64 {
    let mut now = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the kernel writes one timespec into a live local.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &raw mut now) };
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Lets the kernel wake this thread when its timers are over, not up to 50 us later (`PR_SET_TIMERSLACK`).
pub fn wake_in_time() {
    // SAFETY: the call takes a number and no pointer; it fails on no kernel that has timers.
    unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1_u64, 0_u64, 0_u64, 0_u64) };
}

/// An instant on both clocks: ticks are compared with stamps of I/Os, nanoseconds are shown.
#[derive(Clone, Copy, Debug)]
pub struct Instant {
    pub ticks: u64,
    pub ns: u64,
}

/// Reads ticks and turns spans of them into nanoseconds.
///
/// A read of the counter costs half of `clock_gettime`, and both figures of a latency come from the same one.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    counter: bool,
    /// Nanoseconds per tick and ticks per nanosecond, 32.32 fixed point.
    ns_per_tick: u64,
    ticks_per_ns: u64,
}

impl Clock {
    /// The clock of this process; the first call calibrates it, which takes 20 ms.
    pub fn shared() -> Self {
        static SHARED: OnceLock<Clock> = OnceLock::new();
        *SHARED.get_or_init(|| {
            if counter_is_trusted() {
                Self::calibrated()
            } else {
                Self::monotonic()
            }
        })
    }

    #[inline]
    pub fn now(self) -> u64 {
        if self.counter {
            counter()
        } else {
            monotonic_ns()
        }
    }

    /// A span of ticks in nanoseconds.
    #[inline]
    pub fn ns(self, ticks: u64) -> u64 {
        scaled(ticks, self.ns_per_tick)
    }

    /// A span of nanoseconds in ticks.
    #[inline]
    pub fn ticks(self, ns: u64) -> u64 {
        scaled(ns, self.ticks_per_ns)
    }

    #[expect(clippy::cast_precision_loss, reason = "a factor near 1")]
    pub fn ns_per_tick(self) -> f64 {
        self.ns_per_tick as f64 / 2_f64.powi(32)
    }

    fn monotonic() -> Self {
        Self {
            counter: false,
            ns_per_tick: 1 << 32,
            ticks_per_ns: 1 << 32,
        }
    }

    fn calibrated() -> Self {
        let (first_ticks, first_ns) = simultaneous();
        std::thread::sleep(CALIBRATION);
        let (last_ticks, last_ns) = simultaneous();
        let (ticks, ns) = (
            last_ticks.saturating_sub(first_ticks),
            last_ns.saturating_sub(first_ns),
        );
        if ticks == 0 || ns == 0 {
            return Self::monotonic();
        }
        Self {
            counter: true,
            ns_per_tick: ratio(ns, ticks),
            ticks_per_ns: ratio(ticks, ns),
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "spans are far below 2^64 in either unit"
)]
fn scaled(value: u64, factor: u64) -> u64 {
    ((u128::from(value) * u128::from(factor)) >> 32) as u64
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "both rates are within a factor of 2^31 of each other"
)]
fn ratio(numerator: u64, denominator: u64) -> u64 {
    ((u128::from(numerator) << 32) / u128::from(denominator)) as u64
}

/// Both clocks at one time, by the reading with the narrowest bracket among several.
fn simultaneous() -> (u64, u64) {
    let reading = || {
        let before = monotonic_ns();
        let ticks = counter();
        let after = monotonic_ns();
        (after - before, ticks, before + (after - before) / 2)
    };
    let (_, ticks, ns) = (0..9).map(|_| reading()).min().unwrap_or_else(reading);
    (ticks, ns)
}

/// The kernel checks the counters of all processors against each other before it keeps time by them.
#[cfg(target_arch = "x86_64")]
fn counter_is_trusted() -> bool {
    std::fs::read_to_string(CLOCK_SOURCE).is_ok_and(|source| source.trim() == "tsc")
}

#[cfg(not(target_arch = "x86_64"))]
fn counter_is_trusted() -> bool {
    false
}

#[cfg(target_arch = "x86_64")]
#[inline]
fn counter() -> u64 {
    // SAFETY: every x86-64 processor has the instruction; the kernel leaves it open to programs when it uses it itself.
    unsafe { core::arch::x86_64::_rdtsc() }
}

#[cfg(not(target_arch = "x86_64"))]
#[inline]
fn counter() -> u64 {
    monotonic_ns()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_agree_with_the_kernel_clock() {
        let clock = Clock::shared();
        let (start_ticks, start_ns) = (clock.now(), monotonic_ns());
        std::thread::sleep(Duration::from_millis(50));
        let (spent_ticks, spent_ns) = (clock.now() - start_ticks, monotonic_ns() - start_ns);
        let error = clock.ns(spent_ticks).abs_diff(spent_ns);
        assert!(error < spent_ns / 500, "off by {error} ns in {spent_ns}");
    }

    #[test]
    fn ticks_and_nanoseconds_are_inverse() {
        let clock = Clock::shared();
        assert!(clock.ns(clock.ticks(1_000_000_000)).abs_diff(1_000_000_000) < 1000);
    }
}
