//! The maps of the programs as memory.

use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering::Relaxed;

use super::failure::Failure;
use super::layout::{
    Asides, Cell, Control, Counts, Device, Group, Identity, IoSet, Lock, Octave, Own, Pending,
    Places, Process, ProcessSums, SlowIo, Touched,
};
use super::mapping::{Mapping, Shared};

/// Names of the maps in the object.
pub const NAMES: [&str; 18] = [
    "control",
    "devices",
    "cells",
    "cell_of",
    "touched",
    "counts",
    "pending",
    "asides",
    "locks",
    "identities",
    "groups",
    "under_way",
    "places",
    "octaves",
    "slow_ios",
    "processes",
    "process_sums",
    "sums_of",
];

pub struct Maps {
    pub control: Mapping<Control>,
    pub devices: Mapping<Device>,
    /// Cells; those of the devices come first.
    pub cells: Mapping<Cell>,
    /// The cell by device and shard.
    pub cell_of: Mapping<Own>,
    pub touched: Mapping<Touched>,
    pub counts: Mapping<Counts>,
    pub pending: Mapping<Pending>,
    /// By CPU and level of nesting.
    pub asides: Mapping<Asides>,
    pub locks: Mapping<Lock>,
    pub identities: Mapping<Identity>,
    pub groups: Mapping<Group>,
    pub under_way: Mapping<IoSet>,
    pub places: Mapping<Places>,
    pub octaves: Mapping<Octave>,
    pub slow_ios: Mapping<SlowIo>,
    pub processes: Mapping<Process>,
    /// Sums; those of the places come first.
    pub process_sums: Mapping<ProcessSums>,
    /// The sums by place and shard.
    pub sums_of: Mapping<Own>,
}

impl Maps {
    /// Maps all of them; `descriptor` gives the one of a name.
    pub fn new<'fd>(
        descriptor: impl Fn(&str) -> Result<BorrowedFd<'fd>, Failure>,
        writable: bool,
    ) -> Result<Self, Failure> {
        Ok(Self {
            control: map("control", &descriptor, writable)?,
            devices: map("devices", &descriptor, writable)?,
            cells: map("cells", &descriptor, writable)?,
            cell_of: map("cell_of", &descriptor, writable)?,
            touched: map("touched", &descriptor, writable)?,
            counts: map("counts", &descriptor, writable)?,
            pending: map("pending", &descriptor, writable)?,
            asides: map("asides", &descriptor, writable)?,
            locks: map("locks", &descriptor, writable)?,
            identities: map("identities", &descriptor, writable)?,
            groups: map("groups", &descriptor, writable)?,
            under_way: map("under_way", &descriptor, writable)?,
            places: map("places", &descriptor, writable)?,
            octaves: map("octaves", &descriptor, writable)?,
            slow_ios: map("slow_ios", &descriptor, writable)?,
            processes: map("processes", &descriptor, writable)?,
            process_sums: map("process_sums", &descriptor, writable)?,
            sums_of: map("sums_of", &descriptor, writable)?,
        })
    }

    /// Maps of these sizes that no program writes.
    #[cfg(test)]
    pub fn anonymous(sizes: &super::sizes::Sizes) -> Self {
        let maps = Self {
            control: anonymous(sizes, "control"),
            devices: anonymous(sizes, "devices"),
            cells: anonymous(sizes, "cells"),
            cell_of: anonymous(sizes, "cell_of"),
            touched: anonymous(sizes, "touched"),
            counts: anonymous(sizes, "counts"),
            pending: anonymous(sizes, "pending"),
            asides: anonymous(sizes, "asides"),
            locks: anonymous(sizes, "locks"),
            identities: anonymous(sizes, "identities"),
            groups: anonymous(sizes, "groups"),
            under_way: anonymous(sizes, "under_way"),
            places: anonymous(sizes, "places"),
            octaves: anonymous(sizes, "octaves"),
            slow_ios: anonymous(sizes, "slow_ios"),
            processes: anonymous(sizes, "processes"),
            process_sums: anonymous(sizes, "process_sums"),
            sums_of: anonymous(sizes, "sums_of"),
        };
        sizes.begin(maps.control());
        maps
    }

    pub fn control(&self) -> &Control {
        &self.control[0]
    }

    /// Whether the programs count busy time.
    pub fn has_busy(&self) -> bool {
        self.control().without_busy.load(Relaxed) == 0
    }
}

fn map<'fd, T: Shared>(
    name: &str,
    descriptor: impl Fn(&str) -> Result<BorrowedFd<'fd>, Failure>,
    writable: bool,
) -> Result<Mapping<T>, Failure> {
    Mapping::new(descriptor(name)?, writable)
        .map_err(|error| Failure::os(&format!("mapping {name}"), &error))
}

#[cfg(test)]
fn anonymous<T: Shared>(sizes: &super::sizes::Sizes, name: &str) -> Mapping<T> {
    let of_maps = sizes.of_maps();
    let entries = of_maps.iter().find(|one| one.0 == name);
    Mapping::anonymous(entries.map_or(1, |one| one.1 as usize)).unwrap()
}
