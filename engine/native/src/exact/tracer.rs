//! The owner of the programs: loads them, ends the intervals, repairs what they missed.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, Release};
use std::time::Duration;

use super::aside;
use super::cells;
use super::failure::Failure;
use super::form::Form;
use super::grouping::Grouping;
use super::healing;
use super::layout::EPOCHS;
use super::maps::Maps;
use super::process_places::ProcessPlaces;
use super::programs::{Part, Programs};
use super::sizes::Sizes;
use super::slowest;
use super::types::Types;
use super::view::{View, ended_epoch};
use crate::load::system::clock::monotonic_ns;

pub struct Tracer {
    pub programs: Programs,
    maps: Arc<Maps>,
    grouping: Grouping,
    process_places: ProcessPlaces,
    sysfs: PathBuf,
    pub healed: u64,
    /// Devices whose peaks of each epoch may not be zero.
    peaked: [Vec<usize>; EPOCHS],
    /// Disks without requests that had no size at the last scan, such as a zram device in reserve.
    empty: Vec<PathBuf>,
}

impl Tracer {
    /// Loads and attaches; what is counted can be seen through `Tracer::view`.
    /// Without `fetch` no atomic operation has a result, as on old kernels.
    pub fn start(
        sysfs: PathBuf,
        histograms: u32,
        process_idle: Duration,
        fetch: bool,
    ) -> Result<Self, Failure> {
        let sizes = Sizes::of_host(&sysfs, histograms);
        let types = Types::of_host(&sysfs).map_err(Failure::missing)?;
        let mut form = Form::of_kernel(&types)?;
        form.fetch &= fetch;
        let programs = Programs::load(&types, form, &sizes)?;
        let maps = Arc::new(Maps::new(|name| programs.map(name), true)?);
        sizes.begin(maps.control());
        let without_busy = u32::from(!programs.form.fetch);
        maps.control().without_busy.store(without_busy, Release);
        let mut tracer = Self {
            programs,
            maps,
            grouping: Grouping::default(),
            process_places: ProcessPlaces::new(process_idle),
            sysfs,
            healed: 0,
            peaked: Default::default(),
            empty: Vec::new(),
        };
        tracer.resume()?;
        Ok(tracer)
    }

    pub fn view(&self) -> View {
        View::new(self.maps.clone())
    }

    pub fn resume(&mut self) -> Result<(), Failure> {
        if !self.programs.is_attached(Part::Requests) {
            healing::clear(&self.maps);
        }
        // Programs that end I/Os first, so that no I/O is seen to begin without its end.
        self.programs.attach(Part::Completions)?;
        self.programs.attach(Part::CompletionsAgain)?;
        self.programs.attach(Part::Requests)?;
        self.programs.attach(Part::IssuesAgain)?;
        self.programs.attach_tag_sleeps()?;
        self.rescan()
    }

    pub fn pause(&mut self) -> Result<(), Failure> {
        self.time_tag_waits(false)?;
        self.programs.detach_tag_sleeps();
        let opening_first = [
            Part::Bios,
            Part::BioCompletionsAgain,
            Part::BioCompletions,
            Part::IssuesAgain,
            Part::Requests,
            Part::CompletionsAgain,
            Part::Completions,
        ];
        for part in opening_first {
            self.programs.detach(part);
        }
        Ok(())
    }

    /// Watches bios if there is a disk without requests that can do I/O: it costs all others a tenth of a microsecond.
    pub fn rescan(&mut self) -> Result<(), Failure> {
        let (empty, filled): (Vec<PathBuf>, Vec<PathBuf>) = bio_based(&self.sysfs)
            .into_iter()
            .partition(|disk| is_empty(disk));
        self.empty = empty;
        let sent_on = filled.iter().any(|disk| sends_bios_on(disk));
        let control = self.maps.control();
        control.bios_are_sent_on.store(u32::from(sent_on), Release);
        self.watch_bios(!filled.is_empty())
    }

    fn watch_bios(&mut self, on: bool) -> Result<(), Failure> {
        if !on {
            self.programs.detach(Part::Bios);
        }
        self.switch(Part::BioCompletions, on)?;
        self.switch(Part::BioCompletionsAgain, on)?;
        self.switch(Part::Bios, on)
    }

    /// No event reports that an empty disk got its size.
    fn follow_empty(&mut self) -> Result<(), Failure> {
        let watches =
            self.programs.is_attached(Part::Requests) && !self.programs.is_attached(Part::Bios);
        if watches && !self.empty.iter().all(|disk| is_empty(disk)) {
            return self.rescan();
        }
        Ok(())
    }

