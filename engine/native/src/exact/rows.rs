//! The devices that have been seen, and their identity.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::layout::Identity;
use super::maps::Maps;

const MINOR_BITS: u32 = 20;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// Index in the map of devices.
    pub device: usize,
    pub number: u32,
    /// Name as in /proc/diskstats.
    pub name: Vec<u8>,
    changes: u32,
}

impl Row {
    pub fn major_minor(&self) -> [u32; 2] {
        [
            self.number >> MINOR_BITS,
            self.number & ((1 << MINOR_BITS) - 1),
        ]
    }
}

/// Rows in the order in which the devices first did I/O.
#[derive(Default)]
pub struct Rows {
    pub all: Vec<Row>,
    /// Row of each device plus 1, by index in the map of devices.
    row_of: Vec<u32>,
    /// Slots with no identity written yet when they were scanned, or that stay empty.
    open: Vec<usize>,
    scanned: usize,
    /// Grows with every change of `all`.
    pub generation: u64,
}

impl Rows {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Row of a device, if it has one.
    pub fn of_device(&self, device: usize) -> Option<usize> {
        (*self.row_of.get(device)? as usize).checked_sub(1)
    }

    /// Takes in what has registered itself since.
    pub fn grow(&mut self, maps: &Maps) {
        let next = maps.control().next_device.load(Acquire) as usize;
        let next = next.min(maps.identities.len());
        if self.scanned >= next && self.open.is_empty() {
            return;
        }
        let first = self.scanned.max(1);
        let slots = std::mem::take(&mut self.open)
            .into_iter()
            .chain(first..next);
        for device in slots.collect::<Vec<_>>() {
            match read(&maps.identities[device], device) {
                Some(row) => self.push(row),
                None => self.open.push(device),
            }
        }
        self.scanned = next.max(first);
    }

    fn push(&mut self, row: Row) {
        if self.row_of.len() <= row.device {
            self.row_of.resize(row.device + 1, 0);
        }
        self.all.push(row);
        let row = &self.all[self.all.len() - 1];
        self.row_of[row.device] = u32::try_from(self.all.len()).unwrap_or(u32::MAX);
        self.generation += 1;
    }

    /// Checks whether the number of a row has been given to another disk; if so, its name is taken over.
    pub fn has_changed(&mut self, row: usize, maps: &Maps) -> bool {
        let known = &mut self.all[row];
        let identity = &maps.identities[known.device];
        if identity.changes.load(Acquire) == known.changes {
            return false;
        }
        let Some(now) = read(identity, known.device) else {
            return false;
        };
        *known = now;
        self.generation += 1;
        true
    }
}

/// None while it is being written.
fn read(identity: &Identity, device: usize) -> Option<Row> {
    let (number, changes) = (
        identity.number.load(Acquire),
        identity.changes.load(Acquire),
    );
    let name: Vec<u8> = identity
        .name
        .iter()
        .map(|byte| byte.load(Acquire))
        .take_while(|byte| *byte != 0)
        .collect();
    let whole = !name.is_empty()
        && identity.number.load(Relaxed) == number
        && identity.changes.load(Relaxed) == changes;
    whole.then_some(Row {
        device,
        number,
        name,
        changes,
    })
}
