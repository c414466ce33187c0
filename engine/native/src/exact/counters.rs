//! The counters of all devices as one table.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::layout::{DIRECTIONS, Device};
use super::maps::Maps;
use super::rows::Rows;
use super::sums::{self, Totals};
use crate::load::clock::monotonic_ns;

const SECTOR_BYTES: u64 = 512;

/// Columns of a row, in order; described by the raw table trace.
pub const COLUMNS: [&str; 21] = [
    "reads",
    "writes",
    "others",
    "read_bytes",
    "write_bytes",
    "queue_read_ns",
    "queue_write_ns",
    "service_read_ns",
    "service_write_ns",
    "tag_waits",
    "tag_wait_ns",
    "busy_ns",
    "in_flight_now",
    "in_driver_now",
    "in_driver_peak",
    "queue_max_ns",
    "service_max_ns",
    "latency_max_ns",
    "unstamped",
    "errors",
    "lost_in_driver_ns",
];
/// Columns before are sums.
const TAG_WAITS: usize = 9;
const BUSY: usize = 11;
const FIRST_OF_INTERVAL: usize = 12;

/// Time something was busy: ends minus starts, so a negative sum has an open interval.
pub fn busy_ns(sum: i64) -> u64 {
    let open = if sum < 0 {
        i64::try_from(monotonic_ns()).unwrap_or(i64::MAX)
    } else {
        0
    };
    u64::try_from(sum + open).unwrap_or(0)
}

pub fn in_driver(device: &Device) -> u64 {
    u64::try_from(device.in_driver.load(Acquire) >> 1).unwrap_or(0)
}

/// What was last seen of a device, to leave alone what has not moved since.
#[derive(Clone, Copy, Default)]
struct Seen {
    last_done_ns: u64,
    in_driver: u64,
    /// Readings in a row that found nothing new; counters may trail the time of the last completion by one.
    still: u8,
}

#[derive(Default)]
pub struct Counters {
    seen: Vec<Seen>,
    pub values: Vec<u64>,
    /// Devices that did something in the interval last read, or may have.
    pub active: Vec<usize>,
}

impl Counters {
    /// Reads all rows; peaks are those of `epoch`, which has ended.
    pub fn read(&mut self, maps: &Maps, rows: &mut Rows, epoch: usize) {
        self.seen.resize(rows.len(), Seen::default());
        self.values.resize(rows.len() * COLUMNS.len(), 0);
        self.active.clear();
        for row in 0..rows.len() {
            let number = rows.all[row].device;
            let device = &maps.devices[number];
            let values = &mut self.values[row * COLUMNS.len()..][..COLUMNS.len()];
            if self.seen[row].is_still(device) {
                values[FIRST_OF_INTERVAL..FIRST_OF_INTERVAL + 6].fill(0);
                continue;
            }
            self.active.push(number);
            rows.has_changed(row, maps);
            if let Some(totals) = sums::of_device(maps, number) {
                fill_sums(values, &totals);
            }
            fill(values, device, epoch, self.seen[row].in_driver);
            self.seen[row].in_driver = values[FIRST_OF_INTERVAL + 1];
        }
    }
}

impl Seen {
    fn is_still(&mut self, device: &Device) -> bool {
        let last_done_ns = device.last_done_ns.load(Acquire);
        let idle = device.in_driver.load(Relaxed) >> 1 == 0
            && device.queued.load(Relaxed) == 0
            && self.in_driver == 0;
        let moved = last_done_ns != self.last_done_ns || !idle;
        self.last_done_ns = last_done_ns;
        self.still = if moved {
            0
        } else {
            self.still.saturating_add(1)
        };
        self.still > 1
    }
}

fn fill_sums(values: &mut [u64], [read, write, other]: &[Totals; DIRECTIONS]) {
    let filled: [u64; TAG_WAITS] = [
        read.ios,
        write.ios,
        other.ios,
        read.sectors * SECTOR_BYTES,
        write.sectors * SECTOR_BYTES,
        read.queue_ns,
        write.queue_ns,
        read.service_ns,
        write.service_ns,
    ];
    values[..TAG_WAITS].copy_from_slice(&filled);
}

fn fill(values: &mut [u64], device: &Device, epoch: usize, in_driver_before: u64) {
    let now = in_driver(device);
    let queued = u64::try_from(device.queued.load(Relaxed)).unwrap_or(0);
    let peak = u64::from(device.in_driver_peak[epoch].load(Relaxed));
    let busy = busy_ns(device.busy_ns.load(Acquire)).max(values[BUSY]);
    let filled: [u64; COLUMNS.len() - TAG_WAITS] = [
        device.tag_waits.load(Relaxed),
        device.tag_wait_ns.load(Relaxed),
        busy,
        now + queued,
        now,
        peak.max(now).max(in_driver_before),
        device.queue_max_ns[epoch].load(Relaxed),
        device.service_max_ns[epoch].load(Relaxed),
        device.latency_max_ns[epoch].load(Relaxed),
        u64::from(device.unstamped.load(Relaxed)),
        u64::from(device.errors.load(Relaxed)),
        device.lost_in_driver_ns.load(Acquire),
    ];
    values[TAG_WAITS..].copy_from_slice(&filled);
}
