//! Writes of one worker that wait, as another write to the same range is outstanding.

use std::collections::VecDeque;

use super::verifier::Verifier;
use crate::load::pattern::Part;

/// How many may wait on each target before no more are drawn for it.
const MOST: usize = 8;

#[derive(Default)]
pub struct Held {
    by_target: Vec<VecDeque<Part>>,
}

impl Held {
    /// Keeps a write for later; whether another I/O may be drawn for its target meanwhile.
    pub fn keep(&mut self, part: Part) -> bool {
        if self.by_target.len() <= part.target {
            self.by_target.resize(part.target + 1, VecDeque::new());
        }
        let waiting = &mut self.by_target[part.target];
        waiting.push_back(part);
        waiting.len() < MOST
    }

    /// Returns the first write whose range is free now.
    pub fn take(&mut self, target: usize, verifier: &Verifier) -> Option<Part> {
        let waiting = self.by_target.get_mut(target)?;
        let free = waiting.iter().position(|part| verifier.is_free(part))?;
        waiting.remove(free)
    }

    /// Forgets all of them.
    pub fn drain(&mut self) -> impl Iterator<Item = Part> + '_ {
        self.by_target
            .iter_mut()
            .flat_map(|waiting| waiting.drain(..))
    }
}
