//! Locks whose data stay usable when a holder panicked.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Locks; counters and lists behind these locks are valid at every step, so a panic elsewhere does not spoil them.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
