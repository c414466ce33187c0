//! How each column of a table is encoded.

use super::bytes::{Checked, Reader};

/// How the column of the changed rows is encoded; two bits each.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Guess {
    /// Every value stayed.
    Same = 0,
    /// Differences follow.
    Level = 1,
    /// Differences from the previous difference follow: rates are steadier than counters.
    Trend = 2,
    /// Every value moved exactly as it did before.
    Onward = 3,
}

impl Guess {
    pub fn from_bits(bits: u8) -> Self {
        match bits & 3 {
            0 => Self::Same,
            1 => Self::Level,
            2 => Self::Trend,
            _ => Self::Onward,
        }
    }

    /// Whether numbers follow for it.
    pub fn coded(self) -> bool {
        matches!(self, Self::Level | Self::Trend)
    }
}

pub fn write_guesses(out: &mut Vec<u8>, guesses: impl Iterator<Item = Guess>) {
    let guesses: Vec<u8> = guesses.map(|guess| guess as u8).collect();
    let byte = |four: &[u8]| four.iter().rev().fold(0, |byte, guess| byte << 2 | guess);
    out.extend(guesses.chunks(4).map(byte));
}

pub fn read_guesses(reader: &mut Reader<'_>, columns: usize) -> Checked<Vec<Guess>> {
    let bytes = reader.take(columns.div_ceil(4))?;
    let all = bytes
        .iter()
        .flat_map(|byte| (0..4).map(move |index| Guess::from_bits(byte >> (2 * index))));
    Ok(all.take(columns).collect())
}
