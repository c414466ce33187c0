//! The load engine as its user sees it: start, turn, read, stop.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use super::backends::workers;
use super::knobs::{Knobs, Limits, Settings};
use super::pace::flow::{FlowGate, FlowShare};
use super::running::backend::Backend;
use super::running::coordinator::coordinate;
use super::running::failure::Failure;
use super::running::readings::Readings;
use super::running::run::Run;
use super::running::shared_state::Core;
use super::system::lock::lock;
use super::targets::mode_turn;
use super::targets::target::Target;
use super::verify::{self, Verifier};

/// How long workers have to end after their I/Os were given up.
const LEAVE_PATIENCE: Duration = Duration::from_millis(500);
/// How long dropping an engine that was not stopped may block.
const DROP_PATIENCE: Duration = Duration::from_secs(1);
/// How long it may be until its descriptors are closed.
const CLOSE_PATIENCE: Duration = Duration::from_millis(300);

/// What is fixed for a run.
pub struct Options {
    pub backend: Backend,
    pub limits: Limits,
    pub seed: u64,
    pub runtime: Option<Duration>,
    /// The file of the write map of every target with --verify, or none to keep it in memory.
    pub journals: Option<Vec<Option<File>>>,
    /// Part of this load in a flow of several; only this load uses it.
    pub flow: Option<Arc<FlowShare>>,
}

/// A load on a fixed set of targets.
pub struct Engine {
    /// Dropped by a thread of its own.
    core: ManuallyDrop<Arc<Core>>,
    backend: Backend,
    /// Time from the start after which the load ends; it may change while the load runs.
    runtime: Arc<Mutex<Option<Duration>>>,
    features: Vec<&'static str>,
    threads: Mutex<Vec<JoinHandle<()>>>,
}

impl Engine {
    /// Sets up workers that wait for `start`.
    pub fn new(
        targets: Vec<Arc<Target>>,
        knobs: &Knobs,
        mut options: Options,
    ) -> Result<Self, Failure> {
        if targets.is_empty() {
            return Err(Failure::Value("targets: there are none".into()));
        }
        let verifier = match options.journals.take() {
            Some(journals) => {
                let grain_bytes = grain_bytes(knobs, &options.limits)?;
                options.limits.grain_bytes = Some(grain_bytes);
                Some(Verifier::new(
                    &targets,
                    journals,
                    grain_bytes,
                    options.seed,
                )?)
            }
            None => None,
        };
        let settings = Arc::new(Settings::new(knobs, &options.limits, &targets)?);
        let mut run = Run::new(targets, options.limits, options.seed, knobs.policy);
        run.verifier = verifier;
        let workers = match options.backend {
            Backend::Uring => settings.threads,
            Backend::Threads => settings.outstanding(),
        };
        let share = options.flow.take();
        run.flow = share.map(|share| FlowGate::new(share, workers, run.clock));
        let run = Arc::new(run);
        run.fsyncs.turn(settings.fsync_due());
        let core = Arc::new(Core::new(run, settings, options.backend)?);
        let mut engine = Self {
            core: ManuallyDrop::new(core),
            backend: options.backend,
            runtime: Arc::new(Mutex::new(options.runtime)),
            features: Vec::new(),
            threads: Mutex::default(),
        };
        engine.features = engine.spawn_workers()?;
        if engine
            .core
            .run
            .targets
            .iter()
            .any(|target| !target.writable)
        {
            engine.features.push("read_only_files");
        }
        Ok(engine)
    }

