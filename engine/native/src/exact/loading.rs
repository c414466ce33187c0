//! The embedded object: its maps created, its programs loaded.

use std::sync::Mutex;
use std::thread;

use aya::programs::Program;
use aya::{Btf, Ebpf, EbpfLoader};

use super::failure::Failure;
use super::form::Form;
use super::sizes::Sizes;
use super::types::Types;

/// More threads would wait for the longest program.
const MOST_THREADS: usize = 4;

/// Creates the maps and loads `programs`, given by name and tracepoint; nothing runs yet.
pub fn load<'name>(
    types: &Types,
    form: Form,
    sizes: &Sizes,
    programs: impl Iterator<Item = (&'name str, &'name str)> + Clone,
) -> Result<Ebpf, Failure> {
    let btf = types.parse()?;
    let is_refused =
        |failure: &Failure| matches!(failure, Failure::Os { errno, .. } if *errno == libc::EPERM);
    match load_once(&btf, form, sizes, programs.clone()) {
        Err(failure) if is_refused(&failure) && lock_more() => {
            load_once(&btf, form, sizes, programs)
        }
        tried => tried,
    }
    .map_err(|failure| {
        if is_refused(&failure) {
            too_much()
        } else {
            failure
        }
    })
}

fn load_once<'name>(
    btf: &Btf,
    form: Form,
    sizes: &Sizes,
    programs: impl Iterator<Item = (&'name str, &'name str)>,
) -> Result<Ebpf, Failure> {
    let mut loader = EbpfLoader::new();
    loader.btf(Some(btf));
    loader.set_global("io_set_bits", &sizes.io_set_bits, true);
    loader.set_global("process_bits", &sizes.process_bits, true);
    loader.set_global("shard_of_cpu", &sizes.shards.of_cpu[..], true);
    loader.set_global("shards", &sizes.shards.number, true);
    let [first_own_cell, cells_end, sums_end] = sizes.bounds();
    loader.set_global("first_own_cell", &first_own_cell, true);
    loader.set_global("cells_end", &cells_end, true);
    loader.set_global("sums_end", &sums_end, true);
    for (map, entries) in sizes.of_maps() {
        loader.set_max_entries(map, entries);
    }
    let mut ebpf = loader
        .load(form.object())
        .map_err(|error| Failure::library("creating the maps", &error))?;
    verify(&mut ebpf, btf, programs)?;
    Ok(ebpf)
}

/// The right to create maps and to load programs has been tried out before: what is not permitted then is as much of them.
fn too_much() -> Failure {
    Failure::Os {
        errno: libc::ENOMEM,
        text: "creating the maps: the kernel counts them as locked memory, which is limited: raise ulimit -l, or \
               run as root"
            .to_owned(),
    }
}

/// Lets this process lock any amount of memory: before Linux 5.11 maps and programs count as such, for as long as they live,
/// and too much is refused like a missing right. Whether anything has changed.
pub fn lock_more() -> bool {
    let mut limit = libc::rlimit {
        rlim_cur: 0,
        rlim_max: 0,
    };
    let unlimited = libc::rlimit {
        rlim_cur: libc::RLIM_INFINITY,
        rlim_max: libc::RLIM_INFINITY,
    };
    // SAFETY: both are live structures of the right type.
    unsafe {
        libc::getrlimit(libc::RLIMIT_MEMLOCK, &raw mut limit) == 0
            && limit.rlim_cur != libc::RLIM_INFINITY
            && libc::setrlimit(libc::RLIMIT_MEMLOCK, &raw const unlimited) == 0
    }
}

/// Most of a start is the kernel's verification of the programs, each on its own: as many at once as there are cores.
fn verify<'name>(
    ebpf: &mut Ebpf,
    btf: &Btf,
    programs: impl Iterator<Item = (&'name str, &'name str)>,
) -> Result<(), Failure> {
    let mut embedded: Vec<_> = ebpf.programs_mut().collect();
    let mut waiting = Vec::new();
    for (name, tracepoint) in programs {
        let place = embedded
            .iter()
            .position(|(other, _)| *other == name)
            .ok_or_else(|| missing(name))?;
        waiting.push((name, tracepoint, embedded.swap_remove(place).1));
    }
    let threads = thread::available_parallelism().map_or(1, |cores| cores.get().min(MOST_THREADS));
    let waiting = Mutex::new(waiting.into_iter());
    let next = || waiting.lock().ok()?.next();
    thread::scope(|scope| {
        let workers: Vec<_> = (0..threads)
            .map(|_| {
                scope.spawn(|| {
                    while let Some((name, tracepoint, program)) = next() {
                        verify_one(name, tracepoint, program, btf)?;
                    }
                    Ok(())
                })
            })
            .collect();
        workers.into_iter().try_for_each(|worker| {
            worker
                .join()
                .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        })
    })
}

fn verify_one(
    name: &str,
    tracepoint: &str,
    program: &mut Program,
    btf: &Btf,
) -> Result<(), Failure> {
    let loaded = match program {
        Program::BtfTracePoint(program) => program.load(tracepoint, btf),
        Program::RawTracePoint(program) => program.load(),
        _ => return Err(missing(name)),
    };
    loaded
        .map_err(|error| Failure::library(format_args!("loading {name} for {tracepoint}"), &error))
}

pub fn missing(name: &str) -> Failure {
    Failure::Value(format!("{name} is missing in the embedded object"))
}
