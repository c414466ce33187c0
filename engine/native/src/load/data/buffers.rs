//! Buffers of one ring: live changes of depth and block size take new memory and leave what is in flight alone.

use std::io;
use std::ptr::NonNull;

use super::memory::Memory;
use super::payload;

/// I/Os have buffers of their own up to this; beyond it reads share them, as their data is not used.
pub const SHARED_ABOVE_BYTES: usize = 64 << 20;
/// Buffers are aligned for any device.
pub const ALIGN: usize = 4096;

/// Registers memory with the kernel ahead of I/O.
pub trait Registrar {
    /// The index it is registered under, or None where the kernel registers no more.
    fn register(&mut self, memory: &Memory) -> Option<u16>;
    /// The kernel keeps the memory until I/O in flight on it has ended.
    fn unregister(&mut self, index: u16);
}

/// The place of an I/O's data.
#[derive(Clone, Copy)]
pub struct Buffer {
    pub pointer: NonNull<u8>,
    pub registered: Option<u16>,
    /// Region that the end of the I/O gives back.
    pub region: usize,
}

struct Region {
    memory: Memory,
    slot_bytes: usize,
    slots: usize,
    registered: Option<u16>,
    in_flight: usize,
    filled: Box<[bool]>,
}

/// Buffers of one direction.
pub struct Arena {
    exclusive: bool,
    regions: Vec<Option<Region>>,
    current: usize,
}

impl Region {
    /// The slot of an I/O; several have the same where reads share buffers.
    #[inline]
    fn slot(&self, number: usize) -> usize {
        // A division takes longer than all else that finds a buffer.
        if number < self.slots {
            number
        } else {
            number % self.slots
        }
    }
}

impl Arena {
    /// `exclusive`: never two I/Os in flight on one buffer, however much memory that takes.
    pub fn new(exclusive: bool) -> Self {
        Self {
            exclusive,
            regions: Vec::new(),
            current: 0,
        }
    }

    /// Allocates buffers for this many I/Os of at most this length from now on.
    pub fn ensure(
        &mut self,
        registrar: &mut impl Registrar,
        ios: usize,
        length: usize,
    ) -> io::Result<()> {
        let slot_bytes = length.next_multiple_of(ALIGN);
        let most = if self.exclusive {
            usize::MAX
        } else {
            (SHARED_ABOVE_BYTES / slot_bytes).max(1)
        };
        let slots = ios.max(1).next_power_of_two().min(most);
        let fits = |region: &Region| region.slot_bytes >= slot_bytes && region.slots >= slots;
        if self
            .regions
            .get(self.current)
            .and_then(Option::as_ref)
            .is_some_and(fits)
        {
            return Ok(());
        }
        let memory = Memory::new(slots * slot_bytes)?;
        let registered = registrar.register(&memory);
        let filled = vec![false; slots].into_boxed_slice();
        let region = Region {
            memory,
            slot_bytes,
            slots,
            registered,
            in_flight: 0,
            filled,
        };
        let free = self
            .regions
            .iter()
            .position(Option::is_none)
            .unwrap_or(self.regions.len());
        if free == self.regions.len() {
            self.regions.push(None);
        }
        self.regions[free] = Some(region);
        let before = std::mem::replace(&mut self.current, free);
        if before != free {
            self.retire(registrar, before);
        }
        Ok(())
    }

    /// The buffer for the I/O with this number; numbers of I/Os in flight differ and start at 0.
    #[inline]
    pub fn take(&mut self, number: usize) -> Option<Buffer> {
        self.regions.get_mut(self.current)?.as_mut()?.in_flight += 1;
        self.taken(number, self.current)
    }

    /// The buffer of an I/O in flight.
    pub fn taken(&self, number: usize, region_index: usize) -> Option<Buffer> {
        let region = self.regions.get(region_index)?.as_ref()?;
        let slot = region.slot(number);
        // SAFETY: slot < slots, so the buffer lies inside the mapping.
        let pointer = unsafe { region.memory.base().add(slot * region.slot_bytes) };
        Some(Buffer {
            pointer,
            registered: region.registered,
            region: region_index,
        })
    }

    /// Returns where the I/O with this number has its data, if it was given this region.
    pub fn pointer(&self, number: usize, region_index: usize) -> Option<NonNull<u8>> {
        let region = self.regions.get(region_index)?.as_ref()?;
        let slot = region.slot(number);
        // SAFETY: slot < slots, so the buffer lies inside the mapping.
        Some(unsafe { region.memory.base().add(slot * region.slot_bytes) })
    }

