//! CPU time of an epoch: that of the engine, and that of the whole host.

use std::fs;
use std::sync::OnceLock;

/// Readings at one time, or the difference of two.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "units belong into names")]
pub struct CpuTimes {
    /// Time of the engine's threads and of the kernel's io-wq threads of their rings.
    pub engine_ns: u64,
    /// How long the engine's threads were ready and waited for a processor; None where it is not known.
    pub waited_ns: Option<u64>,
    /// Busy time of all processors, for any process: with interrupts and steal, without iowait.
    pub host_busy_ns: u64,
    /// Time of all processors, idle or not.
    pub host_ns: u64,
}

impl CpuTimes {
    pub fn now(engine_ns: u64, waited_ns: Option<u64>) -> Self {
        let stat = fs::read_to_string("/proc/stat").unwrap_or_default();
        let (host_busy_ns, host_ns) = host(&stat, tick_ns());
        Self {
            engine_ns,
            waited_ns,
            host_busy_ns,
            host_ns,
        }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            engine_ns: self.engine_ns.saturating_sub(earlier.engine_ns),
            waited_ns: self
                .waited_ns
                .zip(earlier.waited_ns)
                .map(|(now, before)| now.saturating_sub(before)),
            host_busy_ns: self.host_busy_ns.saturating_sub(earlier.host_busy_ns),
            host_ns: self.host_ns.saturating_sub(earlier.host_ns),
        }
    }
}

/// Readings at both ends of the measured part of an epoch.
#[derive(Default)]
pub struct CpuSpan {
    begin: OnceLock<CpuTimes>,
    end: OnceLock<CpuTimes>,
}

impl CpuSpan {
    pub fn begin(&self, now: CpuTimes) {
        self.begin.get_or_init(|| now);
    }

    pub fn end(&self, now: CpuTimes) {
        self.end.get_or_init(|| now);
    }

    /// What was used since the begin, up to the end or else up to `now`; None before the begin.
    pub fn used(&self, now: impl FnOnce() -> CpuTimes) -> Option<CpuTimes> {
        let begin = *self.begin.get()?;
        let end = self.end.get().copied().unwrap_or_else(now);
        Some(end.since(begin))
    }
}

/// Busy and all time of all processors; the line has user, nice, system, idle, iowait, irq, softirq and steal
/// (`proc_stat(5)`).
fn host(stat: &str, tick_ns: u64) -> (u64, u64) {
    let line = stat
        .lines()
        .next()
        .and_then(|line| line.strip_prefix("cpu "));
    let ticks: Vec<u64> = line
        .unwrap_or_default()
        .split_ascii_whitespace()
        .map_while(|field| field.parse().ok())
        .take(8)
        .collect();
    let all: u64 = ticks.iter().sum();
    let idle: u64 = ticks.iter().skip(3).take(2).sum();
    ((all - idle) * tick_ns, all * tick_ns)
}

fn tick_ns() -> u64 {
    // SAFETY: sysconf takes no pointer.
    let per_second = unsafe { libc::sysconf(libc::_SC_CLK_TCK) };
    1_000_000_000 / u64::try_from(per_second).unwrap_or(100).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_for_io_is_not_busy_and_guests_count_once() {
        let stat = "cpu  100 20 30 4000 500 6 7 8 90 10\ncpu0 1 2 3 4 5 6 7 8 9 10\n";
        assert_eq!(host(stat, 10), (1710, 46_710));
        assert_eq!(host("", 10), (0, 0));
    }

    #[test]
    fn a_span_ends_at_its_end() {
        let at = |engine_ns| CpuTimes {
            engine_ns,
            waited_ns: Some(2 * engine_ns),
            host_busy_ns: 10 * engine_ns,
            host_ns: 100 * engine_ns,
        };
        let span = CpuSpan::default();
        assert_eq!(span.used(|| at(9)), None);
        span.begin(at(2));
        assert_eq!(span.used(|| at(5)), Some(at(3)));
        span.end(at(6));
        assert_eq!(span.used(|| at(9)), Some(at(4)));
    }

    #[test]
    fn a_wait_that_is_not_known_at_one_end_is_not_known() {
        let at = |waited_ns| CpuTimes {
            waited_ns,
            ..CpuTimes::default()
        };
        for (begin, end) in [(None, Some(5)), (Some(5), None)] {
            let span = CpuSpan::default();
            span.begin(at(begin));
            span.end(at(end));
            assert_eq!(span.used(CpuTimes::default).unwrap().waited_ns, None);
        }
    }

    #[test]
    fn the_host_of_this_test_is_not_idle() {
        let now = CpuTimes::now(7, None);
        assert!(now.host_busy_ns > 0 && now.host_ns > now.host_busy_ns);
    }
}
