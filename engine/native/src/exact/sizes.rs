//! How large the maps are for the devices of a host.

use std::fs;
use std::path::Path;

use super::layout::{EPOCHS, OCTAVES, PENDING_OF_CPU, SERIES, SLOW_OF_CPU};

/// Slots for devices that are added later, beside a sixteenth of those there are.
const SPARE_DEVICES: u32 = 256;
/// Devices are numbered by 16 bits in the table of I/Os in flight.
const MOST_DEVICES: u32 = 65_535;
const MOST_GROUPS: u32 = 8_192;
/// From here on the host is taken to have tens of thousands of I/Os in flight at once.
const LARGE_HOST: u32 = 256;
/// Four parts: more would take more memory than they save time.
const MOST_SHARD_BITS: u32 = 2;

pub struct Sizes {
    pub devices: u32,
    /// Histograms of one series each.
    pub histograms: u32,
    pub groups: u32,
    pub io_set_bits: u32,
    /// Places for processes on devices.
    pub process_bits: u32,
    /// Parts of the sums of each, so that CPUs rarely write to the same.
    pub process_shard_bits: u32,
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
        let cpus = possible_cpus(sysfs);
        Self {
            devices,
            histograms: histograms.min(devices) * u32::try_from(SERIES).unwrap_or(4),
            groups: devices.min(MOST_GROUPS),
            // A set of four fills up by chance long before all do: an eighth in use loses 1 I/O in 10,000.
            io_set_bits: if there > LARGE_HOST { 15 } else { 14 },
            process_bits: 11,
            process_shard_bits: cpus.max(1).ilog2().min(MOST_SHARD_BITS),
            cpus,
        }
    }

    /// Maps by name with their number of entries.
    pub fn of_maps(&self) -> [(&'static str, u32); 11] {
        let slow_of_cpu = u32::try_from(EPOCHS * SLOW_OF_CPU).unwrap_or(u32::MAX);
        let pending_of_cpu = u32::try_from(PENDING_OF_CPU).unwrap_or(u32::MAX);
        let octaves = u32::try_from(OCTAVES).unwrap_or(u32::MAX);
        [
            ("devices", self.devices),
            ("pending", self.cpus * pending_of_cpu),
            ("identities", self.devices),
            // Multipath heads are known, too, but not tracked.
            ("numbers", self.devices + self.devices / 4),
            ("queues", self.devices * 2 + 1024),
            ("groups", self.groups),
            ("under_way", 1 << self.io_set_bits),
            ("octaves", self.histograms * octaves),
            ("slow_ios", self.cpus * slow_of_cpu),
            ("processes", 1 << self.process_bits),
            (
                "process_sums",
                1 << (self.process_bits + self.process_shard_bits),
            ),
        ]
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
    fn nineteen_thousand_devices_fit_into_forty_megabytes() {
        let folder = tempdir();
        for number in 0..19_200 {
            fs::write(folder.join(format!("block/sd{number}")), "").unwrap();
        }
        fs::write(folder.join("devices/system/cpu/possible"), "0-15\n").unwrap();
        let sizes = Sizes::of_host(&folder, 3000);
        let bytes = |map: &str| match map {
            "devices" => 320,
            "identities" => 40,
            "numbers" => 48,
            "queues" => 8,
            "groups" | "octaves" | "pending" | "processes" => 64,
            "under_way" => 128,
            "slow_ios" => 112,
            "process_sums" => 448,
            other => panic!("{other}"),
        };
        let total: u64 = sizes
            .of_maps()
            .iter()
            .map(|(map, entries)| u64::from(*entries) * bytes(map))
            .sum();
        fs::remove_dir_all(&folder).unwrap();
        assert!(sizes.devices > 20_000);
        assert!(total <= 40_000_000, "{total}");
    }

    fn tempdir() -> std::path::PathBuf {
        let folder = std::env::temp_dir().join(format!("lunscope-sizes-{}", std::process::id()));
        fs::create_dir_all(folder.join("block")).unwrap();
        fs::create_dir_all(folder.join("devices/system/cpu")).unwrap();
        folder
    }
}