    /// The bytes of a buffer just taken from an exclusive arena.
    pub fn bytes(&mut self, buffer: Buffer, length: u32) -> &mut [u8] {
        let region = self.regions[buffer.region].as_ref();
        let length = region.map_or(0, |region| region.slot_bytes.min(length as usize));
        // SAFETY: the arena is exclusive, so no I/O in flight uses this slot, and slot_bytes lie inside the mapping.
        unsafe { std::slice::from_raw_parts_mut(buffer.pointer.as_ptr(), length) }
    }

    /// Prepares a buffer just taken from an exclusive arena for writing.
    pub fn prepare(
        &mut self,
        buffer: Buffer,
        number: usize,
        seed: u64,
        offset: u64,
        sequence: u64,
        length: usize,
    ) {
        let Some(region) = self.regions[buffer.region].as_mut() else {
            return;
        };
        let slot = region.slot(number);
        // SAFETY: the arena is exclusive, so no I/O in flight uses this slot, and slot_bytes lie inside the mapping.
        let bytes =
            unsafe { std::slice::from_raw_parts_mut(buffer.pointer.as_ptr(), region.slot_bytes) };
        if !std::mem::replace(&mut region.filled[slot], true) {
            payload::fill(bytes, seed ^ sequence, offset);
        }
        payload::stamp(&mut bytes[..length], offset, sequence);
    }

    /// Gives a buffer back after its I/O has ended.
    #[inline]
    pub fn give_back(&mut self, registrar: &mut impl Registrar, region_index: usize) {
        let Some(region) = self.regions[region_index].as_mut() else {
            return;
        };
        region.in_flight -= 1;
        if region.in_flight == 0 && region_index != self.current {
            self.retire(registrar, region_index);
        }
    }

    fn retire(&mut self, registrar: &mut impl Registrar, index: usize) {
        let idle = |region: &mut Region| region.in_flight == 0;
        if let Some(region) = self
            .regions
            .get_mut(index)
            .and_then(|region| region.take_if(idle))
        {
            if let Some(index) = region.registered {
                registrar.unregister(index);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Default)]
    struct Table(Vec<bool>);

    impl Registrar for Table {
        fn register(&mut self, _: &Memory) -> Option<u16> {
            self.0.push(true);
            u16::try_from(self.0.len() - 1).ok()
        }

        fn unregister(&mut self, index: u16) {
            self.0[usize::from(index)] = false;
        }
    }

    #[test]
    fn memory_in_flight_stays_until_the_io_ends() {
        let (mut table, mut arena) = (Table::default(), Arena::new(false));
        arena.ensure(&mut table, 4, 4096).unwrap();
        let old = arena.take(0).unwrap();
        arena.ensure(&mut table, 4, 8192).unwrap();
        let new = arena.take(1).unwrap();
        assert_eq!(table.0, [true, true]);
        assert_ne!(old.region, new.region);
        arena.give_back(&mut table, old.region);
        assert_eq!(table.0, [false, true]);
        arena.give_back(&mut table, new.region);
        assert_eq!(table.0, [false, true]);
    }

    #[test]
    fn smaller_needs_take_no_new_memory() {
        let (mut table, mut arena) = (Table::default(), Arena::new(true));
        arena.ensure(&mut table, 100, 65536).unwrap();
        arena.ensure(&mut table, 3, 512).unwrap();
        arena.ensure(&mut table, 128, 65536).unwrap();
        assert_eq!(table.0.len(), 1);
    }

    #[test]
    fn buffers_for_writing_are_never_shared() {
        let (mut table, mut arena) = (Table::default(), Arena::new(true));
        arena.ensure(&mut table, 40, 4 << 20).unwrap();
        let mut starts: Vec<_> = (0..40)
            .map(|number| arena.take(number).unwrap().pointer)
            .collect();
        starts.sort();
        assert!(
            starts
                .windows(2)
                .all(|pair| pair[1].as_ptr() as usize - pair[0].as_ptr() as usize >= 4 << 20)
        );
    }

    #[test]
    fn a_write_is_filled_and_stamped() {
        let (mut table, mut arena) = (Table::default(), Arena::new(true));
        arena.ensure(&mut table, 2, 4096).unwrap();
        let buffer = arena.take(1).unwrap();
        arena.prepare(buffer, 1, 5, 8192, 3, 4096);
        // SAFETY: the buffer was just taken and has 4096 bytes.
        let bytes = unsafe { std::slice::from_raw_parts(buffer.pointer.as_ptr(), 4096) };
        assert_eq!(bytes[512..520], 8704_u64.to_le_bytes());
        assert!(bytes[16..512].iter().any(|byte| *byte != 0) && bytes[528..1024] != bytes[16..512]);
    }
}
