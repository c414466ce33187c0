//! A turn to another number of rings: the depth of every target moves from the old workers to the new, slot by slot, so
//! that no target exceeds it meanwhile.

use std::sync::Arc;

use super::dealing;
use super::worker_handle::WorkerHandle;
use crate::load::epochs::epoch::Epoch;
use crate::load::knobs::{Settings, share};

/// Lets workers keep as much of each target's depth as others have given back, and their share in the end.
pub fn redistribute(worker_handles: &[Arc<WorkerHandle>], epoch: &Epoch) {
    if !worker_handles
        .iter()
        .all(|handle| handle.has_adopted(epoch.index))
    {
        return;
    }
    let mut complete = true;
    for target in 0..epoch.settings.width {
        let shares = shares(&epoch.settings, worker_handles, target);
        let in_flight: Vec<usize> = worker_handles
            .iter()
            .map(|handle| usize::try_from(handle.in_flight(target)).unwrap_or(usize::MAX))
            .collect();
        let before: Vec<usize> = worker_handles
            .iter()
            .map(|handle| handle.allowed(target) as usize)
            .collect();
        let mut allowed = before.clone();
        complete &= dealing::redistribute(
            epoch.settings.depth_of(target),
            &shares,
            &in_flight,
            &mut allowed,
        );
        for ((handle, before), after) in worker_handles.iter().zip(before).zip(allowed) {
            if after != before {
                handle.allow(target, after);
                handle.waker.wake();
            }
        }
    }
    if complete {
        epoch.set_redistributed();
    }
}

/// Allows each worker what it had and what it will have, whichever is less, until the slots have moved.
pub fn hold_back(
    worker_handles: &[Arc<WorkerHandle>],
    targets: usize,
    before: &Epoch,
    settings: &Settings,
) {
    for target in 0..targets {
        let new = shares(settings, worker_handles, target);
        let old = shares(&before.settings, worker_handles, target);
        for ((handle, new), old) in worker_handles.iter().zip(new).zip(old) {
            let had = if before.is_redistributed() {
                old
            } else {
                handle.allowed(target) as usize
            };
            handle.allow(target, new.min(had));
        }
    }
}

/// Every worker's share of a target's depth.
fn shares(settings: &Settings, worker_handles: &[Arc<WorkerHandle>], target: usize) -> Vec<usize> {
    let depth = settings.depth_of(target);
    let of = |handle: &Arc<WorkerHandle>| share(depth, target, handle.worker, settings.threads);
    worker_handles.iter().map(of).collect()
}
