//! The slowest I/Os of an interval, and the thresholds that keep their number small.

use std::collections::HashMap;
use std::sync::atomic::AtomicU8;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use super::cells;
use super::layout::{EPOCHS, SLOW_OF_CPU, SlowIo};
use super::maps::Maps;
use super::rows::Rows;

/// Columns of a slow I/O; the name of the command comes beside them.
pub const COLUMNS: [&str; 12] = [
    "done_ns",
    "row",
    "sector",
    "bytes",
    "operation",
    "tag_wait_ns",
    "queue_ns",
    "service_ns",
    "process",
    "thread",
    "cgroup",
    "latency_ns",
];

/// I/Os that are wanted for each device and interval.
const WANTED: usize = 16;

pub struct Slow {
    pub values: [u64; COLUMNS.len()],
    pub command: Vec<u8>,
    device: usize,
    latency_ns: u64,
}

/// Empties the half that is about to be written.
pub fn clear(maps: &Maps, epoch: usize) {
    for slow in half(maps, epoch) {
        slow.done_ns.store(0, Release);
    }
}

/// The I/Os of an interval that has ended, the slowest first.
pub fn collect(maps: &Maps, rows: &Rows, epoch: usize) -> Vec<Slow> {
    let mut slowest: Vec<Slow> = half(maps, epoch)
        .filter_map(|slow| read(slow, rows))
        .collect();
    slowest.sort_by_key(|slow| std::cmp::Reverse(slow.latency_ns));
    slowest
}

/// Sets for each device what the next interval takes for slow, from what this one found.
pub fn set_thresholds(maps: &Maps, slowest: &[Slow], epoch: usize) {
    let mut latencies: HashMap<usize, Vec<u64>> = HashMap::new();
    for slow in slowest {
        latencies
            .entry(slow.device)
            .or_default()
            .push(slow.latency_ns);
    }
    for (device, latencies) in latencies {
        let cells = cells::of_device(maps, device);
        let maxima = cells.map(|cell| cell.latency_max_ns[epoch].load(Relaxed));
        let most = maxima.max().unwrap_or(0);
        let device = &maps.devices[device];
        let before = device.slow_ns.load(Relaxed);
        device
            .slow_ns
            .store(threshold(before, most, &latencies, WANTED), Relaxed);
    }
}

/// The least latency that is still wanted if there are enough, else a step down. `latencies` fall.
pub fn threshold(before: u64, most: u64, latencies: &[u64], wanted: usize) -> u64 {
    let next = match latencies.get(wanted - 1) {
        Some(enough) => *enough,
        None if before == 0 => most - most / 4,
        None => before.min(most) - before.min(most) / 8,
    };
    next.max(1)
}

fn half(maps: &Maps, epoch: usize) -> impl Iterator<Item = &SlowIo> {
    maps.slow_ios
        .chunks_exact(SLOW_OF_CPU)
        .skip(epoch)
        .step_by(EPOCHS)
        .flatten()
}

/// None if there is none, or if it is being written.
fn read(slow: &SlowIo, rows: &Rows) -> Option<Slow> {
    let done_ns = slow.done_ns.load(Acquire);
    if done_ns == 0 {
        return None;
    }
    let device = slow.device.load(Relaxed) as usize;
    let row = rows.of_device(device)?;
    let latency_ns = slow.latency_ns.load(Relaxed);
    let values = [
        done_ns,
        row as u64,
        slow.sector.load(Relaxed),
        u64::from(slow.bytes.load(Relaxed)),
        u64::from(slow.operation.load(Relaxed)),
        slow.tag_wait_ns.load(Relaxed),
        slow.queue_ns.load(Relaxed),
        slow.service_ns.load(Relaxed),
        u64::from(slow.process.load(Relaxed)),
        u64::from(slow.thread.load(Relaxed)),
        slow.cgroup.load(Relaxed),
        latency_ns,
    ];
    let command = text(&slow.command);
    (slow.done_ns.load(Acquire) == done_ns).then_some(Slow {
        values,
        command,
        device,
        latency_ns,
    })
}

/// What comes before the first zero byte.
pub fn text(bytes: &[AtomicU8]) -> Vec<u8> {
    bytes
        .iter()
        .map(|byte| byte.load(Relaxed))
        .take_while(|byte| *byte != 0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_threshold_rises_at_once_and_falls_in_steps() {
        let many: Vec<u64> = (0..100).map(|n| 1_000 - n).collect();
        assert_eq!(threshold(0, 1_000, &many, WANTED), 985);
        assert_eq!(threshold(0, 1_000, &many[..3], WANTED), 750);
        assert_eq!(threshold(800, 1_000, &many[..3], WANTED), 700);
        assert_eq!(threshold(5_000, 1_000, &many[..3], WANTED), 875);
        assert_eq!(threshold(0, 0, &[], WANTED), 1);
    }
}
