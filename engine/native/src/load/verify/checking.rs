//! Checks of what reads return while a verified load runs.

use std::sync::atomic::Ordering::Relaxed;

use super::damage::MOST_RANGES;
use super::finding::Finding;
use super::judge::Judge;
use super::ledger::{Entry, Expected};
use super::unit::{self, Content, UNIT_BYTES, units};
use super::verifier::{Found, ReadSums, Verifier};
use crate::load::pattern::Part;
use crate::load::system::lock::lock;

impl Verifier {
    /// Compares the data of a read with what it must be; `before` is from before it was issued.
    pub fn check(&self, part: &Part, bytes: &[u8], before: &[Entry]) {
        let state = &self.targets[part.target];
        let mut after = Vec::with_capacity(before.len());
        self.before_read(part, &mut after);
        let mut sums = ReadSums::default();
        let mut good = true;
        let grain_bytes = state.write_map.grain_bytes();
        let grains = bytes.chunks_exact(usize::try_from(grain_bytes).unwrap_or(usize::MAX));
        for ((index, grain), (before, after)) in (0..).zip(grains).zip(before.iter().zip(&after)) {
            if !before.is_settled(*after) {
                sums.raced_bytes += grain_bytes;
                continue;
            }
            let offset = part.offset + index * grain_bytes;
            if let Expected::Write(write) = before.expected() {
                sums.checked_bytes += grain_bytes;
                good &= self.holds(part.target, offset, write, grain);
            } else {
                sums.unwritten_bytes += grain_bytes;
                good &= !self.strays(grain);
            }
        }
        state.checked_bytes.fetch_add(sums.checked_bytes, Relaxed);
        state.raced_bytes.fetch_add(sums.raced_bytes, Relaxed);
        state
            .unwritten_bytes
            .fetch_add(sums.unwritten_bytes, Relaxed);
        if !good {
            self.examine(part, bytes, before, &after);
        }
    }

    /// Whether a grain is all of one write.
    fn holds(&self, target: usize, offset: u64, write: u64, grain: &[u8]) -> bool {
        let home = self.home(target);
        units(grain)
            .zip((offset..).step_by(UNIT_BYTES))
            .all(|(unit, offset)| {
                matches!(unit::read(unit), Content::Whole(fields)
                if fields.sequence == write && fields.offset == offset
                    && fields.run == home.run && fields.target == home.target)
            })
    }

    /// Whether a grain holds data of this run though it wrote nothing there.
    fn strays(&self, grain: &[u8]) -> bool {
        units(grain).any(
            |unit| matches!(unit::read(unit), Content::Whole(fields) if fields.run == self.run),
        )
    }

    /// Names what is wrong with a read.
    #[cold]
    fn examine(&self, part: &Part, bytes: &[u8], before: &[Entry], after: &[Entry]) {
        let state = &self.targets[part.target];
        let mut judge = Judge::new(Some(self.home(part.target)));
        for (unit, offset) in units(bytes).zip((part.offset..).step_by(UNIT_BYTES)) {
            let grain = usize::try_from((offset - part.offset) / state.write_map.grain_bytes())
                .unwrap_or(0);
            let settled = before[grain].is_settled(after[grain]);
            let expected = if settled {
                before[grain].expected()
            } else {
                Expected::Unknown
            };
            let finding = match Finding::of(unit) {
                // What this run did not write is not judged, except its own data.
                Finding::Whole(fields)
                    if expected == Expected::Anything && fields.run != self.run =>
                {
                    Finding::Foreign
                }
                Finding::Broken(..) if expected == Expected::Anything => Finding::Foreign,
                finding => finding,
            };
            judge.push(offset, &finding, expected);
        }
        judge.skip();
        let mut found = lock(&state.found);
        let Found { log, seen } = &mut *found;
        for range in judge.log.ranges() {
            if seen.len() < MOST_RANGES && seen.insert((range.offset, range.damage.name())) {
                log.add_range(*range);
            }
        }
    }
}
