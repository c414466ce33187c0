//! The worker threads of either backend.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::coordinator::Core;
use super::engine::Failure;
use super::epoch::Epoch;
use super::knobs::Settings;
use super::levels::Served;
use super::refusal::{refused, words};
use super::run::Run;
use super::seat::{Seat, Waker};
use super::{worker_threads, worker_uring};

/// Stacks are touched a few pages deep only.
const STACK_BYTES: usize = 256 << 10;

/// What does the I/O.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backend {
    /// Threads with a ring each serve all targets; how many is a knob.
    Uring,
    /// One thread per outstanding I/O.
    Threads,
}

type Hired = (Vec<JoinHandle<()>>, Vec<&'static str>);

/// Starts the workers that settings need beyond those there are; what the kernel granted them.
pub fn hire(
    core: &Arc<Core>,
    backend: Backend,
    epoch: &Arc<Epoch>,
    settings: &Settings,
) -> Result<Hired, Failure> {
    match backend {
        Backend::Uring => hire_rings(core, epoch, settings),
        Backend::Threads => hire_threads(core, epoch, settings),
    }
}

fn hire_threads(
    core: &Arc<Core>,
    epoch: &Arc<Epoch>,
    settings: &Settings,
) -> Result<Hired, Failure> {
    let mut hired = Vec::new();
    for target in 0..settings.width {
        let present = core
            .seats()
            .iter()
            .filter(|seat| seat.served.first == target)
            .count();
        for place in present..settings.depth_of(target) {
            hired.push(hire_thread(core, epoch, target, place)?);
        }
    }
    Ok((hired, vec!["preadv2"]))
}

/// Whether a worker has anything to do in an epoch; rings are shared by all targets.
pub fn is_used(seat: &Seat, epoch: &Epoch) -> bool {
    seat.waker.descriptor().is_some() || seat.served.first < epoch.settings.width
}

fn serves_one(core: &Core, target: usize) -> Served {
    let (first_path, paths) = core.run.routes.files_of(target);
    let counts_paths = core.run.rows().paths > 0;
    Served {
        first: target,
        count: 1,
        first_path,
        paths: if counts_paths { paths } else { 0 },
    }
}

fn serves_all(core: &Core) -> Served {
    let rows = core.run.rows();
    Served {
        first: 0,
        count: rows.targets,
        first_path: 0,
        paths: rows.paths,
    }
}

fn hire_thread(
    core: &Arc<Core>,
    epoch: &Arc<Epoch>,
    target: usize,
    place: usize,
) -> io::Result<JoinHandle<()>> {
    let seat = core.seat(serves_one(core, target), Waker::park(), epoch);
    let hired = spawn(core, &seat, move |run, seat| {
        worker_threads::work(run, seat, place).map(|()| 0)
    });
    if hired.is_err() {
        // Places are counted by their seats.
        core.seats().pop();
    }
    hired
}

fn hire_rings(core: &Arc<Core>, epoch: &Arc<Epoch>, settings: &Settings) -> Result<Hired, Failure> {
    let (mut hired, mut features) = (Vec::new(), Vec::new());
    let present = core.seats().len();
    for _ in present..settings.threads {
        let (thread, granted) = hire_ring(core, epoch)?;
        hired.push(thread);
        features = granted;
    }
    Ok((hired, features))
}

/// Starts one worker with a ring and waits for its word.
fn hire_ring(
    core: &Arc<Core>,
    epoch: &Arc<Epoch>,
) -> Result<(JoinHandle<()>, Vec<&'static str>), Failure> {
    let (sender, receiver) = mpsc::channel();
    let seat = core.seat(serves_all(core), Waker::event()?, epoch);
    // The receiver waits for the word.
    let work =
        move |run: &Run, seat: &Seat| worker_uring::work(run, seat, |word| drop(sender.send(word)));
    let hired = spawn(core, &seat, work).and_then(|thread| {
        let granted = receiver.recv().map_err(io::Error::other)?;
        Ok((thread, granted?))
    });
    if hired.is_err() {
        // Shares are dealt by seats.
        core.seats().pop();
    }
    Ok(hired?)
}

fn spawn(
    core: &Arc<Core>,
    seat: &Arc<Seat>,
    work: impl FnOnce(&Run, &Seat) -> io::Result<usize> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (run, seat) = (Arc::clone(&core.run), Arc::clone(seat));
    run.life.worker_begins();
    let presence = Presence {
        run: Arc::clone(&run),
        lost_ios: 0,
        finished: false,
    };
    let body = move || {
        let mut presence = presence;
        block_signals();
        seat.cpu.begin();
        match work(&run, &seat) {
            Ok(lost_ios) => presence.lost_ios = lost_ios,
            Err(error) => run
                .life
                .set_fault(format!("worker {}: {}", seat.worker, words(&error))),
        }
        seat.cpu.end();
        presence.finished = true;
    };
    let hired = std::thread::Builder::new()
        .name("load".into())
        .stack_size(STACK_BYTES)
        .spawn(body);
    hired.map_err(|error| {
        refused(
            &error,
            "a thread of the load",
            "use fewer, or raise `ulimit -u`",
        )
    })
}

/// Signs a worker off however its thread ends.
struct Presence {
    run: Arc<Run>,
    lost_ios: usize,
    finished: bool,
}

impl Drop for Presence {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.finished {
            self.run.life.set_fault("a worker panicked".into());
        }
        self.run.life.worker_ends(self.lost_ios);
    }
}

/// Signals are for the program's own threads.
fn block_signals() {
    // SAFETY: sigset_t is plain memory that sigfillset sets up, and the mask is this thread's own.
    unsafe {
        let mut every = std::mem::zeroed();
        libc::sigfillset(&raw mut every);
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const every, std::ptr::null_mut());
    }
}
