//! A worker that does one I/O at a time with preadv2 and pwritev2: one thread per slot of a target's queue depth.

use std::io;
use std::ptr::NonNull;
use std::sync::Arc;
use std::time::Duration;

use super::arrival::{Arrival, WATCH_NS};
use super::clock;
use super::epoch::Epoch;
use super::memory::Memory;
use super::next_io::Next;
use super::pacing::Gate;
use super::pattern::{Part, Rng};
use super::payload;
use super::run::Run;
use super::sink::slot_bytes;
use super::stats::Direction;
use super::system_call::transfer;
use super::verify::Entry;
use super::worker_handle::WorkerHandle;

/// How soon a thread checks again for free slots on the other targets of a striped I/O.
const BLOCKED: Duration = Duration::from_millis(1);

/// How soon a thread checks again whether another write to the same range has completed.
const HELD: Duration = Duration::from_micros(100);

/// Runs a worker for one slot of one target's queue depth until the load stops.
pub fn work(run: &Run, handle: &WorkerHandle, slot: usize) -> io::Result<()> {
    handle.waker.is_me();
    if run.limits.arrival != Arrival::Closed {
        clock::wake_in_time();
    }
    run.life.wait_for_start();
    let target = handle.served.first;
    let mut worker = Worker {
        run,
        handle,
        slot,
        rng: run.rng(slot, target),
        gate: Gate::default(),
        epoch: Arc::clone(&handle.epoch()),
        epoch_turned: false,
        source: None,
        held: None,
        own_sink: None,
        expected: Vec::new(),
        sequence: (handle.worker as u64) << 48,
    };
    while !run.life.stopping() {
        if worker.adopt()? {
            worker.drive();
        } else {
            std::thread::park();
        }
    }
    worker.drop_held();
    Ok(())
}

struct Worker<'a> {
    run: &'a Run,
    handle: &'a WorkerHandle,
    slot: usize,
    rng: Rng,
    gate: Gate,
    epoch: Arc<Epoch>,
    /// Whether the handle has another epoch by now.
    epoch_turned: bool,
    /// What writes come from, filled when it was mapped.
    source: Option<Memory>,
    sequence: u64,
    /// With --verify: a write that waits for another to the same range.
    held: Option<Part>,
    /// With --verify: the buffer of reads, whose data is checked.
    own_sink: Option<Memory>,
    /// With --verify: what the range of a read had to hold when it was issued.
    expected: Vec<Entry>,
}

impl Worker<'_> {
    /// Takes over the epoch its handle has now; whether this slot is used in it.
    fn adopt(&mut self) -> io::Result<bool> {
        let epoch = self.handle.epoch();
        let settings = &epoch.settings;
        let used = self.slot < settings.depth_of(self.handle.served.first);
        // Said before the handle can get another epoch: the coordinator must not take this thread for parked.
        if used {
            self.handle.settle(epoch.index);
        } else {
            self.handle.parked();
        }
        if epoch.index != self.epoch.index {
            self.drop_held();
        }
        self.epoch = Arc::clone(&epoch);
        drop(epoch);
        self.gate
            .enter(self.epoch.pacer.as_ref(), self.epoch.schedule.as_ref());
        if !used {
            self.gate.leave();
        }
        let bytes = slot_bytes(&self.epoch.settings);
        if used
            && self.epoch.settings.writes()
            && self
                .source
                .as_ref()
                .is_none_or(|memory| memory.bytes() < bytes)
        {
            self.source = Some(self.filled(bytes)?);
        }
        let too_small = |memory: &Memory| memory.bytes() < bytes;
        if used && self.run.verifier.is_some() && self.own_sink.as_ref().is_none_or(too_small) {
            self.own_sink = Some(Memory::new(bytes)?);
        }
        Ok(used)
    }

    fn filled(&self, bytes: usize) -> io::Result<Memory> {
        let memory = Memory::new(bytes)?;
        // SAFETY: the mapping is ours alone and has this many bytes.
        let slice = unsafe { std::slice::from_raw_parts_mut(memory.base().as_ptr(), bytes) };
        payload::fill(slice, self.run.seed() ^ self.sequence, 0);
        Ok(memory)
    }

    /// Issues one I/O after the other until the epoch turns or the load stops.
    fn drive(&mut self) {
        let target = self.handle.served.first;
        let mut now_ticks = self.run.clock.now();
        loop {
            match self.next(target, now_ticks) {
                Next::Issue(part) => {
                    let Some(back_ticks) = self.perform(part, now_ticks) else {
                        self.held = Some(part);
                        std::thread::park_timeout(HELD);
                        return;
                    };
                    now_ticks = back_ticks;
                    if self.epoch_turned || self.run.life.stopping() {
                        return;
                    }
                }
                Next::NotBefore(due) | Next::Refused(due) => {
                    self.pause(target, due);
                    return;
                }
                Next::Blocked => {
                    std::thread::park_timeout(BLOCKED);
                    return;
                }
            }
        }
    }

    fn next(&mut self, target: usize, now_ticks: u64) -> Next {
        if let Some(part) = self.held.take() {
            return Next::Issue(part);
        }
        self.run.next(
            &self.epoch,
            target,
            &mut self.rng,
            &mut self.gate,
            now_ticks,
        )
    }

    fn drop_held(&mut self) {
        if let Some(part) = self.held.take() {
            self.run.drop_part(&part);
        }
    }

    /// Waits for a moment, at most so long; for an arrival that is near, one thread of each target stays awake.
    fn pause(&self, target: usize, due_ticks: u64) {
        let clock = self.run.clock;
        let left_ns = clock.ns(due_ticks.saturating_sub(clock.now()));
        let Some(schedule) = &self.epoch.schedule else {
            return std::thread::park_timeout(Duration::from_nanos(left_ns));
        };
        let stream = target.min(schedule.streams() - 1);
        if left_ns > WATCH_NS {
            std::thread::park_timeout(Duration::from_nanos(left_ns - WATCH_NS));
        } else if schedule.watch(stream) {
            while clock.now() < due_ticks && !self.run.life.stopping() {
                std::hint::spin_loop();
            }
            schedule.unwatch(stream);
        } else {
            std::thread::park_timeout(Duration::from_nanos(left_ns));
        }
    }

    /// Does one I/O and counts it; returns when it completed. None if another write to its range must complete first.
    ///
    /// It is listed as outstanding before its clock starts, with a time in the past: a check of what waited through
    /// a stop of the process must not miss it.
    fn perform(&mut self, mut part: Part, before_ticks: u64) -> Option<u64> {
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
                // SAFETY: the read returned so many bytes there.
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
            // SAFETY: the read returned so many bytes there, and this thread alone uses the mapping.
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
