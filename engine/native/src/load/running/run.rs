//! What all workers of a run share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::life::Life;
use super::slowest::Slowest;
use crate::load::counts::errors::ErrorLog;
use crate::load::counts::levels::Rows;
use crate::load::counts::logical::{ALONE, LogicalIos};
use crate::load::counts::outstanding::Outstanding;
use crate::load::counts::policy_cost::{PolicyCost, is_sampled};
use crate::load::data::content::{Contents, JUDGE_INTERVAL_NS};
use crate::load::epochs::epoch::Epoch;
use crate::load::knobs::{Limits, Settings};
use crate::load::layout::next_io::{Asker, Next};
use crate::load::pace::flow::FlowGate;
use crate::load::pace::fsyncs::Fsyncs;
use crate::load::pace::pacing::Gate;
use crate::load::pace::schedule::Skipped;
use crate::load::pattern::{Order, Part, Rng, Streams};
use crate::load::policy::PolicyName;
use crate::load::rings::ring_setup::Access;
use crate::load::system::clock::{Clock, Instant, monotonic_ns};
use crate::load::targets::budget::Budget;
use crate::load::targets::multipath::Routes;
use crate::load::targets::target::{Health, PROBE_INTERVAL_NS, Permit, Target};
use crate::load::verify::Verifier;

/// Everything fixed for a run, its targets' health, and its life.
pub struct Run {
    pub targets: Vec<Arc<Target>>,
    pub limits: Limits,
    pub clock: Clock,
    pub errors: ErrorLog,
    pub fsyncs: Fsyncs,
    pub contents: Contents,
    pub slowest: Slowest,
    pub probe_interval_ticks: u64,
    pub routes: Arc<Routes>,
    pub logical_ios: Arc<LogicalIos>,
    /// Arrivals that found no free slot in time, per target.
    pub skipped: Skipped,
    /// Time that I/Os were outstanding which failed or were fsyncs, per target: no latency contains their times.
    pub unlisted_ns: Vec<AtomicU64>,
    /// Calls outside of workers that write cached data back, by target.
    pub write_backs: Outstanding,
    /// Present with --verify.
    pub verifier: Option<Verifier>,
    /// Present where other loads hold this one to a ratio.
    pub flow: Option<FlowGate>,
    seed: u64,
    pub(in crate::load) health: Vec<Health>,
    /// Streams of every target and, last, of the striped address space; none where the order is random.
    streams: Vec<Streams>,
    /// Budget of every target; none where the load has no end in bytes.
    budgets: Vec<Budget>,
    pub life: Life,
}

impl Run {
    pub fn new(targets: Vec<Arc<Target>>, limits: Limits, seed: u64, policy: PolicyName) -> Self {
        let clock = Clock::shared();
        let streams = limits.streams.map(|plan| {
            let spaces = 0..=targets.len();
            spaces.map(|_| Streams::new(plan)).collect()
        });
        let budgets = budgets(&targets, &limits);
        Self {
            limits,
            clock,
            errors: ErrorLog::default(),
            fsyncs: Fsyncs::new(targets.len()),
            contents: Contents::new(targets.len(), clock.ticks(JUDGE_INTERVAL_NS)),
            slowest: Slowest::default(),
            probe_interval_ticks: clock.ticks(PROBE_INTERVAL_NS),
            routes: Arc::new(Routes::new(&targets, policy, clock)),
            logical_ios: Arc::default(),
            skipped: targets.iter().map(|_| AtomicU64::new(0)).collect(),
            unlisted_ns: targets.iter().map(|_| AtomicU64::new(0)).collect(),
            write_backs: Outstanding::default(),
            verifier: None,
            flow: None,
            seed,
            health: targets.iter().map(|_| Health::default()).collect(),
            streams: streams.unwrap_or_default(),
            budgets,
            targets,
            life: Life::default(),
        }
    }

    pub fn now(&self) -> Instant {
        Instant {
            ticks: self.clock.now(),
            ns: monotonic_ns(),
        }
    }

    /// What this run's rings are for: writing only where a target was armed for it when it was opened.
    pub fn access(&self) -> Access {
        if self.targets.iter().any(|target| target.writable) {
            Access::Write
        } else {
            Access::Read
        }
    }

    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// A stream of random numbers for one worker and target.
    pub fn rng(&self, worker: usize, target: usize) -> Rng {
        Rng::new(self.seed, worker as u64, target as u64)
    }

    /// Whether a target does not answer, by any path.
    pub fn failing(&self, target: usize) -> bool {
        self.health[target].failing() || !self.routes.is_open(target)
    }

    pub fn paths_of(&self, target: usize) -> u32 {
        u32::try_from(self.targets[target].nodes.len()).unwrap_or(u32::MAX)
    }

    /// What is counted in this run.
    pub fn rows(&self) -> Rows {
        let paths = self.routes.files().len();
        Rows {
            targets: self.targets.len(),
            paths: if self.routes.any_choice() { paths } else { 0 },
        }
    }

