//! A worker with a ring of its own: keeps its share of every target's queue depth outstanding.

mod verifying;
mod waiting;

use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::time::Duration;

use io_uring::{opcode, squeue, types};

use self::verifying::Verifying;
use super::arrival::Arrival;
use super::buffers::{Arena, Buffer};
use super::clock;
use super::epoch::Epoch;
use super::fanout::Next;
use super::flight::{Flight, Flights};
use super::knobs::{RingUse, Settings, share};
use super::pacing::Gate;
use super::pattern::{Part, Rng};
use super::ring::Ring;
use super::ring_setup;
use super::room::Room;
use super::run::Run;
use super::seat::Seat;
use super::spin::Spin;
use super::stats::Direction;

/// Least and most I/Os per submitting system call: a whole queue at once reaches the device late and in one burst.
const CHUNK: (usize, usize) = (4, 32);
/// Chunks per queue between those.
const CHUNKS: usize = 8;
/// About what it costs to go to sleep and be woken (measured: 3 to 5 us are alike, 15 us cost more than they bring).
const SPIN_NS: u64 = 4_000;
/// Completion of the poll on the worker's eventfd, and of the cancellation when the run is given up.
const WOKEN: u64 = u64::MAX;
const CANCELLED: u64 = u64::MAX - 1;
/// How soon a worker looks again for room on the other targets of a striped I/O.
const BLOCKED_NS: u64 = 1_000_000;
/// How long cancelled I/Os have to come back.
const CANCEL_PATIENCE: Duration = Duration::from_millis(200);

/// Runs a worker until the load stops; how many I/Os never came back. `ready` gets the features or the refusal once.
pub fn work(
    run: &Run,
    seat: &Seat,
    ready: impl FnOnce(io::Result<Vec<&'static str>>),
) -> io::Result<usize> {
    let threads = seat.epoch().settings.threads;
    let most = run.limits.max_queue_depth.div_ceil(threads) * run.targets.len();
    let (mut ring, mut features) = match ring_setup::open(most) {
        Ok(opened) => opened,
        Err(error) => {
            ready(Err(error));
            return Ok(0);
        }
    };
    let files: Vec<_> = run
        .routes
        .files()
        .iter()
        .enumerate()
        .map(|(file, _)| run.routes.node(file).fd.as_raw_fd())
        .collect();
    let mut worker = Worker::new(run, seat, Ring::new(&mut ring, &files));
    match worker.adopt().and_then(|()| worker.listen()) {
        Ok(()) => {
            features.extend(worker.ring.features());
            ready(Ok(features));
        }
        Err(error) => {
            ready(Err(error));
            return Ok(0);
        }
    }
    if run.limits.arrival != Arrival::Closed {
        clock::wake_in_time();
    }
    run.wait_for_start();
    let outcome = worker.run();
    let lost = worker.room.in_flight();
    if lost > 0 {
        // The kernel may still write into these buffers.
        std::mem::forget(worker.arenas);
    }
    outcome.map(|()| lost)
}

struct Worker<'a> {
    run: &'a Run,
    seat: &'a Seat,
    ring: Ring<'a>,
    /// For reads and for writes.
    arenas: [Arena; 2],
    flights: Flights,
    room: Room,
    rngs: Vec<Rng>,
    gate: Gate,
    spin: Spin,
    epoch: Arc<Epoch>,
    /// Whether the whole share of the epoch was taken.
    dealt: bool,
    /// Outstanding I/Os of earlier epochs.
    older: usize,
    sequence: u64,
    /// Numbers of I/Os queued but not submitted.
    chunk: Vec<usize>,
    /// How many those may be.
    most_queued: u32,
    /// Numbers of I/Os whose path failed and that go to another.
    again: Vec<usize>,
    verifying: Verifying,
}

impl<'a> Worker<'a> {
    fn new(run: &'a Run, seat: &'a Seat, ring: Ring<'a>) -> Self {
        let targets = run.targets.len();
        let epoch = Arc::clone(&seat.epoch());
        Self {
            run,
            seat,
            ring,
            arenas: [Arena::new(run.verifier.is_some()), Arena::new(true)],
            flights: Flights::default(),
            room: Room::new(targets),
            rngs: (0..targets)
                .map(|target| run.rng(seat.worker, target))
                .collect(),
            gate: Gate::default(),
            spin: Spin::new(run.clock.ticks(SPIN_NS)),
            epoch,
            dealt: true,
            older: 0,
            sequence: (seat.worker as u64) << 48,
            chunk: Vec::new(),
            most_queued: 0,
            again: Vec::new(),
            verifying: Verifying::default(),
        }
    }

    fn run(&mut self) -> io::Result<()> {
        self.adopt()?;
        while !self.run.stopping() {
            let wake_ticks = if self.epoch.schedule.is_some() {
                self.refill_by_arrival()?
            } else {
                self.refill()?
            };
            self.stamp();
            self.pass(wake_ticks)?;
            self.reap()?;
        }
        while self.room.in_flight() > 0 && !self.run.abandoned() {
            self.stamp();
            self.ring.wait(None, false)?;
            self.reap()?;
        }
        self.drop_held();
        self.cancel()
    }