    /// Starts the threads the current settings need; what the kernel granted them.
    fn spawn_workers(&self) -> Result<Vec<&'static str>, Failure> {
        let timeline = lock(&self.core.timeline);
        let epoch = Arc::clone(timeline.current());
        let (threads, features) =
            workers::spawn(&self.core, self.backend, &epoch, &epoch.settings)?;
        lock(&self.threads).extend(threads);
        Ok(features)
    }

    /// Opens epoch 0 and lets the workers go.
    pub fn start(&self) -> Result<(), Failure> {
        let mut timeline = lock(&self.core.timeline);
        if self.core.run.life.stopping() || self.core.run.life.started() {
            return Err(Failure::Value("the load was started before".into()));
        }
        let settings = Arc::clone(&timeline.current().settings);
        let first = self.core.next_epoch(0, settings, timeline.current())?;
        self.core
            .worker_handles()
            .iter()
            .for_each(|handle| *handle.epoch() = Arc::clone(&first));
        if self.core.run.has_budget() && self.core.run.limits.ramp_ns == 0 {
            // A load with a number of bytes counts every one of them; nothing older is outstanding.
            first.cpu.begin(self.core.cpu_now());
            first.begin(self.core.run.now());
        }
        timeline.replace(first);
        drop(timeline);
        self.core.run.life.start();
        let (core, runtime) = (Arc::clone(&self.core), Arc::clone(&self.runtime));
        let coordinator = std::thread::Builder::new()
            .name("load-clock".into())
            .spawn(move || coordinate(&core, &runtime))?;
        lock(&self.threads).push(coordinator);
        Ok(())
    }

    /// Ends the load a time after its start and not when was said before; none: only `stop` ends it.
    pub fn end_after(&self, runtime: Option<Duration>) {
        *lock(&self.runtime) = runtime;
        self.core.run.life.notify();
    }

    /// Turns to other knobs; the index of the epoch this opens.
    pub fn turn(&self, knobs: &Knobs) -> Result<u32, Failure> {
        let run = &self.core.run;
        let mut settings = Settings::new(knobs, &run.limits, &run.targets)?;
        let mut timeline = lock(&self.core.timeline);
        if run.life.stopping() {
            return Err(Failure::Value("the load has ended".into()));
        }
        let (current, started) = (Arc::clone(timeline.current()), run.life.started());
        settings.follow(&current.settings);
        let settings = Arc::new(settings);
        let direct = settings.mode.is_direct();
        let mode_turns = direct != current.settings.mode.is_direct();
        if mode_turns && direct {
            mode_turn::check_direct(&run.targets)?;
        }
        let (threads, _) = workers::spawn(&self.core, self.backend, &current, &settings)?;
        lock(&self.threads).extend(threads);
        let next = self
            .core
            .next_epoch(current.index + u32::from(started), settings, &current)?;
        if mode_turns && !started {
            mode_turn::turn(&run.targets, direct)?;
        }
        run.fsyncs.turn(next.settings.fsync_due());
        if started {
            self.core.end(&current, next.turned);
        }
        run.routes.turn(knobs.policy);
        self.core
            .worker_handles()
            .iter()
            .for_each(|handle| *handle.epoch() = Arc::clone(&next));
        self.core.wake_users(&next);
        let index = next.index;
        current.retire(&next);
        if started {
            timeline.turn(next);
        } else {
            timeline.replace(next);
        }
        drop(timeline);
        run.life.notify();
        Ok(index)
    }

    /// The figures of this load.
    pub fn readings(&self) -> Readings<'_> {
        Readings::new(&self.core)
    }

    pub fn running(&self) -> bool {
        self.core.run.life.started() && !self.core.run.life.stopping()
    }

    /// Whether the open epoch issues nothing yet.
    pub fn waits(&self) -> bool {
        !lock(&self.core.timeline).current().opening.is_open()
    }

    /// Whether it ended because everything it was to transfer was transferred.
    pub fn done(&self) -> bool {
        let run = &self.core.run;
        run.life.stopping() && run.is_done(&lock(&self.core.timeline).current().settings)
    }

    pub fn fault(&self) -> String {
        self.core.run.life.fault()
    }

    pub fn features(&self) -> &[&'static str] {
        &self.features
    }

    /// Stops issuing and waits for what is outstanding, up to a time; whether all completed. May be called again.
    pub fn drain(&self, timeout: Duration) -> bool {
        self.core.finish();
        self.core.run.life.wait_for_end(timeout)
    }

    /// Stops issuing and waits for what is outstanding; whether all completed in time. The others are given up.
    pub fn stop(&self, timeout: Duration) -> bool {
        let run = &self.core.run;
        let timely = self.drain(timeout);
        run.routes.end();
        if !timely {
            run.life.abandon();
            self.core
                .worker_handles()
                .iter()
                .for_each(|handle| handle.waker.wake());
            run.life.wait_for_end(LEAVE_PATIENCE);
        }
        let threads: Vec<JoinHandle<()>> = lock(&self.threads).drain(..).collect();
        // A thread inside a stalled system call owns what it uses and ends when the call returns. Even one that has finished
        // its work may hang in the kernel, which waits at its end for the helpers of its ring: none is joined then.
        for thread in threads.into_iter().filter(|_| timely) {
            // Why a worker panicked is in `fault`.
            drop(thread.join());
        }
        timely
    }
}

/// What all that these knobs write is a multiple of.
fn grain_bytes(knobs: &Knobs, limits: &Limits) -> Result<u64, String> {
    let writes = knobs.write_blocks.iter().flatten();
    let blocks = knobs.blocks.iter().chain(writes);
    let unit = [limits.stripe_unit_bytes, limits.offset_bytes];
    let unit = unit.into_iter().filter(|bytes| *bytes > 0);
    verify::grain_bytes(blocks.map(|share| share.block_bytes).chain(unit))
}

impl Drop for Engine {
    fn drop(&mut self) {
        if !self.core.run.life.abandoned() {
            self.stop(DROP_PATIENCE);
        }
        // Closing a descriptor may wait for its device, and the thread that drops an engine holds the GIL. Without
        // a thread the descriptors stay open until the process ends.
        // SAFETY: the field is not used again: only this takes it, and drop runs once.
        let core = unsafe { ManuallyDrop::take(&mut self.core) };
        let (sender, closed) = mpsc::channel::<()>();
        let close = move || {
            drop(core);
            drop(sender);
        };
        if std::thread::Builder::new()
            .name("load-close".into())
            .spawn(close)
            .is_ok()
        {
            let _ = closed.recv_timeout(CLOSE_PATIENCE);
        }
    }
}
