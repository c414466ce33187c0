//! Units by the run and target of their write: distinguishes a swapped block from a file that moved on its disk.
//!
//! A verified load on a file leaves its units all over the disk below, at offsets other than they say. So units of a run
//! are misplaced only where others of it are at their own offset.

use std::collections::BTreeMap;

use super::damage::{Damage, DamageLog, DamagedRange};
use super::home::Home;
use super::unit::{Fields, UNIT_BYTES};

/// Most groups, and ranges listed of each: crafted data on a target must not exhaust memory.
const MOST_GROUPS: usize = 1024;
const MOST_RANGES: usize = 1000;

struct Group {
    in_place_bytes: u64,
    /// Damage at the places where those are.
    in_place: DamageLog,
    displaced: DamageLog,
}

impl Default for Group {
    fn default() -> Self {
        Self {
            in_place_bytes: 0,
            in_place: DamageLog::keeping(MOST_RANGES),
            displaced: DamageLog::keeping(MOST_RANGES),
        }
    }
}

#[derive(Default)]
pub struct Groups(BTreeMap<(u64, u32), Group>);

impl Groups {
    pub fn in_place(&mut self, fields: &Fields) {
        if let Some(group) = self.group(fields) {
            group.in_place_bytes += UNIT_BYTES as u64;
            group.in_place.add(fields.offset, misplaced(fields));
        }
    }

    pub fn displaced(&mut self, fields: &Fields, offset: u64) {
        if let Some(group) = self.group(fields) {
            group.displaced.add(offset, misplaced(fields));
        }
    }

    /// The group of a unit; none if there are too many.
    fn group(&mut self, fields: &Fields) -> Option<&mut Group> {
        let key = (fields.run, fields.target);
        let has_room = self.0.len() < MOST_GROUPS;
        if has_room {
            Some(self.0.entry(key).or_default())
        } else {
            self.0.get_mut(&key)
        }
    }

    /// What is misplaced after all, and how many bytes are of loads on something else. `home` is known to be here.
    pub fn resolve(&self, home: Option<Home>) -> (Vec<DamagedRange>, u64) {
        let (mut misplaced, mut elsewhere_bytes) = (Vec::new(), 0);
        for ((run, target), group) in &self.0 {
            let here = match home {
                Some(home) if home.run == *run => home.target,
                _ => self.target_of(*run),
            };
            if self
                .0
                .get(&(*run, here))
                .is_none_or(|best| best.in_place_bytes < best.displaced.bytes())
            {
                elsewhere_bytes += group.in_place_bytes + group.displaced.bytes();
                continue;
            }
            let of = (*target != here).then_some(*target);
            misplaced.extend(
                group
                    .displaced
                    .ranges()
                    .iter()
                    .map(|range| named(range, of)),
            );
            if of.is_some() {
                misplaced.extend(group.in_place.ranges().iter().map(|range| named(range, of)));
            }
        }
        (misplaced, elsewhere_bytes)
    }

    /// The target of a run that this most likely is.
    fn target_of(&self, run: u64) -> u32 {
        let groups = self.0.range((run, 0)..=(run, u32::MAX));
        let most = groups.max_by_key(|(_, group)| group.in_place_bytes);
        most.map_or(0, |((_, target), _)| *target)
    }

    /// The latest run with a unit at its own offset; 0 if there is none.
    pub fn latest_run(&self) -> u64 {
        let in_place = self.0.iter().filter(|(_, group)| group.in_place_bytes > 0);
        in_place.map(|((run, _), _)| *run).max().unwrap_or(0)
    }
}

fn misplaced(fields: &Fields) -> Damage {
    Damage::Misplaced {
        from: fields.offset,
        target: None,
    }
}

/// A misplaced range with the target it belongs to, if that is another one.
fn named(range: &DamagedRange, target: Option<u32>) -> DamagedRange {
    let Damage::Misplaced { from, .. } = range.damage else {
        return *range;
    };
    DamagedRange {
        damage: Damage::Misplaced { from, target },
        ..*range
    }
}
