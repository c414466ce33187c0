//! Verified loads: every write is stamped, so that data that differs on reading is found and named.
//!
//! `unit` is the format on the target, `diagnosis` classifies a broken one. `ledger` has the `WriteMap`: the write that
//! every grain must hold; `journal` stores that in a file. Workers call `verifier`, with `checking` of what they read;
//! `pass` reads a whole target by `reading`. Both have a `judge` name what is wrong with each `finding`, with `groups`
//! for what belongs elsewhere; `damage` lists it.

mod checking;
mod damage;
mod diagnosis;
mod finding;
mod groups;
mod held;
mod home;
mod journal;
mod judge;
mod ledger;
mod pages;
mod pass;
mod reading;
mod unit;
mod verifier;

pub use damage::{Damage, DamagedRange};
pub use held::Held;
pub use home::Home;
pub use journal::Journal;
pub use ledger::{Entry, WriteMap};
pub use pass::{Outcome, Pass, Reference};
pub use verifier::{Verifier, grain_bytes};
