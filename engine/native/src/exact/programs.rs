//! The programs: loaded all at once, attached in an order in which no I/O is seen to begin without its end.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use aya::Ebpf;
use aya::maps::Map;
use aya::programs::raw_trace_point::RawTracePointLink;
use aya::programs::tp_btf::BtfTracePointLink;
use aya::programs::{Program, RawTracePoint};

use super::failure::Failure;
use super::form::Form;
use super::loading::{self, missing};
use super::sizes::Sizes;
use super::types::Types;

/// Program and tracepoint, by name: no type information of the tracepoint is needed, so that it loads on any kernel.
const TAG_SLEEP: (&str, &str) = ("on_tag_sleep", "block_rq_tag_wait");

/// Programs that are switched together: name and tracepoint.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Part {
    Completions,
    /// A second copy, called after the first if it was attached after it: it sees what the kernel skipped the first for.
    CompletionsAgain,
    Requests,
    IssuesAgain,
    BioCompletions,
    BioCompletionsAgain,
    Bios,
    TagWaits,
    /// What begins a wait where no event does: it runs on every I/O.
    TagWaitBegins,
}

impl Part {
    const ALL: [Self; 9] = [
        Self::Completions,
        Self::CompletionsAgain,
        Self::Requests,
        Self::IssuesAgain,
        Self::BioCompletions,
        Self::BioCompletionsAgain,
        Self::Bios,
        Self::TagWaits,
        Self::TagWaitBegins,
    ];

