//! What `--verify` asks of a ring worker: no two writes to one place at once, and a look at every read.

use super::Worker;
use crate::load::flight::Flight;
use crate::load::pattern::Part;
use crate::load::stats::Direction;
use crate::load::verify::{Entry, Verifier};

/// What became of an I/O that was to be issued.
pub(super) enum Issued {
    Yes,
    /// It waits for another write to its place.
    Held,
    /// It waits, and no more may do so on its target.
    HeldLast,
}

impl Worker<'_> {
    pub(super) fn hold(&mut self, part: Part) -> Issued {
        if self.held.keep(part) {
            Issued::Held
        } else {
            Issued::HeldLast
        }
    }

    pub(super) fn drop_held(&mut self) {
        for part in self.held.drain() {
            self.run.drop_part(&part);
        }
    }

    /// Looks at what a verified I/O that just came back brought, or gives back its place.
    pub(super) fn verify_after(
        &self,
        verifier: &Verifier,
        number: usize,
        flight: &Flight,
        result: i32,
    ) {
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
                // SAFETY: the read is over and brought so many bytes, and no other I/O has this buffer.
                let bytes =
                    unsafe { std::slice::from_raw_parts(pointer.as_ptr(), part.length as usize) };
                verifier.check(part, bytes, &self.expected[number]);
            }
        }
    }
}

/// Makes the data of a verified write, or notes what a read may find.
pub(super) fn verify_before(
    verifier: &Verifier,
    part: &Part,
    claimed: Option<u64>,
    bytes: &mut [u8],
    number: usize,
    expected: &mut Vec<Vec<Entry>>,
) {
    match claimed {
        Some(sequence) => verifier.stamp(part, sequence, bytes),
        None if part.is_fsync() => {}
        None => {
            if expected.len() <= number {
                expected.resize(number + 1, Vec::new());
            }
            verifier.before_read(part, &mut expected[number]);
        }
    }
}