    /// Takes over the epoch its seat has now.
    fn adopt(&mut self) -> io::Result<()> {
        let epoch = Arc::clone(&self.seat.epoch());
        let settings = &epoch.settings;
        self.dealt = epoch.is_dealt();
        let most: Vec<u32> = (0..self.run.targets.len())
            .map(|target| self.share(settings, target))
            .collect();
        self.room.deal(|target| most[target]);
        self.seat.adopt(epoch.index);
        self.gate.enter(&epoch);
        // This worker may have no place any more on the targets they are for.
        self.gate.leave();
        let (ios, length) = (
            self.room.most_in_flight(),
            usize::try_from(settings.part_bytes).unwrap_or(usize::MAX),
        );
        self.most_queued =
            u32::try_from((ios / CHUNKS).clamp(CHUNK.0, CHUNK.1)).unwrap_or(u32::MAX);
        self.flights.keep_below(ios);
        self.arenas[0].ensure(&mut self.ring, ios, length)?;
        if settings.writes() {
            self.arenas[1].ensure(&mut self.ring, ios, length)?;
        }
        if epoch.index != self.epoch.index {
            self.older = self.room.in_flight();
            self.drop_held();
        }
        if self.older == 0 {
            self.seat.settle(epoch.index);
        }
        self.epoch = epoch;
        Ok(())
    }

    /// How much of a target's depth this worker keeps now.
    fn share(&self, settings: &Settings, target: usize) -> u32 {
        let (worker, workers) = (self.seat.worker, settings.threads);
        let share = share(settings.depth_of(target), target, worker, workers);
        let share = u32::try_from(share).unwrap_or(u32::MAX);
        if self.dealt {
            share
        } else {
            share.min(self.seat.allowed(target))
        }
    }

    /// Issues what there is room for, but for the last chunk; when to look again at the latest.
    fn refill(&mut self) -> io::Result<u64> {
        let now_ticks = self.run.clock.now();
        if self.room.any_aside() {
            self.room.retry();
        }
        let mut wake_ticks = u64::MAX;
        while let Some(target) = self.room.take() {
            match self.next(target, now_ticks) {
                Next::Issue(part) => match self.issue(part, now_ticks)? {
                    Issued::Yes => {}
                    Issued::Held => self.room.put_back(target),
                    Issued::HeldLast => {
                        self.room.set_aside(target);
                        wake_ticks = wake_ticks.min(now_ticks + self.run.clock.ticks(BLOCKED_NS));
                    }
                },
                Next::NotBefore(due) => {
                    self.room.put_back(target);
                    return Ok(wake_ticks.min(due));
                }
                Next::Refused(due) => {
                    self.room.set_aside(target);
                    wake_ticks = wake_ticks.min(due);
                }
                Next::Blocked => {
                    self.room.set_aside(target);
                    wake_ticks = wake_ticks.min(now_ticks + self.run.clock.ticks(BLOCKED_NS));
                }
            }
        }
        Ok(wake_ticks)
    }

