//! The paths of targets: the file an I/O goes to, retries when a path fails, and probes of failed paths.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use super::node::Node;
use super::path_outcome::{Outcome, outcome_of};
use super::target::{PROBE_INTERVAL_NS, Target};
use crate::load::pattern::Part;
use crate::load::policy::{PathState, PolicyName, Request, Selector};
use crate::load::system::cell::Cells;
use crate::load::system::clock::Clock;
use crate::load::system::lock::lock;

/// The way of the I/Os of one target.
struct Route {
    /// Number of the first of its paths in the list of files.
    first_file: usize,
    /// How a path is chosen, where there is more than one.
    choice: Option<Choice>,
}

struct Choice {
    selector: Mutex<Selector>,
    /// Whether the policy has any path to choose.
    open: AtomicBool,
}

impl Choice {
    fn change<T>(&self, change: impl FnOnce(&mut Selector) -> T) -> T {
        let mut selector = lock(&self.selector);
        let result = change(&mut selector);
        self.open.store(selector.any(), Relaxed);
        result
    }
}

/// The paths of all targets.
pub struct Routes {
    targets: Vec<Arc<Target>>,
    by_target: Vec<Route>,
    /// Target and path of every file.
    files: Vec<(usize, usize)>,
    clock: Clock,
    cells: Cells,
    probers: Mutex<Probers>,
    ending: Condvar,
}

#[derive(Default)]
struct Probers {
    ended: bool,
    threads: Vec<JoinHandle<()>>,
}

impl Routes {
    pub fn new(targets: &[Arc<Target>], policy: PolicyName, clock: Clock) -> Self {
        let (mut by_target, mut files) = (Vec::new(), Vec::new());
        for (index, target) in targets.iter().enumerate() {
            by_target.push(Route {
                first_file: files.len(),
                choice: choice(target, policy),
            });
            files.extend((0..target.nodes.len()).map(|path| (index, path)));
        }
        Self {
            targets: targets.to_vec(),
            by_target,
            files,
            clock,
            cells: Cells::read(),
            probers: Mutex::default(),
            ending: Condvar::new(),
        }
    }

    /// One per path of every target, in the order of targets.
    pub fn files(&self) -> &[(usize, usize)] {
        &self.files
    }

    pub fn node(&self, file: usize) -> &Node {
        let (target, path) = self.files[file];
        &self.targets[target].nodes[path]
    }

    /// Whether any target has several paths.
    pub fn any_choice(&self) -> bool {
        self.by_target.iter().any(|route| route.choice.is_some())
    }

    /// Whether a target has several paths.
    #[inline]
    pub fn has_choice(&self, target: usize) -> bool {
        self.by_target[target].choice.is_some()
    }

    /// Files of a target: first and number.
    pub fn files_of(&self, target: usize) -> (usize, usize) {
        (
            self.by_target[target].first_file,
            self.targets[target].nodes.len(),
        )
    }

    /// Whether any path of this target is usable.
    #[inline]
    pub fn is_open(&self, target: usize) -> bool {
        let choice = &self.by_target[target].choice;
        choice
            .as_ref()
            .is_none_or(|choice| choice.open.load(Relaxed))
    }

    pub fn turn(&self, policy: PolicyName) {
        for choice in self
            .by_target
            .iter()
            .filter_map(|route| route.choice.as_ref())
        {
            choice.change(|selector| selector.turn(policy));
        }
    }

    /// The file an I/O goes to, on which it counts as outstanding from now on.
    #[inline]
    pub fn take(&self, part: &Part, now_ticks: u64) -> usize {
        let route = &self.by_target[part.target];
        match &route.choice {
            None => route.first_file,
            Some(choice) => route.first_file + self.choose(choice, part, now_ticks),
        }
    }

    fn choose(&self, choice: &Choice, part: &Part, now_ticks: u64) -> usize {
        let mut selector = lock(&choice.selector);
        let cell = if selector.name().asks_for_cell() {
            self.cells.here()
        } else {
            0
        };
        let request = Request {
            bytes: u64::from(part.length),
            now_ns: self.clock.ns(now_ticks),
            cell,
        };
        // The last path may have failed since this I/O was let through: then it fails, too, and is counted as that.
        let path = selector.choose(&request).unwrap_or(0);
        selector.began(path, request.bytes);
        path
    }

