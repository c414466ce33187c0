//! Units in the order they lie on the target, judged by what the books say and by what their neighbours say.
//!
//! Where there are no books, a write still says how far it reached: between its first and its last unit nothing may be
//! older than it.

use std::collections::VecDeque;

use super::damage::{Damage, DamageLog};
use super::diagnosis;
use super::groups::Groups;
use super::ledger::Expected;
use super::unit::{self, Content, Fields, UNIT_BYTES};

/// The largest write there is (`engine.job.spec.MAX_BLOCK_BYTES`), in units: no unit says anything of places farther off.
const WINDOW: usize = (64 << 20) / UNIT_BYTES;

/// Writes over writes over writes: more than any load makes, and bounded, as what lies on a target may be made up.
const MOST_REACHES: usize = 256;

/// What was found at one place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Finding {
    Foreign,
    Whole(Fields),
    Broken(Damage, Option<Fields>),
    Unreadable(i32),
}

impl Finding {
    pub fn of(unit: &[u8; UNIT_BYTES]) -> Self {
        match unit::read(unit) {
            Content::Foreign => Self::Foreign,
            Content::Whole(fields) => Self::Whole(fields),
            Content::Broken => {
                let (damage, fields) = diagnosis::of_broken(unit);
                Self::Broken(damage, fields)
            }
        }
    }
}

/// Whose books are at hand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Home {
    pub run: u64,
    pub target: u32,
}

/// Run and number of a write: the later has the greater.
type Write = (u64, u64);

struct Judged {
    offset: u64,
    write: Option<Write>,
    expected: Expected,
    damage: Option<Damage>,
    /// Data of a load that belong elsewhere, which `groups` judges.
    displaced: bool,
}

/// A write that reaches beyond the unit that told of it.
struct Reach {
    end: u64,
    write: Write,
}

/// Bytes by what they turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the unit belongs to the name")]
pub struct Sums {
    /// Written by a verified load, and as it should be.
    pub good_bytes: u64,
    /// Of those, by the run whose books are at hand.
    pub home_bytes: u64,
    /// Not written by one, as far as can be known.
    pub foreign_bytes: u64,
}

pub struct Judge {
    home: Option<Home>,
    recent: VecDeque<Judged>,
    reaches: Vec<Reach>,
    pub log: DamageLog,
    pub groups: Groups,
    pub sums: Sums,
}

impl Judge {
    pub fn new(home: Option<Home>) -> Self {
        Self {
            home,
            recent: VecDeque::new(),
            reaches: Vec::new(),
            log: DamageLog::default(),
            groups: Groups::default(),
            sums: Sums::default(),
        }
    }

    /// Takes the unit at the next place.
    pub fn push(&mut self, offset: u64, finding: &Finding, expected: Expected) {
        let (write, damage) = self.first_look(offset, finding, expected);
        let whole = matches!(finding, Finding::Whole(_));
        let mut judged = Judged {
            offset,
            write,
            expected,
            damage,
            displaced: whole && write.is_none() && damage.is_none(),
        };
        self.reaches.retain(|reach| reach.end > offset);
        let latest = self.reaches.iter().map(|reach| reach.write).max();
        if let Some(latest) = latest {
            Self::blame(self.home, &mut judged, latest);
        }
        self.recent.push_back(judged);
        if let (Some(write), Finding::Whole(fields)) = (write, finding) {
            self.look_left(write, fields);
            self.look_right(offset, write, fields);
        }
        if self.recent.len() > WINDOW {
            self.settle_oldest();
        }
    }

