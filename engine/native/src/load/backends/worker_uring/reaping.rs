//! What a ring worker does with completed I/Os.

use std::io;

use super::user_data::{CANCELLED, WOKEN};
use super::worker::Worker;
use crate::load::counts::levels::Levels;
use crate::load::counts::stats::Direction;
use crate::load::epochs::epoch::Epoch;
use crate::load::knobs::RingUse;
use crate::load::pattern::Part;
use crate::load::rings::flight::Flight;
use crate::load::verify::Verifier;

impl Worker<'_> {
    /// Counts all completions, in the epoch its handle has now; returns the time it took for theirs.
    pub(super) fn reap(&mut self) -> io::Result<u64> {
        let (mut woken, mut count) = (false, 0_u32);
        self.ring.completions.sync();
        let epoch = self.handle.epoch();
        let reaped_ticks = self.run.clock.now();
        let mut levels = None;
        while let Some(completion) = self.ring.completions.next() {
            let Some(number) = flight_number(completion.user_data()) else {
                woken |= completion.user_data() == WOKEN;
                continue;
            };
            count += 1;
            let flight = self.flights.get(number);
            let result = self.result(&flight.part, completion.result());
            if !(result == -libc::ECANCELED && self.run.life.abandoned()) {
                // A worker just started has no counters in the epoch before, and nothing to count there.
                let levels =
                    *levels.get_or_insert_with(|| epoch.levels(self.handle.worker, reaped_ticks));
                if self.fails_over(&epoch, levels, number, result, reaped_ticks) {
                    self.again.push(number);
                    continue;
                }
            }
            if self.chosen == Some(number) {
                self.chosen = None;
                if flight.part.is_whole_read(completion.result()) {
                    self.judge(number, flight);
                }
            }
            self.release(number);
        }
        let turned = epoch.index != self.epoch.index || woken && !self.redistributed;
        drop(epoch);
        self.retry(reaped_ticks)?;
        if woken {
            self.handle.waker.clear();
            self.listen()?;
        }
        if turned {
            self.adopt()?;
        } else if self.older == 0 && count > 0 {
            self.handle.settle(self.epoch.index);
        }
        Ok(reaped_ticks)
    }

    /// Counts what came of an I/O, unless its path failed and another is to try it: whether that is so.
    #[inline]
    fn fails_over(
        &self,
        epoch: &Epoch,
        levels: &Levels,
        number: usize,
        result: i32,
        reaped_ticks: u64,
    ) -> bool {
        let flight = self.flights.get(number);
        let (part, sent_ticks) = (&flight.part, flight.issued_ticks);
        let levels = epoch.levels_of(part, self.handle.worker, levels);
        let lost = self
            .run
            .back(epoch, levels, part, result, sent_ticks, reaped_ticks);
        if lost && flight.attempts < self.run.paths_of(part.target) {
            return true;
        }
        let fan_out = epoch.fan_out.as_ref();
        self.run.count(
            levels,
            fan_out.filter(|_| flight.epoch == epoch.index),
            part,
            result,
            flight.began_ticks(),
            reaped_ticks,
        );
        if let Some(verifier) = &self.run.verifier {
            self.verify(verifier, number, flight, result);
        }
        false
    }

    /// Checks the data of a read that just completed, or releases the range of a write.
    fn verify(&self, verifier: &Verifier, number: usize, flight: &Flight, result: i32) {
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
                // SAFETY: the read is over and returned that many bytes, and no other I/O has this buffer.
                let bytes =
                    unsafe { std::slice::from_raw_parts(pointer.as_ptr(), part.length as usize) };
                verifier.check(part, bytes, &self.verifying.expected[number]);
            }
        }
    }

    /// Releases the slot and the buffer of an I/O that is done.
    #[inline]
    fn release(&mut self, number: usize) {
        let flight = self.flights.get(number);
        let (target, region) = (flight.part.target, flight.region);
        self.older -= usize::from(flight.epoch != self.epoch.index);
        self.arenas[flight.part.direction as usize].give_back(&mut self.ring, region);
        let left = self.free_slots.returned(target);
        self.handle.set_in_flight(target, left);
        self.flights.remove(number);
    }

    /// Result of an I/O; a no-op counts as one that succeeded.
    #[inline]
    fn result(&self, part: &Part, result: i32) -> i32 {
        if self.run.limits.ring_use == RingUse::Dry && result == 0 {
            return i32::try_from(part.length).unwrap_or(i32::MAX);
        }
        result
    }

    /// Checks the data of a read that just completed.
    fn judge(&self, number: usize, flight: &Flight) {
        let arena = &self.arenas[Direction::Read as usize];
        if let Some(pointer) = arena.pointer(number, flight.region) {
            let part = &flight.part;
            // SAFETY: the buffer was not given back yet, and holds the whole part.
            unsafe { self.run.contents.judge(part.target, pointer, part.length) };
        }
    }
}

fn flight_number(user_data: u64) -> Option<usize> {
    if user_data < CANCELLED {
        usize::try_from(user_data).ok()
    } else {
        None
    }
}
