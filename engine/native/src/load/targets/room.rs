//! The targets with a free slot for another I/O of one worker, in the order in which the slots became free.

use std::collections::VecDeque;

struct Share {
    most: u32,
    in_flight: u32,
    /// Has free slots but may not be used now; entries queued for it are ignored.
    set_aside: bool,
}

/// Every target's share of the queue depth, how much of it is used, and a queue of free slots.
pub struct FreeSlots {
    shares: Vec<Share>,
    queue: VecDeque<u32>,
    aside: Vec<u32>,
    in_flight: usize,
    /// The most on all targets together, where that is less than their shares.
    most_together: usize,
}

impl FreeSlots {
    pub fn new(targets: usize) -> Self {
        let shares = (0..targets)
            .map(|_| Share {
                most: 0,
                in_flight: 0,
                set_aside: false,
            })
            .collect();
        Self {
            shares,
            queue: VecDeque::new(),
            aside: Vec::new(),
            in_flight: 0,
            most_together: usize::MAX,
        }
    }

    /// I/Os of this worker outstanding on all targets.
    pub fn in_flight(&self) -> usize {
        self.in_flight
    }

    /// Changes the shares. Free slots are queued round by round, so that no target fills before the others begin.
    pub fn set_shares(&mut self, most: impl Fn(usize) -> u32) {
        self.most_together = usize::MAX;
        self.queue.clear();
        self.aside.clear();
        let mut rounds = 0;
        for (target, share) in self.shares.iter_mut().enumerate() {
            *share = Share {
                most: most(target),
                set_aside: false,
                ..*share
            };
            rounds = rounds.max(share.most.saturating_sub(share.in_flight));
        }
        for round in 0..rounds {
            let free = |share: &Share| share.most.saturating_sub(share.in_flight) > round;
            self.queue.extend(
                (0_u32..)
                    .zip(&self.shares)
                    .filter(|(_, share)| free(share))
                    .map(|(target, _)| target),
            );
        }
    }

    /// Makes one queue over the first `width` targets: each in turn from the `first` on, with at most `depth` I/Os
    /// outstanding on all together.
    pub fn set_one_queue(&mut self, width: usize, depth: u32, first: usize) {
        self.set_shares(|target| if target < width { depth } else { 0 });
        self.most_together = depth as usize;
        self.queue.rotate_left(first.min(self.queue.len()));
    }

    /// The most that can be outstanding while the shares stay: more than their sum while a share that was lowered drains.
    pub fn most_in_flight(&self) -> usize {
        let most = |share: &Share| share.most.max(share.in_flight) as usize;
        let shares: usize = self.shares.iter().map(most).sum();
        shares.min(self.most_together.max(self.in_flight))
    }

    /// A target with a free slot.
    #[inline]
    pub fn take(&mut self) -> Option<usize> {
        if self.in_flight >= self.most_together {
            return None;
        }
        while let Some(target) = self.queue.pop_front() {
            let share = &self.shares[target as usize];
            if share.in_flight < share.most && !share.set_aside {
                return Some(target as usize);
            }
        }
        None
    }

    /// Whether a target has a free slot; for callers that check target by target rather than `take`.
    #[inline]
    pub fn has_slot(&self, target: usize) -> bool {
        let share = &self.shares[target];
        share.in_flight < share.most
    }

    /// Forgets the order of free slots, for callers that do not `take`.
    pub fn forget_order(&mut self) {
        self.queue.clear();
    }

    /// Returns a slot that was taken but cannot be used yet.
    pub fn put_back(&mut self, target: usize) {
        if let Some(target) = index(target) {
            self.queue.push_front(target);
        }
    }

    /// Leaves a target out until `retry`.
    pub fn set_aside(&mut self, target: usize) {
        self.shares[target].set_aside = true;
        self.aside.extend(index(target));
    }

    /// Lets targets that were left out take part again.
    pub fn retry(&mut self) {
        for target in self.aside.drain(..) {
            let share = &mut self.shares[target as usize];
            share.set_aside = false;
            self.queue
                .extend((share.in_flight..share.most).map(|_| target));
        }
    }

    pub fn any_aside(&self) -> bool {
        !self.aside.is_empty()
    }

