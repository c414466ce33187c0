//! The owner of the programs: loads them, turns the intervals over, repairs what they missed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering::{Relaxed, Release};

use super::failure::Failure;
use super::grouping::Grouping;
use super::healing;
use super::layout::EPOCHS;
use super::maps::Maps;
use super::programs::{Part, Programs};
use super::sizes::Sizes;
use super::slowest;
use super::view::{View, ended_epoch, losses};

pub struct Tracer {
    pub programs: Programs,
    pub maps: Maps,
    pub view: View,
    pub grouping: Grouping,
    sysfs: PathBuf,
    healed: u64,
    /// Devices whose peaks of each epoch may not be zero.
    peaked: [Vec<usize>; EPOCHS],
}

impl Tracer {
    pub fn start(sysfs: PathBuf, histograms: u32) -> Result<Self, Failure> {
        let programs = Programs::load(&sysfs, &Sizes::of_host(&sysfs, histograms))?;
        let maps = Maps::new(|name| programs.map(name), true)?;
        maps.control().next_device.store(1, Release);
        let mut tracer = Self {
            programs,
            maps,
            view: View::default(),
            grouping: Grouping::default(),
            sysfs,
            healed: 0,
            peaked: Default::default(),
        };
        tracer.resume()?;
        Ok(tracer)
    }

    pub fn resume(&mut self) -> Result<(), Failure> {
        self.programs.attach(Part::Requests)?;
        self.rescan()
    }

    pub fn pause(&mut self) -> Result<(), Failure> {
        for part in [Part::TagWaits, Part::Bios, Part::Requests] {
            self.programs.detach(part)?;
        }
        Ok(())
    }

    /// Watches bios if there is a device without requests.
    pub fn rescan(&mut self) -> Result<(), Failure> {
        if has_bio_based(&self.sysfs) {
            self.programs.attach(Part::Bios)
        } else {
            self.programs.detach(Part::Bios)
        }
    }

    pub fn watch_tag_wait(&mut self, on: bool) -> Result<(), Failure> {
        if on {
            self.programs.attach(Part::TagWaits)
        } else {
            self.programs.detach(Part::TagWaits)
        }
    }

    /// Closes an interval: peaks and slow I/Os collected so far stand still until the next turn.
    pub fn turn(&mut self) {
        let maps = &self.maps;
        self.view.rows.grow(maps);
        self.grouping.apply(maps, &self.view.rows);
        let next = ended_epoch(maps);
        for device in self.peaked[next].drain(..) {
            let device = &maps.devices[device];
            device.in_driver_peak[next].store(0, Relaxed);
            device.queue_max_ns[next].store(0, Relaxed);
            device.service_max_ns[next].store(0, Relaxed);
            device.latency_max_ns[next].store(0, Relaxed);
        }
        slowest::clear(maps, next);
        maps.control().epoch.fetch_xor(1, Release);
        self.healed += healing::heal(maps, &self.view.rows, &self.sysfs);
    }

    /// Turns, then reads all counters.
    pub fn read(&mut self) -> &[u64] {
        self.turn();
        let ended = ended_epoch(&self.maps);
        let slow = self.view.slowest(&self.maps);
        slowest::set_thresholds(&self.maps, &slow, ended);
        self.view.read(&self.maps);
        self.peaked[ended].clone_from(&self.view.counters.active);
        &self.view.counters.values
    }

    pub fn read_groups(&mut self) -> Vec<u64> {
        self.grouping.read(&self.maps)
    }

    pub fn regroup(&mut self, groups: Vec<Vec<Vec<u8>>>) -> Result<(), Failure> {
        self.view.rows.grow(&self.maps);
        self.grouping.replace(&self.maps, &self.view.rows, groups)
    }

    pub fn losses(&self) -> Vec<(&'static str, u64)> {
        let mut losses = losses(&self.maps);
        losses.push(("healed", self.healed));
        losses.push(("recursion_misses", self.programs.recursion_misses()));
        losses
    }
}

/// Whether any disk is served without requests: it has no hardware queues. Heads of `NVMe` multipath do not count.
fn has_bio_based(sysfs: &Path) -> bool {
    let Ok(disks) = fs::read_dir(sysfs.join("block")) else {
        return false;
    };
    disks.flatten().any(|disk| {
        let head = disk.file_name().as_encoded_bytes().starts_with(b"nvme");
        !head && !disk.path().join("mq").exists()
    })
}