    /// Times waits for tags from now on, or no longer.
    pub fn time_tag_waits(&mut self, on: bool) -> Result<(), Failure> {
        let control = self.maps.control();
        if !on {
            control.tag_timing_since_ns.store(0, Release);
        }
        self.switch(Part::TagWaits, on)?;
        if on {
            // A wait that began before may have ended unseen, and its thread wait for something else by now.
            let control = self.maps.control();
            control.tag_timing_since_ns.store(monotonic_ns(), Release);
        }
        self.switch(Part::TagWaitBegins, on && !self.programs.sees_tag_sleeps())
    }

    /// Times that a submitter slept for a tag; `None` where the kernel has no event for it.
    pub fn tag_sleeps(&self) -> Option<u64> {
        let control = self.maps.control();
        self.programs
            .sees_tag_sleeps()
            .then(|| control.tag_sleeps.load(Relaxed))
    }

    fn switch(&mut self, part: Part, on: bool) -> Result<(), Failure> {
        if on {
            return self.programs.attach(part);
        }
        self.programs.detach(part);
        Ok(())
    }

    /// Ends the interval and reads all counters.
    pub fn read<'view>(&mut self, view: &'view mut View) -> Result<&'view [u64], Failure> {
        self.follow_empty()?;
        view.rows.grow(&self.maps);
        self.grouping.apply(&self.maps, &view.rows);
        self.turn();
        let ended = ended_epoch(&self.maps);
        aside::count(&self.maps, ended);
        self.healed += healing::heal(&self.maps, &view.rows, &self.sysfs);
        slowest::set_thresholds(&self.maps, &view.slowest(), ended);
        self.process_places.free_idle(&self.maps);
        view.read();
        self.peaked[ended].clone_from(&view.counters.active);
        Ok(&view.counters.values)
    }

    /// Peaks and slow I/Os collected so far do not change until the next interval.
    fn turn(&mut self) {
        let next = ended_epoch(&self.maps);
        for device in self.peaked[next].drain(..) {
            self.maps.devices[device].leaves_peak[next].store(0, Relaxed);
            for cell in cells::of_device(&self.maps, device) {
                cell.in_driver_peak[next].store(0, Relaxed);
                cell.queue_max_ns[next].store(0, Relaxed);
                cell.service_max_ns[next].store(0, Relaxed);
                cell.latency_max_ns[next].store(0, Relaxed);
            }
        }
        slowest::clear(&self.maps, next);
        self.maps.control().epoch.fetch_add(1, Release);
    }

    /// Replaces the groups; returns their slots in the map of groups.
    pub fn regroup(
        &mut self,
        view: &mut View,
        groups: Vec<Vec<Vec<u8>>>,
    ) -> Result<Vec<u16>, Failure> {
        view.rows.grow(&self.maps);
        self.grouping.replace(&self.maps, &view.rows, groups)?;
        Ok(self.grouping.slots.clone())
    }

    pub fn read_groups(&mut self) -> Vec<u64> {
        let slots = &self.grouping.slots;
        self.grouping.reported.read(&self.maps, slots)
    }
}

/// Disks that are served without requests: they have no hardware queues. Heads of `NVMe` multipath do not count.
fn bio_based(sysfs: &Path) -> Vec<PathBuf> {
    let Ok(disks) = fs::read_dir(sysfs.join("block")) else {
        return Vec::new();
    };
    let disks = disks.flatten().filter(|disk| {
        let head = disk.file_name().as_encoded_bytes().starts_with(b"nvme");
        !head && !disk.path().join("mq").exists()
    });
    disks.map(|disk| disk.path()).collect()
}

/// Whether a disk without requests may send the bios that it gets to the disks that it is made of, as md before Linux 6.3 and
/// bcache without a cache do. Device mapper makes bios of its own.
fn sends_bios_on(disk: &Path) -> bool {
    let parts = fs::read_dir(disk.join("slaves"));
    !disk.join("dm").exists() && parts.is_ok_and(|mut parts| parts.next().is_some())
}

/// A disk that is gone counts as empty.
fn is_empty(disk: &Path) -> bool {
    fs::read_to_string(disk.join("size")).map_or(true, |size| size.trim() == "0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn disks_that_are_made_of_others_send_bios_on_but_for_maps() {
        let root = std::env::temp_dir().join(format!("lunscope-bios-{}", std::process::id()));
        for folder in [
            "md0/slaves/sda",
            "dm-0/slaves/sda",
            "dm-0/dm",
            "zram0/slaves",
        ] {
            fs::create_dir_all(root.join(folder)).unwrap();
        }
        let found = ["md0", "dm-0", "zram0", "none"].map(|disk| sends_bios_on(&root.join(disk)));
        fs::remove_dir_all(&root).unwrap();
        assert_eq!(found, [true, false, false, false]);
    }
}