    fn programs(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Self::Completions => &[("on_complete", "block_rq_complete")],
            Self::CompletionsAgain => &[("on_complete_again", "block_rq_complete")],
            Self::Requests => &[
                ("on_merge", "block_rq_merge"),
                ("on_requeue", "block_rq_requeue"),
                ("on_issue", "block_rq_issue"),
                ("on_insert", "block_rq_insert"),
                ("on_split", "block_split"),
            ],
            Self::IssuesAgain => &[("on_issue_again", "block_rq_issue")],
            Self::BioCompletions => &[("on_bio_complete", "block_bio_complete")],
            Self::BioCompletionsAgain => &[("on_bio_complete_again", "block_bio_complete")],
            Self::Bios => &[("on_bio_queue", "block_bio_queue")],
            Self::TagWaits => &[("on_wait_end", "block_getrq")],
            Self::TagWaitBegins => &[("on_wait_begin", "block_bio_queue")],
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

/// Detaches when dropped.
enum Link {
    Typed(#[expect(dead_code, reason = "held")] BtfTracePointLink),
    Raw(#[expect(dead_code, reason = "held")] RawTracePointLink),
}

struct Attached {
    part: Part,
    link: Link,
}

pub struct Programs {
    pub form: Form,
    ebpf: Ebpf,
    attached: Vec<Attached>,
    tag_sleeps: Option<RawTracePointLink>,
}

impl Programs {
    /// Creates the maps and loads all programs; nothing runs yet.
    pub fn load(types: &Types, form: Form, sizes: &Sizes) -> Result<Self, Failure> {
        let programs = Part::ALL.into_iter().flat_map(Part::programs).copied();
        Ok(Self {
            form,
            ebpf: loading::load(types, form, sizes, programs)?,
            attached: Vec::new(),
            tag_sleeps: None,
        })
    }

    /// The descriptor of a map.
    pub fn map(&self, name: &str) -> Result<BorrowedFd<'_>, Failure> {
        match self.ebpf.map(name) {
            Some(Map::Array(data)) => Ok(data.fd().as_fd()),
            _ => Err(missing(name)),
        }
    }

    /// A second descriptor of a map, to be passed to another process.
    ///
    /// The kernel maps no descriptor that was opened for reading only (`bpf_map_mmap` wants `VM_SHARED`, which `do_mmap`
    /// takes away from those), so its holder may write, too; the programs and this side bear any content.
    pub fn duplicate(&self, name: &str) -> Result<OwnedFd, Failure> {
        let map = self.map(name)?;
        map.try_clone_to_owned()
            .map_err(|error| Failure::os(&format!("duplicating {name}"), &error))
    }

    pub fn is_attached(&self, part: Part) -> bool {
        self.attached.iter().any(|one| one.part == part)
    }

    pub fn attach(&mut self, part: Part) -> Result<(), Failure> {
        if self.is_attached(part) {
            return Ok(());
        }
        for (name, tracepoint) in part.programs() {
            let link = attach(&mut self.ebpf, name, tracepoint)?;
            self.attached.push(Attached { part, link });
        }
        Ok(())
    }

    /// Detaches in reverse order: what has begun may still end.
    pub fn detach(&mut self, part: Part) {
        let (gone, kept): (Vec<_>, Vec<_>) = std::mem::take(&mut self.attached)
            .into_iter()
            .partition(|one| one.part == part);
        self.attached = kept;
        gone.into_iter().rev().for_each(|one| drop(one.link));
    }

    /// Sees submitters that sleep for a tag, if the kernel has the event (Linux 7.2); it costs nothing while none does.
    pub fn attach_tag_sleeps(&mut self) -> Result<(), Failure> {
        if self.tag_sleeps.is_some() {
            return Ok(());
        }
        let program: &mut RawTracePoint = self
            .ebpf
            .program_mut(TAG_SLEEP.0)
            .and_then(|program| program.try_into().ok())
            .ok_or_else(|| missing(TAG_SLEEP.0))?;
        if program.fd().is_err() {
            program.load().map_err(|error| {
                Failure::library(format_args!("loading {}", TAG_SLEEP.0), &error)
            })?;
        }
        let link = program
            .attach(TAG_SLEEP.1)
            .and_then(|id| program.take_link(id));
        match link
            .map_err(|error| Failure::library(format_args!("attaching to {}", TAG_SLEEP.1), &error))
        {
            Ok(link) => self.tag_sleeps = Some(link),
            Err(Failure::Os {
                errno: libc::ENOENT,
                ..
            }) => {}
            Err(failure) => return Err(failure),
        }
        Ok(())
    }

    pub fn detach_tag_sleeps(&mut self) {
        self.tag_sleeps = None;
    }

    pub fn sees_tag_sleeps(&self) -> bool {
        self.tag_sleeps.is_some()
    }

    /// What the kernel says of all programs together, those that are detached for now, too: sums never shrink.
    pub fn statistics(&self) -> Statistics {
        self.ebpf
            .programs()
            .filter_map(|(_, program)| match program {
                Program::BtfTracePoint(program) => program.fd().ok(),
                Program::RawTracePoint(program) => program.fd().ok(),
                _ => None,
            })
            .filter_map(|fd| statistics_of(fd.as_fd()))
            .fold(Statistics::default(), |all, one| Statistics {
                recursion_misses: all.recursion_misses + one.recursion_misses,
                run_time_ns: all.run_time_ns + one.run_time_ns,
                runs: all.runs + one.runs,
            })
    }
}

/// The kernel's statistics of a program; times and runs are counted only while `kernel.bpf_stats_enabled` is set.
#[derive(Clone, Copy, Default, Debug, PartialEq, Eq)]
pub struct Statistics {
    /// How often the kernel skipped it because it was running on that CPU already.
    pub recursion_misses: u64,
    pub run_time_ns: u64,
    pub runs: u64,
}

impl Statistics {
    /// Reads the text of `bpf_prog_show_fdinfo` (kernel/bpf/syscall.c).
    fn parse(text: &str) -> Self {
        let number = |name: &str| {
            text.lines()
                .find_map(|line| line.strip_prefix(name)?.trim().parse().ok())
                .unwrap_or(0)
        };
        Self {
            recursion_misses: number("recursion_misses:"),
            run_time_ns: number("run_time_ns:"),
            runs: number("run_cnt:"),
        }
    }
}

pub fn statistics_of(program: BorrowedFd<'_>) -> Option<Statistics> {
    let text = fs::read_to_string(format!("/proc/self/fdinfo/{}", program.as_raw_fd())).ok()?;
    Some(Statistics::parse(&text))
}

fn attach(ebpf: &mut Ebpf, name: &str, tracepoint: &str) -> Result<Link, Failure> {
    let link = match ebpf.program_mut(name) {
        Some(Program::BtfTracePoint(program)) => program
            .attach()
            .and_then(|id| program.take_link(id))
            .map(Link::Typed),
        Some(Program::RawTracePoint(program)) => program
            .attach(tracepoint)
            .and_then(|id| program.take_link(id))
            .map(Link::Raw),
        _ => return Err(missing(name)),
    };
    link.map_err(|error| Failure::library(format_args!("attaching to {tracepoint}"), &error))
}

#[cfg(test)]
mod tests {
    use super::Statistics;

    #[test]
    fn statistics_are_found_by_name_and_what_a_kernel_does_not_have_is_none() {
        let text = "prog_type:\t26\nrun_time_ns:\t4711\nrun_cnt:\t12\nrecursion_misses:\t3\n";
        let found = Statistics::parse(text);
        assert_eq!(
            (found.run_time_ns, found.runs, found.recursion_misses),
            (4711, 12, 3)
        );
        assert_eq!(Statistics::parse("prog_type:\t26\n"), Statistics::default());
    }
}
