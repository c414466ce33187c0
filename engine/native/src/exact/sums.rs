//! The sums of a device: those of its cells, and what CPUs have not yet added to them.

use std::hint::spin_loop;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU64, fence};

use super::cells;
use super::layout::{DIRECTIONS, PENDING_OF_CPU, Pending, Sums};
use super::maps::Maps;

/// A CPU that is stopped while it moves its sums keeps them unknown for as long.
const ATTEMPTS: usize = 1000;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    pub ios: u64,
    pub sectors: u64,
    pub queue_ns: u64,
    pub service_ns: u64,
}

impl Totals {
    fn add(&mut self, sums: &Sums) {
        let add = |total: &mut u64, more: &AtomicU64| {
            *total = total.wrapping_add(more.load(Relaxed));
        };
        add(&mut self.ios, &sums.ios);
        add(&mut self.sectors, &sums.sectors);
        add(&mut self.queue_ns, &sums.queue_ns);
        add(&mut self.service_ns, &sums.service_ns);
    }
}

/// Sums of every direction; None if they changed during each attempt; the previous values then remain.
pub fn of_device(maps: &Maps, device: usize) -> Option<[Totals; DIRECTIONS]> {
    let mut totals = [Totals::default(); DIRECTIONS];
    for (direction, total) in totals.iter_mut().enumerate() {
        // Which cells there are is looked up in each attempt: sums may move to a new one.
        let own = || cells::of_device(maps, device).map(|cell| &cell.sums[direction]);
        *total = whole(own, &maps.pending, device, direction)?;
    }
    Some(totals)
}

fn whole<'sums, Own: Iterator<Item = &'sums Sums>>(
    own: impl Fn() -> Own,
    pending: &[Pending],
    device: usize,
    direction: usize,
) -> Option<Totals> {
    let slot = (device * DIRECTIONS + direction) % PENDING_OF_CPU;
    let slots = || pending.iter().skip(slot).step_by(PENDING_OF_CPU);
    let is_its = |one: &&Pending| {
        one.device.load(Relaxed) as usize == device
            && one.direction.load(Relaxed) as usize == direction
    };
    (0..ATTEMPTS).find_map(|_| {
        let before = sequences(slots())?;
        let mut total = Totals::default();
        own().for_each(|sums| total.add(sums));
        slots().filter(is_its).for_each(|one| total.add(&one.sums));
        fence(Acquire);
        (sequences(slots()) == Some(before)).then_some(total)
    })
}

/// What changes whenever any of these moves; None while one does.
fn sequences<'pending>(slots: impl Iterator<Item = &'pending Pending>) -> Option<u64> {
    let mut sum = 0;
    for slot in slots {
        let sequence = slot.sequence.load(Acquire);
        if sequence % 2 == 1 {
            spin_loop();
            return None;
        }
        sum += u64::from(sequence);
    }
    Some(sum)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::AtomicBool;

    use super::*;

    /// All fields of both are atomic integers, for which zero is a value.
    fn zeroed<T>() -> T {
        // SAFETY: plain integers.
        unsafe { std::mem::zeroed() }
    }

    fn slots(cpus: usize) -> Vec<Pending> {
        (0..cpus * PENDING_OF_CPU).map(|_| zeroed()).collect()
    }

    fn hold(slot: &Pending, device: u32, direction: u32, ios: u64) {
        slot.device.store(device, Relaxed);
        slot.direction.store(direction, Relaxed);
        slot.sums.ios.store(ios, Relaxed);
    }

    #[test]
    fn what_the_cpus_hold_of_the_device_is_added_to_its_cells() {
        let (own, pending): (Sums, _) = (zeroed(), slots(3));
        let other: Sums = zeroed();
        own.ios.store(60, Relaxed);
        other.ios.store(40, Relaxed);
        let slot = (7 * DIRECTIONS + 1) % PENDING_OF_CPU;
        hold(&pending[slot], 7, 1, 5);
        hold(&pending[PENDING_OF_CPU + slot], 8, 1, 40);
        hold(&pending[2 * PENDING_OF_CPU + slot], 7, 1, 2);
        assert_eq!(
            whole(|| [&own, &other].into_iter(), &pending, 7, 1)
                .unwrap()
                .ios,
            107
        );
    }

    #[test]
    fn sums_on_the_move_are_not_returned() {
        let pending = slots(1);
        let slot = (7 * DIRECTIONS) % PENDING_OF_CPU;
        pending[slot].sequence.store(1, Relaxed);
        assert_eq!(whole(std::iter::empty, &pending, 7, 0), None);
    }

    #[test]
    fn nothing_is_counted_twice_or_not_at_all_while_it_moves() {
        use std::sync::atomic::Ordering::SeqCst;
        let (own, pending): (Sums, _) = (zeroed(), slots(1));
        let slot = &pending[(7 * DIRECTIONS) % PENDING_OF_CPU];
        hold(slot, 7, 0, 0);
        let ended = AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..20_000 {
                    slot.sums.ios.fetch_add(1, SeqCst);
                    slot.sequence.fetch_add(1, SeqCst);
                    own.ios.fetch_add(slot.sums.ios.load(SeqCst), SeqCst);
                    slot.sums.ios.store(0, SeqCst);
                    slot.sequence.fetch_add(1, SeqCst);
                }
                ended.store(true, SeqCst);
            });
            let mut last = 0;
            while !ended.load(SeqCst) {
                if let Some(total) = whole(|| std::iter::once(&own), &pending, 7, 0) {
                    assert!((last..=20_000).contains(&total.ios));
                    last = total.ios;
                }
            }
        });
        assert_eq!(
            whole(|| std::iter::once(&own), &pending, 7, 0).unwrap().ios,
            20_000
        );
    }
}
