//! Format of a verified write on the target: units of 512 bytes, each with its own offset and the write it is of.
//!
//! Numbers are little-endian.
//!
//! | bytes | |
//! |---|---|
//! | 0..8 | `MAGIC` |
//! | 8..16 | salt: a hash of the fields |
//! | 16..64 | the fields, masked with words derived from the salt, so that they do not compress |
//! | 64..508 | random bytes derived from the salt |
//! | 508..512 | CRC-32C of all before |
//!
//! So the fields determine every byte of a unit, and a unit alone shows whether it is whole and its own offset.

use crate::load::pattern::mix;

/// The least that any disk writes as a whole.
pub const UNIT_BYTES: usize = 512;
pub const MAGIC: u64 = u64::from_le_bytes(*b"LUNSCOP1");
const GOLDEN: u64 = 0x9E37_79B9_7F4A_7C15;
pub const CRC_AT: usize = UNIT_BYTES - 4;
/// Words of fields after magic and salt.
const FIELDS: usize = 6;
const WORDS: usize = UNIT_BYTES / 8;
/// Flipped bits up to which eight bytes still are the magic; random ones are so once in 10^13 units.
const MAGIC_BITS: u32 = 4;

/// The fields of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fields {
    /// Start of the run in nanoseconds since 1970, so that later runs have greater numbers.
    pub run: u64,
    /// Number of the target in its run.
    pub target: u32,
    /// Offset on the target at which the unit belongs, in bytes.
    pub offset: u64,
    /// Number of the write in its run: the later of two writes to one offset has the greater.
    pub sequence: u64,
    pub seed: u64,
    /// Number of this unit in its write, and how many there are.
    pub index: u32,
    pub units: u32,
}

impl Fields {
    fn words(&self) -> [u64; FIELDS] {
        let place_in_write = u64::from(self.index) << 32 | u64::from(self.units);
        let target = u64::from(self.target);
        let Self {
            run,
            offset,
            sequence,
            seed,
            ..
        } = *self;
        [offset, sequence, run, seed, place_in_write, target]
    }

    /// None if the words are none of fields.
    #[expect(clippy::cast_possible_truncation, reason = "both halves are 32 bits")]
    fn of(words: [u64; FIELDS]) -> Option<Self> {
        let [offset, sequence, run, seed, place_in_write, target] = words;
        Some(Self {
            run,
            target: u32::try_from(target).ok()?,
            offset,
            sequence,
            seed,
            index: (place_in_write >> 32) as u32,
            units: place_in_write as u32,
        })
    }

    fn salt(&self) -> u64 {
        self.words()
            .iter()
            .fold(MAGIC, |hash, word| mix(hash.wrapping_add(GOLDEN) ^ word))
    }
}

/// The n-th word derived from a salt.
#[inline]
fn given(salt: u64, number: usize) -> u64 {
    mix(salt.wrapping_add(GOLDEN.wrapping_mul(number as u64)))
}

/// Writes the unit that these fields say.
pub fn write(unit: &mut [u8; UNIT_BYTES], fields: &Fields) {
    let salt = fields.salt();
    let masked = (2..)
        .zip(fields.words())
        .map(|(number, field)| field ^ given(salt, number));
    let random = (2 + FIELDS..WORDS).map(|number| given(salt, number));
    let words = [MAGIC, salt].into_iter().chain(masked).chain(random);
    for (bytes, word) in unit.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    let crc = crc32c::crc32c(&unit[..CRC_AT]);
    unit[CRC_AT..].copy_from_slice(&crc.to_le_bytes());
}

/// The units of a run of bytes.
pub fn units(bytes: &[u8]) -> impl Iterator<Item = &[u8; UNIT_BYTES]> {
    bytes
        .chunks_exact(UNIT_BYTES)
        .filter_map(|unit| unit.try_into().ok())
}

/// Content of a unit, judged alone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Content {
    /// Nothing that a verified load wrote.
    Foreign,
    Whole(Fields),
    /// Its magic says that lunscope wrote it, its checksum that it is not as it was written.
    Broken,
}

