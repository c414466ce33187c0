//! What was found damaged, as ranges of a target.

use super::unit::UNIT_BYTES;

/// How many ranges are listed; beyond it they are only counted.
pub const MOST_RANGES: usize = 10_000;

/// What is wrong with a range; numbers are those of writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Damage {
    /// This many bits differ from what was written; the first is this one of the unit.
    Flipped { bits: u32, first_bit: u32 },
    /// Bytes from the first to the last of the unit are not what was written.
    Garbled { first: u32, last: u32 },
    /// One write reaches up to this byte of the unit, and another follows.
    TornAt { byte: u32 },
    /// A part that the write did not reach, though others it did.
    Torn { write: u64, in_flight: bool },
    /// An old write, where a later one was acknowledged.
    Stale { found: u64, write: u64 },
    /// No data of the load, where a write was acknowledged.
    Lost { write: u64 },
    /// What belongs to another offset, of this target or of another one of its run.
    Misplaced { from: u64, target: Option<u32> },
    /// The target refuses to read it; errno.
    Unreadable { errno: i32 },
}

impl Damage {
    pub fn name(&self) -> &'static str {
        match self {
            Self::Flipped { .. } => "flipped",
            Self::Garbled { .. } => "garbled",
            Self::TornAt { .. } | Self::Torn { .. } => "torn",
            Self::Stale { .. } => "stale",
            Self::Lost { .. } => "lost",
            Self::Misplaced { .. } => "misplaced",
            Self::Unreadable { .. } => "unreadable",
        }
    }

    /// Whether damage of the next unit, at that distance from the first, continues this range.
    fn goes_on(&self, next: &Self, distance: u64) -> bool {
        match (self, next) {
            (
                Self::Misplaced { from, target },
                Self::Misplaced {
                    from: next_from,
                    target: next_target,
                },
            ) => target == next_target && *next_from == from.wrapping_add(distance),
            (
                Self::Torn { .. }
                | Self::Stale { .. }
                | Self::Lost { .. }
                | Self::Unreadable { .. },
                _,
            ) => self == next,
            _ => false,
        }
    }
}

/// A damaged range of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DamagedRange {
    pub offset: u64,
    pub length: u64,
    pub damage: Damage,
}

/// Ranges in the order they came, neighbours of one cause together.
#[derive(Debug)]
pub struct DamageLog {
    ranges: Vec<DamagedRange>,
    most_ranges: usize,
    bytes: u64,
}

impl Default for DamageLog {
    fn default() -> Self {
        Self::keeping(MOST_RANGES)
    }
}

impl DamageLog {
    /// Makes a list of ranges up to a number.
    pub fn keeping(most_ranges: usize) -> Self {
        Self {
            ranges: Vec::new(),
            most_ranges,
            bytes: 0,
        }
    }

    /// Adds one unit.
    pub fn add(&mut self, offset: u64, damage: Damage) {
        self.add_range(DamagedRange {
            offset,
            length: UNIT_BYTES as u64,
            damage,
        });
    }

    pub fn add_range(&mut self, added: DamagedRange) {
        self.bytes += added.length;
        if let Some(last) = self.ranges.last_mut() {
            let follows = added.offset == last.offset + last.length;
            if follows && last.damage.goes_on(&added.damage, last.length) {
                last.length += added.length;
                return;
            }
        }
        if self.ranges.len() < self.most_ranges {
            self.ranges.push(added);
        }
    }

    /// Bytes of all ranges, listed or not.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }

    pub fn ranges(&self) -> &[DamagedRange] {
        &self.ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn neighbours_of_one_cause_are_one_range() {
        let mut log = DamageLog::default();
        let stale = Damage::Stale { found: 1, write: 2 };
        let misplaced = |from| Damage::Misplaced { from, target: None };
        let flipped = Damage::Flipped {
            bits: 1,
            first_bit: 3,
        };
        for (offset, damage) in [
            (0, stale),
            (512, stale),
            (2048, stale),
            (2560, misplaced(0)),
            (3072, misplaced(512)),
            (3584, misplaced(0)),
            (4096, flipped),
            (4608, flipped),
        ] {
            log.add(offset, damage);
        }
        let found: Vec<_> = log
            .ranges()
            .iter()
            .map(|range| (range.offset, range.length, range.damage.name()))
            .collect();
        assert_eq!(
            found,
            [
                (0, 1024, "stale"),
                (2048, 512, "stale"),
                (2560, 1024, "misplaced"),
                (3584, 512, "misplaced"),
                (4096, 512, "flipped"),
                (4608, 512, "flipped")
            ]
        );
        assert_eq!(log.bytes(), 8 * 512);
    }

    #[test]
    fn what_is_not_kept_is_counted() {
        let mut log = DamageLog::default();
        let flipped = Damage::Flipped {
            bits: 1,
            first_bit: 0,
        };
        for unit in 0..MOST_RANGES as u64 + 5 {
            log.add(unit * 512, flipped);
        }
        assert_eq!(log.ranges().len(), MOST_RANGES);
        assert_eq!(log.bytes(), (MOST_RANGES as u64 + 5) * 512);
    }
}
