//! Numbers of unknown size as Exp-Golomb codes: short ones for small numbers, with a parameter fitted to each list.
//!
//! A number n with parameter k is the bit length of (n >> k) + 1 in unary, that number without its leading one, and
//! the k low bits of n.

use super::bytes::{Checked, Damage};

/// Folds small negative differences onto small numbers: 0, -1, 1, -2, ...
pub fn zigzag(difference: u64) -> u64 {
    (difference << 1) ^ (difference >> 63).wrapping_neg()
}

pub fn unzigzag(value: u64) -> u64 {
    (value >> 1) ^ (value & 1).wrapping_neg()
}

/// How many numbers of each bit length a list has, from which the best parameter follows.
#[derive(Clone)]
pub struct Lengths([u32; 65]);

impl Lengths {
    pub fn new() -> Self {
        Self([0; 65])
    }

    pub fn of(values: &[u64]) -> Self {
        let mut lengths = Self::new();
        for &value in values {
            lengths.add(value);
        }
        lengths
    }

    pub fn add(&mut self, value: u64) {
        self.0[(u64::BITS - value.leading_zeros()) as usize] += 1;
    }

    pub fn all_zero(&self) -> bool {
        self.0[1..].iter().all(|&count| count == 0)
    }

    /// The parameter with the shortest code, and about how many half bits that takes.
    pub fn best(&self) -> (u32, u64) {
        let counted = || (0_u32..).zip(self.0).filter(|&(_, count)| count > 0);
        let (sum, numbers) = counted().fold((0, 0), |(sum, numbers), (length, count)| {
            (
                sum + u64::from(length) * u64::from(count),
                numbers + u64::from(count),
            )
        });
        // Whatever the spread, the best parameter lies just below the usual length.
        let usual = u32::try_from(sum.div_ceil(numbers.max(1)))
            .unwrap_or(0)
            .min(63);
        let costs = (usual.saturating_sub(6)..=usual).map(|k| (k, self.half_bits(k)));
        costs.min_by_key(|&(_, cost)| cost).unwrap_or((0, 0))
    }

    fn half_bits(&self, k: u32) -> u64 {
        let code = |length: u32| match length.saturating_sub(k) {
            0 => 2 * (k + 1),
            1 => 2 * (k + 3),
            2 => 2 * (k + 4),
            above => 2 * (k + 2 * above) - 1,
        };
        let counted = (0..).zip(self.0).filter(|&(_, count)| count > 0);
        counted
            .map(|(length, count)| u64::from(code(length)) * u64::from(count))
            .sum()
    }
}

pub struct BitWriter {
    bytes: Vec<u8>,
    pending: u128,
    filled: u32,
}

impl BitWriter {
    pub fn with_capacity(bytes: usize) -> Self {
        Self {
            bytes: Vec::with_capacity(bytes),
            pending: 0,
            filled: 0,
        }
    }

    /// Fits the parameter to a list and appends both; the reader must know how many numbers there are.
    pub fn list(&mut self, values: &[u64], k: u32) {
        self.bits(u64::from(k), 6);
        for &value in values {
            self.number(value, k);
        }
    }

    pub fn finish(mut self) -> Vec<u8> {
        let tail = low_word(self.pending).to_le_bytes();
        self.bytes
            .extend_from_slice(&tail[..self.filled.div_ceil(8) as usize]);
        self.bytes
    }

    fn number(&mut self, value: u64, k: u32) {
        let high = u128::from(value >> k) + 1;
        let below = high.ilog2();
        self.bits(0, below);
        self.bits(1, 1);
        self.bits(low_word(high ^ 1 << below), below);
        self.bits(value & !(u64::MAX << k), k);
    }

    /// Appends the low `count` (at most 64) bits of `value`, which has no others.
    fn bits(&mut self, value: u64, count: u32) {
        self.pending |= u128::from(value) << self.filled;
        self.filled += count;
        if self.filled >= 64 {
            self.bytes
                .extend_from_slice(&low_word(self.pending).to_le_bytes());
            self.pending >>= 64;
            self.filled -= 64;
        }
    }
}

/// Reads what [`BitWriter`] wrote, or something hostile.
pub struct BitReader<'a> {
    bytes: &'a [u8],
    pending: u128,
    filled: u32,
}

