//! The programs: loaded all at once, attached so that nothing is seen to begin whose end would be missed.

use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::path::Path;

use aya::maps::Map;
use aya::programs::BtfTracePoint;
use aya::programs::tp_btf::BtfTracePointLinkId;
use aya::{Btf, Ebpf, EbpfLoader, Endianness};

use super::failure::Failure;
use super::sizes::Sizes;

static OBJECT: &[u8] = aya::include_bytes_aligned!("../../bpf/lunscope.bpf.o");

/// Programs that are switched together: name and tracepoint, closing side first.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Requests,
    Bios,
    TagWaits,
}

impl Part {
    const ALL: [Self; 3] = [Self::Requests, Self::Bios, Self::TagWaits];

    fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Requests => &[
                ("on_complete", "block_rq_complete"),
                ("on_complete_again", "block_rq_complete"),
                ("on_merge", "block_rq_merge"),
                ("on_requeue", "block_rq_requeue"),
                ("on_issue", "block_rq_issue"),
                ("on_insert", "block_rq_insert"),
            ],
            Self::Bios => &[
                ("on_bio_complete", "block_bio_complete"),
                ("on_bio_complete_again", "block_bio_complete"),
                ("on_bio_queue", "block_bio_queue"),
            ],
            Self::TagWaits => &[
                ("on_wait_end", "block_getrq"),
                ("on_wait_begin", "block_bio_queue"),
            ],
        }
    }
}

/// Tracepoints that the programs need.
pub fn tracepoints() -> impl Iterator<Item = &'static str> {
    Part::ALL
        .into_iter()
        .flat_map(Part::programs)
        .map(|(_, tracepoint)| *tracepoint)
}

struct Attached {
    part: Part,
    program: &'static str,
    link: BtfTracePointLinkId,
}

pub struct Programs {
    ebpf: Ebpf,
    attached: Vec<Attached>,
}

impl Programs {
    /// Creates the maps and loads all programs; nothing runs yet.
    pub fn load(sysfs: &Path, sizes: &Sizes) -> Result<Self, Failure> {
        let path = sysfs.join("kernel/btf/vmlinux");
        let btf = Btf::parse_file(&path, Endianness::default())
            .map_err(|error| Failure::library(path.display(), &error))?;
        let mut loader = EbpfLoader::new();
        loader.btf(Some(&btf));
        loader.set_global("io_set_bits", &sizes.io_set_bits, true);
        for (map, entries) in sizes.of_maps() {
            loader.set_max_entries(map, entries);
        }
        let mut ebpf = loader
            .load(OBJECT)
            .map_err(|error| Failure::library("creating the maps", &error))?;
        for (name, tracepoint) in Part::ALL.into_iter().flat_map(Part::programs) {
            program(&mut ebpf, name)?
                .load(tracepoint, &btf)
                .map_err(|error| {
                    Failure::library(format_args!("loading {name} for {tracepoint}"), &error)
                })?;
        }
        Ok(Self {
            ebpf,
            attached: Vec::new(),
        })
    }

    /// The descriptor of a map.
    pub fn map(&self, name: &str) -> Result<BorrowedFd<'_>, Failure> {
        match self.ebpf.map(name) {
            Some(Map::Array(data)) => Ok(data.fd().as_fd()),
            _ => Err(missing(name)),
        }
    }

    /// A descriptor of a map through which nobody can write, to be handed to another process.
    ///
    /// Opening a map by its id takes `CAP_SYS_ADMIN`.
    pub fn open_map_read_only(&self, name: &str) -> Result<OwnedFd, Failure> {
        let map = match self.ebpf.map(name) {
            Some(Map::Array(data)) => data.info(),
            _ => return Err(missing(name)),
        };
        let id = map
            .map_err(|error| Failure::library(format_args!("asking for {name}"), &error))?
            .id();
        open_read_only(id)
            .map_err(|error| Failure::os(&format!("opening {name} for reading"), &error))
    }

    pub fn is_attached(&self, part: Part) -> bool {
        self.attached.iter().any(|one| one.part == part)
    }

    pub fn attach(&mut self, part: Part) -> Result<(), Failure> {
        if self.is_attached(part) {
            return Ok(());
        }
        for (name, tracepoint) in part.programs() {
            let link = program(&mut self.ebpf, name)?.attach().map_err(|error| {
                Failure::library(format_args!("attaching to {tracepoint}"), &error)
            })?;
            self.attached.push(Attached {
                part,
                program: name,
                link,
            });
        }
        Ok(())
    }

    /// Detaches in reverse order: what has begun may still end.
    pub fn detach(&mut self, part: Part) -> Result<(), Failure> {
        let (gone, kept) = std::mem::take(&mut self.attached)
            .into_iter()
            .partition(|one| one.part == part);
        self.attached = kept;
        let gone: Vec<Attached> = gone;
        for one in gone.into_iter().rev() {
            program(&mut self.ebpf, one.program)?
                .detach(one.link)
                .map_err(|error| Failure::library("detaching", &error))?;
        }
        Ok(())
    }

    /// How often the kernel skipped a program because it was running on that CPU already.
    pub fn recursion_misses(&self) -> u64 {
        self.attached
            .iter()
            .filter_map(|one| match self.ebpf.program(one.program)? {
                aya::programs::Program::BtfTracePoint(program) => program.fd().ok(),
                _ => None,
            })
            .filter_map(|fd| recursion_misses_of(fd.as_fd()))
            .sum()
    }
}

fn open_read_only(id: u32) -> io::Result<OwnedFd> {
    const BPF_MAP_GET_FD_BY_ID: libc::c_int = 14;
    const BPF_F_RDONLY: u32 = 1 << 3;
    // map_id, next_id, open_flags (union bpf_attr of linux/bpf.h)
    let attributes: [u32; 3] = [id, 0, BPF_F_RDONLY];
    // SAFETY: the kernel reads that many bytes of a live array and returns a new descriptor.
    let map = unsafe {
        libc::syscall(
            libc::SYS_bpf,
            BPF_MAP_GET_FD_BY_ID,
            attributes.as_ptr(),
            size_of_val(&attributes),
        )
    };
    match i32::try_from(map) {
        // SAFETY: the descriptor was just made and nobody else owns it.
        Ok(map) if map >= 0 => Ok(unsafe { OwnedFd::from_raw_fd(map) }),
        _ => Err(io::Error::last_os_error()),
    }
}

fn recursion_misses_of(program: BorrowedFd<'_>) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).ok()?;
    text.lines()
        .find_map(|line| line.strip_prefix("recursion_misses:")?.trim().parse().ok())
}

fn program<'ebpf>(ebpf: &'ebpf mut Ebpf, name: &str) -> Result<&'ebpf mut BtfTracePoint, Failure> {
    ebpf.program_mut(name)
        .and_then(|program| program.try_into().ok())
        .ok_or_else(|| missing(name))
}

fn missing(name: &str) -> Failure {
    Failure::Value(format!("{name} is missing in the embedded object"))
}
