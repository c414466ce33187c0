//! The arrivals that a worker has claimed and not issued.

use std::sync::Arc;

use super::schedule::Schedule;

/// What one worker has claimed: at most one arrival of each stream.
#[derive(Default)]
pub struct Claims {
    schedule: Option<Arc<Schedule>>,
    moments: Vec<Option<u64>>,
}

impl Claims {
    /// Follows another schedule; what was claimed of the same one stays so.
    pub fn follow(&mut self, schedule: Option<&Arc<Schedule>>) {
        let same = match (&self.schedule, schedule) {
            (Some(old), Some(new)) => Arc::ptr_eq(old, new),
            (old, new) => old.is_none() && new.is_none(),
        };
        if same {
            return;
        }
        self.release();
        self.schedule = schedule.cloned();
        let streams = schedule.map_or(0, |schedule| schedule.streams());
        self.moments.resize(streams, None);
    }

    /// Gives back what was claimed.
    pub fn release(&mut self) {
        let Some(schedule) = &self.schedule else {
            return;
        };
        for (stream, moment) in self.moments.iter_mut().enumerate() {
            if let Some(moment) = moment.take() {
                schedule.give_back(stream, moment);
            }
        }
    }

    /// The time of an arrival that is due, else of the next one; None in a closed loop.
    #[inline]
    pub fn pass(&mut self, stream: usize, now_ticks: u64) -> Option<Result<u64, u64>> {
        let schedule = self.schedule.as_ref()?;
        let claimed = self.moments[stream].take();
        let moment = claimed
            .filter(|moment| !schedule.is_over(stream, *moment, now_ticks))
            .unwrap_or_else(|| schedule.claim(stream, now_ticks));
        if moment <= now_ticks {
            return Some(Ok(moment));
        }
        self.moments[stream] = Some(moment);
        Some(Err(moment))
    }
}

impl Drop for Claims {
    fn drop(&mut self) {
        self.release();
    }
}