    /// What a worker with a free slot on a target does next; only what is issued counts in a flow, but for flushes.
    #[inline]
    pub fn next(
        &self,
        epoch: &Epoch,
        target: usize,
        rng: &mut Rng,
        gate: &mut Gate,
        now_ticks: u64,
    ) -> Next {
        if let Some(flow) = &self.flow {
            if let Err(due) = flow.take(now_ticks) {
                return Next::NotBefore(due);
            }
        }
        let next = self.next_alone(epoch, target, rng, gate, now_ticks);
        if let Some(flow) = &self.flow {
            if !matches!(&next, Next::Issue(part) if !part.is_fsync()) {
                flow.give_back();
            }
        }
        next
    }

    /// What it does where no other load matters. Asks the epoch first, then the target, then the rate.
    #[inline]
    fn next_alone(
        &self,
        epoch: &Epoch,
        target: usize,
        rng: &mut Rng,
        gate: &mut Gate,
        now_ticks: u64,
    ) -> Next {
        if !epoch.opening.is_open() {
            return Next::Refused(now_ticks + self.probe_interval_ticks);
        }
        if let Permit::NotBefore(due) =
            self.health[target].permit(now_ticks, self.probe_interval_ticks)
        {
            return Next::Refused(due);
        }
        if !self.routes.is_open(target) {
            return Next::Refused(now_ticks + self.probe_interval_ticks);
        }
        let budget = self.budgets.get(target);
        if budget.is_some_and(|budget| !budget.is_left()) {
            return Next::Refused(now_ticks + self.probe_interval_ticks);
        }
        if self.fsyncs.take(target) {
            return Next::Issue(Part::fsync(target));
        }
        if let Err(due) = gate.rest(self.limits.rest, now_ticks) {
            return Next::NotBefore(due);
        }
        let settings = &epoch.settings;
        if let Some(fan_out) = &epoch.fan_out {
            let order = self.order(settings, self.targets.len());
            let asker = Asker {
                target,
                now_ns: self.clock.ns(now_ticks),
                failing: &|target| self.failing(target),
            };
            return fan_out.next(&asker, settings, &order, gate, now_ticks);
        }
        let intended_ticks = match gate.pass(target, now_ticks) {
            Ok(intended_ticks) => intended_ticks,
            // Arrivals are of one target, a rate is of all.
            Err(due) if epoch.schedule.is_some() => return Next::Refused(due),
            Err(due) => return Next::NotBefore(due),
        };
        let (direction, length) = settings.draw(rng);
        let length = match budget {
            None => length,
            Some(budget) => match budget.take(length, |left| settings.fitting(direction, left)) {
                Some(taken) => taken,
                None => return Next::Refused(now_ticks + self.probe_interval_ticks),
            },
        };
        gate.issued();
        let space_bytes = self.targets[target].space_bytes(settings.offset_bytes);
        let order = self.order(settings, target);
        let offset =
            settings.offset_bytes + order.next(rng, direction, space_bytes, u64::from(length));
        let part = Part::alone(target, direction, offset, length);
        Next::Issue(Part {
            intended_ticks,
            ..part
        })
    }

    /// Whether the load ends after a number of bytes.
    pub fn has_budget(&self) -> bool {
        !self.budgets.is_empty()
    }

    /// Whether everything these settings have to transfer was transferred.
    pub fn is_done(&self, settings: &Settings) -> bool {
        self.has_budget() && self.budgets[..settings.width].iter().all(Budget::is_done)
    }

    /// Counts the end of an I/O; after the last one the load is over.
    #[inline]
    pub fn settle_budget(&self, part: &Part) {
        let last = |budget: &Budget| budget.ended(u64::from(part.length));
        if !part.is_fsync() && self.budgets.get(part.target).is_some_and(last) {
            self.life.notify();
        }
    }

    /// The file an I/O goes to.
    #[inline]
    pub fn send(&self, cost: &PolicyCost, part: &Part, now_ticks: u64) -> u32 {
        let file = if self.routes.has_choice(part.target) && is_sampled(now_ticks) {
            let began_ticks = self.clock.now();
            let file = self.routes.take(part, now_ticks);
            cost.chose(self.clock.now() - began_ticks);
            file
        } else {
            self.routes.take(part, now_ticks)
        };
        u32::try_from(file).unwrap_or(u32::MAX)
    }

    #[inline]
    fn order<'a>(&'a self, settings: &'a Settings, space: usize) -> Order<'a> {
        match self.streams.get(space) {
            Some(streams) => Order::Sequential(streams),
            None => settings.order(space, self.seed ^ space as u64),
        }
    }

    /// Gives up an I/O that was drawn and never issued.
    pub fn drop_part(&self, part: &Part) {
        self.settle_budget(part);
        if part.logical != ALONE {
            self.logical_ios.part_dropped(part.logical);
        } else if part.intended_ticks != 0 {
            self.skipped[part.target].fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// What each target has to transfer, if the load ends by that.
fn budgets(targets: &[Arc<Target>], limits: &Limits) -> Vec<Budget> {
    if limits.io_bytes.is_none() && limits.loops.is_none() {
        return Vec::new();
    }
    let total = |target: &Arc<Target>| {
        let once = limits
            .io_bytes
            .unwrap_or_else(|| target.space_bytes(limits.offset_bytes));
        Budget::new(once.saturating_mul(limits.loops.unwrap_or(1)))
    };
    targets.iter().map(total).collect()
}
