//! Shards of CPUs: those that write the same lines of memory.

use std::fs;
use std::path::Path;

use super::layout::MOST_CPUS;

/// More cells of a device would take more memory and more time to read than they save.
const MOST_SHARDS: usize = 64;
/// Fewest shards where there are as many CPUs.
const SHARDS_OF_MANY_DEVICES: usize = 16;
/// Places for devices times shards, of eight bytes each.
const MOST_PLACES: usize = 400_000;

pub struct Shards {
    pub number: u32,
    /// Shard by CPU.
    pub of_cpu: Vec<u8>,
}

impl Shards {
    /// One CPU each up to 64, beyond that neighbours that share a cache: those of SYSFS/devices/system/cpu.
    pub fn of_host(sysfs: &Path, devices: u32) -> Self {
        let folder = sysfs.join("devices/system/cpu");
        let mut cpus = numbers(&fs::read_to_string(folder.join("online")).unwrap_or_default());
        cpus.retain(|cpu| *cpu < MOST_CPUS);
        if cpus.len() > SHARDS_OF_MANY_DEVICES {
            cpus.sort_by_cached_key(|cpu| neighbourhood(&folder, *cpu));
        }
        Self::of_cpus(&cpus, devices as usize)
    }

    /// CPUs in an order in which neighbours follow each other.
    fn of_cpus(online: &[usize], devices: usize) -> Self {
        let affordable = (MOST_PLACES / devices.max(1)).clamp(SHARDS_OF_MANY_DEVICES, MOST_SHARDS);
        let number = online.len().clamp(1, affordable);
        // Those that come online later join the others.
        let mut of_cpu: Vec<u8> = (0..MOST_CPUS).map(|cpu| narrow(cpu % number)).collect();
        for (position, cpu) in online.iter().enumerate() {
            of_cpu[*cpu] = narrow(position * number / online.len());
        }
        Self {
            number: u32::try_from(number).unwrap_or(1),
            of_cpu,
        }
    }
}

fn narrow(shard: usize) -> u8 {
    u8::try_from(shard).unwrap_or(0)
}

/// The first CPU that shares its last cache, the first of its core, itself.
fn neighbourhood(folder: &Path, cpu: usize) -> [usize; 3] {
    let folder = folder.join(format!("cpu{cpu}"));
    let first = |path: &str| {
        let list = fs::read_to_string(folder.join(path)).ok()?;
        numbers(&list).first().copied()
    };
    let cache = (0..=4)
        .rev()
        .find_map(|index| first(&format!("cache/index{index}/shared_cpu_list")));
    let core = first("topology/thread_siblings_list");
    [cache.unwrap_or(0), core.unwrap_or(cpu), cpu]
}

/// Numbers of a list like "0-3" or "0,2-7".
pub fn numbers(list: &str) -> Vec<usize> {
    let ranges = list.trim().split(',').filter_map(|range| {
        let (from, to) = range.split_once('-').unwrap_or((range, range));
        Some(from.parse().ok()?..=to.parse().ok()?)
    });
    ranges.flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cpu_has_a_shard_of_its_own_where_they_are_few() {
        let shards = Shards::of_cpus(&[0, 1, 4], 300);
        assert_eq!(
            (shards.number, &shards.of_cpu[..6]),
            (3, &[0, 1, 2, 0, 2, 2][..])
        );
        assert_eq!(shards.of_cpu.len(), MOST_CPUS);
        assert!(
            shards
                .of_cpu
                .iter()
                .all(|shard| u32::from(*shard) < shards.number)
        );
    }

    #[test]
    fn neighbours_share_one_where_cpus_or_devices_are_many() {
        let cpus: Vec<usize> = (0..256).collect();
        let shards = Shards::of_cpus(&cpus, 300);
        assert_eq!(
            (shards.number, &shards.of_cpu[..5]),
            (64, &[0, 0, 0, 0, 1][..])
        );
        assert_eq!(Shards::of_cpus(&cpus, 20_000).number, 20);
        assert_eq!(Shards::of_cpus(&[], 0).number, 1);
    }

    #[test]
    fn lists_of_cpus_are_read() {
        assert_eq!(numbers("0-2,5\n"), [0, 1, 2, 5]);
        assert!(numbers("").is_empty());
    }
}
