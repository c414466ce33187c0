//! Units by offset on the target, judged by the write map and by their neighbours.
//!
//! Without a write map, a write still says how far it reached: between its first and its last unit nothing may be
//! older than it.

use std::collections::VecDeque;

use super::damage::{Damage, DamageLog};
use super::finding::Finding;
use super::groups::Groups;
use super::home::Home;
use super::ledger::Expected;
use super::unit::{Fields, UNIT_BYTES};

/// The largest write (`engine.job.spec.MAX_BLOCK_BYTES`), in units: no unit says anything of offsets farther away.
const WINDOW: usize = (64 << 20) / UNIT_BYTES;

/// Writes over writes over writes: more than any load makes, and bounded, as data on a target may be crafted.
const MOST_REACHES: usize = 256;

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

/// A write that reaches beyond the unit that names it.
struct Reach {
    end: u64,
    write: Write,
}

/// Bytes by what they turned out to be.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[expect(clippy::struct_field_names, reason = "the unit belongs to the name")]
pub struct Sums {
    /// Bytes that a verified load wrote, and that are as they should be.
    pub good_bytes: u64,
    /// Part of the good bytes that the run of the write map wrote.
    pub home_bytes: u64,
    /// Bytes that no verified load wrote, as far as can be known.
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

    /// Takes the unit at the next offset.
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

    /// What a unit is by itself and by the write map.
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

    /// Whether a unit belongs here; for runs without a write map, wherever its own offset says so.
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

    /// A write covers this offset: it is torn if the data here is older.
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
        // The write map expects a later write here: then this one is not to blame.
        if acknowledged && wanted > Some(write) {
            return;
        }
        judged.damage = Some(Damage::Torn {
            write: write.1,
            in_flight: !acknowledged && wanted == Some(write),
        });
    }

    /// Judges offsets before this unit that its write covers, back to the unit of the same write that did so before.
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
mod tests;
