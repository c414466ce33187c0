//! Data to write: incompressible, and no two blocks alike.

use crate::load::pattern::mix;

/// Every 512 bytes of a write carry where and as what they were written.
const STAMP_EVERY: usize = 512;
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;

/// Fills with the pseudo-random bytes of this offset: the same for the same seed and offset.
pub fn fill(bytes: &mut [u8], seed: u64, offset: u64) {
    let seed = mix(seed);
    let (mut word, skip) = (offset / 8, usize::from(offset.to_le_bytes()[0] & 7));
    let mut next = || {
        let value = mix(word.wrapping_mul(GOLDEN) ^ seed).to_le_bytes();
        word += 1;
        value
    };
    let head = (8 - skip).min(bytes.len());
    let (first, rest) = bytes.split_at_mut(if skip == 0 { 0 } else { head });
    if skip > 0 {
        first.copy_from_slice(&next()[skip..skip + head]);
    }
    for chunk in rest.chunks_mut(8) {
        chunk.copy_from_slice(&next()[..chunk.len()]);
    }
}

/// Marks every 512 bytes with their offset on the target and a number that is never used again in this run.
pub fn stamp(bytes: &mut [u8], offset: u64, sequence: u64) {
    for (sector, chunk) in bytes
        .chunks_mut(STAMP_EVERY)
        .zip((offset..).step_by(STAMP_EVERY))
    {
        let marks = chunk
            .to_le_bytes()
            .into_iter()
            .chain(sequence.to_le_bytes());
        sector
            .iter_mut()
            .zip(marks)
            .for_each(|(byte, mark)| *byte = mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_piece_is_the_same_as_that_part_of_the_whole() {
        let mut whole = [0; 100];
        fill(&mut whole, 9, 1000);
        for begin in 0..20 {
            for end in begin..100 {
                let mut piece = vec![0; end - begin];
                fill(&mut piece, 9, 1000 + begin as u64);
                assert_eq!(piece, whole[begin..end], "{begin}..{end}");
            }
        }
    }

    #[test]
    fn bytes_are_uniform_and_depend_on_the_seed() {
        let (mut one, mut other) = (vec![0; 1 << 16], vec![0; 1 << 16]);
        fill(&mut one, 1, 0);
        fill(&mut other, 2, 0);
        assert!(
            one.iter()
                .zip(&other)
                .filter(|(left, right)| left == right)
                .count()
                < 400
        );
        let mut hits = [0_u32; 256];
        for byte in &one {
            hits[usize::from(*byte)] += 1;
        }
        // 255 degrees of freedom: chi square above 360 has a probability below 1e-4.
        let chi_square: f64 = hits
            .iter()
            .map(|hit| (f64::from(*hit) - 256.0).powi(2) / 256.0)
            .sum();
        assert!(chi_square < 360.0, "{chi_square}");
    }

    #[test]
    fn every_sector_carries_its_place_and_number() {
        let mut block = [0xAA; 1500];
        stamp(&mut block, 8192, 77);
        let word = |at: usize| u64::from_le_bytes(block[at..at + 8].try_into().unwrap());
        assert_eq!([word(0), word(8)], [8192, 77]);
        assert_eq!([word(1024), word(1032)], [9216, 77]);
        assert_eq!(block[16], 0xAA);
    }
}
