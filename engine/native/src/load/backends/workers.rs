//! The worker threads of either backend.

use std::io;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use super::{worker_threads, worker_uring};
use crate::load::counts::levels::Served;
use crate::load::epochs::epoch::Epoch;
use crate::load::knobs::Settings;
use crate::load::running::backend::Backend;
use crate::load::running::failure::Failure;
use crate::load::running::run::Run;
use crate::load::running::shared_state::Core;
use crate::load::running::worker_handle::{Waker, WorkerHandle};
use crate::load::system::refusal::{refused, words};

/// Stacks are touched a few pages deep only.
const STACK_BYTES: usize = 256 << 10;

type Spawned = (Vec<JoinHandle<()>>, Vec<&'static str>);

/// Starts the workers that settings need beyond those there are; what the kernel granted them.
pub fn spawn(
    core: &Arc<Core>,
    backend: Backend,
    epoch: &Arc<Epoch>,
    settings: &Settings,
) -> Result<Spawned, Failure> {
    match backend {
        Backend::Uring => spawn_rings(core, epoch, settings),
        Backend::Threads => spawn_threads(core, epoch, settings),
    }
}

fn spawn_threads(
    core: &Arc<Core>,
    epoch: &Arc<Epoch>,
    settings: &Settings,
) -> Result<Spawned, Failure> {
    let mut spawned = Vec::new();
    let present = |is_one: &dyn Fn(&Served) -> bool| {
        let worker_handles = core.worker_handles();
        let ours = worker_handles
            .iter()
            .filter(|handle| is_one(&handle.served));
        ours.count()
    };
    if let Some(depth) = settings.one_queue() {
        for slot in present(&Served::several)..depth {
            spawned.push(spawn_thread(core, epoch, serves_all(core), slot)?);
        }
        return Ok((spawned, vec!["preadv2"]));
    }
    for target in 0..settings.width {
        let serves_it = |served: &Served| !served.several() && served.first == target;
        for slot in present(&serves_it)..settings.depth_of(target) {
            spawned.push(spawn_thread(core, epoch, serves_one(core, target), slot)?);
        }
    }
    Ok((spawned, vec!["preadv2"]))
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

fn spawn_thread(
    core: &Arc<Core>,
    epoch: &Arc<Epoch>,
    served: Served,
    slot: usize,
) -> io::Result<JoinHandle<()>> {
    let handle = core.add_worker(served, Waker::park(), epoch);
    let spawned = start(core, &handle, move |run, handle| {
        worker_threads::work(run, handle, slot).map(|()| 0)
    });
    if spawned.is_err() {
        // Slots are counted by their worker handles.
        core.worker_handles().pop();
    }
    spawned
}

fn spawn_rings(
    core: &Arc<Core>,
    epoch: &Arc<Epoch>,
    settings: &Settings,
) -> Result<Spawned, Failure> {
    let (mut spawned, mut features) = (Vec::new(), Vec::new());
    let present = core.worker_handles().len();
    for _ in present..settings.threads {
        let (thread, granted) = spawn_ring(core, epoch)?;
        spawned.push(thread);
        features = granted;
    }
    Ok((spawned, features))
}

/// Starts one worker with a ring and waits until it reports ready or refused.
fn spawn_ring(
    core: &Arc<Core>,
    epoch: &Arc<Epoch>,
) -> Result<(JoinHandle<()>, Vec<&'static str>), Failure> {
    let (sender, receiver) = mpsc::channel();
    let handle = core.add_worker(serves_all(core), Waker::event()?, epoch);
    // The receiver waits for the report.
    let work = move |run: &Run, handle: &WorkerHandle| {
        worker_uring::work(run, handle, |word| drop(sender.send(word)))
    };
    let spawned = start(core, &handle, work).and_then(|thread| {
        let granted = receiver.recv().map_err(io::Error::other)?;
        Ok((thread, granted?))
    });
    if spawned.is_err() {
        // Shares are computed over the worker handles.
        core.worker_handles().pop();
    }
    Ok(spawned?)
}

fn start(
    core: &Arc<Core>,
    handle: &Arc<WorkerHandle>,
    work: impl FnOnce(&Run, &WorkerHandle) -> io::Result<usize> + Send + 'static,
) -> io::Result<JoinHandle<()>> {
    let (run, handle) = (Arc::clone(&core.run), Arc::clone(handle));
    run.life.worker_begins();
    let presence = Presence {
        run: Arc::clone(&run),
        lost_ios: 0,
        finished: false,
    };
    let body = move || {
        let mut presence = presence;
        block_signals();
        handle.cpu.begin();
        match work(&run, &handle) {
            Ok(lost_ios) => presence.lost_ios = lost_ios,
            Err(error) => {
                run.life
                    .set_fault(format!("worker {}: {}", handle.worker, words(&error)));
            }
        }
        handle.cpu.end();
        presence.finished = true;
    };
    let spawned = std::thread::Builder::new()
        .name("load".into())
        .stack_size(STACK_BYTES)
        .spawn(body);
    spawned.map_err(|error| {
        refused(
            &error,
            "a thread of the load",
            "use fewer, or raise `ulimit -u`",
        )
    })
}

/// Reports the end of a worker however its thread ends.
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

/// What a thread does to itself; blocked, it would end the process without a word of the handlers that explain it.
const FAULTS: [i32; 5] = [
    libc::SIGSEGV,
    libc::SIGBUS,
    libc::SIGFPE,
    libc::SIGILL,
    libc::SIGTRAP,
];

/// All other signals are for the program's own threads.
fn block_signals() {
    // SAFETY: sigset_t is plain memory that sigfillset sets up, and the mask is this thread's own.
    unsafe {
        let mut every = std::mem::zeroed();
        libc::sigfillset(&raw mut every);
        for fault in FAULTS {
            libc::sigdelset(&raw mut every, fault);
        }
        libc::pthread_sigmask(libc::SIG_SETMASK, &raw const every, std::ptr::null_mut());
    }
}
