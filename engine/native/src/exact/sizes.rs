//! How large the maps are for the devices of a host.

use std::fs;
use std::path::Path;
use std::sync::atomic::Ordering::Release;

use super::layout::{Control, EPOCHS, LOCK_OF_POOLS, NESTED, PENDING_OF_CPU, SLOW_OF_CPU};
use super::shards::Shards;

/// Devices that have all four histograms unless another number is asked for.
pub const HISTOGRAMS: u32 = 3000;
/// Slots for devices that are added later, beside a sixteenth of those there are.
const SPARE_DEVICES: u32 = 256;
/// Devices are numbered by 16 bits in the table of I/Os in flight.
const MOST_DEVICES: u32 = 65_535;
const MOST_GROUPS: u32 = 8_192;
/// CPUs from which a host is taken to have tens of thousands of I/Os in flight at once.
const LARGE_HOST: u32 = 256;
/// Cells of shards, 256 bytes each and 448 for the places of their octaves: a thousand devices on sixteen shards.
const MOST_OWN_CELLS: u32 = 16_000;
/// Octaves, 64 bytes each: six in each of four histograms of a cell; where few I/Os are, half as many.
const OCTAVES_OF_CELL: u32 = 24;
const OCTAVES_OF_DEVICE: u32 = 12;
const PROCESS_BITS: u32 = 11;
/// Sums of processes that shards have for themselves, per place.
const MOST_OWN_SUMS: u32 = 3;

pub struct Sizes {
    pub devices: u32,
    /// Devices with histograms while few I/Os are done on them.
    histograms: u32,
    own_cells: u32,
    pub groups: u32,
    pub io_set_bits: u32,
    /// Places for processes on devices.
    pub process_bits: u32,
    pub shards: Shards,
    cpus: u32,
}

impl Sizes {
    /// Sizes for the devices in SYSFS/block; `histograms` of them get all four.
    pub fn of_host(sysfs: &Path, histograms: u32) -> Self {
        let there = fs::read_dir(sysfs.join("block")).map_or(0, |entries| {
            u32::try_from(entries.count()).unwrap_or(u32::MAX)
        });
        let devices = there
            .saturating_add(there / 16 + SPARE_DEVICES)
            .min(MOST_DEVICES);
        let histograms = histograms.min(devices);
        let shards = Shards::of_host(sysfs, devices);
        Self {
            devices,
            histograms,
            own_cells: (histograms * shards.number).min(MOST_OWN_CELLS),
            groups: devices.min(MOST_GROUPS),
            // A set of four fills up by chance long before all do: an eighth in use loses 1 I/O in 10,000.
            io_set_bits: if there > LARGE_HOST { 15 } else { 14 },
            process_bits: PROCESS_BITS,
            shards,
            cpus: possible_cpus(sysfs),
        }
    }

    /// The first cell that a shard may have for itself, the end of those, and the end of the sums of processes.
    pub fn bounds(&self) -> [u32; 3] {
        let places = 1 << self.process_bits;
        let own_sums = self.shards.number.min(MOST_OWN_SUMS) * places;
        [
            self.devices,
            self.devices + self.own_cells,
            places + own_sums,
        ]
    }

    /// Sets what is next of each pool: what comes first belongs to the devices and to the places of processes.
    pub fn begin(&self, control: &Control) {
        control.next_device.store(1, Release);
        control.next_cell.store(self.devices, Release);
        control.next_places.store(self.own_cells, Release);
        control.next_sums.store(1 << self.process_bits, Release);
        // 0 is the epoch of what never had I/O.
        control.epoch.store(1, Release);
    }

    /// Memory that the maps take in the kernel.
    pub fn bytes(&self) -> u64 {
        let maps = self.of_maps().into_iter();
        maps.map(|(map, entries)| u64::from(entries) * bytes_of(map))
            .sum()
    }

