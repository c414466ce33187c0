//! What a unit on the target is, by itself.

use super::damage::Damage;
use super::diagnosis;
use super::unit::{self, Content, Fields, UNIT_BYTES};

/// What was found at one offset.
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
