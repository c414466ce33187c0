//! How a worker thread does one I/O: its buffer, its data, its system call, and what is counted.

use std::ptr::NonNull;

use super::worker::Worker;
use crate::load::backends::system_call::transfer;
use crate::load::counts::stats::Direction;
use crate::load::data::memory::Memory;
use crate::load::data::payload;
use crate::load::pattern::Part;
use crate::load::running::sink::slot_bytes;

impl Worker<'_> {
    /// Does one I/O and counts it; returns when it completed. None if another write to its range must complete first.
    ///
    /// It is listed as outstanding before its clock starts, with a time in the past: a check of what waited through
    /// a stop of the process must not miss it.
    pub(super) fn perform(&mut self, mut part: Part, before_ticks: u64) -> Option<u64> {
        let pointer = if self.run.verifier.is_some() {
            self.verified_buffer(&part)?
        } else {
            self.buffer(&part)
        };
        self.handle.set_in_flight(part.target, 1);
        self.handle.outstanding.set(0, part.target, before_ticks);
        let issued_ticks = self.run.clock.now();
        let chosen = part.direction == Direction::Read && self.run.contents.choose(issued_ticks);
        let (mut sent_ticks, mut attempts) = (issued_ticks, 1);
        loop {
            part.file = self.run.send(&self.epoch.policy_cost, &part, sent_ticks);
            let result = transfer(self.run, &part, pointer, &self.epoch.settings);
            let epoch = self.handle.epoch();
            let reaped_ticks = self.run.clock.now();
            let worker = self.handle.worker;
            let levels = epoch.levels_of(&part, worker, epoch.levels(worker, reaped_ticks));
            let lost = self
                .run
                .back(&epoch, levels, &part, result, sent_ticks, reaped_ticks);
            if lost && attempts < self.run.paths_of(part.target) {
                (sent_ticks, attempts) = (reaped_ticks, attempts + 1);
                continue;
            }
            self.epoch_turned = epoch.index != self.epoch.index;
            let fan_out = epoch.fan_out.as_ref().filter(|_| !self.epoch_turned);
            self.run
                .count(levels, fan_out, &part, result, issued_ticks, reaped_ticks);
            self.verify_after(&part, pointer, result);
            self.handle.set_in_flight(part.target, 0);
            self.handle.outstanding.clear(0);
            drop(epoch);
            if chosen && part.is_whole_read(result) {
                // SAFETY: the read returned that many bytes there.
                unsafe { self.run.contents.judge(part.target, pointer, part.length) };
            }
            return Some(reaped_ticks);
        }
    }

    /// The buffer of a verified I/O, with its data if it is a write; None while its range is claimed.
    fn verified_buffer(&mut self, part: &Part) -> Option<NonNull<u8>> {
        let (Some(verifier), false) = (&self.run.verifier, part.is_fsync()) else {
            return Some(self.buffer(part));
        };
        if part.direction == Direction::Read {
            verifier.before_read(part, &mut self.expected);
            return self.own_sink.as_ref().map(Memory::base);
        }
        let source = self.source.as_ref()?;
        let sequence = verifier.claim(part)?;
        // SAFETY: this thread alone uses the mapping, which holds the largest part of this epoch.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(source.base().as_ptr(), part.length as usize) };
        verifier.stamp(part, sequence, bytes);
        Some(source.base())
    }

    /// Checks the data of a verified read, or releases the range of a write.
    fn verify_after(&self, part: &Part, pointer: NonNull<u8>, result: i32) {
        let (Some(verifier), false) = (&self.run.verifier, part.is_fsync()) else {
            return;
        };
        if part.direction == Direction::Write {
            verifier.wrote(part, u32::try_from(result) == Ok(part.length));
        } else if part.is_whole_read(result) {
            // SAFETY: the read returned that many bytes there, and this thread alone uses the mapping.
            let bytes =
                unsafe { std::slice::from_raw_parts(pointer.as_ptr(), part.length as usize) };
            verifier.check(part, bytes, &self.expected);
        }
    }

    fn buffer(&mut self, part: &Part) -> NonNull<u8> {
        match (part.direction, &self.source, &self.epoch.sink) {
            (Direction::Write, Some(source), _) if part.is_fsync() => source.base(),
            (Direction::Write, Some(source), _) => {
                self.sequence += 1;
                // SAFETY: this thread alone uses the mapping, which holds the largest part of this epoch.
                let bytes = unsafe {
                    std::slice::from_raw_parts_mut(source.base().as_ptr(), part.length as usize)
                };
                payload::stamp(bytes, part.offset, self.sequence);
                source.base()
            }
            (_, _, Some(sink)) => {
                let slot_bytes = slot_bytes(&self.epoch.settings);
                let slot = self.handle.worker % (sink.bytes() / slot_bytes);
                // SAFETY: the slot lies inside the mapping.
                unsafe { sink.base().add(slot * slot_bytes) }
            }
            // Refused by the kernel with EFAULT, and counted as that.
            _ => NonNull::dangling(),
        }
    }
}
