//! Finds which build of the programs this kernel runs, by trying: distributions add features to old versions.

use std::io;
use std::os::fd::{FromRawFd, OwnedFd};

use super::failure::Failure;
use super::types::Types;

const BPF_PROG_LOAD: libc::c_int = 5;
const BPF_PROG_TYPE_RAW_TRACEPOINT: u32 = 17;
const BPF_PROG_TYPE_TRACING: u32 = 26;
const BPF_TRACE_RAW_TP: u32 = 23;

/// One source in builds for what kernels have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Form {
    /// The verifier knows the types of a tracepoint's arguments (`tp_btf`): reading what they point to costs no call.
    pub typed: bool,
    /// Atomic operations tell what was there before (`BPF_FETCH`): needed for busy time.
    pub fetch: bool,
}

static OBJECTS: [&[u8]; 4] = [
    aya::include_bytes_aligned!("../../bpf/lunscope.bpf.o"),
    aya::include_bytes_aligned!("../../bpf/lunscope.raw.bpf.o"),
    aya::include_bytes_aligned!("../../bpf/lunscope.plain.bpf.o"),
    aya::include_bytes_aligned!("../../bpf/lunscope.raw.plain.bpf.o"),
];

impl Form {
    /// The best that the kernel accepts, which is asked with programs of a few instructions.
    pub fn of_kernel(types: &Types) -> Result<Self, Failure> {
        load(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, &[MOV_R0_0, EXIT])
            .map_err(|error| Failure::loading("loading a program for raw tracepoints", &error))?;
        let form = Self {
            typed: types.own && accepts_types(types),
            fetch: load(BPF_PROG_TYPE_RAW_TRACEPOINT, 0, &FETCH).is_ok(),
        };
        if !form.fetch && !cfg!(target_arch = "x86_64") {
            return Err(Failure::missing(
                "the kernel has no atomic operations with results for BPF (BPF_FETCH): the exact tier needs Linux \
                 5.12 or newer on this architecture"
                    .to_owned(),
            ));
        }
        Ok(form)
    }

    pub fn object(self) -> &'static [u8] {
        OBJECTS[usize::from(!self.typed) + 2 * usize::from(!self.fetch)]
    }
}

fn accepts_types(types: &Types) -> bool {
    let tracepoint = types.of_tracepoint("block_rq_issue");
    tracepoint.is_some_and(|id| load(BPF_PROG_TYPE_TRACING, id, &[MOV_R0_0, EXIT]).is_ok())
}

/// An instruction as the kernel has it (struct `bpf_insn`): code, registers, offset, number.
type Instruction = u64;

const fn instruction(code: u8, registers: u8, offset: i16, number: i32) -> Instruction {
    let [low, high] = offset.to_ne_bytes();
    let [a, b, c, d] = number.to_ne_bytes();
    u64::from_ne_bytes([code, registers, low, high, a, b, c, d])
}

const MOV_R0_0: Instruction = instruction(0xb7, 0, 0, 0);
const EXIT: Instruction = instruction(0x95, 0, 0, 0);
/// `r1 = atomic_fetch_add((u64 *)(r10 - 8), r1)` on a place that was written before.
const FETCH: [Instruction; 5] = [
    instruction(0xb7, 1, 0, 1),
    instruction(0x7b, 0x1a, -8, 0),
    instruction(0xdb, 0x1a, -8, 1),
    MOV_R0_0,
    EXIT,
];

/// The part of union `bpf_attr` (linux/bpf.h) that loads a program.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    instructions: u32,
    first: u64,
    licence: u64,
    log: [u64; 2],
    kernel_version: u32,
    flags: u32,
    name: [u64; 2],
    interface: u32,
    expected_attach_type: u32,
    types: [u64; 4],
    lines: u32,
    attach_type_id: u32,
}

fn load(kind: u32, attach_type_id: u32, program: &[Instruction]) -> io::Result<OwnedFd> {
    let attributes = Attributes {
        kind,
        instructions: u32::try_from(program.len()).unwrap_or(0),
        first: program.as_ptr() as u64,
        licence: c"GPL".as_ptr() as u64,
        expected_attach_type: if kind == BPF_PROG_TYPE_TRACING {
            BPF_TRACE_RAW_TP
        } else {
            0
        },
        attach_type_id,
        ..Attributes::default()
    };
    // SAFETY: the kernel reads that many bytes of a live structure, and what it points to; a descriptor is ours.
    let fd = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_PROG_LOAD,
            &raw const attributes,
            size_of::<Attributes>(),
        )
    };
    match i32::try_from(fd) {
        // SAFETY: the kernel has just made it for us.
        Ok(fd) if fd >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(fd) }),
        _ => Err(io::Error::last_os_error()),
    }
}
