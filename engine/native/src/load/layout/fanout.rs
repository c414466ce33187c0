//! Logical I/Os that touch several targets: cut into parts, which wait here for a free slot of their target.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use super::mirror::Mirror;
use super::next_io::{Asker, Next};
use crate::load::counts::logical::{ALONE, LogicalIos};
use crate::load::counts::stats::Direction;
use crate::load::knobs::Settings;
use crate::load::pace::pacing::Gate;
use crate::load::pattern::{Order, Part, Rng};
use crate::load::system::lock::lock;
use crate::load::targets::stripe::Layout;

/// Parts of logical I/Os not issued yet, per target; all workers share it.
///
/// Logical addresses are drawn whichever targets have free slots, so their distribution is the pattern's. A target that
/// lags holds the others back once `lookahead` of its parts wait, as a stripe does.
pub struct FanOut {
    layout: Layout,
    lookahead: usize,
    ios: Arc<LogicalIos>,
    waiting: Mutex<Waiting>,
}

/// These lists never grow while a worker holds them: their memory would lie between what only that worker writes.
struct Waiting {
    parts: Vec<VecDeque<Part>>,
    held: Option<Logical>,
    /// The parts of the next logical I/O, as they are gathered.
    gathered: Vec<Part>,
    rng: Rng,
    mirror: Option<Mirror>,
}

/// A logical I/O that was drawn, until all its parts wait.
struct Logical {
    direction: Direction,
    bytes: u64,
    parts: Vec<Part>,
}

impl FanOut {
    pub fn new(layout: Layout, settings: &Settings, rng: Rng, ios: Arc<LogicalIos>) -> Self {
        let lookahead = settings.deepest().max(16);
        // One logical I/O is queued whole, with one part for a target and a retry of another in front of it.
        let queue = || VecDeque::with_capacity(2 * lookahead);
        ios.reserve(settings.width * (lookahead + settings.deepest()));
        Self {
            layout,
            lookahead,
            ios,
            waiting: Mutex::new(Waiting {
                parts: (0..settings.width).map(|_| queue()).collect(),
                held: None,
                gathered: Vec::with_capacity(settings.width),
                rng,
                mirror: Mirror::new(&layout, settings),
            }),
        }
    }

    /// The next part for a target with a free slot. Parts of failing targets are dropped but for one that may probe.
    pub fn next(
        &self,
        asker: &Asker<'_>,
        settings: &Settings,
        order: &Order<'_>,
        gate: &mut Gate,
        now_ticks: u64,
    ) -> Next {
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(part) = waiting.parts[asker.target].pop_front() {
                return Next::Issue(part);
            }
            let logical = match waiting.held.take() {
                Some(held) => held,
                None => match gate.pass(0, now_ticks) {
                    Ok(intended_ticks) => {
                        let mut logical = self.logical(asker, settings, order, &mut waiting);
                        for part in &mut logical.parts {
                            part.intended_ticks = intended_ticks;
                        }
                        logical
                    }
                    Err(due) => return Next::NotBefore(due),
                },
            };
            let full = |part: &Part| {
                waiting.parts[part.target].len() >= self.lookahead && !(asker.failing)(part.target)
            };
            if logical.parts.iter().any(full) {
                waiting.held = Some(logical);
                return Next::Blocked;
            }
            self.queue(&mut waiting, logical, asker.failing);
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a part is no longer than its block, which is a u32"
    )]
    fn logical(
        &self,
        asker: &Asker<'_>,
        settings: &Settings,
        order: &Order<'_>,
        waiting: &mut Waiting,
    ) -> Logical {
        let Waiting {
            rng,
            mirror,
            gathered,
            ..
        } = waiting;
        let (direction, block_bytes) = settings.draw(rng);
        let bytes = u64::from(block_bytes);
        let start = order.next(rng, direction, self.layout.capacity_bytes(), bytes);
        let mut parts = std::mem::take(gathered);
        for extent in self.layout.extents(start, bytes) {
            let offset = settings.offset_bytes + extent.offset;
            let part = |target| Part::alone(target, direction, offset, extent.length as u32);
            let targets = self.layout.targets(extent.column);
            match mirror {
                Some(mirror) if direction == Direction::Read => {
                    parts.push(part(mirror.choose(targets, extent.length, asker)));
                }
                _ => parts.extend(targets.map(part)),
            }
        }
        Logical {
            direction,
            bytes,
            parts,
        }
    }

    fn queue(&self, waiting: &mut Waiting, logical: Logical, failing: &dyn Fn(usize) -> bool) {
        let Logical {
            direction,
            bytes,
            mut parts,
        } = logical;
        let wanted = self.columns(&parts);
        parts.retain(|part| waiting.parts[part.target].is_empty() || !failing(part.target));
        if parts.is_empty() {
            waiting.gathered = parts;
            return;
        }
        // Without one of its columns it is incomplete; without a failing copy it is not.
        let incomplete = self.columns(&parts) < wanted;
        let (needed, probes): (Vec<_>, Vec<_>) = parts
            .iter()
            .partition(|part| direction == Direction::Read || !failing(part.target));
        let counted = if needed.is_empty() { &probes } else { &needed };
        let count = u32::try_from(counted.len()).unwrap_or(u32::MAX);
        let number = self.ios.begin(direction, bytes, count, incomplete);
        let extras = if needed.is_empty() { &needed } else { &probes };
        for (part, logical) in counted
            .iter()
            .map(|part| (*part, number))
            .chain(extras.iter().map(|part| (*part, ALONE)))
        {
            if let Some(mirror) = &mut waiting.mirror {
                mirror.began(part);
            }
            waiting.parts[part.target].push_back(Part { logical, ..*part });
        }
        parts.clear();
        waiting.gathered = parts;
    }

    /// How many columns parts lie on; those of one column are neighbours.
    fn columns(&self, parts: &[Part]) -> usize {
        let mut columns: Vec<usize> = parts
            .iter()
            .map(|part| part.target / self.layout.copies())
            .collect();
        columns.dedup();
        columns.len()
    }

    /// Counts a part that completed; whether it failed and was sent to another copy.
    pub fn back(&self, part: &Part, latency_ns: u64, asker: &Asker<'_>, good: bool) -> bool {
        if self.layout.copies() == 1 || part.is_fsync() {
            return false;
        }
        let mut waiting = lock(&self.waiting);
        let Some(mirror) = &mut waiting.mirror else {
            return false;
        };
        mirror.ended(part, latency_ns, asker.now_ns, good);
        if good || part.direction == Direction::Write || part.logical == ALONE {
            return false;
        }
        let targets = self.layout.targets(part.target / self.layout.copies());
        let most = u32::try_from(targets.len() - 1).unwrap_or(0);
        let Some(other) = mirror.other(targets, part, asker) else {
            return false;
        };
        // Where latencies count from the arrival, that of the next attempt holds this one.
        let lost_ns = if part.intended_ticks == 0 {
            latency_ns
        } else {
            0
        };
        if !self.ios.retry(part.logical, lost_ns, most) {
            return false;
        }
        let part = Part {
            target: other,
            ..*part
        };
        mirror.began(&part);
        waiting.parts[other].push_front(part);
        true
    }
}

impl Drop for FanOut {
    /// A turn drops what was not issued; I/Os that miss a part of theirs then are in no statistic.
    fn drop(&mut self) {
        let waiting = match self.waiting.get_mut() {
            Ok(waiting) => waiting,
            Err(poisoned) => poisoned.into_inner(),
        };
        for part in waiting.parts.iter().flatten() {
            if part.logical != ALONE {
                self.ios.part_dropped(part.logical);
            }
        }
    }
}
