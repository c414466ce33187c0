//! What the programs put aside, because what they needed was held (bpf/aside.h): counted at the end of an interval.

use std::sync::atomic::AtomicU32;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::layout::{
    ASIDE_EPOCH, ASIDE_TAG_SHIFT, BUCKET_BITS, Cell, LOCK_OF_POOLS, Lock, NO_HISTOGRAM, Octave,
    SERIES, UNIT_SHIFT,
};
use super::maps::Maps;

/// Programs hold a lock for less, unless the hypervisor has stopped their CPU.
const HOLD_ATTEMPTS: usize = 10_000;

/// Counts all but maxima of the running interval; `ended` is the half of the peaks that is not written.
pub fn count(maps: &Maps, ended: usize) {
    let running = maps.control().epoch.load(Acquire) & ASIDE_EPOCH;
    for one in maps.asides.iter().flat_map(|level| &level.one) {
        let tag = one.tag.load(Acquire);
        let Some(what) = (tag >> ASIDE_TAG_SHIFT).checked_sub(1) else {
            continue;
        };
        let (what, value_ns) = (what as usize, one.value.load(Relaxed));
        let is_counted = match maps.cells.get(one.cell.load(Relaxed) as usize) {
            Some(cell) if what < SERIES => count_time(maps, cell, what, value_ns),
            Some(_) if tag & ASIDE_EPOCH == running => false,
            Some(cell) => raise(cell, what - SERIES, ended, value_ns),
            None => true,
        };
        if is_counted {
            one.tag.store(0, Release);
        }
    }
}

/// In the order of `enum aside_maximum` of bpf/layout.h.
fn raise(cell: &Cell, which: usize, ended: usize, value_ns: u64) -> bool {
    let maxima = [
        &cell.queue_max_ns,
        &cell.service_max_ns,
        &cell.latency_max_ns,
    ];
    if let Some(maximum) = maxima.get(which) {
        maximum[ended].fetch_max(value_ns, AcqRel);
    }
    true
}

/// As `count_latency` of bpf/histogram.h; false while that is not possible.
fn count_time(maps: &Maps, cell: &Cell, series: usize, ns: u64) -> bool {
    // The next I/O of the cell takes its places.
    let Some(places) = cell.places.load(Acquire).checked_sub(1) else {
        return false;
    };
    let (octave, bucket) = octave_and_bucket(ns);
    let places = maps.places.get(places as usize);
    let place = places.and_then(|places| places.octave[series].get(octave));
    if place.is_some_and(|place| !has_octave(maps, place)) {
        return false;
    }
    let octave = place.and_then(|place| octave_at(maps, place));
    let count = octave.map_or(&cell.uncounted, |octave| &octave.count[bucket]);
    count.fetch_add(1, AcqRel);
    true
}

fn octave_and_bucket(ns: u64) -> (usize, usize) {
    let most = u32::MAX >> 1;
    let units = u32::try_from(ns >> UNIT_SHIFT).map_or(most, |units| units.min(most));
    let shift = units.max(1 << BUCKET_BITS).ilog2() - BUCKET_BITS;
    let value = units >> shift;
    let octave = shift + (value >> BUCKET_BITS);
    (octave as usize, (value & ((1 << BUCKET_BITS) - 1)) as usize)
}

fn octave_at<'maps>(maps: &'maps Maps, place: &AtomicU32) -> Option<&'maps Octave> {
    let number = place.load(Acquire).checked_sub(1)?;
    maps.octaves.get(number as usize)
}

/// Takes the next of the pool where there is none yet; false if programs hold the lock all the time.
fn has_octave(maps: &Maps, place: &AtomicU32) -> bool {
    place.load(Acquire) != 0
        || while_held(&maps.locks[LOCK_OF_POOLS], || {
            let next = &maps.control().next_octave;
            let number = next.load(Relaxed);
            let is_left = (number as usize) < maps.octaves.len();
            if place.load(Relaxed) == 0 {
                next.store(number + u32::from(is_left), Relaxed);
                place.store(if is_left { number + 1 } else { NO_HISTOGRAM }, Release);
            }
        })
}

