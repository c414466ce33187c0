//! The programs on the kernel's limits of control groups, and their maps.

use std::os::fd::AsFd;
use std::path::Path;

use aya::maps::Map;
use aya::programs::{FEntry, FExit};
use aya::{Btf, Ebpf, EbpfLoader, Endianness};

use super::layout::{ThrottleControl, Throttled};
use crate::exact::failure::Failure;
use crate::exact::mapping::{Mapping, Shared};

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/throttle.bpf.o");

const HOLDS: &str = "__blk_throtl_bio";
const LETS_GO: &str = "submit_bio_noacct_nocheck";

/// Attached until dropped.
pub struct ThrottlePrograms {
    ebpf: Ebpf,
}

impl ThrottlePrograms {
    /// Loads and attaches; `places` pairs of group and device can be told apart.
    pub fn attach(sysfs: &Path, places: u32) -> Result<Self, Failure> {
        let path = sysfs.join("kernel/btf/vmlinux");
        let btf = Btf::parse_file(&path, Endianness::default())
            .map_err(|error| Failure::library(path.display(), &error))?;
        let mut ebpf = EbpfLoader::new()
            .btf(Some(&btf))
            .set_max_entries("throttled", places + 1)
            .set_max_entries("throttle_places", places)
            .load(OBJECT)
            .map_err(|error| Failure::library("creating the maps", &error))?;
        // The end first, so that nothing held is seen to begin without its end.
        enter(&mut ebpf, "on_let_go", LETS_GO, &btf)?;
        leave(&mut ebpf, "on_throttled", HOLDS, &btf)?;
        enter(&mut ebpf, "on_throttle", HOLDS, &btf)?;
        Ok(Self { ebpf })
    }

    pub fn places(&self) -> Result<Mapping<Throttled>, Failure> {
        self.mapped("throttled")
    }

    pub fn control(&self) -> Result<Mapping<ThrottleControl>, Failure> {
        self.mapped("throttle_control")
    }

    fn mapped<T: Shared>(&self, name: &str) -> Result<Mapping<T>, Failure> {
        let Some(Map::Array(data)) = self.ebpf.map(name) else {
            return Err(missing(name));
        };
        Mapping::new(data.fd().as_fd(), false)
            .map_err(|error| Failure::os(&format!("mapping {name}"), &error))
    }
}

fn enter(ebpf: &mut Ebpf, name: &str, function: &str, btf: &Btf) -> Result<(), Failure> {
    let program: &mut FEntry = ebpf
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| missing(name))?;
    program
        .load(function, btf)
        .map_err(|error| refused(function, &error))?;
    program
        .attach()
        .map(drop)
        .map_err(|error| refused(function, &error))
}

pub fn leave(ebpf: &mut Ebpf, name: &str, function: &str, btf: &Btf) -> Result<(), Failure> {
    let program: &mut FExit = ebpf
        .program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| missing(name))?;
    program
        .load(function, btf)
        .map_err(|error| refused(function, &error))?;
    program
        .attach()
        .map(drop)
        .map_err(|error| refused(function, &error))
}

/// Tracepoints need fewer rights of the kernel than its functions do.
fn refused(function: &str, error: &(dyn std::error::Error + 'static)) -> Failure {
    match Failure::library(format_args!("attaching to {function}"), error) {
        Failure::Os {
            errno: errno @ libc::EPERM,
            ..
        } => Failure::Os {
            errno,
            text: format!(
                "attaching to {function}: this kernel lets no BPF program attach to its functions (fentry)"
            ),
        },
        other => other,
    }
}

fn missing(name: &str) -> Failure {
    Failure::Value(format!("{name} is missing in the embedded object"))
}
