//! Which filesystems are frozen, and since when: programs of their own, so that a kernel without them loses nothing else.

use std::os::fd::AsFd;
use std::path::Path;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::atomic::{AtomicU8, AtomicU64};

use aya::maps::Map;
use aya::{Btf, Ebpf, EbpfLoader, Endianness};

use super::failure::Failure;
use super::mapping::{Mapping, Shared};
use super::throttle::programs::leave;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/freeze.bpf.o");

const NAME_BYTES: usize = 32;
/// The kernel's own encoding of device numbers (`include/linux/kdev_t.h`).
const MINOR_BITS: u64 = 20;

/// One freeze, as `bpf/freeze.h` lays it out.
#[repr(C)]
pub struct Place {
    device: AtomicU64,
    began_ns: AtomicU64,
    ended_ns: AtomicU64,
    name: [AtomicU8; NAME_BYTES],
    unused: u64,
}

const _: () = assert!(size_of::<Place>() == 64);

// SAFETY: atomics of integers and padding only.
unsafe impl Shared for Place {}

/// Name, major and minor of the device, begin, and end: 0 while it is frozen.
pub type Freeze = (String, u64, u64, u64, u64);

/// Dropping it detaches the programs.
pub struct Freezes {
    places: Mapping<Place>,
    _ebpf: Ebpf,
}

impl Freezes {
    pub fn start(sysfs: &Path) -> Result<Self, Failure> {
        let path = sysfs.join("kernel/btf/vmlinux");
        let btf = Btf::parse_file(&path, Endianness::default())
            .map_err(|error| Failure::library(path.display(), &error))?;
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .load(OBJECT)
            .map_err(|error| Failure::library("creating the maps", &error))?;
        // The end first, so that no freeze is seen to begin without its end.
        leave(&mut ebpf, "on_thaw", "thaw_super", &btf)?;
        leave(&mut ebpf, "on_freeze", "freeze_super", &btf)?;
        let Some(Map::Array(data)) = ebpf.map("freezes") else {
            return Err(Failure::Value(
                "freezes is missing in the embedded object".into(),
            ));
        };
        let places = Mapping::new(data.fd().as_fd(), false)
            .map_err(|error| Failure::os("mapping freezes", &error))?;
        Ok(Self {
            places,
            _ebpf: ebpf,
        })
    }

    /// The latest freezes since the programs were attached, in no order.
    pub fn read(&self) -> Vec<Freeze> {
        self.places.iter().skip(1).filter_map(freeze).collect()
    }
}

fn freeze(place: &Place) -> Option<Freeze> {
    let began_ns = place.began_ns.load(Acquire);
    let device = place.device.load(Relaxed);
    let bytes = place.name.iter().map(|byte| byte.load(Relaxed));
    let name: Vec<u8> = bytes.take_while(|byte| *byte != 0).collect();
    let found = (
        String::from_utf8_lossy(&name).into_owned(),
        device >> MINOR_BITS,
        device & ((1 << MINOR_BITS) - 1),
        began_ns,
        place.ended_ns.load(Acquire),
    );
    // A place that is taken anew meanwhile is read at the next tick.
    (began_ns != 0 && place.began_ns.load(Acquire) == began_ns).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_in_use_are_read() {
        // SAFETY: plain atomic integers, for which zero is a value.
        let place: Place = unsafe { std::mem::zeroed() };
        assert_eq!(freeze(&place), None);
        place.device.store((8 << 20) + 17, Relaxed);
        for (byte, letter) in place.name.iter().zip(b"sdb1") {
            byte.store(*letter, Relaxed);
        }
        place.began_ns.store(5, Relaxed);
        assert_eq!(freeze(&place), Some(("sdb1".into(), 8, 17, 5, 0)));
        place.ended_ns.store(9, Relaxed);
        assert_eq!(freeze(&place).map(|found| found.4), Some(9));
    }
}
