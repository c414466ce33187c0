//! Groups of devices (LUNs, ports, multipath heads) that are busy while any member is.
//!
//! The programs touch a group only when a member becomes busy or idle. Each device has two lists of groups; which one
//! is in force is a bit beside its count of I/Os, so that changing over is one atomic step, also under load.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use super::busy::{list, members};
use super::cells;
use super::failure::Failure;
use super::layout::{Busy, Device, GROUPS_OF_DEVICE, Group};
use super::maps::Maps;
use super::rows::Rows;
use crate::load::system::clock::monotonic_ns;

type List = [u16; GROUPS_OF_DEVICE];

/// Names of the members, sorted: what makes a group the same one after the next change of topology.
type Members = Vec<Vec<u8>>;

#[derive(Default)]
pub struct Grouping {
    /// Indices in the map of groups in the order of the last call.
    pub slots: Vec<u16>,
    taken: HashMap<Members, u16>,
    given_back: VecDeque<u16>,
    first_unused: u16,
    wanted: HashMap<Vec<u8>, List>,
    /// Rows whose lists are up to date.
    applied: usize,
    applied_generation: u64,
    pub reported: ReportedBusy,
}

/// Busy times last reported, by slot: they never decrease.
#[derive(Default)]
pub struct ReportedBusy(HashMap<u16, u64>);

impl ReportedBusy {
    /// Busy time and busy members of groups by their slots.
    pub fn read(&mut self, maps: &Maps, slots: &[u16]) -> Vec<u64> {
        let mut values = Vec::with_capacity(slots.len() * 2);
        for slot in slots {
            let group = maps.groups.get(usize::from(*slot));
            let Some(group) = group.filter(|_| maps.has_busy()) else {
                values.extend([u64::MAX; 2]);
                continue;
            };
            let reported = self.0.entry(*slot).or_default();
            *reported = group.busy.least_ns().max(*reported);
            values.extend([*reported, group.busy.members()]);
        }
        values
    }
}

impl Grouping {
    /// Replaces all groups; one with the members of an old one continues counting.
    pub fn replace(
        &mut self,
        maps: &Maps,
        rows: &Rows,
        groups: Vec<Members>,
    ) -> Result<(), Failure> {
        let members = sorted(groups);
        let wanted = self.assign_slots(maps, &members)?;
        let slots: Vec<u16> = members.iter().map(|one| self.taken[one]).collect();
        self.wanted = wanted;
        self.slots = slots;
        self.applied = 0;
        self.apply(maps, rows);
        self.give_back(&members);
        Ok(())
    }

    /// Brings the lists of new and renamed devices up to date.
    pub fn apply(&mut self, maps: &Maps, rows: &Rows) {
        if self.applied_generation != rows.generation {
            self.applied_generation = rows.generation;
            self.applied = 0;
        }
        for row in &rows.all[self.applied..] {
            let list = self.wanted.get(&row.name).copied().unwrap_or_default();
            assign(&maps.devices[row.device], &maps.groups, list);
        }
        self.applied = rows.len();
    }

    /// Assigns slots to the groups that have none, and the list of every member.
    fn assign_slots(
        &mut self,
        maps: &Maps,
        members: &[Members],
    ) -> Result<HashMap<Vec<u8>, List>, Failure> {
        let mut wanted: HashMap<Vec<u8>, Vec<u16>> = HashMap::new();
        for group in members {
            let slot = self.slot_of(maps, group)?;
            for member in group {
                let list = wanted.entry(member.clone()).or_default();
                if !list.contains(&slot) {
                    list.push(slot);
                }
            }
        }
        wanted
            .into_iter()
            .map(|(name, slots)| {
                let mut list = List::default();
                let fitting = list.get_mut(..slots.len()).ok_or_else(|| {
                    let name = String::from_utf8_lossy(&name).into_owned();
                    Failure::Value(format!(
                        "groups: {name} is in {} groups, at most {GROUPS_OF_DEVICE} are counted",
                        slots.len()
                    ))
                })?;
                fitting.copy_from_slice(&slots);
                Ok((name, list))
            })
            .collect()
    }

    fn slot_of(&mut self, maps: &Maps, members: &Members) -> Result<u16, Failure> {
        if let Some(slot) = self.taken.get(members) {
            return Ok(*slot);
        }
        let limit = maps.groups.len();
        let slot = if usize::from(self.first_unused) + 1 < limit {
            self.first_unused += 1;
            self.first_unused
        } else {
            let freed = self.given_back.pop_front();
            freed.ok_or_else(|| {
                Failure::Value(format!("groups: more than {} at once", (limit - 1) / 2))
            })?
        };
        maps.groups[usize::from(slot)].busy.reset();
        self.reported.0.insert(slot, 0);
        self.taken.insert(members.clone(), slot);
        Ok(slot)
    }

    fn give_back(&mut self, members: &[Members]) {
        let kept: std::collections::HashSet<&Members> = members.iter().collect();
        let given_back = &mut self.given_back;
        self.taken.retain(|members, slot| {
            let keep = kept.contains(members);
            if !keep {
                given_back.push_back(*slot);
            }
            keep
        });
    }
}

fn sorted(mut groups: Vec<Members>) -> Vec<Members> {
    for group in &mut groups {
        group.sort();
        group.dedup();
    }
    groups
}

/// Puts a list in force. A device that is busy leaves its old groups and enters the new ones at this moment.
fn assign(device: &Device, groups: &[Group], list: List) {
    let in_force = self::list(device.busy.root.load(Acquire));
    let old: List = std::array::from_fn(|slot| device.groups[in_force][slot].load(Relaxed));
    if old == list {
        return;
    }
    for (slot, group) in device.groups[1 - in_force].iter().zip(list) {
        slot.store(group, Release);
    }
    let before = device.busy.root.fetch_xor(1, AcqRel);
    if members(before) > 0 {
        let now = monotonic_ns();
        for group in of_list(groups, old) {
            group.depart(now);
        }
        for group in of_list(groups, list) {
            group.arrive(now);
        }
    }
}

fn of_list(groups: &[Group], list: List) -> impl Iterator<Item = &Busy> {
    list.into_iter()
        .take_while(|slot| *slot != 0)
        .filter_map(|slot| Some(&groups.get(usize::from(slot))?.busy))
}

fn groups_of<'maps>(
    maps: &'maps Maps,
    device: &Device,
    list: usize,
) -> impl Iterator<Item = &'maps Busy> {
    let list = std::array::from_fn(|slot| device.groups[list][slot].load(Relaxed));
    of_list(&maps.groups, list)
}

/// The completion of an I/O that was issued at `began` was missed: what the programs do in this case, as of now.
pub fn lose_from_driver(maps: &Maps, device: usize, leaf: usize, began: u64) {
    let (Some(one), Some(cell)) = (maps.devices.get(device), cells::of_leaf(maps, device, leaf))
    else {
        return;
    };
    let now = monotonic_ns();
    one.busy.lose(began, now);
    let in_force = list(one.busy.root.load(Acquire));
    groups_of(maps, one, in_force).for_each(|group| group.lose(began, now));
    if cell.in_driver.fetch_sub(1, AcqRel) != 1 || !maps.has_busy() {
        return;
    }
    if let Some((end, list)) = one.busy.depart(now) {
        for group in groups_of(maps, one, list) {
            group.depart(end);
        }
    }
}
