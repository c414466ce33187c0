//! Average peak latency: the sum of the largest latencies of every second, and how many seconds had one.

pub const SECOND_NS: u64 = 1_000_000_000;

/// Sum of per-second maxima.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PeakSum {
    pub sum_ns: u64,
    pub seconds: u64,
}

impl PeakSum {
    fn add(&mut self, peak_ns: u64) {
        if peak_ns > 0 {
            self.sum_ns += peak_ns;
            self.seconds += 1;
        }
    }
}

/// One row per target and one over all; columns are read, write, both.
#[derive(Clone, Debug)]
pub struct Peaks {
    rows: Vec<[PeakSum; 3]>,
    second_began_ns: Option<u64>,
    whole_seconds: bool,
}

impl Peaks {
    pub fn new(targets: usize) -> Self {
        Self {
            rows: vec![Default::default(); targets + 1],
            second_began_ns: None,
            whole_seconds: false,
        }
    }

    pub fn begin(&mut self, now_ns: u64) {
        self.second_began_ns = Some(now_ns);
    }

    /// What is left of the second that is being collected.
    pub fn left_ns(&self, now_ns: u64) -> u64 {
        let began_ns = self.second_began_ns.unwrap_or(now_ns);
        (began_ns + SECOND_NS).saturating_sub(now_ns)
    }

    /// Whether the rest at the end counts as a second: at least half of one, or all there is.
    pub fn remainder_counts(&self, end_ns: u64) -> bool {
        self.second_began_ns
            .is_some_and(|began_ns| !self.whole_seconds || end_ns >= began_ns + SECOND_NS / 2)
    }

    /// Adds the maxima of the second that ends now; `taken` gives read and write maxima of one target.
    pub fn fold(&mut self, now_ns: u64, taken: impl Fn(usize) -> [u64; 2]) {
        let (targets, mut overall) = (self.rows.len() - 1, [0, 0]);
        for target in 0..targets {
            let peaks = taken(target);
            self.add(target, peaks);
            overall = [overall[0].max(peaks[0]), overall[1].max(peaks[1])];
        }
        self.add(targets, overall);
        self.whole_seconds = true;
        // A late call must not shift the seconds that follow.
        let began_ns = self.second_began_ns.unwrap_or(now_ns);
        self.second_began_ns =
            Some(began_ns + now_ns.saturating_sub(began_ns) / SECOND_NS * SECOND_NS);
    }

    fn add(&mut self, row: usize, peaks: [u64; 2]) {
        let columns = [peaks[0], peaks[1], peaks[0].max(peaks[1])];
        self.rows[row]
            .iter_mut()
            .zip(columns)
            .for_each(|(sum, peak_ns)| sum.add(peak_ns));
    }

    /// Row of an active target.
    pub fn target(&self, target: usize) -> Option<&[PeakSum; 3]> {
        self.rows[..self.rows.len() - 1].get(target)
    }

    pub fn overall(&self) -> &[PeakSum; 3] {
        &self.rows[self.rows.len() - 1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_overall_peak_is_the_largest_of_each_second() {
        let mut peaks = Peaks::new(2);
        peaks.begin(0);
        peaks.fold(SECOND_NS, |target| [[10, 0], [30, 40]][target]);
        peaks.fold(2 * SECOND_NS, |target| [[70, 0], [0, 0]][target]);
        let sum = |sum_ns, seconds| PeakSum { sum_ns, seconds };
        assert_eq!(peaks.target(0), Some(&[sum(80, 2), sum(0, 0), sum(80, 2)]));
        assert_eq!(peaks.target(1), Some(&[sum(30, 1), sum(40, 1), sum(40, 1)]));
        assert_eq!(peaks.overall(), &[sum(100, 2), sum(40, 1), sum(110, 2)]);
        assert_eq!(peaks.target(2), None);
    }

    #[test]
    fn a_remainder_counts_when_it_is_long_or_all_there_is() {
        let mut peaks = Peaks::new(1);
        assert!(!peaks.remainder_counts(5));
        peaks.begin(0);
        assert!(peaks.remainder_counts(SECOND_NS / 10));
        peaks.fold(SECOND_NS + 7, |_| [1, 1]);
        assert!(!peaks.remainder_counts(SECOND_NS + SECOND_NS / 3));
        assert!(peaks.remainder_counts(SECOND_NS + SECOND_NS / 2));
    }
}