    /// Issues what has arrived, target by target; when to look again at the latest.
    fn refill_by_arrival(&mut self) -> io::Result<u64> {
        self.room.forget_order();
        let mut wake_ticks = u64::MAX;
        for target in 0..self.epoch.settings.width {
            while self.room.has_place(target) {
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

    /// What to do with room on a target: a write that waited, if its place is free by now, else whatever is drawn.
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
        let count = self.room.issued(part.target);
        self.seat.set_in_flight(part.target, count);
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

    /// Hands what is queued to the kernel; its clock starts.
    fn submit(&mut self) -> io::Result<()> {
        self.stamp();
        self.ring.submit()
    }

    fn entry(&self, part: &Part, buffer: Buffer) -> squeue::Entry {
        if self.run.limits.ring_use == RingUse::Dry {
            return opcode::Nop::new().build();
        }
        let write_flags = self.epoch.settings.mode.write_flags();
        if self.ring.registry.files {
            // The flag turns the descriptor into an index of the registered files.
            let file = types::Fd(i32::try_from(part.file).unwrap_or(-1));
            return entry(file, part, buffer, write_flags).flags(squeue::Flags::FIXED_FILE);
        }
        entry(
            types::Fd(self.run.routes.node(part.file as usize).fd.as_raw_fd()),
            part,
            buffer,
            write_flags,
        )
    }

    /// Starts the clock of queued I/Os, right before the call that submits them.
    #[inline]
    fn stamp(&mut self) {
        if self.chunk.is_empty() {
            return;
        }
        self.flights
            .stamp(self.chunk.drain(..), self.run.clock.now());
    }

    /// Counts all that came back, in the epoch its seat has now.
    fn reap(&mut self) -> io::Result<()> {
        let (mut woken, mut count) = (false, 0_u32);
        self.ring.completions.sync();
        let epoch = self.seat.epoch();
        let reaped_ticks = self.run.clock.now();
        let (mut levels, mut may_look) = (None, self.run.contents.is_due(reaped_ticks));
        while let Some(completion) = self.ring.completions.next() {
            let Some(number) = flight_number(completion.user_data()) else {
                woken |= completion.user_data() == WOKEN;
                continue;
            };
            count += 1;
            let flight = self.flights.get(number);
            let result = self.result(&flight.part, completion.result());
            if !(result == -libc::ECANCELED && self.run.abandoned()) {
                // A worker just hired has no place in the epoch before, and nothing to count there.
                let levels =
                    *levels.get_or_insert_with(|| epoch.levels(self.seat.worker, reaped_ticks));
                let (part, sent_ticks) = (&flight.part, flight.issued_ticks);
                let levels = epoch.levels_of(part, self.seat.worker, levels);
                let lost = self
                    .run
                    .back(&epoch, levels, part, result, sent_ticks, reaped_ticks);
                if lost && flight.attempts < self.run.paths_of(part.target) {
                    self.again.push(number);
                    continue;
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
            }
            if may_look && flight.part.is_whole_read(completion.result()) {
                may_look = false;
                self.look_at(number, flight, reaped_ticks);
            }
            self.older -= usize::from(flight.epoch != self.epoch.index);
            self.arenas[flight.part.direction as usize].give_back(&mut self.ring, flight.region);
            let left = self.room.returned(flight.part.target);
            self.seat.set_in_flight(flight.part.target, left);
            self.flights.remove(number);
        }
        let turned = epoch.index != self.epoch.index || woken && !self.dealt;
        drop(epoch);
        self.retry(reaped_ticks)?;
        if woken {
            self.seat.waker.clear();
            self.listen()?;
        }
        if turned {
            return self.adopt();
        }
        if self.older == 0 && count > 0 {
            self.seat.settle(self.epoch.index);
        }
        Ok(())
    }

    /// What an I/O brought; a no-op stands for one that succeeded.
    #[inline]
    fn result(&self, part: &Part, result: i32) -> i32 {
        if self.run.limits.ring_use == RingUse::Dry && result == 0 {
            return i32::try_from(part.length).unwrap_or(i32::MAX);
        }
        result
    }

    /// Sends I/Os whose path failed to another; they keep their place, their buffer and their beginning.
    fn retry(&mut self, now_ticks: u64) -> io::Result<()> {
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

    /// Judges what a read that just came back brought.
    fn look_at(&self, number: usize, flight: &Flight, reaped_ticks: u64) {
        let arena = &self.arenas[Direction::Read as usize];
        if let Some(pointer) = arena.pointer(number, flight.region) {
            let (contents, part) = (&self.run.contents, &flight.part);
            // SAFETY: the buffer was not given back yet, and holds the whole part.
            unsafe { contents.look(part.target, pointer, part.length, reaped_ticks) };
        }
    }

    /// Arms the poll by which a turn or a stop wakes this worker, even when its device is stalled.
    fn listen(&mut self) -> io::Result<()> {
        let Some(descriptor) = self.seat.waker.descriptor() else {
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

    /// Asks the kernel to give up what is still outstanding and waits a moment for it.
    fn cancel(&mut self) -> io::Result<()> {
        if self.room.in_flight() == 0 {
            return Ok(());
        }
        let every = opcode::AsyncCancel2::new(types::CancelBuilder::any().all());
        let entry = every.build().user_data(CANCELLED);
        // SAFETY: the entry points to nothing.
        unsafe { self.ring.push(&entry)? };
        let deadline = std::time::Instant::now() + CANCEL_PATIENCE;
        while self.room.in_flight() > 0 {
            let left = deadline.saturating_duration_since(std::time::Instant::now());
            if left.is_zero() {
                return Ok(());
            }
            self.ring.wait(Some(left), false)?;
            self.reap()?;
        }
        Ok(())
    }
}

/// What became of an I/O that was to be issued.
enum Issued {
    Yes,
    /// It waits for another write to its place.
    Held,
    /// It waits, and no more may do so on its target.
    HeldLast,
}

fn flight_number(user_data: u64) -> Option<usize> {
    if user_data < CANCELLED {
        usize::try_from(user_data).ok()
    } else {
        None
    }
}

fn entry(file: types::Fd, part: &Part, buffer: Buffer, write_flags: i32) -> squeue::Entry {
    if part.is_fsync() {
        return opcode::Fsync::new(file).build();
    }
    let (pointer, length, offset) = (buffer.pointer.as_ptr(), part.length, part.offset);
    match (part.direction, buffer.registered) {
        (Direction::Read, Some(index)) => opcode::ReadFixed::new(file, pointer, length, index)
            .offset(offset)
            .build(),
        (Direction::Read, None) => opcode::Read::new(file, pointer, length)
            .offset(offset)
            .build(),
        (Direction::Write, Some(index)) => opcode::WriteFixed::new(file, pointer, length, index)
            .offset(offset)
            .rw_flags(write_flags)
            .build(),
        (Direction::Write, None) => opcode::Write::new(file, pointer, length)
            .offset(offset)
            .rw_flags(write_flags)
            .build(),
    }
}
