//! Block sizes and their shares, checked and ready to be drawn.

use super::chance::{CERTAIN, chance};

const MAX_BLOCK_BYTES: u64 = 64 << 20;
/// How far the shares of a mix may be from 100 in all, as `MIX_TOLERANCE_PERCENT` of engine/job/sizes.py: thirds are
/// written 33.3.
const MIX_TOLERANCE_PERCENT: f64 = 0.5;

/// One block size of a mix and its share.
#[derive(Clone, Debug)]
pub struct BlockShare {
    pub block_bytes: u64,
    pub percent: f64,
}

/// Block sizes with the upper bound of their share of 2^32.
#[derive(Debug)]
pub struct Mix(Vec<(u64, u32)>);

impl Mix {
    /// Checks sizes and shares; the error says which is out of range.
    pub fn new(blocks: &[BlockShare]) -> Result<Self, String> {
        let total: f64 = blocks.iter().map(|share| share.percent).sum();
        if blocks
            .iter()
            .any(|share| share.percent.is_nan() || share.percent < 0.0)
            || (total - 100.0).abs() > MIX_TOLERANCE_PERCENT
        {
            return Err(format!("blocks: shares add up to {total} %, not 100"));
        }
        let (mut below, mut bounds) = (0.0, Vec::new());
        for share in blocks {
            let block_bytes = checked(share.block_bytes)?;
            below += share.percent;
            if share.percent > 0.0 {
                let bound = chance((below * 100.0 / total).min(100.0)).unwrap_or(CERTAIN);
                bounds.push((bound, block_bytes));
            }
        }
        Ok(Self(bounds))
    }

    pub fn is_single(&self) -> bool {
        self.0.len() == 1
    }

    /// All sizes that are ever drawn.
    pub fn sizes(&self) -> impl Iterator<Item = u64> {
        self.0
            .iter()
            .map(|(_, block_bytes)| u64::from(*block_bytes))
    }

    /// The largest size that fits; None if none does.
    pub fn largest_within(&self, bytes: u64) -> Option<u32> {
        let sizes = self.0.iter().map(|(_, block_bytes)| *block_bytes);
        sizes.filter(|size| u64::from(*size) <= bytes).max()
    }

    /// Block size for 32 random bits.
    #[inline]
    pub fn block_bytes(&self, bits: u64) -> u32 {
        let found = self.0.iter().find(|(bound, _)| bits < *bound);
        found.or(self.0.last()).map_or(0, |(_, block)| *block)
    }
}

fn checked(block_bytes: u64) -> Result<u32, String> {
    u32::try_from(block_bytes)
        .ok()
        .filter(|block| (1..=MAX_BLOCK_BYTES).contains(&u64::from(*block)))
        .ok_or(format!(
            "block {block_bytes} is not in 1..{MAX_BLOCK_BYTES}"
        ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mix(blocks: &[(u64, f64)]) -> Result<Mix, String> {
        let share = |(block_bytes, percent): &(u64, f64)| BlockShare {
            block_bytes: *block_bytes,
            percent: *percent,
        };
        Mix::new(&blocks.iter().map(share).collect::<Vec<_>>())
    }

    #[test]
    fn sizes_are_drawn_by_their_shares() {
        let mix = mix(&[(4096, 25.0), (8192, 0.0), (16384, 75.0)]).unwrap();
        let quarter = 1_u64 << 30;
        assert_eq!(mix.block_bytes(quarter - 1), 4096);
        assert_eq!(mix.block_bytes(quarter), 16384);
        assert_eq!(mix.block_bytes(u64::from(u32::MAX)), 16384);
        assert_eq!(mix.sizes().collect::<Vec<_>>(), [4096, 16384]);
        let within = [4095, 4096, 16383, 1 << 20].map(|bytes| mix.largest_within(bytes));
        assert_eq!(within, [None, Some(4096), Some(4096), Some(16384)]);
    }

    #[test]
    fn what_cannot_be_drawn_is_refused() {
        for (blocks, words) in [
            (&[(4096, 60.0)][..], "60 %"),
            (&[(4096, 99.4)], "99.4 %"),
            (&[(4096, f64::NAN)], "NaN %"),
            (&[(4096, -50.0), (8192, 150.0)], "100 %"),
            (&[], "0 %"),
            (&[(0, 100.0)], "block 0"),
            (&[(1 << 30, 100.0)], "block 1073741824"),
        ] {
            assert!(mix(blocks).unwrap_err().contains(words), "{blocks:?}");
        }
    }
}