    /// Counts an I/O as outstanding; the new number on its target.
    #[inline]
    pub fn issued(&mut self, target: usize) -> u32 {
        self.in_flight += 1;
        self.shares[target].in_flight += 1;
        self.shares[target].in_flight
    }

    /// Counts an I/O as completed and its slot as free; the new number on its target.
    #[inline]
    pub fn returned(&mut self, target: usize) -> u32 {
        self.in_flight -= 1;
        self.shares[target].in_flight -= 1;
        if let Some(target) = index(target) {
            self.queue.push_back(target);
        }
        self.shares[target].in_flight
    }
}

fn index(target: usize) -> Option<u32> {
    u32::try_from(target).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn take_all(free_slots: &mut FreeSlots) -> Vec<usize> {
        let mut taken = Vec::new();
        while let Some(target) = free_slots.take() {
            free_slots.issued(target);
            taken.push(target);
        }
        taken
    }

    #[test]
    fn slots_are_taken_in_turn_and_never_exceeded() {
        let mut free_slots = FreeSlots::new(3);
        free_slots.set_shares(|target| [2, 0, 3][target]);
        assert_eq!(take_all(&mut free_slots), [0, 2, 0, 2, 2]);
        assert_eq!(free_slots.returned(2), 2);
        assert_eq!(take_all(&mut free_slots), [2]);
        assert_eq!(free_slots.in_flight(), 5);
    }

    #[test]
    fn lowering_stops_refilling_and_raising_adds() {
        let mut free_slots = FreeSlots::new(1);
        free_slots.set_shares(|_| 4);
        take_all(&mut free_slots);
        free_slots.set_shares(|_| 2);
        assert_eq!(free_slots.most_in_flight(), 4);
        for left in [3, 2] {
            assert_eq!(free_slots.returned(0), left);
            assert!(take_all(&mut free_slots).is_empty());
        }
        free_slots.returned(0);
        assert_eq!(take_all(&mut free_slots), [0]);
        free_slots.set_shares(|_| 5);
        assert_eq!(take_all(&mut free_slots).len(), 3);
    }

    #[test]
    fn a_target_set_aside_gives_way_to_the_others() {
        let mut free_slots = FreeSlots::new(2);
        free_slots.set_shares(|_| 2);
        free_slots.set_aside(0);
        assert_eq!(take_all(&mut free_slots), [1, 1]);
        assert!(free_slots.any_aside());
        free_slots.retry();
        assert_eq!(take_all(&mut free_slots), [0, 0]);
    }

    #[test]
    fn one_queue_takes_the_targets_in_turn_and_never_more_than_its_depth() {
        let mut free_slots = FreeSlots::new(5);
        free_slots.set_one_queue(4, 2, 1);
        assert_eq!(free_slots.most_in_flight(), 2);
        assert_eq!(take_all(&mut free_slots), [1, 2]);
        let mut turns = Vec::new();
        for back in [1, 2, 3, 0, 1, 2] {
            free_slots.returned(back);
            turns.extend(take_all(&mut free_slots));
        }
        assert_eq!(turns, [3, 0, 1, 2, 3, 0]);
        free_slots.set_one_queue(4, 1, 0);
        assert_eq!(free_slots.most_in_flight(), 2);
        free_slots.returned(3);
        assert!(take_all(&mut free_slots).is_empty());
        free_slots.set_shares(|_| 1);
        assert_eq!(take_all(&mut free_slots), [1, 2, 3, 4]);
    }

    #[test]
    fn one_queue_passes_over_a_target_set_aside() {
        let mut free_slots = FreeSlots::new(3);
        free_slots.set_one_queue(3, 1, 0);
        free_slots.set_aside(1);
        let mut turns = Vec::new();
        for _ in 0..4 {
            turns.extend(take_all(&mut free_slots));
            free_slots.returned(turns[turns.len() - 1]);
        }
        assert_eq!(turns, [0, 2, 0, 2]);
        free_slots.retry();
        assert_eq!(take_all(&mut free_slots).len(), 1);
    }

    #[test]
    fn a_slot_put_back_comes_first() {
        let mut free_slots = FreeSlots::new(2);
        free_slots.set_shares(|_| 1);
        let first = free_slots.take().unwrap();
        free_slots.put_back(first);
        assert_eq!(take_all(&mut free_slots), [0, 1]);
    }
}