pub fn read(unit: &[u8; UNIT_BYTES]) -> Content {
    let distance = (word(unit, 0) ^ MAGIC).count_ones();
    if distance > MAGIC_BITS {
        return Content::Foreign;
    }
    let crc = u32::from_le_bytes([unit[508], unit[509], unit[510], unit[511]]);
    if distance > 0 || crc32c::crc32c(&unit[..CRC_AT]) != crc {
        return Content::Broken;
    }
    fields(unit).map_or(Content::Broken, Content::Whole)
}

/// The fields, if salt and fields are as they were written, whatever became of the rest.
pub fn fields(unit: &[u8; UNIT_BYTES]) -> Option<Fields> {
    let salt = word(unit, 1);
    let mut words = [0; FIELDS];
    for (number, field) in (2..).zip(&mut words) {
        *field = word(unit, number) ^ given(salt, number);
    }
    Fields::of(words).filter(|fields| fields.salt() == salt)
}

fn word(unit: &[u8; UNIT_BYTES], number: usize) -> u64 {
    u64::from_le_bytes(std::array::from_fn(|byte| unit[number * 8 + byte]))
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::load::data::content;
    use crate::load::pattern::Rng;

    pub fn any_fields(rng: &mut Rng) -> Fields {
        Fields {
            run: rng.next() >> rng.below(64),
            target: u32::try_from(rng.below(1000)).unwrap(),
            offset: 512 * rng.below(1 << 40),
            sequence: rng.next() >> rng.below(64),
            seed: rng.next() >> rng.below(64),
            index: u32::try_from(rng.below(128)).unwrap(),
            units: u32::try_from(128 + rng.below(128)).unwrap(),
        }
    }

    pub fn written(fields: &Fields) -> [u8; UNIT_BYTES] {
        let mut unit = [0; UNIT_BYTES];
        write(&mut unit, fields);
        unit
    }

    #[test]
    fn what_was_written_is_read_back() {
        let mut rng = Rng::new(1, 0, 0);
        for _ in 0..2000 {
            let fields = any_fields(&mut rng);
            assert_eq!(read(&written(&fields)), Content::Whole(fields));
        }
    }

    #[test]
    fn no_flipped_bit_and_no_changed_byte_goes_unseen() {
        let mut rng = Rng::new(2, 0, 0);
        let unit = written(&any_fields(&mut rng));
        for bit in 0..UNIT_BYTES * 8 {
            let mut flipped = unit;
            flipped[bit / 8] ^= 1 << (bit % 8);
            assert_eq!(read(&flipped), Content::Broken, "bit {bit}");
        }
        for byte in 8..UNIT_BYTES {
            let mut changed = unit;
            changed[byte] ^= u8::try_from(1 + rng.below(255)).unwrap();
            assert_eq!(read(&changed), Content::Broken, "byte {byte}");
        }
    }

    #[test]
    fn fields_survive_damage_behind_them_and_none_are_made_up() {
        let mut rng = Rng::new(3, 0, 0);
        let (one, unit) = {
            let fields = any_fields(&mut rng);
            (fields, written(&fields))
        };
        let mut cut = unit;
        cut[64..].fill(0);
        assert_eq!(fields(&cut), Some(one));
        cut[63] ^= 1;
        assert_eq!(fields(&cut), None);
    }

    #[test]
    fn other_data_is_foreign() {
        let mut rng = Rng::new(4, 0, 0);
        assert_eq!(read(&[0; UNIT_BYTES]), Content::Foreign);
        let random = std::array::from_fn(|_| rng.next().to_le_bytes()[0]);
        assert_eq!(read(&random), Content::Foreign);
    }

    #[test]
    fn units_do_not_compress() {
        let mut block = Vec::new();
        for index in 0..8 {
            let fields = Fields {
                run: 1,
                target: 0,
                offset: u64::from(index) * 512,
                sequence: 7,
                seed: 1,
                index,
                units: 8,
            };
            block.extend(written(&fields));
        }
        let judged = content::Content::of(block.into_iter());
        assert_eq!(judged, content::Content::Dense);
    }
}
