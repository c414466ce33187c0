//! The program on the kernel's tracepoint of NFS calls, and its maps.

use std::os::fd::AsFd;
use std::path::Path;

use aya::maps::Map;
use aya::programs::TracePoint;
use aya::{Ebpf, EbpfLoader};

use super::format::{CATEGORY, TRACEPOINT, read};
use super::layout::{RpcCalls, RpcControl, RpcSlow};
use crate::exact::failure::Failure;
use crate::exact::mapping::{Mapping, Shared};
use crate::exact::programs::statistics_of;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../../bpf/rpc.bpf.o");
const PROGRAM: &str = "on_call";

/// Attached until dropped.
pub struct RpcPrograms {
    ebpf: Ebpf,
}

impl RpcPrograms {
    /// Loads and attaches; `places` combinations of client, transport and operation can be told apart.
    pub fn attach(sysfs: &Path, places: u32) -> Result<Self, Failure> {
        let format = read(sysfs)?;
        let mut loader = EbpfLoader::new();
        for (global, offset) in &format.offsets {
            loader.set_global(global, offset, true);
        }
        let mut ebpf = loader
            .set_global("bytes_of_time", &format.bytes_of_time, true)
            .set_max_entries("rpc_calls", places + 1)
            .set_max_entries("rpc_places", places)
            .load(OBJECT)
            .map_err(|error| Failure::library("creating the maps", &error))?;
        let program = program(&mut ebpf)?;
        program
            .load()
            .map_err(|error| Failure::library(format_args!("loading {PROGRAM}"), &error))?;
        program.attach(CATEGORY, TRACEPOINT).map_err(|error| {
            Failure::library(format_args!("attaching to {CATEGORY}:{TRACEPOINT}"), &error)
        })?;
        Ok(Self { ebpf })
    }

    pub fn calls(&self) -> Result<Mapping<RpcCalls>, Failure> {
        self.mapped("rpc_calls")
    }

    pub fn control(&self) -> Result<Mapping<RpcControl>, Failure> {
        self.mapped("rpc_control")
    }

    pub fn slow(&self) -> Result<Mapping<RpcSlow>, Failure> {
        self.mapped("rpc_slow")
    }

    /// Calls for which the kernel skipped the program, as another one was running on that CPU.
    pub fn missed(&self) -> u64 {
        self.ebpf
            .program(PROGRAM)
            .and_then(|program| <&TracePoint>::try_from(program).ok())
            .and_then(|program| program.fd().ok())
            .and_then(|fd| statistics_of(fd.as_fd()))
            .map_or(0, |found| found.recursion_misses)
    }

    fn mapped<T: Shared>(&self, name: &str) -> Result<Mapping<T>, Failure> {
        let Some(Map::Array(data)) = self.ebpf.map(name) else {
            return Err(missing(name));
        };
        Mapping::new(data.fd().as_fd(), true)
            .map_err(|error| Failure::os(&format!("mapping {name}"), &error))
    }
}

fn program(ebpf: &mut Ebpf) -> Result<&mut TracePoint, Failure> {
    ebpf.program_mut(PROGRAM)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| missing(PROGRAM))
}

fn missing(name: &str) -> Failure {
    Failure::Value(format!("{name} is missing in the embedded object"))
}
