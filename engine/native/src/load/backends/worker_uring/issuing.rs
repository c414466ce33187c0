//! How a ring worker draws I/Os and submits them to the kernel.

use std::io;
use std::os::fd::AsRawFd;

use io_uring::{opcode, squeue, types};

use super::entry::entry;
use super::user_data::WOKEN;
use super::worker::Worker;
use crate::load::counts::stats::Direction;
use crate::load::data::buffers::Buffer;
use crate::load::knobs::RingUse;
use crate::load::layout::next_io::Next;
use crate::load::pattern::Part;
use crate::load::rings::flight::Flight;

/// How soon a worker checks again for free slots on the other targets of a striped I/O.
const BLOCKED_NS: u64 = 1_000_000;

/// What became of an I/O that the worker wanted to issue.
enum Issued {
    Yes,
    /// The write waits for another one to its range.
    Held,
    /// The write waits, and no more may do so on its target.
    HeldLast,
}

impl Worker<'_> {
    /// Issues into the free slots, except for the last chunk; returns when to check again at the latest.
    ///
    /// `now_ticks` may be the time of the last `reap`: in a virtual machine, to read the clock takes some 20 ns.
    pub(super) fn refill(&mut self, now_ticks: u64) -> io::Result<u64> {
        if self.free_slots.any_aside() {
            self.free_slots.retry();
        }
        let mut wake_ticks = u64::MAX;
        while let Some(target) = self.free_slots.take() {
            match self.next(target, now_ticks) {
                Next::Issue(part) => match self.issue(part, now_ticks)? {
                    Issued::Yes => {}
                    Issued::Held => self.free_slots.put_back(target),
                    Issued::HeldLast => {
                        self.free_slots.set_aside(target);
                        wake_ticks = wake_ticks.min(now_ticks + self.run.clock.ticks(BLOCKED_NS));
                    }
                },
                Next::NotBefore(due) => {
                    self.free_slots.put_back(target);
                    return Ok(wake_ticks.min(due));
                }
                Next::Refused(due) => {
                    self.free_slots.set_aside(target);
                    wake_ticks = wake_ticks.min(due);
                }
                Next::Blocked => {
                    self.free_slots.set_aside(target);
                    wake_ticks = wake_ticks.min(now_ticks + self.run.clock.ticks(BLOCKED_NS));
                }
            }
        }
        Ok(wake_ticks)
    }

    /// Issues what has arrived, target by target; returns when to check again at the latest.
    pub(super) fn refill_by_arrival(&mut self) -> io::Result<u64> {
        self.free_slots.forget_order();
        let mut wake_ticks = u64::MAX;
        for target in 0..self.epoch.settings.width {
            while self.free_slots.has_slot(target) {
                let now_ticks = self.run.clock.now();
                let blocked = now_ticks + self.run.clock.ticks(BLOCKED_NS);
                let due = match self.next(target, now_ticks) {
                    Next::Issue(part) => match self.issue(part, now_ticks)? {
                        Issued::HeldLast => blocked,
                        Issued::Held => continue,
                        Issued::Yes => {
                            // Its service begins now, not when others have been submitted too.
                            self.submit()?;
                            continue;
                        }
                    },
                    Next::NotBefore(due) | Next::Refused(due) => due,
                    Next::Blocked => blocked,
                };
                wake_ticks = wake_ticks.min(due);
                break;
            }
        }
        Ok(wake_ticks)
    }

    /// What to do with a free slot on a target: a write that waited, if its range is free by now, else what is drawn.
    #[inline]
    fn next(&mut self, target: usize, now_ticks: u64) -> Next {
        if let Some(verifier) = &self.run.verifier {
            if let Some(part) = self.verifying.held.take(target, verifier) {
                return Next::Issue(part);
            }
        }
        let rng = &mut self.rngs[target];
        self.run
            .next(&self.epoch, target, rng, &mut self.gate, now_ticks)
    }

    fn issue(&mut self, mut part: Part, now_ticks: u64) -> io::Result<Issued> {
        let is_write = part.direction == Direction::Write && !part.is_fsync();
        let claimed = match &self.run.verifier {
            Some(verifier) if is_write => match verifier.claim(&part) {
                None if self.verifying.held.keep(part) => return Ok(Issued::Held),
                None => return Ok(Issued::HeldLast),
                claimed => claimed,
            },
            _ => None,
        };
        if self.ring.queued() >= self.most_queued || self.ring.is_full() {
            self.submit()?;
        }
        let number = self.flights.next_number();
        let arena = &mut self.arenas[part.direction as usize];
        let buffer = arena
            .take(number)
            .ok_or_else(|| io::Error::other("no buffer for an I/O"))?;
        if let Some(verifier) = &self.run.verifier {
            let bytes = arena.bytes(buffer, part.length);
            self.verifying
                .before(verifier, &part, claimed, number, bytes);
        } else if is_write {
            self.sequence += 1;
            arena.prepare(
                buffer,
                number,
                self.run.seed(),
                part.offset,
                self.sequence,
                part.length as usize,
            );
        }
        part.file = self.run.send(&self.epoch.policy_cost, &part, now_ticks);
        let entry = self.entry(&part, buffer).user_data(number as u64);
        // SAFETY: the buffer stays until `reap` gives it back, or is leaked with its arena.
        unsafe { self.ring.push(&entry)? };
        let count = self.free_slots.issued(part.target);
        self.handle.set_in_flight(part.target, count);
        self.flights.add(Flight {
            part,
            issued_ticks: 0,
            first_ticks: 0,
            attempts: 1,
            epoch: self.epoch.index,
            region: buffer.region,
        });
        self.chunk.push(number);
        Ok(Issued::Yes)
    }

    /// Submits what is queued; its clock starts.
    pub(super) fn submit(&mut self) -> io::Result<()> {
        self.stamp();
        self.ring.submit()
    }

    /// Arms the poll by which a turn or a stop wakes this worker, even when its device is stalled.
    pub(super) fn listen(&mut self) -> io::Result<()> {
        let Some(descriptor) = self.handle.waker.descriptor() else {
            return Ok(());
        };
        let poll = opcode::PollAdd::new(types::Fd(descriptor), libc::POLLIN as u32)
            .build()
            .user_data(WOKEN);
        if self.ring.is_full() {
            self.submit()?;
        }
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(&poll) }
    }

    fn entry(&self, part: &Part, buffer: Buffer) -> squeue::Entry {
        if self.run.limits.ring_use == RingUse::Dry {
            return opcode::Nop::new().build();
        }
        let settings = &self.epoch.settings;
        let priority = self.run.limits.priorities.of(part);
        if self.ring.registry.files {
            // The flag turns the descriptor into an index of the registered files.
            let file = types::Fd(i32::try_from(part.file).unwrap_or(-1));
            return entry(file, part, buffer, settings, priority).flags(squeue::Flags::FIXED_FILE);
        }
        entry(
            types::Fd(self.run.routes.node(part.file as usize).fd.as_raw_fd()),
            part,
            buffer,
            settings,
            priority,
        )
    }

    /// Starts the clock of queued I/Os, right before the call that submits them.
    #[inline]
    pub(super) fn stamp(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        let now_ticks = self.run.clock.now();
        if self.chosen.is_none() && self.run.contents.is_due(now_ticks) {
            // By the clock, as the first of a chunk may always be for the same target.
            let index = usize::try_from(now_ticks % self.chunk.len() as u64).unwrap_or(0);
            let number = self.chunk[index];
            let is_read = self.flights.get(number).part.direction == Direction::Read;
            self.chosen = (is_read && self.run.contents.choose(now_ticks)).then_some(number);
        }
        self.flights.stamp(self.chunk.drain(..), now_ticks);
    }

    /// Sends I/Os whose path failed to another; they keep their slot, their buffer and their start time.
    pub(super) fn retry(&mut self, now_ticks: u64) -> io::Result<()> {
        while let Some(number) = self.again.pop() {
            if self.ring.is_full() {
                self.stamp();
                self.ring.submit()?;
            }
            let flight = self.flights.get_mut(number);
            flight.first_ticks = flight.began_ticks();
            flight.attempts += 1;
            flight.part.file = self
                .run
                .send(&self.epoch.policy_cost, &flight.part, now_ticks);
            let (part, region) = (flight.part, flight.region);
            let buffer = self.arenas[part.direction as usize]
                .taken(number, region)
                .ok_or_else(|| io::Error::other("no buffer for an I/O"))?;
            let entry = self.entry(&part, buffer).user_data(number as u64);
            // SAFETY: the buffer stays until `reap` gives it back, or is leaked with its arena.
            unsafe { self.ring.push(&entry)? };
            self.chunk.push(number);
        }
        Ok(())
    }
}
