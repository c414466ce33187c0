//! The maps of the programs as memory.

use std::os::fd::BorrowedFd;

use super::failure::Failure;
use super::layout::{
    Control, Device, Group, Identity, IoSet, Octave, Pending, Process, ProcessSums, SlowIo,
};
use super::mapping::{Mapping, Shared};

/// Names of the maps in the object.
pub const NAMES: [&str; 10] = [
    "control",
    "devices",
    "pending",
    "identities",
    "groups",
    "under_way",
    "octaves",
    "slow_ios",
    "processes",
    "process_sums",
];

pub struct Maps {
    pub control: Mapping<Control>,
    pub devices: Mapping<Device>,
    pub pending: Mapping<Pending>,
    pub identities: Mapping<Identity>,
    pub groups: Mapping<Group>,
    pub under_way: Mapping<IoSet>,
    pub octaves: Mapping<Octave>,
    pub slow_ios: Mapping<SlowIo>,
    pub processes: Mapping<Process>,
    /// The parts of one place are next to each other.
    pub process_sums: Mapping<ProcessSums>,
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
            pending: map("pending", &descriptor, writable)?,
            identities: map("identities", &descriptor, writable)?,
            groups: map("groups", &descriptor, writable)?,
            under_way: map("under_way", &descriptor, writable)?,
            octaves: map("octaves", &descriptor, writable)?,
            slow_ios: map("slow_ios", &descriptor, writable)?,
            processes: map("processes", &descriptor, writable)?,
            process_sums: map("process_sums", &descriptor, writable)?,
        })
    }

    pub fn control(&self) -> &Control {
        &self.control[0]
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
