//! What a ring worker does for --verify, around the I/Os it issues and reaps.

use crate::load::pattern::Part;
use crate::load::verify::{Entry, Held, Verifier};

#[derive(Default)]
pub(super) struct Verifying {
    /// Writes that wait for others to the same range.
    pub held: Held,
    /// What the range of every read in flight had to hold when it was issued.
    pub expected: Vec<Vec<Entry>>,
}

impl Verifying {
    /// Makes the data of a write whose range was claimed under a number, or notes what a read may find.
    pub fn before(
        &mut self,
        verifier: &Verifier,
        part: &Part,
        claimed: Option<u64>,
        number: usize,
        bytes: &mut [u8],
    ) {
        match claimed {
            Some(sequence) => verifier.stamp(part, sequence, bytes),
            None if part.is_fsync() => {}
            None => {
                if self.expected.len() <= number {
                    self.expected.resize(number + 1, Vec::new());
                }
                verifier.before_read(part, &mut self.expected[number]);
            }
        }
    }
}
