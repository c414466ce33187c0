//! Chooses one of several paths to the same data for an I/O.
//!
//! The rules are those of operating systems, under the names people know them by: dm-multipath's selectors
//! (`drivers/md/dm-ps-*.c`) and the load-balancing policies of HP-UX 11i v3. Each is a file of its own and sees nothing
//! but the figures of the paths, so that it can be checked against its rule. Copies of a mirror are chosen by them too.

mod cell_local_round_robin;
mod historical_service_time;
mod least_command_load;
mod name;
mod order;
mod path_lockdown;
mod preferred_path;
mod round_robin;
mod rule;
mod selector;
mod service_time;
#[cfg(test)]
mod testing;
mod weighted_round_robin;

pub use self::name::PolicyName;
pub use self::rule::{PathState, Request};
pub use self::selector::Selector;
