//! Redistributes each target's queue depth after a change of the number of workers, without ever exceeding it.

/// Raises what each worker may keep outstanding on one target, as far as the depth allows: a worker with more than
/// its share keeps slots until its I/Os complete. Returns whether all may use their share now.
pub fn redistribute(
    queue_depth: usize,
    shares: &[usize],
    in_flight: &[usize],
    allowed: &mut [usize],
) -> bool {
    let held: usize = in_flight
        .iter()
        .zip(&*allowed)
        .map(|(one, most)| *one.max(most))
        .sum();
    let mut free = queue_depth.saturating_sub(held);
    for ((share, in_flight), allowed) in shares.iter().zip(in_flight).zip(&mut *allowed) {
        // What is outstanding already was counted as held.
        let without_more = (*in_flight).max(*allowed).min(*share);
        let more = (share - without_more).min(free);
        *allowed = without_more + more;
        free -= more;
    }
    *allowed == *shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn free_places_go_to_those_below_their_share() {
        let mut allowed = [3, 0, 0];
        assert!(!redistribute(20, &[7, 7, 6], &[10, 0, 0], &mut allowed));
        assert_eq!(allowed, [7, 7, 3]);
        assert!(redistribute(20, &[7, 7, 6], &[7, 7, 3], &mut allowed));
        assert_eq!(allowed, [7, 7, 6]);
    }

    #[test]
    fn nothing_moves_before_something_returns() {
        let mut allowed = [2, 0, 0];
        assert!(!redistribute(6, &[2, 2, 2], &[6, 0, 0], &mut allowed));
        assert_eq!(allowed, [2, 0, 0]);
        assert!(!redistribute(6, &[2, 2, 2], &[5, 0, 0], &mut allowed));
        assert_eq!(allowed, [2, 1, 0]);
    }

    #[test]
    fn the_depth_is_never_exceeded_however_ios_return() {
        let mut rng = crate::load::pattern::Rng::new(11, 0, 0);
        let mut below = |bound: usize| usize::try_from(rng.below(bound as u64)).unwrap();
        for _ in 0..500 {
            let (depth, workers) = (1 + below(40), 1 + below(6));
            let shares: Vec<usize> = (0..workers)
                .map(|worker| crate::load::knobs::share(depth, 0, worker, workers))
                .collect();
            let first = below(workers);
            let mut in_flight = vec![0; workers];
            in_flight[first] = depth;
            let mut allowed = vec![0; workers];
            allowed[first] = shares[first];
            let mut rounds = 0;
            while !redistribute(depth, &shares, &in_flight, &mut allowed) {
                rounds += 1;
                assert!(rounds < 500, "{shares:?} {in_flight:?} {allowed:?}");
                for worker in 0..workers {
                    in_flight[worker] -= below(2).min(in_flight[worker]);
                    in_flight[worker] = in_flight[worker].max(allowed[worker]);
                }
                assert!(in_flight.iter().sum::<usize>() <= depth);
            }
        }
    }
}
