//! Lists of 64-bit numbers as bit lengths (which compress) and the bits below the leading one (which do not).

use super::bytes::{Checked, Damage, Reader, write_section};

/// Folds small negative differences onto small numbers: 0, -1, 1, -2, ...
pub fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference >> 63).wrapping_neg()
}

pub fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

pub fn bit_length(value: u64) -> u32 {
    u64::BITS - value.leading_zeros()
}

/// Appends `values`; the reader must know how many there are.
pub fn pack(out: &mut Vec<u8>, values: &[u64]) {
    let lengths: Vec<u8> = values
        .iter()
        .map(|&value| bit_length(value).to_le_bytes()[0])
        .collect();
    let mut bits = BitWriter::with_capacity(values.len() * 2);
    for &value in values {
        let below = bit_length(value).saturating_sub(1);
        bits.write(value & !(u64::MAX << below.min(63)), below);
    }
    write_section(out, &lengths);
    write_section(out, &bits.finish());
}

/// Undoes [`pack`].
pub fn unpack(reader: &mut Reader<'_>, count: usize) -> Checked<Vec<u64>> {
    let lengths = reader.section(count)?;
    if lengths.iter().any(|&length| length > 64) {
        return Err(Damage("number longer than 64 bits"));
    }
    let total: usize = lengths
        .iter()
        .map(|&length| usize::from(length.saturating_sub(1)))
        .sum();
    let bytes = reader.section(total.div_ceil(8))?;
    let mut bits = BitReader::new(&bytes);
    Ok(lengths
        .iter()
        .map(|&length| bits.number(u32::from(length)))
        .collect())
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
fn low_word(pending: u128) -> u64 {
    pending as u64
}

struct BitWriter {
    bytes: Vec<u8>,
    pending: u128,
    filled: u32,
}

impl BitWriter {
    fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            pending: 0,
            filled: 0,
        }
    }

    /// Appends the low `count` (at most 63) bits of `value`, which has no others.
    fn write(&mut self, value: u64, count: u32) {
        self.pending |= u128::from(value) << self.filled;
        self.filled += count;
        if self.filled >= 64 {
            self.bytes
                .extend_from_slice(&low_word(self.pending).to_le_bytes());
            self.pending >>= 64;
            self.filled -= 64;
        }
    }

    fn finish(mut self) -> Vec<u8> {
        let tail = low_word(self.pending).to_le_bytes();
        self.bytes
            .extend_from_slice(&tail[..self.filled.div_ceil(8) as usize]);
        self.bytes
    }
}

struct BitReader<'a> {
    bytes: &'a [u8],
    pending: u128,
    filled: u32,
}

impl<'a> BitReader<'a> {
    fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            pending: 0,
            filled: 0,
        }
    }

    /// The number with this bit length whose lower bits come next.
    fn number(&mut self, length: u32) -> u64 {
        let Some(below) = length.checked_sub(1) else {
            return 0;
        };
        if self.filled < below {
            self.refill();
        }
        let low = low_word(self.pending) & !(u64::MAX << below);
        self.pending >>= below;
        self.filled -= below;
        low | 1 << below
    }

    fn refill(&mut self) {
        let mut word = [0; 8];
        let take = self.bytes.len().min(8);
        word[..take].copy_from_slice(&self.bytes[..take]);
        self.bytes = &self.bytes[take..];
        self.pending |= u128::from(u64::from_le_bytes(word)) << self.filled;
        self.filled += 64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[u64]) {
        let mut out = Vec::new();
        pack(&mut out, values);
        let mut reader = Reader::new(&out);
        assert_eq!(unpack(&mut reader, values.len()), Ok(values.to_vec()));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn numbers_come_back() {
        round_trip(&[]);
        round_trip(&[0, 0, 0]);
        round_trip(&[u64::MAX; 100]);
        round_trip(
            &(0..64)
                .flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX >> bit])
                .collect::<Vec<_>>(),
        );
        let scrambled: Vec<u64> = (0..5000_u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64))
            .collect();
        round_trip(&scrambled);
    }

    #[test]
    fn zigzag_is_its_own_mirror() {
        for difference in [0, 1, u64::MAX, 1 << 63, 12345, 5_u64.wrapping_neg()] {
            assert_eq!(unzigzag(zigzag(difference)), difference);
        }
        assert_eq!(zigzag(u64::MAX), 1);
    }
}