    /// Counts a completion; `result` is the kernel's.
    pub fn back(
        self: &Arc<Self>,
        part: &Part,
        result: i32,
        sent_ticks: u64,
        now_ticks: u64,
    ) -> Outcome {
        let (_, path) = self.files[part.file as usize];
        let outcome = outcome_of(part, result, || {
            let node = self.node(part.file as usize);
            node.holds(self.targets[part.target].size_bytes)
        });
        let Some(choice) = &self.by_target[part.target].choice else {
            return outcome;
        };
        let mut selector = lock(&choice.selector);
        selector.left(path, u64::from(part.length));
        if outcome == Outcome::Good {
            selector.learn(path, self.clock.ns(sent_ticks), self.clock.ns(now_ticks));
        }
        drop(selector);
        if outcome == Outcome::PathFailed
            && choice.change(|selector| selector.set_usable(path, false))
        {
            self.probe(part.file as usize);
        }
        outcome
    }

    /// Figures of all paths of a target.
    pub fn states(&self, target: usize) -> Vec<PathState> {
        let choice = self.by_target[target].choice.as_ref();
        choice.map_or_else(Vec::new, |choice| lock(&choice.selector).paths().to_vec())
    }

    /// Probes a failed path repeatedly, in a thread of its own as it may hang.
    fn probe(self: &Arc<Self>, file: usize) {
        let mut probers = lock(&self.probers);
        probers.threads.retain(|thread| !thread.is_finished());
        let routes = Arc::clone(self);
        let spawned = std::thread::Builder::new()
            .name("load-probe".into())
            .spawn(move || routes.probe_until_it_answers(file));
        match spawned {
            Ok(thread) => probers.threads.push(thread),
            // It cannot be probed: a path that fails now and then is better than one never used again.
            Err(_) => self.reinstate(file),
        }
    }

    fn probe_until_it_answers(&self, file: usize) {
        let (target, _) = self.files[file];
        let (size_bytes, align_bytes) = (
            self.targets[target].size_bytes,
            self.targets[target].align_bytes,
        );
        while self.pause() {
            if self.node(file).answers(size_bytes, align_bytes) {
                return self.reinstate(file);
            }
        }
    }

    /// Waits for the next probe; false once the run ends.
    fn pause(&self) -> bool {
        let interval = Duration::from_nanos(PROBE_INTERVAL_NS);
        let goes_on = |probers: &mut Probers| !probers.ended;
        let waited = self
            .ending
            .wait_timeout_while(lock(&self.probers), interval, goes_on);
        waited.is_ok_and(|(probers, _)| !probers.ended)
    }

    fn reinstate(&self, file: usize) {
        let (target, path) = self.files[file];
        if let Some(choice) = &self.by_target[target].choice {
            choice.change(|selector| selector.set_usable(path, true));
        }
    }

    /// Ends all probes; one that hangs in its device ends when that answers.
    pub fn end(&self) {
        let threads = {
            let mut probers = lock(&self.probers);
            probers.ended = true;
            std::mem::take(&mut probers.threads)
        };
        self.ending.notify_all();
        for thread in threads {
            let deadline = std::time::Instant::now() + Duration::from_nanos(PROBE_INTERVAL_NS);
            while !thread.is_finished() && std::time::Instant::now() < deadline {
                std::thread::sleep(Duration::from_millis(1));
            }
            if thread.is_finished() {
                // A panic of it does not matter any more.
                drop(thread.join());
            }
        }
    }
}

fn choice(target: &Target, policy: PolicyName) -> Option<Choice> {
    let state = |node: &Node| PathState {
        usable: true,
        weight: node.weight,
        preferred: node.preferred,
        cell: node.cell,
        outstanding_at_open: node.outstanding_at_open,
        ..PathState::default()
    };
    let paths: Vec<_> = target.nodes.iter().map(state).collect();
    (paths.len() > 1).then(|| Choice {
        selector: Mutex::new(Selector::new(policy, paths)),
        open: AtomicBool::new(true),
    })
}
