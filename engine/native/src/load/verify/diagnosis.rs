//! What became of a unit that is not as it was written: where bits were flipped, or where it was torn.

use super::damage::Damage;
use super::unit::{self, CRC_AT, Content, Fields, UNIT_BYTES};

/// Most differing bits that count as flipped.
const FLIPPED_BITS: u32 = 16;
/// Least length of the tail of a torn unit: less is no part of a write. It ends in another checksum, which may share
/// some bytes.
const TORN_BYTES: usize = 16;
/// Magic, salt and fields.
const HEAD_BITS: u32 = 8 * 64;

type Unit = [u8; UNIT_BYTES];

/// Damage of a broken unit, and what its fields say where they can be read.
pub fn of_broken(unit: &Unit) -> (Damage, Option<Fields>) {
    if let Some(fields) = unit::fields(unit) {
        return (difference(unit, &fields), Some(fields));
    }
    match flipped_bit(unit) {
        Some(bit) => {
            let flipped = Damage::Flipped {
                bits: 1,
                first_bit: bit,
            };
            (flipped, unit::fields(&with_flipped(unit, bit)))
        }
        None => (garbled(0, UNIT_BYTES - 1), None),
    }
}

/// The one bit before the random bytes which, if flipped back, makes the unit whole.
fn flipped_bit(unit: &Unit) -> Option<u32> {
    (0..HEAD_BITS).find(|bit| matches!(unit::read(&with_flipped(unit, *bit)), Content::Whole(_)))
}

fn with_flipped(unit: &Unit, bit: u32) -> Unit {
    let mut other = *unit;
    other[bit as usize / 8] ^= 1 << (bit % 8);
    other
}

/// How a unit differs from the one that these fields say.
#[expect(clippy::cast_possible_truncation, reason = "inside a unit")]
fn difference(unit: &Unit, fields: &Fields) -> Damage {
    let mut written = [0; UNIT_BYTES];
    unit::write(&mut written, fields);
    let differs = |at: &usize| unit[*at] != written[*at];
    let first = (0..UNIT_BYTES).find(differs).unwrap_or(0);
    let last = (0..UNIT_BYTES).rfind(differs).unwrap_or(0);
    let bits = |at: usize| (unit[at] ^ written[at]).count_ones();
    let flipped: u32 = (first..=last).map(bits).sum();
    if flipped <= FLIPPED_BITS {
        return Damage::Flipped {
            bits: flipped,
            first_bit: first as u32 * 8 + (unit[first] ^ written[first]).trailing_zeros(),
        };
    }
    if last >= CRC_AT && UNIT_BYTES - first >= TORN_BYTES {
        return Damage::TornAt { byte: first as u32 };
    }
    garbled(first, last)
}

#[expect(clippy::cast_possible_truncation, reason = "inside a unit")]
fn garbled(first: usize, last: usize) -> Damage {
    Damage::Garbled {
        first: first as u32,
        last: last as u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::pattern::Rng;
    use crate::load::verify::unit::tests::{any_fields, written};

    #[test]
    fn one_flipped_bit_is_found_wherever_it_is() {
        let fields = any_fields(&mut Rng::new(1, 0, 0));
        let unit = written(&fields);
        for bit in (0..8 * 512).step_by(7) {
            let (damage, own) = of_broken(&with_flipped(&unit, bit));
            let flipped = Damage::Flipped {
                bits: 1,
                first_bit: bit,
            };
            assert_eq!((damage, own), (flipped, Some(fields)));
        }
    }

    #[test]
    fn several_flipped_bits_are_counted() {
        let mut unit = written(&any_fields(&mut Rng::new(2, 0, 0)));
        for bit in [900, 1000, 3000] {
            unit = with_flipped(&unit, bit);
        }
        let flipped = Damage::Flipped {
            bits: 3,
            first_bit: 900,
        };
        assert_eq!(of_broken(&unit).0, flipped);
    }

    #[test]
    fn a_tear_is_found_to_the_byte() {
        let mut rng = Rng::new(3, 0, 0);
        // Often enough for checksums whose last bytes are alike.
        for _ in 0..1000 {
            let old = any_fields(&mut rng);
            let new = Fields {
                sequence: old.sequence.wrapping_add(9),
                ..old
            };
            for byte in [64, 128, 256, 480] {
                let (mut head_new, mut head_old) = (written(&old), written(&old));
                head_new[..byte].copy_from_slice(&written(&new)[..byte]);
                head_old[byte..].copy_from_slice(&written(&new)[byte..]);
                for unit in [head_new, head_old] {
                    let (damage, _) = of_broken(&unit);
                    let Damage::TornAt { byte: found } = damage else {
                        panic!("{damage:?}");
                    };
                    assert!(
                        (byte..byte + 4).contains(&(found as usize)),
                        "{found} {byte}"
                    );
                }
            }
        }
    }

    #[test]
    fn bytes_that_nobody_wrote_are_garbled() {
        let mut unit = written(&any_fields(&mut Rng::new(5, 0, 0)));
        unit[100..200].fill(0);
        let Damage::Garbled { first, last } = of_broken(&unit).0 else {
            panic!();
        };
        assert!((100..104).contains(&first) && (196..200).contains(&last));
    }
}
