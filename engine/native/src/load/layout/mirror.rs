//! Copies of a mirror: reads go to one of them by policy, writes to all.

use std::ops::Range;

use super::next_io::Asker;
use crate::load::knobs::Settings;
use crate::load::pattern::Part;
use crate::load::policy::{PathState, Request, Selector};
use crate::load::targets::stripe::Layout;

/// One selector per column, with the copies as paths.
pub struct Mirror {
    copies: usize,
    columns: Vec<Selector>,
}

impl Mirror {
    /// None where there is one copy only.
    pub fn new(layout: &Layout, settings: &Settings) -> Option<Self> {
        let copies = layout.copies();
        let copy = |_| PathState {
            usable: true,
            weight: 1,
            ..PathState::default()
        };
        let column = |_| Selector::new(settings.policy, (0..copies).map(copy).collect());
        (copies > 1).then(|| Self {
            copies,
            columns: (0..settings.width / copies).map(column).collect(),
        })
    }

    /// The target that a read goes to. One that fails gets the read it asks for itself, as a probe.
    pub fn choose(&mut self, targets: Range<usize>, bytes: u64, asker: &Asker<'_>) -> usize {
        if targets.contains(&asker.target) && (asker.failing)(asker.target) {
            return asker.target;
        }
        self.best(targets.clone(), bytes, asker)
            .unwrap_or(targets.start)
    }

    /// Another target for a read that failed.
    pub fn other(
        &mut self,
        targets: Range<usize>,
        part: &Part,
        asker: &Asker<'_>,
    ) -> Option<usize> {
        let failing = |target: usize| target == part.target || (asker.failing)(target);
        let others = Asker {
            failing: &failing,
            ..*asker
        };
        self.best(targets, u64::from(part.length), &others)
    }

    fn best(&mut self, targets: Range<usize>, bytes: u64, asker: &Asker<'_>) -> Option<usize> {
        let selector = &mut self.columns[targets.start / self.copies];
        for (copy, target) in targets.clone().enumerate() {
            selector.set_usable(copy, !(asker.failing)(target));
        }
        let request = Request {
            bytes,
            now_ns: asker.now_ns,
            cell: 0,
        };
        selector.choose(&request).map(|copy| targets.start + copy)
    }

    /// Counts a part as waiting or outstanding on its copy.
    pub fn began(&mut self, part: &Part) {
        self.columns[part.target / self.copies]
            .began(part.target % self.copies, u64::from(part.length));
    }

    /// Counts a part as completed.
    pub fn ended(&mut self, part: &Part, latency_ns: u64, now_ns: u64, good: bool) {
        let (selector, copy) = (
            &mut self.columns[part.target / self.copies],
            part.target % self.copies,
        );
        selector.left(copy, u64::from(part.length));
        if good {
            selector.learn(copy, now_ns.saturating_sub(latency_ns), now_ns);
        }
    }
}