/// As `hold` of bpf/atomics.h: of all who add to it only the first finds its own addition alone.
fn while_held(lock: &Lock, work: impl FnOnce()) -> bool {
    for _ in 0..HOLD_ATTEMPTS {
        if lock.holders.fetch_add(1, AcqRel) == 0 {
            work();
            lock.holders.fetch_sub(1, AcqRel);
            return true;
        }
        lock.holders.fetch_sub(1, AcqRel);
        std::hint::spin_loop();
    }
    false
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::super::layout::{BUCKETS_OF_OCTAVE, NESTED};
    use super::super::sizes::Sizes;
    use super::super::view::ended_epoch;
    use super::*;

    const DEVICE: usize = 1;

    fn put(maps: &Maps, level: usize, what: u32, value_ns: u64) {
        let free = maps.asides[level].one.iter();
        let one = free.into_iter().find(|one| one.tag.load(Relaxed) == 0);
        let one = one.unwrap();
        one.value.store(value_ns, Relaxed);
        one.cell.store(1, Relaxed);
        let epoch = maps.control().epoch.load(Relaxed);
        one.tag
            .store((what + 1) << ASIDE_TAG_SHIFT | epoch, Relaxed);
    }

    fn left(maps: &Maps) -> usize {
        let all = maps.asides.iter().flat_map(|level| &level.one);
        all.filter(|one| one.tag.load(Relaxed) != 0).count()
    }

    fn maps() -> Maps {
        Maps::anonymous(&Sizes::of_host(Path::new("/no-such-folder"), 16))
    }

    #[test]
    fn maxima_are_those_of_the_interval_that_has_ended() {
        let maps = maps();
        let cell = &maps.cells[DEVICE];
        for (what, value_ns) in [(4, 30), (5, 40), (6, 70), (6, 60)] {
            put(&maps, NESTED + 1, what, value_ns);
        }
        let running = 1 - ended_epoch(&maps);
        count(&maps, ended_epoch(&maps));
        assert_eq!(left(&maps), 4);
        maps.control().epoch.fetch_add(1, Relaxed);
        cell.service_max_ns[running].store(50, Relaxed);
        count(&maps, ended_epoch(&maps));
        let maxima = [
            &cell.queue_max_ns,
            &cell.service_max_ns,
            &cell.latency_max_ns,
        ];
        assert_eq!(maxima.map(|one| one[running].load(Relaxed)), [30, 50, 70]);
        assert_eq!(left(&maps), 0);
    }

    #[test]
    fn times_wait_until_their_cell_has_places_and_nobody_takes_octaves() {
        let maps = maps();
        let cell = &maps.cells[DEVICE];
        let lock = &maps.locks[LOCK_OF_POOLS].holders;
        put(&maps, 0, 3, 1_000_000);
        lock.store(1, Relaxed);
        count(&maps, 0);
        cell.places.store(1, Relaxed);
        count(&maps, 0);
        assert_eq!(left(&maps), 1);
        lock.store(0, Relaxed);
        put(&maps, 1, 3, 1_000_000);
        count(&maps, 0);
        let (octave, bucket) = octave_and_bucket(1_000_000);
        let counts = octave_at(&maps, &maps.places[0].octave[3][octave]).unwrap();
        assert_eq!(counts.count[bucket].load(Relaxed), 2);
        assert_eq!((left(&maps), lock.load(Relaxed)), (0, 0));
        assert_eq!(maps.control().next_octave.load(Relaxed), 1);
    }

    #[test]
    fn without_an_octave_that_is_left_times_are_uncounted() {
        let maps = maps();
        let cell = &maps.cells[DEVICE];
        cell.places.store(1, Relaxed);
        let all = u32::try_from(maps.octaves.len()).unwrap();
        maps.control().next_octave.store(all, Relaxed);
        put(&maps, 0, 0, 64);
        count(&maps, 0);
        assert_eq!((left(&maps), cell.uncounted.load(Relaxed)), (0, 1));
        assert_eq!(maps.control().next_octave.load(Relaxed), all);
    }

    #[test]
    fn buckets_are_those_of_the_programs() {
        let bucket = |units: u64| {
            let (octave, bucket) = octave_and_bucket(units << UNIT_SHIFT);
            octave * BUCKETS_OF_OCTAVE + bucket
        };
        assert_eq!(
            [0, 15, 16, 31, 32, 33, 34].map(bucket),
            [0, 15, 16, 31, 32, 32, 33]
        );
        assert_eq!(bucket(0x7fff_ffff), 28 * BUCKETS_OF_OCTAVE - 1);
        assert_eq!(bucket(u64::MAX >> UNIT_SHIFT), 28 * BUCKETS_OF_OCTAVE - 1);
    }
}
