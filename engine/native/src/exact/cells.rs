//! The cells of a device: its own, and those of the shards that have one.

use std::sync::atomic::Ordering::{Acquire, Relaxed};

use super::layout::{Cell, Own};
use super::maps::Maps;

/// Indices of what there is of one of `shared` things: its own, and what shards have beside it.
pub fn indices(own: &[Own], shared: usize, of: usize) -> impl Iterator<Item = usize> + Clone + '_ {
    let shards = own.len() / shared.max(1);
    let indices = own.get(of * shards..(of + 1) * shards).unwrap_or(&[]);
    let beside = indices
        .iter()
        .map(|own| own.index.load(Acquire) as usize)
        .filter(|index| *index != 0);
    std::iter::once(of).chain(beside)
}

/// Numbers of the cells of a device.
pub fn numbers(maps: &Maps, device: usize) -> impl Iterator<Item = usize> + Clone + '_ {
    indices(&maps.cell_of, maps.devices.len(), device)
}

pub fn of_device(maps: &Maps, device: usize) -> impl Iterator<Item = &Cell> + Clone + '_ {
    numbers(maps, device).filter_map(|number| maps.cells.get(number))
}

/// The cell that counts an I/O which was issued by a shard, by its leaf.
pub fn of_leaf(maps: &Maps, device: usize, leaf: usize) -> Option<&Cell> {
    let Some(shard) = leaf.checked_sub(1) else {
        return maps.cells.get(device);
    };
    let shards = maps.cell_of.len() / maps.devices.len().max(1);
    let own = maps.cell_of.get(device * shards + shard)?;
    maps.cells.get(own.index.load(Acquire) as usize)
}

/// The devices that had I/O since they were last looked at.
#[derive(Default)]
pub struct Watch {
    seen: Vec<u32>,
}

/// An I/O is counted a moment after its device is marked: it is looked at in the two intervals that follow.
const AFTERWARDS: u32 = 2;

impl Watch {
    pub fn has_moved(&mut self, maps: &Maps, device: usize) -> bool {
        if self.seen.len() <= device {
            self.seen.resize(maps.devices.len().max(device + 1), 0);
        }
        let epoch = maps.touched[device].epoch.load(Acquire);
        let moved = epoch != self.seen[device] || (epoch != 0 && ages(maps, epoch) <= AFTERWARDS);
        self.seen[device] = epoch;
        moved
    }
}

fn ages(maps: &Maps, epoch: u32) -> u32 {
    maps.control().epoch.load(Relaxed).wrapping_sub(epoch)
}
