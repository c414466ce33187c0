//! Verified loads: every write says what it is, so that whatever comes back otherwise is found and named.
//!
//! `unit` is what lies on the target, `diagnosis` what became of one that is broken. `ledger` keeps, of every place,
//! which write must be there, and `journal` keeps that in a file. `verifier` is what workers call, `pass` reads a whole
//! target. Both have a `judge` name what is wrong, with `groups` telling what belongs elsewhere; `damage` lists it.

mod damage;
mod diagnosis;
mod groups;
mod held;
mod journal;
mod judge;
mod ledger;
mod pages;
mod pass;
mod unit;
mod verifier;

pub use damage::{Damage, DamagedRange};
pub use held::Held;
pub use journal::Journal;
pub use judge::Home;
pub use ledger::{Entry, Ledger};
pub use pass::{Books, Outcome, Pass};
pub use verifier::{Verifier, grain_bytes};