    /// What a unit is by itself and by the books.
    fn first_look(
        &mut self,
        offset: u64,
        finding: &Finding,
        expected: Expected,
    ) -> (Option<Write>, Option<Damage>) {
        match *finding {
            Finding::Unreadable(errno) => (None, Some(Damage::Unreadable { errno })),
            Finding::Broken(..) if expected == Expected::Unknown => (None, None),
            Finding::Broken(damage, fields) => {
                let own = fields.filter(|fields| self.belongs(offset, fields));
                (
                    own.map(|fields| (fields.run, fields.sequence)),
                    Some(damage),
                )
            }
            Finding::Foreign => match expected {
                Expected::Write(write) => (None, Some(Damage::Lost { write })),
                _ => (None, None),
            },
            Finding::Whole(fields) if self.belongs(offset, &fields) => {
                self.groups.in_place(&fields);
                let write = (fields.run, fields.sequence);
                (Some(write), self.stale(write, expected))
            }
            Finding::Whole(fields) => {
                let is_home = self.home.is_some_and(|home| home.run == fields.run);
                if !is_home && !matches!(expected, Expected::Write(_)) {
                    self.groups.displaced(&fields, offset);
                    return (None, None);
                }
                let is_other = |home: &Home| is_home && home.target != fields.target;
                let damage = Damage::Misplaced {
                    from: fields.offset,
                    target: self.home.filter(is_other).map(|_| fields.target),
                };
                (None, Some(damage))
            }
        }
    }

    /// Whether a unit may lie here; of runs without books that is so wherever its own offset is.
    fn belongs(&self, offset: u64, fields: &Fields) -> bool {
        let other_target = |home: Home| home.run == fields.run && home.target != fields.target;
        fields.offset == offset && !self.home.is_some_and(other_target)
    }

    fn stale(&self, found: Write, expected: Expected) -> Option<Damage> {
        let (Some(home), Expected::Write(write)) = (self.home, expected) else {
            return None;
        };
        (found < (home.run, write)).then_some(Damage::Stale {
            found: found.1,
            write,
        })
    }

    /// A write covers this place: it is torn if what lies here is older.
    fn blame(home: Option<Home>, judged: &mut Judged, write: Write) {
        let is_open = matches!(
            judged.damage,
            None | Some(Damage::Stale { .. } | Damage::Lost { .. })
        );
        if !is_open || judged.displaced || judged.write >= Some(write) {
            return;
        }
        let wanted = match judged.expected {
            Expected::Unknown => return,
            Expected::Anything => None,
            Expected::Write(wanted) | Expected::UpTo(wanted) => home.map(|home| (home.run, wanted)),
        };
        let acknowledged = matches!(judged.expected, Expected::Write(_));
        // By the books a later write should be here: then this one is not to blame.
        if acknowledged && wanted > Some(write) {
            return;
        }
        judged.damage = Some(Damage::Torn {
            write: write.1,
            in_flight: !acknowledged && wanted == Some(write),
        });
    }

    /// Judges places before this unit that its write covers, back to the unit of the same write that did so before.
    fn look_left(&mut self, write: Write, fields: &Fields) {
        let end = self.recent.len() - 1;
        let begin = end.saturating_sub((fields.index as usize).min(WINDOW));
        for judged in self.recent.range_mut(begin..end).rev() {
            if judged.write == Some(write) {
                return;
            }
            Self::blame(self.home, judged, write);
        }
    }

    fn look_right(&mut self, offset: u64, write: Write, fields: &Fields) {
        let left = u64::from(fields.units.saturating_sub(fields.index));
        let end = offset + left * UNIT_BYTES as u64;
        // What ends no later and is no newer says nothing more.
        self.reaches
            .retain(|reach| reach.end > end || reach.write > write);
        if left > 1 && self.reaches.len() < MOST_REACHES {
            self.reaches.push(Reach { end, write });
        }
    }

    /// The next unit does not follow the one before.
    pub fn skip(&mut self) {
        while !self.recent.is_empty() {
            self.settle_oldest();
        }
        self.reaches.clear();
    }

