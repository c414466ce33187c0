//! Places of processes that do no more I/O are given to others.

use std::collections::HashSet;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use std::time::{Duration, Instant};

use super::layout::{IO_PROCESS_SHIFT, PROCESS_LEAVING};
use super::maps::Maps;
use super::processes::ios_of;

/// Scans of the places in the time after which they are freed.
const SCANS: u32 = 12;

#[derive(Clone, Copy)]
struct Seen {
    key: u64,
    ios: u32,
    since: Instant,
}

/// Frees places in two steps: one is marked, so that no thread takes it, and freed once no I/O under way refers to it.
/// Its sums stay as they are, as readers have them: the next process adds to them.
pub struct ProcessPlaces {
    /// Time without I/O after which a process loses its places.
    idle: Duration,
    seen: Vec<Option<Seen>>,
    leaving: Vec<usize>,
    next: Option<Instant>,
}

impl ProcessPlaces {
    pub fn new(idle: Duration) -> Self {
        Self {
            idle,
            seen: Vec::new(),
            leaving: Vec::new(),
            next: None,
        }
    }

    /// Frees the places marked before, and marks those that are idle for long.
    pub fn free_idle(&mut self, maps: &Maps) {
        let now = Instant::now();
        if self.next.is_some_and(|next| now < next) {
            return;
        }
        self.next = Some(now + self.idle / SCANS);
        let candidates = self.idle_places(maps, now);
        if candidates.is_empty() && self.leaving.is_empty() {
            return;
        }
        let held = held_places(maps);
        self.leaving.retain(|place| {
            let keep = held.contains(place);
            if !keep {
                let process = &maps.processes[*place];
                process.kind.store(0, Relaxed);
                process.key.store(0, Release);
            }
            keep
        });
        let marked = candidates.into_iter().filter(|place| !held.contains(place));
        for place in marked {
            maps.processes[place].key.store(PROCESS_LEAVING, Release);
            self.leaving.push(place);
            self.seen[place] = None;
        }
        // Threads remember places: they search again.
        maps.control().process_generation.fetch_add(1, AcqRel);
    }

    fn idle_places(&mut self, maps: &Maps, now: Instant) -> Vec<usize> {
        self.seen.resize(maps.processes.len(), None);
        let mut found = Vec::new();
        for (place, (process, seen)) in maps.processes.iter().zip(&mut self.seen).enumerate() {
            let key = process.key.load(Acquire);
            if key == 0 || key == PROCESS_LEAVING {
                *seen = None;
                continue;
            }
            let ios = ios_of(maps, place);
            match seen {
                Some(one) if one.key == key && one.ios == ios => {
                    if now.duration_since(one.since) >= self.idle {
                        found.push(place);
                    }
                }
                _ => {
                    *seen = Some(Seen {
                        key,
                        ios,
                        since: now,
                    });
                }
            }
        }
        found
    }
}

/// Places that I/Os under way refer to.
fn held_places(maps: &Maps) -> HashSet<usize> {
    let ios = maps.under_way.iter().flat_map(|set| &set.way);
    ios.filter(|io| io.key.load(Acquire) != 0)
        .map(|io| (io.start_ns.load(Relaxed) >> IO_PROCESS_SHIFT) as usize)
        .collect()
}
