//! Logical I/Os that touch several targets: cut into parts, which wait here for room in their target's queue depth.

use std::collections::VecDeque;
use std::sync::Mutex;

use super::knobs::Settings;
use super::lock::lock;
use super::pacing::Gate;
use super::pattern::{Order, Part, Rng, draw};
use super::stripe::Layout;

/// What a worker with room for an I/O on a target does next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    Issue(Part),
    /// The rate limit allows none before this moment.
    NotBefore(u64),
    /// Nothing on this target before this moment: it is failing, or no I/O arrives.
    Refused(u64),
    /// A logical I/O waits for room on another target first.
    Blocked,
}

/// Parts of logical I/Os not issued yet, per target; all workers share it.
///
/// Logical addresses are drawn without regard to who has room, so their distribution is the pattern's. A target that
/// lags holds the others back once `lookahead` of its parts wait, as a stripe does.
pub struct FanOut {
    layout: Layout,
    lookahead: usize,
    waiting: Mutex<Waiting>,
}

struct Waiting {
    parts: Vec<VecDeque<Part>>,
    held: Option<Vec<Part>>,
    rng: Rng,
}

impl FanOut {
    pub fn new(layout: Layout, settings: &Settings, rng: Rng) -> Self {
        let parts = vec![VecDeque::new(); settings.width];
        Self {
            layout,
            lookahead: settings.queue_depth.max(16),
            waiting: Mutex::new(Waiting {
                parts,
                held: None,
                rng,
            }),
        }
    }

    /// The next part for a target with room. Parts of failing targets are dropped but for one that may probe.
    pub fn next(
        &self,
        target: usize,
        settings: &Settings,
        order: &Order<'_>,
        gate: &mut Gate,
        now_ticks: u64,
        failing: impl Fn(usize) -> bool,
    ) -> Next {
        let mut waiting = lock(&self.waiting);
        loop {
            if let Some(part) = waiting.parts[target].pop_front() {
                return Next::Issue(part);
            }
            let logical = match waiting.held.take() {
                Some(held) => held,
                None => match gate.pass(0, now_ticks) {
                    Ok(intended_ticks) => {
                        self.logical(settings, order, &mut waiting.rng, intended_ticks)
                    }
                    Err(due) => return Next::NotBefore(due),
                },
            };
            let full = |part: &Part| {
                waiting.parts[part.target].len() >= self.lookahead && !failing(part.target)
            };
            if logical.iter().any(full) {
                waiting.held = Some(logical);
                return Next::Blocked;
            }
            for part in logical {
                let queue = &mut waiting.parts[part.target];
                if queue.is_empty() || !failing(part.target) {
                    queue.push_back(part);
                }
            }
        }
    }

    #[expect(
        clippy::cast_possible_truncation,
        reason = "a part is no longer than its block, which is a u32"
    )]
    fn logical(
        &self,
        settings: &Settings,
        order: &Order<'_>,
        rng: &mut Rng,
        intended_ticks: u64,
    ) -> Vec<Part> {
        let (direction, block_bytes) = draw(settings, rng);
        let start = order.next(
            rng,
            direction,
            self.layout.capacity_bytes(),
            u64::from(block_bytes),
        );
        let extents = self.layout.extents(start, u64::from(block_bytes));
        extents
            .map(|part| Part {
                target: part.target,
                direction,
                offset: part.offset,
                length: part.length as u32,
                intended_ticks,
            })
            .collect()
    }
}
