//! Opens an epoch that waits, once the older I/Os are back.

use std::sync::Arc;

use super::shared_state::Core;
use crate::load::epochs::epoch::Epoch;
use crate::load::system::lock::lock;
use crate::load::system::refusal::words;
use crate::load::targets::mode_turn;

/// Opens an epoch that waits, if no older I/O is outstanding; where it turns the page cache off, dirty pages are first
/// written back by a thread of its own, as that may take minutes.
pub fn open_settled(core: &Arc<Core>, epoch: &Arc<Epoch>) {
    if !core.all_settled(epoch.index) || !epoch.opening.begin() {
        return;
    }
    if !epoch.mode_turns || !epoch.settings.mode.is_direct() {
        return open(core, epoch);
    }
    let (shared, epoch) = (Arc::clone(core), Arc::clone(epoch));
    let written_back = move || {
        let run = &shared.run;
        mode_turn::write_back(&run.targets, &run.errors, &run.write_backs, run.clock);
        let timeline = lock(&shared.timeline);
        // After the end the descriptors stay as they were for the pass that reads back what was written.
        if !run.life.stopping() && Arc::ptr_eq(timeline.current(), &epoch) {
            open(&shared, &epoch);
        }
    };
    let thread = std::thread::Builder::new().name("load-writeback".into());
    if let Err(error) = thread.spawn(written_back) {
        let text = format!("a thread to write back cached data: {}", words(&error));
        core.run.life.set_fault(text);
    }
}

fn open(core: &Core, epoch: &Epoch) {
    if epoch.mode_turns {
        if let Err(error) = mode_turn::turn(&core.run.targets, epoch.settings.mode.is_direct()) {
            return core.run.life.set_fault(words(&error));
        }
    }
    epoch.opening.open(core.run.now());
    core.wake_users(epoch);
    core.run.life.notify();
}
