//! The life cycle of a run: which workers are still running, why it ends, and what that wakes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex};
use std::time::{Duration, Instant as Deadline};

use crate::load::system::lock::lock;

#[derive(Default)]
pub struct Life {
    stopping: AtomicBool,
    abandoned: AtomicBool,
    fault: Mutex<String>,
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    started: bool,
    workers: usize,
    lost_ios: usize,
    /// Incremented whenever something changed that the coordinator should check.
    nudges: u64,
}

impl Life {
    #[inline]
    pub fn stopping(&self) -> bool {
        self.stopping.load(Ordering::Relaxed)
    }

    /// Stops issuing; false if it was stopped before.
    pub fn begin_stop(&self) -> bool {
        !self.stopping.swap(true, Ordering::SeqCst)
    }

    /// Whether what is outstanding was given up.
    pub fn abandoned(&self) -> bool {
        self.abandoned.load(Ordering::Relaxed)
    }

    pub fn abandon(&self) {
        self.abandoned.store(true, Ordering::SeqCst);
    }

    pub fn fault(&self) -> String {
        lock(&self.fault).clone()
    }

    /// Records why the load ends by itself; the first reason is kept.
    pub fn set_fault(&self, text: String) {
        let mut fault = lock(&self.fault);
        if fault.is_empty() {
            *fault = text;
        }
        drop(fault);
        self.notify();
    }

    pub fn start(&self) {
        lock(&self.state).started = true;
        self.changed.notify_all();
    }

    pub fn started(&self) -> bool {
        lock(&self.state).started
    }

    /// Holds a worker back until the run starts, or is given up.
    pub fn wait_for_start(&self) {
        let state = lock(&self.state);
        drop(
            self.changed
                .wait_while(state, |state| !state.started && !self.stopping()),
        );
    }

    pub fn worker_begins(&self) {
        lock(&self.state).workers += 1;
    }

    pub fn worker_ends(&self, lost_ios: usize) {
        let mut state = lock(&self.state);
        state.workers -= 1;
        state.lost_ios += lost_ios;
        drop(state);
        self.changed.notify_all();
    }

    /// Waits until every worker has ended; whether that was in time, with all I/Os completed.
    pub fn wait_for_end(&self, timeout: Duration) -> bool {
        let deadline = Deadline::now() + timeout;
        let mut state = lock(&self.state);
        while state.workers > 0 {
            let left = deadline.saturating_duration_since(Deadline::now());
            if left.is_zero() {
                return false;
            }
            state = match self.changed.wait_timeout(state, left) {
                Ok((state, _)) => state,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
        state.lost_ios == 0
    }

    /// Wakes every thread that waits for the run to start, turn or end.
    pub fn notify(&self) {
        lock(&self.state).nudges += 1;
        self.changed.notify_all();
    }

    /// How often `notify` was called.
    pub fn nudges(&self) -> u64 {
        lock(&self.state).nudges
    }

    /// Sleeps until the time has passed, or `notify` was called since there were this many nudges.
    pub fn pause(&self, nudges: u64, duration: Duration) {
        let state = lock(&self.state);
        let same = |state: &mut State| state.nudges == nudges;
        drop(self.changed.wait_timeout_while(state, duration, same));
    }
}
