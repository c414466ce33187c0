//! Knobs as they were given, checked against the targets and made ready for the hot path.

mod checked;
mod checks;
mod settings;
#[cfg(test)]
mod tests;
mod values;

pub use settings::{Settings, share};
pub use values::{Knobs, Limits, RingUse};