impl<'a> BitReader<'a> {
    /// Bytes that `count` numbers and their parameters cannot exceed.
    pub fn most_bytes(count: usize) -> usize {
        count.saturating_mul(18).saturating_add(16)
    }

    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            pending: 0,
            filled: 0,
        }
    }

    /// Undoes [`BitWriter::list`].
    pub fn list(&mut self, count: usize) -> Checked<Vec<u64>> {
        let k = u32::from(self.bits(6)?.to_le_bytes()[0]);
        (0..count).map(|_| self.number(k)).collect()
    }

    /// Fails unless everything was read but the zeros that fill the last byte.
    pub fn finish(self) -> Checked<()> {
        let rest = self.filled / 8 == 0 && self.pending == 0 && self.bytes.is_empty();
        if rest {
            Ok(())
        } else {
            Err(Damage("bits left over"))
        }
    }

    fn number(&mut self, k: u32) -> Checked<u64> {
        let below = self.zeros()?;
        let high = (u128::from(self.bits(below)?) | 1 << below) - 1;
        let low = self.bits(k)?;
        match u64::try_from(high << k) {
            Ok(high) => Ok(high | low),
            Err(_) => Err(Damage("number longer than 64 bits")),
        }
    }

    /// Zeros up to the next one, which goes too.
    fn zeros(&mut self) -> Checked<u32> {
        self.refill();
        let zeros = self.pending.trailing_zeros();
        if zeros > 64 || zeros >= self.filled {
            return Err(Damage("ends too early"));
        }
        self.pending >>= zeros + 1;
        self.filled -= zeros + 1;
        Ok(zeros)
    }

    fn bits(&mut self, count: u32) -> Checked<u64> {
        if self.filled < count {
            self.refill();
        }
        if self.filled < count {
            return Err(Damage("ends too early"));
        }
        let value = low_word(self.pending & !(u128::MAX << count));
        self.pending >>= count;
        self.filled -= count;
        Ok(value)
    }

    /// Fills the window to at least 65 bits, if as many are left.
    fn refill(&mut self) {
        if let (true, Some((word, rest))) = (self.filled <= 64, self.bytes.split_first_chunk()) {
            self.pending |= u128::from(u64::from_le_bytes(*word)) << self.filled;
            self.filled += 64;
            self.bytes = rest;
        }
        while let (true, Some((&byte, rest))) = (self.filled <= 64, self.bytes.split_first()) {
            self.pending |= u128::from(byte) << self.filled;
            self.filled += 8;
            self.bytes = rest;
        }
    }
}

#[expect(
    clippy::cast_possible_truncation,
    reason = "the low half is what is asked for"
)]
fn low_word(pending: u128) -> u64 {
    pending as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round_trip(values: &[u64], k: u32) {
        let mut writer = BitWriter::with_capacity(0);
        writer.list(values, k);
        let bytes = writer.finish();
        assert!(bytes.len() <= BitReader::most_bytes(values.len()));
        let mut reader = BitReader::new(&bytes);
        assert_eq!(reader.list(values.len()), Ok(values.to_vec()));
        assert_eq!(reader.finish(), Ok(()));
    }

    #[test]
    fn numbers_come_back_with_every_parameter() {
        let edges: Vec<u64> = (0..64)
            .flat_map(|bit| [1 << bit, (1 << bit) - 1, u64::MAX >> bit])
            .collect();
        let scrambled: Vec<u64> = (0..5000_u64)
            .map(|i| i.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> (i % 64))
            .collect();
        for k in 0..64 {
            round_trip(&[], k);
            round_trip(&[0, 0, 0], k);
            round_trip(&[u64::MAX; 100], k);
            round_trip(&edges, k);
            round_trip(&scrambled, k);
        }
    }

    #[test]
    fn the_parameter_fits_the_list() {
        assert_eq!(Lengths::of(&[0; 50]).best().0, 0);
        assert_eq!(Lengths::of(&[1000; 50]).best().0, 10);
        assert!(Lengths::of(&[0; 9]).all_zero() && !Lengths::of(&[0, 1]).all_zero());
    }

    #[test]
    fn zigzag_is_its_own_mirror() {
        for difference in [0, 1, u64::MAX, 1 << 63, 12345, 5_u64.wrapping_neg()] {
            assert_eq!(unzigzag(zigzag(difference)), difference);
        }
        assert_eq!(zigzag(u64::MAX), 1);
    }

    #[test]
    fn hostile_bits_are_damage() {
        assert!(BitReader::new(&[0; 40]).list(1).is_err());
        assert!(BitReader::new(&[]).list(0).is_err());
        assert!(BitReader::new(&[0xff, 0xff, 0xff]).list(100).is_err());
        let mut reader = BitReader::new(&[0b0100_0000, 1]);
        assert_eq!(reader.list(1), Ok(vec![0]));
        assert!(reader.finish().is_err());
    }
}
