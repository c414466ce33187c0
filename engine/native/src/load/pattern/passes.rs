//! Passes over an address space: every block exactly once, in another order each time.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

use super::permutation::Permutation;
use super::rng::mix;

/// How many blocks of one space were visited since the last change of block size, shared by all workers.
#[derive(Debug, Default)]
pub struct Passes(AtomicU64);

impl Passes {
    /// Offset of the next block of the pass.
    #[inline]
    pub fn next(&self, space_bytes: u64, block_bytes: u64, key: u64) -> u64 {
        let (visit, blocks) = (self.0.fetch_add(1, Relaxed), space_bytes / block_bytes);
        let (pass, index) = (visit / blocks, visit % blocks);
        Permutation::new(blocks, mix(key ^ mix(pass))).at(index) * block_bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_pass_visits_every_block_once_in_an_order_of_its_own() {
        let passes = Passes::default();
        let pass = || {
            let offsets: Vec<u64> = (0..1000)
                .map(|_| passes.next(1000 * 4096 + 17, 4096, 5))
                .collect();
            let mut blocks: Vec<u64> = offsets.iter().map(|offset| offset / 4096).collect();
            blocks.sort_unstable();
            assert_eq!(blocks, (0..1000).collect::<Vec<_>>());
            offsets
        };
        assert_ne!(pass(), pass());
    }
}
