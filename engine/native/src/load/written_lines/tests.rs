//! What a worker writes for an I/O lies on cache lines that no other worker writes, but for what `forms` names.

use std::process::Command;
use std::time::{Duration, Instant};

use super::forms::{FORMS, Form, Load, WORKERS};
use super::protection::writes_during;
use super::{shared, threads};
use crate::load::cpu::thread_ns;
use crate::load::engine::Engine;

/// Enough I/Os that what several workers write is written by several.
const IOS: u64 = 60;
const PATIENCE: Duration = Duration::from_secs(20);
/// Time after which a worker has begun.
const BEGUN_NS: u64 = 2_000_000;
const FORM: &str = "LUNSCOPE_WRITTEN_LINES";

fn ios(engine: &Engine) -> u64 {
    let counters = engine.readings().counters();
    let sums = counters.iter().flat_map(|counters| &counters.sums);
    sums.map(|sums| sums.ios).sum()
}

fn wait_until(condition: impl Fn() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() && Instant::now() < deadline {
        std::thread::sleep(Duration::from_millis(5));
    }
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
    wait_until(|| {
        threads("load")
            .iter()
            .filter(|thread| begun(thread))
            .count()
            == WORKERS
    });
    let (notes, during) = writes_during(|| {
        let before = ios(&engine);
        wait_until(|| ios(&engine) >= before + IOS);
        ios(&engine) - before
    });
    let workers = threads("load");
    assert!(engine.stop(PATIENCE), "{}", engine.fault());
    println!("ios {during} writes {}", notes.len());
    for (function, (lines, writes)) in shared(&notes, &workers) {
        println!("shared {function}: {lines} lines, {writes} writes");
    }
}

/// What a watched load printed: I/Os, writes, and functions that wrote shared lines.
fn watched(form: &Form) -> Option<(u64, u64, Vec<String>)> {
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
    let counts = printed.lines().find_map(|line| line.strip_prefix("ios "))?;
    let (ios, writes) = counts.split_once(" writes ").unwrap();
    let shared = printed
        .lines()
        .filter_map(|line| line.strip_prefix("shared "))
        .map(str::to_owned);
    Some((
        ios.parse().unwrap(),
        writes.parse().unwrap(),
        shared.collect(),
    ))
}

#[test]
fn workers_write_no_line_of_another_but_what_is_named() {
    for form in &FORMS {
        let Some((ios, writes, shared)) = watched(form) else {
            continue; // The kernel grants no ring.
        };
        println!(
            "{}: {ios} I/Os, {writes} writes, shared {shared:#?}",
            form.name
        );
        assert!(ios >= IOS && writes > ios, "{}: {ios}, {writes}", form.name);
        let other: Vec<_> = shared.iter().filter(|name| !form.allows(name)).collect();
        assert!(
            other.is_empty(),
            "{}: several workers write {other:#?}",
            form.name
        );
        // What must be shared is found, so that what is not found is not shared.
        if let Some(module) = form.shares.first() {
            assert!(
                shared.iter().any(|name| name.starts_with(module)),
                "{}: {shared:?}",
                form.name
            );
        }
    }
}
