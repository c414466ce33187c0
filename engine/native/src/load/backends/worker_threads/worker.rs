//! State of a worker thread, and how it takes over an epoch.

use std::io;
use std::sync::Arc;

use crate::load::data::memory::Memory;
use crate::load::data::payload;
use crate::load::epochs::epoch::Epoch;
use crate::load::knobs::Settings;
use crate::load::pace::pacing::Gate;
use crate::load::pattern::{Part, Rng};
use crate::load::running::run::Run;
use crate::load::running::sink::slot_bytes;
use crate::load::running::worker_handle::WorkerHandle;
use crate::load::verify::Entry;

pub(super) struct Worker<'a> {
    pub(super) run: &'a Run,
    pub(super) handle: &'a WorkerHandle,
    pub(super) slot: usize,
    /// The number of the next target, which rises without end, where the worker takes several in turn.
    pub(super) turn: usize,
    pub(super) rng: Rng,
    pub(super) gate: Gate,
    pub(super) epoch: Arc<Epoch>,
    /// Whether the handle has another epoch by now.
    pub(super) epoch_turned: bool,
    /// What writes come from, filled when it was mapped.
    pub(super) source: Option<Memory>,
    pub(super) sequence: u64,
    /// A write that waits for another to the same range, with --verify.
    pub(super) held: Option<Part>,
    /// The buffer of reads whose data is checked, with --verify.
    pub(super) own_sink: Option<Memory>,
    /// What the range of a read had to hold when it was issued, with --verify.
    pub(super) expected: Vec<Entry>,
}

impl Worker<'_> {
    /// Takes over the epoch its handle has now; whether this slot is used in it.
    pub(super) fn adopt(&mut self) -> io::Result<bool> {
        let epoch = self.handle.epoch();
        let settings = &epoch.settings;
        let used = self.slot < self.slots(settings);
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

    /// How many workers like this one are used.
    fn slots(&self, settings: &Settings) -> usize {
        match settings.one_queue() {
            Some(depth) if self.handle.served.several() => depth,
            None if !self.handle.served.several() => settings.depth_of(self.handle.served.first),
            _ => 0,
        }
    }

    fn filled(&self, bytes: usize) -> io::Result<Memory> {
        let memory = Memory::new(bytes)?;
        // SAFETY: the mapping is ours alone and has this many bytes.
        let slice = unsafe { std::slice::from_raw_parts_mut(memory.base().as_ptr(), bytes) };
        payload::fill(slice, self.run.seed() ^ self.sequence, 0);
        Ok(memory)
    }

    /// Gives up a write that was drawn and never issued.
    pub(super) fn drop_held(&mut self) {
        if let Some(part) = self.held.take() {
            self.run.drop_part(&part);
        }
    }
}
