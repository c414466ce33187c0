//! Loads that run at the same time and hold each other to a ratio of I/Os (`flow` of fio), by counters they share.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

use crate::load::system::clock::Clock;

/// One I/O in this many may be missing from the least share, so that loads need not take turns one I/O at a time.
const EXACT_TO: u128 = 256;
/// Most I/Os that may be missing from it.
const MOST_AHEAD: u128 = 32;

/// How long a worker that is ahead waits before it asks again.
const WAIT_NS: u64 = 50_000;
/// Factor by which many workers wait longer, or they would keep a processor busy with asking.
const MOST_WAITS: usize = 20;
/// How long the others still wait for a load that has ended: those that end at the same time do so a little later, and
/// would issue without bounds until then.
const LINGER_NS: u64 = 100_000_000;
const NEVER: u64 = u64::MAX;

/// What a load brings into a flow.
#[derive(Clone, Copy)]
pub struct Terms {
    pub weight: u64,
    /// How long a worker waits that is ahead, if that was given.
    pub wait_ns: Option<u64>,
    /// Whether all others end with it, so that they are to issue nothing more once it is over.
    pub ends_others: bool,
}

/// What one load has issued.
struct Member {
    terms: Terms,
    issued: AtomicU64,
    /// Time from which the others share what it had.
    over_ticks: AtomicU64,
}

/// The part of one load in a flow; what it issued counts no more once this is dropped.
pub struct FlowShare {
    members: Arc<[Member]>,
    own: usize,
}

/// Makes the shares of loads, in this order; all of them count from now on.
pub fn shares(loads: &[Terms]) -> Vec<FlowShare> {
    let member = |terms: &Terms| Member {
        terms: *terms,
        issued: AtomicU64::new(0),
        over_ticks: AtomicU64::new(NEVER),
    };
    let members: Arc<[Member]> = loads.iter().map(member).collect();
    let share = |own| FlowShare {
        members: Arc::clone(&members),
        own,
    };
    (0..loads.len()).map(share).collect()
}

impl FlowShare {
    /// Counts an I/O that is about to be issued; false if this load is ahead of the others.
    fn take(&self, now_ticks: u64) -> bool {
        let own = &self.members[self.own];
        let mut issued = own.issued.load(SeqCst);
        while self.allows(issued, now_ticks) {
            match own
                .issued
                .compare_exchange_weak(issued, issued + 1, SeqCst, SeqCst)
            {
                Ok(_) => return true,
                Err(now) => issued = now,
            }
        }
        false
    }

    /// Takes back an I/O that was counted and not issued.
    fn give_back(&self) {
        self.members[self.own].issued.fetch_sub(1, SeqCst);
    }

    /// Counts this load no more from a moment on.
    fn leave(&self, ticks: u64) {
        let own = &self.members[self.own];
        if !own.terms.ends_others {
            // A second time changes nothing.
            let _ = own
                .over_ticks
                .compare_exchange(NEVER, ticks, SeqCst, SeqCst);
        }
    }

    /// Counts this load again, after an engine that the kernel refused.
    fn enter(&self) {
        self.members[self.own].over_ticks.store(NEVER, SeqCst);
    }

    /// Whether one more is allowed: the rule of fio (flow.c, `flow_threshold_exceeded`), own issued to all issued as
    /// own weight to all weights, with a little room.
    fn allows(&self, own_issued: u64, now_ticks: u64) -> bool {
        let own_weight = u128::from(self.members[self.own].terms.weight);
        let (mut issued, mut weights, mut least) = (u128::from(own_issued), own_weight, own_weight);
        for (index, member) in self.members.iter().enumerate() {
            if index != self.own && member.over_ticks.load(SeqCst) > now_ticks {
                issued += u128::from(member.issued.load(SeqCst));
                weights += u128::from(member.terms.weight);
                least = least.min(u128::from(member.terms.weight));
            }
        }
        let ahead = (issued * least / (weights * EXACT_TO)).min(MOST_AHEAD);
        u128::from(own_issued) * weights <= own_weight * issued + ahead * weights
    }
}

/// A load's part in a flow, as its workers ask it.
pub struct FlowGate {
    share: Arc<FlowShare>,
    clock: Clock,
    wait_ticks: u64,
}

impl FlowGate {
    /// `workers`: how many may ask at the same time.
    pub fn new(share: Arc<FlowShare>, workers: usize, clock: Clock) -> Self {
        let waits = u64::try_from(workers.clamp(1, MOST_WAITS)).unwrap_or(1);
        let wait_ns = share.members[share.own]
            .terms
            .wait_ns
            .unwrap_or(WAIT_NS * waits);
        share.enter();
        Self {
            share,
            clock,
            wait_ticks: clock.ticks(wait_ns),
        }
    }

