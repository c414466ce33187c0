//! Finds the cache lines that the workers of a load write, by write-protecting the memory of this process.
//!
//! Every write to the heap or to a static variable faults. The handler notes the line, the thread and the functions on its
//! stack, lets this one instruction write, and protects the page again. What two threads write at the same moment may be
//! missed, so that a load runs for a while. Stacks, rings and buffers are not protected: they belong to one thread each.

mod forms;
mod functions;
mod protection;
mod tests;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use functions::Functions;
use protection::Note;

/// A function of this crate that wrote lines which others wrote, too: how many lines, and how often.
type Sharing = BTreeMap<String, (usize, usize)>;

/// What several workers wrote of the same lines, by the functions that did.
fn shared(notes: &[Note], workers: &BTreeSet<i32>) -> Sharing {
    let mut writers: BTreeMap<usize, BTreeSet<i32>> = BTreeMap::new();
    let of_workers = || notes.iter().filter(|note| workers.contains(&note.thread));
    for note in of_workers() {
        writers.entry(note.line).or_default().insert(note.thread);
    }
    let functions = Functions::of_this_program();
    let mut lines: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for note in of_workers().filter(|note| writers[&note.line].len() > 1) {
        let name = functions.writer(&note.stack);
        lines.entry(name).or_default().push(note.line);
    }
    let counted = |(name, written): (String, Vec<usize>)| {
        let different: BTreeSet<usize> = written.iter().copied().collect();
        (name, (different.len(), written.len()))
    };
    lines.into_iter().map(counted).collect()
}

/// Threads of this process with this name.
fn threads(name: &str) -> BTreeSet<i32> {
    let numbers = fs::read_dir("/proc/self/task")
        .into_iter()
        .flatten()
        .flatten();
    let numbers = numbers.filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok());
    let named = |number: &i32| {
        fs::read_to_string(format!("/proc/self/task/{number}/comm"))
            .is_ok_and(|comm| comm.trim() == name)
    };
    numbers.filter(named).collect()
}
