//! What a ring worker does for --verify, around the I/Os it issues and reaps.

use super::Worker;
use crate::load::flight::Flight;
use crate::load::pattern::Part;
use crate::load::stats::Direction;
use crate::load::verify::{Entry, Held, Verifier};

#[derive(Default)]
pub(super) struct Verifying {
    /// Writes that wait for others to the same range.
    pub held: Held,
    /// Of every read in flight: what its range had to hold when it was issued.
    expected: Vec<Vec<Entry>>,
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

impl Worker<'_> {
    /// Gives up writes that were drawn and never issued.
    pub(super) fn drop_held(&mut self) {
        for part in self.verifying.held.drain() {
            self.run.drop_part(&part);
        }
    }

    /// Checks the data of a read that just completed, or releases the range of a write.
    pub(super) fn verify(&self, verifier: &Verifier, number: usize, flight: &Flight, result: i32) {
        let part = &flight.part;
        if part.is_fsync() {
            return;
        }
        if part.direction == Direction::Write {
            return verifier.wrote(part, u32::try_from(result) == Ok(part.length));
        }
        let arena = &self.arenas[Direction::Read as usize];
        if let Some(pointer) = arena.pointer(number, flight.region) {
            if part.is_whole_read(result) {
                // SAFETY: the read is over and returned so many bytes, and no other I/O has this buffer.
                let bytes =
                    unsafe { std::slice::from_raw_parts(pointer.as_ptr(), part.length as usize) };
                verifier.check(part, bytes, &self.verifying.expected[number]);
            }
        }
    }
}