    /// Maps by name with their number of entries.
    pub fn of_maps(&self) -> [(&'static str, u32); 19] {
        let of_cpus = |each: usize| self.cpus * u32::try_from(each).unwrap_or(u32::MAX);
        let octaves = self.own_cells * OCTAVES_OF_CELL + self.histograms * OCTAVES_OF_DEVICE;
        let [_, cells, sums] = self.bounds();
        [
            ("devices", self.devices),
            ("cells", cells),
            ("cell_of", self.devices * self.shards.number),
            ("touched", self.devices),
            ("counts", self.shards.number),
            ("pending", of_cpus(PENDING_OF_CPU)),
            ("asides", of_cpus(NESTED)),
            (
                "locks",
                u32::try_from(LOCK_OF_POOLS + 1).unwrap_or(u32::MAX),
            ),
            ("identities", self.devices),
            // Those without a place are known, too.
            ("numbers", self.devices + self.devices / 4),
            ("queues", self.devices * 2 + 1024),
            ("groups", self.groups),
            ("under_way", 1 << self.io_set_bits),
            ("places", self.own_cells + self.histograms),
            ("octaves", octaves),
            ("slow_ios", of_cpus(EPOCHS * SLOW_OF_CPU)),
            ("processes", 1 << self.process_bits),
            ("process_sums", sums),
            ("sums_of", self.shards.number << self.process_bits),
        ]
    }
}

/// Bytes of an entry; the hash of numbers has what the kernel adds, too: `struct htab_elem` and a bucket.
fn bytes_of(map: &str) -> u64 {
    match map {
        "devices" | "counts" | "under_way" => 128,
        "cells" => 256,
        "cell_of" | "touched" | "queues" | "sums_of" | "locks" => 8,
        "identities" => 40,
        "numbers" => 96,
        "groups" | "octaves" | "pending" | "processes" => 64,
        "slow_ios" => 112,
        "asides" => 528,
        "places" | "process_sums" => 448,
        _ => 0,
    }
}

/// One more than the highest number a CPU may get; the list is like "0-3" or "0,2-7".
fn possible_cpus(sysfs: &Path) -> u32 {
    let text = fs::read_to_string(sysfs.join("devices/system/cpu/possible")).unwrap_or_default();
    text.trim()
        .rsplit([',', '-'])
        .next()
        .and_then(|last| last.parse::<u32>().ok())
        .map_or(1024, |last| last + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nineteen_thousand_devices_of_which_a_thousand_are_active_fit_into_64_megabytes() {
        let folder = tempdir();
        for number in 0..19_200 {
            fs::write(folder.join(format!("block/sd{number}")), "").unwrap();
        }
        fs::write(folder.join("devices/system/cpu/possible"), "0-15\n").unwrap();
        fs::write(folder.join("devices/system/cpu/online"), "0-15\n").unwrap();
        let sizes = Sizes::of_host(&folder, 3000);
        let total = sizes.bytes();
        let unknown = sizes.of_maps().into_iter().find(|map| bytes_of(map.0) == 0);
        let octaves = sizes
            .of_maps()
            .iter()
            .find(|map| map.0 == "octaves")
            .unwrap()
            .1;
        fs::remove_dir_all(&folder).unwrap();
        assert!(sizes.devices > 20_000);
        assert_eq!(sizes.shards.number, 16);
        assert!(octaves >= 1000 * 16 * 4 * 6);
        assert!(total <= 64_000_000, "{total}");
        assert!(unknown.is_none());
    }

    #[test]
    fn cpus_that_are_only_possible_take_little() {
        let folder = tempdir();
        fs::write(folder.join("devices/system/cpu/possible"), "0-127\n").unwrap();
        fs::write(folder.join("devices/system/cpu/online"), "0-1\n").unwrap();
        let sizes = Sizes::of_host(&folder, 3000);
        fs::remove_dir_all(&folder).unwrap();
        assert_eq!((sizes.shards.number, sizes.cpus), (2, 128));
        assert!(sizes.own_cells <= 2 * sizes.devices);
    }

    fn tempdir() -> std::path::PathBuf {
        static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
        let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        let name = format!("lunscope-sizes-{}-{number}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        fs::create_dir_all(folder.join("block")).unwrap();
        fs::create_dir_all(folder.join("devices/system/cpu")).unwrap();
        folder
    }
}
