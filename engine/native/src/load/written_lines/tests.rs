//! What a worker writes for an I/O lies on cache lines that no other worker writes, but for what `forms` names.

use std::process::Command;
use std::time::{Duration, Instant};

use super::forms::{FORMS, Form, Load, WORKERS};
use super::protection::writes_during;
use super::{shared, threads};
use crate::load::engine::Engine;
use crate::load::system::cpu::thread_ns;

/// Enough writes of each worker that what several write is written by several. They are counted, not the I/Os: while a thread
/// that may write a page is off the processor, others write to it unnoticed.
const WRITES: usize = 500;
const PATIENCE: Duration = Duration::from_secs(20);
/// Workers that protect each other's pages again before the write is done may get no further: the load is run again.
const WATCH: Duration = Duration::from_secs(4);
const ATTEMPTS: usize = 5;
/// Time after which a worker has begun.
const BEGUN_NS: u64 = 2_000_000;
const FORM: &str = "LUNSCOPE_WRITTEN_LINES";

/// Returns whether it came to that.
fn wait_until(patience: Duration, condition: impl Fn() -> bool) -> bool {
    let deadline = Instant::now() + patience;
    while !condition() {
        if Instant::now() > deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    true
}

/// Runs a load in this process, which must be one of its own, and prints what its workers wrote together.
#[test]
#[ignore = "run by the test below in a process of its own"]
fn watched_load() {
    let Ok(name) = std::env::var(FORM) else {
        return;
    };
    let form = FORMS.iter().find(|form| form.name == name).unwrap();
    let Load {
        targets,
        knobs,
        options,
    } = form.load();
    let Ok(engine) = Engine::new(targets, &knobs, options) else {
        return println!("no ring");
    };
    engine.start().unwrap_or_else(|_| panic!("start"));
    let begun = |thread: &i32| thread_ns(*thread).is_some_and(|ns| ns > BEGUN_NS);
    let all_begun = || {
        threads("load")
            .iter()
            .filter(|thread| begun(thread))
            .count()
            == WORKERS
    };
    assert!(wait_until(PATIENCE, all_begun), "not all workers began");
    let workers = threads("load");
    let mut enough = false;
    let notes = writes_during(|written| {
        enough = wait_until(WATCH, || {
            workers.iter().all(|worker| written(*worker) >= WRITES)
        });
    });
    assert!(engine.stop(PATIENCE), "{}", engine.fault());
    println!(
        "{} {}",
        if enough { "writes" } else { "stuck" },
        notes.len()
    );
    for (function, (lines, writes)) in shared(&notes, &workers) {
        println!("shared {function}: {lines} lines, {writes} writes");
    }
}

enum Watched {
    NoRing,
    Stuck,
    /// How many writes, and the functions that wrote shared lines.
    Writes(usize, Vec<String>),
}

fn watched(form: &Form) -> Watched {
    let test = "load::written_lines::tests::watched_load";
    let child = Command::new(std::env::current_exe().unwrap())
        .args([test, "--exact", "--ignored", "--nocapture"])
        .env(FORM, form.name)
        // As many heaps as threads, as a host with more processors has.
        .env("MALLOC_ARENA_MAX", "64")
        .output()
        .unwrap();
    let printed = String::from_utf8_lossy(&child.stdout);
    let errors = String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{}: {printed}{errors}", form.name);
    if printed.lines().any(|line| line.starts_with("stuck ")) {
        return Watched::Stuck;
    }
    let mut counts = printed
        .lines()
        .filter_map(|line| line.strip_prefix("writes "));
    let Some(writes) = counts.next() else {
        return Watched::NoRing;
    };
    let shared = printed
        .lines()
        .filter_map(|line| line.strip_prefix("shared "))
        .map(str::to_owned);
    Watched::Writes(writes.parse().unwrap(), shared.collect())
}

#[test]
fn workers_write_no_line_of_another_but_what_is_named() {
    for form in &FORMS {
        // What must be shared is found, so that what is not found is not shared.
        let is_result = |watched: &Watched| match (watched, form.shares.first()) {
            (Watched::Stuck, _) => false,
            (Watched::Writes(_, shared), Some(module)) => {
                shared.iter().any(|name| name.starts_with(module))
            }
            _ => true,
        };
        let (writes, shared) = match (0..ATTEMPTS).map(|_| watched(form)).find(is_result) {
            Some(Watched::Writes(writes, shared)) => (writes, shared),
            Some(_) => continue,
            None => panic!("{}: what its workers share is not seen", form.name),
        };
        println!("{}: {writes} writes, shared {shared:#?}", form.name);
        let other: Vec<_> = shared.iter().filter(|name| !form.allows(name)).collect();
        assert!(
            other.is_empty(),
            "{}: several workers write {other:#?}",
            form.name
        );
    }
}
