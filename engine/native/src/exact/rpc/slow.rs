//! The slowest calls of an interval, and the thresholds that keep their number small.

use std::collections::HashMap;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::layout::{RpcCalls, RpcSlow, SLOW};
use crate::exact::slowest::{text, threshold};

/// Columns of a slow call; the names of its operation and of the command come beside them.
pub const COLUMNS: [&str; 9] = [
    "done_ns",
    "client",
    "transport",
    "version",
    "queue_us",
    "rtt_us",
    "execute_us",
    "xid",
    "process",
];

/// Calls that are wanted for each client, transport, operation and interval.
const WANTED: usize = 8;

pub struct Slow {
    pub values: [u64; COLUMNS.len()],
    pub operation: String,
    pub command: Vec<u8>,
    place: usize,
    execute_us: u64,
}

/// Empties the half that is about to be written.
pub fn clear(slow: &[RpcSlow], epoch: usize) {
    for call in half(slow, epoch) {
        call.done_ns.store(0, Release);
    }
}

/// The calls of an interval that has ended, the slowest first.
pub fn collect(slow: &[RpcSlow], places: &[RpcCalls], epoch: usize) -> Vec<Slow> {
    let mut slowest: Vec<Slow> = half(slow, epoch)
        .iter()
        .filter_map(|call| read(call, places))
        .collect();
    slowest.sort_by_key(|call| std::cmp::Reverse(call.execute_us));
    slowest
}

/// Sets for each place what the next interval takes for slow, from what this one found: `slowest` falls.
pub fn set_thresholds(places: &[RpcCalls], slowest: &[Slow]) {
    let mut times: HashMap<usize, Vec<u64>> = HashMap::new();
    for call in slowest {
        times.entry(call.place).or_default().push(call.execute_us);
    }
    for (place, times) in times {
        let slow_us = &places[place].slow_us;
        let next = threshold(slow_us.load(Relaxed).into(), times[0], &times, WANTED);
        slow_us.store(u32::try_from(next).unwrap_or(u32::MAX), Relaxed);
    }
}

fn half(slow: &[RpcSlow], epoch: usize) -> &[RpcSlow] {
    &slow[epoch * SLOW..(epoch + 1) * SLOW]
}

/// None if there is none, or if it is being written.
fn read(call: &RpcSlow, places: &[RpcCalls]) -> Option<Slow> {
    let done_ns = call.done_ns.load(Acquire);
    if done_ns == 0 {
        return None;
    }
    let place = call.place.load(Relaxed) as usize;
    let whose = places.get(place)?;
    let [queue_us, rtt_us, execute_us] = call.took_us.each_ref().map(|us| us.load(Relaxed));
    let values = [
        done_ns,
        whose.client.load(Relaxed).into(),
        whose.transport.load(Relaxed).into(),
        whose.version.load(Relaxed).into(),
        queue_us,
        rtt_us,
        execute_us,
        call.xid.load(Relaxed).into(),
        call.process.load(Relaxed).into(),
    ];
    let command = text(&call.command);
    (call.done_ns.load(Acquire) == done_ns).then(|| Slow {
        values,
        operation: whose.operation(),
        command,
        place,
        execute_us,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn zeroed<T>(count: usize) -> Box<[T]> {
        // SAFETY: plain atomic integers, for which zero is a value.
        (0..count).map(|_| unsafe { std::mem::zeroed() }).collect()
    }

    #[test]
    fn calls_of_one_epoch_are_listed_slowest_first_and_set_the_threshold() {
        let (slow, places) = (zeroed::<RpcSlow>(2 * SLOW), zeroed::<RpcCalls>(3));
        places[2].client.store(5, Relaxed);
        places[2].operation[0].store(b'R', Relaxed);
        for number in 0..10_usize {
            let call = &slow[SLOW + 7 * number];
            call.done_ns.store(1_000 + number as u64, Relaxed);
            call.place.store(2, Relaxed);
            call.took_us[2].store(100 * (1 + number as u64), Relaxed);
        }
        slow[SLOW].xid.store(77, Relaxed);
        slow[SLOW].command[0].store(b'x', Relaxed);
        assert!(collect(&slow, &places, 0).is_empty());
        let found = collect(&slow, &places, 1);
        let times: Vec<u64> = found.iter().map(|call| call.execute_us).collect();
        assert_eq!(times[..2], [1_000, 900]);
        let last = &found[9];
        assert_eq!(last.values, [1_000, 5, 0, 0, 0, 0, 100, 77, 0]);
        assert_eq!(
            (last.operation.as_str(), &last.command[..]),
            ("R", &b"x"[..])
        );
        set_thresholds(&places, &found);
        assert_eq!(places[2].slow_us.load(Relaxed), 300);
        clear(&slow, 1);
        assert!(collect(&slow, &places, 1).is_empty());
    }
}