    fn settle_oldest(&mut self) {
        let Some(judged) = self.recent.pop_front() else {
            return;
        };
        let length = UNIT_BYTES as u64;
        match (judged.damage, judged.write) {
            (Some(damage), _) => self.log.add(judged.offset, damage),
            (None, Some((run, _))) => {
                self.sums.good_bytes += length;
                let is_home = self.home.is_some_and(|home| home.run == run);
                self.sums.home_bytes += if is_home { length } else { 0 };
            }
            (None, None) if judged.displaced => {}
            (None, None) => self.sums.foreign_bytes += length,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::pattern::Rng;

    const HOME: Home = Home { run: 9, target: 1 };

    /// The units of one write.
    fn write(sequence: u64, first: u64, units: u32) -> Vec<Finding> {
        let fields = |index| Fields {
            run: 9,
            target: 1,
            offset: (first + u64::from(index)) * 512,
            sequence,
            seed: 3,
            index,
            units,
        };
        (0..units)
            .map(|index| Finding::Whole(fields(index)))
            .collect()
    }

    fn judged(
        home: Option<Home>,
        units: &[Finding],
        expected: &[Expected],
    ) -> Vec<(u64, u64, Damage)> {
        let mut judge = Judge::new(home);
        for (place, unit) in units.iter().enumerate() {
            let expected = expected.get(place).copied().unwrap_or(Expected::Anything);
            judge.push(place as u64 * 512, unit, expected);
        }
        judge.skip();
        let ranges = judge.log.ranges().iter();
        ranges
            .map(|range| (range.offset / 512, range.length / 512, range.damage))
            .collect()
    }

    #[test]
    fn small_writes_over_large_ones_are_in_order() {
        let mut units = write(1, 0, 16);
        units.splice(4..6, write(2, 4, 2));
        units.splice(5..6, write(3, 5, 1));
        units.splice(12..16, write(4, 12, 4));
        assert_eq!(judged(None, &units, &[]), []);
    }

    #[test]
    fn a_write_that_did_not_reach_its_end_or_its_beginning_is_torn() {
        let torn = Damage::Torn {
            write: 5,
            in_flight: false,
        };
        let (old, new) = (write(4, 0, 8), write(5, 0, 8));
        let head_new = [&new[..3], &old[3..]].concat();
        assert_eq!(judged(None, &head_new, &[]), [(3, 5, torn)]);
        let tail_new = [&old[..3], &new[3..]].concat();
        assert_eq!(judged(None, &tail_new, &[]), [(0, 3, torn)]);
        let never_there = [&[Finding::Foreign; 3], &new[3..]].concat();
        assert_eq!(judged(None, &never_there, &[]), [(0, 3, torn)]);
        let middle = [&new[..3], &old[3..4], &new[4..]].concat();
        assert_eq!(judged(None, &middle, &[]), [(3, 1, torn)]);
    }

    #[test]
    fn by_the_books_an_old_write_is_stale_and_none_is_lost() {
        let mut expected = vec![Expected::Write(5); 8];
        let stale = Damage::Stale { found: 4, write: 5 };
        assert_eq!(
            judged(Some(HOME), &write(4, 0, 8), &expected),
            [(0, 8, stale)]
        );
        let lost = Damage::Lost { write: 5 };
        assert_eq!(
            judged(Some(HOME), &[Finding::Foreign; 8], &expected),
            [(0, 8, lost)]
        );
        assert_eq!(judged(Some(HOME), &write(5, 0, 8), &expected), []);
        expected.fill(Expected::UpTo(5));
        assert_eq!(judged(Some(HOME), &write(4, 0, 8), &expected), []);
        let torn = Damage::Torn {
            write: 5,
            in_flight: true,
        };
        let half = [&write(5, 0, 8)[..4], &write(4, 0, 8)[4..]].concat();
        assert_eq!(judged(Some(HOME), &half, &expected), [(4, 4, torn)]);
        expected.fill(Expected::Unknown);
        assert_eq!(judged(Some(HOME), &half, &expected), []);
    }

    #[test]
    fn swapped_blocks_are_misplaced_where_others_are_in_place() {
        let mut units = [
            write(1, 0, 8),
            write(2, 8, 8),
            write(3, 16, 8),
            write(4, 24, 8),
        ]
        .concat();
        let (head, tail) = units.split_at_mut(8);
        head.swap_with_slice(&mut tail[..8]);
        let mut judge = Judge::new(None);
        for (place, unit) in units.iter().enumerate() {
            judge.push(place as u64 * 512, unit, Expected::Anything);
        }
        judge.skip();
        let (misplaced, elsewhere) = judge.groups.resolve(None);
        let found: Vec<_> = misplaced
            .iter()
            .map(|range| (range.offset / 512, range.length / 512))
            .collect();
        assert_eq!((found, elsewhere), (vec![(0, 8), (8, 8)], 0));
    }

    #[test]
    fn a_file_of_another_load_on_its_disk_is_no_damage() {
        let mut judge = Judge::new(None);
        for (place, unit) in write(1, 0, 64).iter().enumerate() {
            judge.push(8192 + place as u64 * 512, unit, Expected::Anything);
        }
        judge.skip();
        assert_eq!(judge.groups.resolve(None), (Vec::new(), 64 * 512));
        assert_eq!(judge.groups.latest_run(), 0);
    }

    /// A target of 64 units with the writes it got, and what it held after each.
    struct History {
        now: Vec<Finding>,
        before: Vec<Finding>,
        books: Vec<u64>,
    }

    fn history(rng: &mut Rng) -> History {
        let mut now = vec![Finding::Foreign; 64];
        let mut before = now.clone();
        let mut books = vec![0; 64];
        for sequence in 1..=1 + rng.below(60) {
            let units = 1 << rng.below(5);
            let first = units * rng.below(64 / units);
            let written = write(sequence, first, u32::try_from(units).unwrap());
            let range = usize::try_from(first).unwrap()..usize::try_from(first + units).unwrap();
            before[range.clone()].copy_from_slice(&now[range.clone()]);
            now[range.clone()].copy_from_slice(&written);
            books[range].fill(sequence);
        }
        History { now, before, books }
    }

    fn by_the_books(books: &[u64]) -> Vec<Expected> {
        let expected = |write: &u64| match write {
            0 => Expected::Anything,
            write => Expected::Write(*write),
        };
        books.iter().map(expected).collect()
    }

    #[test]
    fn whatever_was_written_over_whatever_is_in_order() {
        let mut rng = Rng::new(1, 2, 3);
        for _ in 0..2000 {
            let History { now, books, .. } = history(&mut rng);
            assert_eq!(judged(None, &now, &[]), []);
            assert_eq!(judged(Some(HOME), &now, &by_the_books(&books)), []);
        }
    }

    #[test]
    fn any_unit_that_is_put_back_is_found_and_nothing_else() {
        let mut rng = Rng::new(4, 5, 6);
        for _ in 0..2000 {
            let History {
                mut now,
                before,
                books,
            } = history(&mut rng);
            let mut expected = Vec::new();
            for place in 0..64 {
                if rng.below(8) == 0 && books[place] > 0 {
                    now[place] = before[place];
                    expected.push(place as u64);
                }
            }
            let found: Vec<u64> = judged(Some(HOME), &now, &by_the_books(&books))
                .iter()
                .flat_map(|(first, units, _)| *first..first + units)
                .collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn without_books_only_what_was_put_back_is_called_torn() {
        let mut rng = Rng::new(7, 8, 9);
        let mut torn = 0;
        for _ in 0..2000 {
            let History {
                mut now, before, ..
            } = history(&mut rng);
            let place = usize::try_from(rng.below(64)).unwrap();
            now[place] = before[place];
            for (first, units, _) in judged(None, &now, &[]) {
                assert_eq!((first, units), (place as u64, 1));
                torn += 1;
            }
        }
        assert!(torn > 500, "{torn}");
    }
}
