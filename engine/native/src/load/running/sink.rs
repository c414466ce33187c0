//! Memory that synchronous reads go into, whose data is not used.

use std::io;
use std::sync::Arc;

use crate::load::data::buffers::{ALIGN, SHARED_ABOVE_BYTES};
use crate::load::data::memory::Memory;
use crate::load::knobs::Settings;

/// Memory that all reads share; the old one if it is large enough.
pub fn sink(settings: &Settings, old: Option<&Arc<Memory>>) -> io::Result<Arc<Memory>> {
    let slot_bytes = slot_bytes(settings);
    let ios = settings.outstanding();
    let bytes = slot_bytes * ios.min((SHARED_ABOVE_BYTES / slot_bytes).max(1));
    match old {
        Some(memory) if memory.bytes() >= bytes => Ok(Arc::clone(memory)),
        _ => Memory::new(bytes).map(Arc::new),
    }
}

/// What one I/O takes of it.
pub fn slot_bytes(settings: &Settings) -> usize {
    usize::try_from(settings.part_bytes)
        .unwrap_or(usize::MAX)
        .next_multiple_of(ALIGN)
}