    /// Counts an I/O that is about to be issued, or returns when to ask again.
    pub fn take(&self, now_ticks: u64) -> Result<(), u64> {
        if self.share.take(now_ticks) {
            Ok(())
        } else {
            Err(now_ticks + self.wait_ticks)
        }
    }

    /// Takes back an I/O that was counted and not issued.
    pub fn give_back(&self) {
        self.share.give_back();
    }

    /// Counts this load no more, a little later.
    pub fn leave(&self) {
        let now_ticks = self.clock.now();
        self.share.leave(now_ticks + self.clock.ticks(LINGER_NS));
    }
}

impl Drop for FlowShare {
    fn drop(&mut self) {
        self.leave(0);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    const NOW: u64 = 1;

    fn shares(weights: &[u64]) -> Vec<FlowShare> {
        let terms = |weight: &u64| Terms {
            weight: *weight,
            wait_ns: None,
            ends_others: false,
        };
        super::shares(&weights.iter().map(terms).collect::<Vec<_>>())
    }

    fn issued(share: &FlowShare) -> u64 {
        share.members[share.own].issued.load(SeqCst)
    }

    #[test]
    fn one_that_is_ahead_waits_for_the_others() {
        let shares = shares(&[8, 2]);
        let burst = |share: &FlowShare| (0..1000).take_while(|_| share.take(NOW)).count();
        assert_eq!(burst(&shares[0]), 1);
        assert_eq!(burst(&shares[1]), 1);
        assert_eq!(burst(&shares[0]), 4);
        assert_eq!(burst(&shares[1]), 1);
    }

    #[test]
    fn what_was_not_issued_does_not_count() {
        let shares = shares(&[1, 1]);
        assert!(shares[0].take(NOW));
        assert!(!shares[0].take(NOW));
        shares[0].give_back();
        assert!(shares[0].take(NOW));
    }

    #[test]
    fn the_ratio_holds_whoever_asks_more_often() {
        let shares = shares(&[8, 2, 1]);
        for step in 0..100_000_u64 {
            for (index, share) in shares.iter().enumerate() {
                if (step * 7 + index as u64).is_multiple_of(index as u64 + 1) {
                    share.take(NOW);
                }
            }
        }
        let counts: Vec<u64> = shares.iter().map(issued).collect();
        let total: u64 = counts.iter().sum();
        assert!(total > 50_000);
        for (count, weight) in counts.iter().zip([8, 2, 1]) {
            // One that is behind is behind by what all others are ahead.
            assert!(count * 11 <= total * weight + 11 * 33, "{counts:?}");
        }
    }

    #[test]
    fn the_ratio_holds_over_many_threads() {
        let shares = shares(&[8, 2]);
        let begin = Barrier::new(4);
        std::thread::scope(|scope| {
            for share in shares.iter().chain(&shares) {
                let begin = &begin;
                scope.spawn(move || {
                    begin.wait();
                    while issued(share) < 1000 * share.members[share.own].terms.weight {
                        if !share.take(NOW) {
                            std::thread::yield_now();
                        }
                    }
                });
            }
        });
        // Each of two threads may have counted one more before it saw that it was enough.
        assert!((8000..=8001).contains(&issued(&shares[0])));
        assert!((2000..=2001).contains(&issued(&shares[1])));
    }

    #[test]
    fn the_others_go_on_when_one_ends() {
        let mut shares = shares(&[1, 1, 2]);
        while shares[0].take(NOW) {}
        shares.pop();
        while shares[1].take(NOW) {}
        assert!(shares[0].take(NOW));
        shares.pop();
        assert!((0..1000).all(|_| shares[0].take(NOW)));
    }

    #[test]
    fn the_others_wait_for_their_own_end_if_it_ends_them() {
        let terms = |ends_others| Terms {
            weight: 1,
            wait_ns: None,
            ends_others,
        };
        let mut shares = super::shares(&[terms(false), terms(true)]);
        while shares[0].take(NOW) {}
        shares.pop();
        assert!(!shares[0].take(NEVER - 1));
    }

    #[test]
    fn the_others_wait_a_little_for_one_that_has_ended() {
        let shares = shares(&[1, 1]);
        while shares[0].take(NOW) {}
        shares[1].leave(NOW + 10);
        assert!(!shares[0].take(NOW + 9));
        assert!(shares[0].take(NOW + 10));
    }
}
