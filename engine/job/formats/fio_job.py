"""One section of a fio job file as a job of our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from engine.job.distribution import Permutation, Uniform
from engine.job.fixed_settings import READ_WRITE
from engine.job.formats.fio_engine import Workers, take_floor, take_mode, take_rate, take_thinking, take_workers
from engine.job.formats.fio_extent import Clones, fields_of, take_extent
from engine.job.formats.fio_flow import NAMES as TIES
from engine.job.formats.fio_flow import Ties, take_ties
from engine.job.formats.fio_ignored import OtherOptions, judge_left_over, notes_of
from engine.job.formats.fio_options import take_numbers
from engine.job.formats.fio_pattern import take_alignment, take_blocks, take_distribution, used_mixes
from engine.job.formats.fio_priority import NAMES as PRIORITIES
from engine.job.formats.fio_priority import NOTE as PRIORITIES_NOTE
from engine.job.formats.fio_priority import take_priorities
from engine.job.formats.fio_search import SEARCHING, take_search
from engine.job.formats.fio_sections import FioSection, Given, Option
from engine.job.formats.fio_targets import Files, take_files
from engine.job.formats.fio_values import Units, seconds, switch, units_of
from engine.job.formats.fio_verify import take_verify
from engine.job.formats.read_job import JobSearch
from engine.job.formats.text_file import quoted
from engine.job.knobs import KNOBS, knob_problems
from engine.job.limits import SECTOR_BYTES
from engine.job.sizes import format_size
from engine.job.spec import Access, Backend, JobSpec, Knobs
from engine.job.validate import MAX_SEED, MIN_STRIPE_UNIT_BYTES, setting_problems
from engine.replacing import replace


def take_order(given: Given, units: Units) -> tuple[Access, float, int]:
    """Take the order of offsets, the share of reads, and the jump after each block; without them fio reads in sequence.

    Raises:
        UsageError: the job trims or jumps, or shares are no percentages.
    """
    option = given.take("rw", "readwrite")
    word = "read" if option is None else option.text
    word, _, jump = word.partition(":")
    word = "rw" if word == "readwrite" else word
    if option is not None and word not in READ_WRITE:
        raise option.error(f"{quoted(word)} is not driven: reads, writes and their mixes are, without trims")
    access, share = READ_WRITE[word]
    mixed = _share_of_reads(given.take("rwmixread"), given.take("rwmixwrite"), units)
    share = mixed if word in ("rw", "randrw") and mixed is not None else share
    return access, share, 0 if option is None or not jump else _jump(option, jump, access, units)


def _jump(option: Option, text: str, access: Access, units: Units) -> int:
    """Read what follows the colon: bytes left out after each block."""
    if access is Access.RANDOM:
        if text != "1":
            raise option.error("several I/Os in sequence from each random offset are not driven: take the colon out")
        return 0
    size = units.integer(option, text.removeprefix("-"))
    return -size if text.startswith("-") else size


def _with_jump(given: Given, job: JobSpec) -> JobSpec:
    """Check that a jump goes as in fio.

    Raises:
        UsageError: where it starts over depends on what is not known here.
    """
    option, jump = given.seen("rw", "readwrite"), job.jump_bytes
    if not jump or option is None:
        return job
    unit = math.lcm(*job.knobs.block_sizes)
    if len(job.knobs.block_sizes) > 1 or jump % unit:
        raise option.error(f"after the colon only multiples of the block ({format_size(unit)}) are driven")
    if job.offset_bytes or 0 < job.knobs.read_pct < 100:
        raise option.error("with an offset, or with reads and writes together, a number after the colon is not driven")
    if jump > 0 and job.ends_by_bytes and job.size_bytes is not None and job.targets[0].path is not None:
        raise option.error(
            "when it ends depends on whether the file is larger than size: add time_based and a runtime, or leave "
            "size out"
        )
    return job


def _share_of_reads(reads: Option | None, writes: Option | None, units: Units) -> float | None:
    if writes is not None and (reads is None or writes.location.line > reads.location.line):
        return 100.0 - units.integer(writes, most=100)
    return None if reads is None else float(units.integer(reads, most=100))


def take_seed(given: Given, units: Units) -> int:
    """Take the seed; without one it is the same every time, as in fio.

    Raises:
        UsageError: it is out of range.
    """
    option = given.take("randseed")
    return JobSpec().seed if option is None else units.integer(option, most=MAX_SEED)


DRIVEN = (
    *(
        "filename_format",
        "directory",
        "nrfiles",
        "nr_files",
        "fileoffset",
        "size",
        "filesize",
        "io_size",
        "io_limit",
        "number_ios",
        "loops",
    ),
    *("offset", "offset_align", "offset_increment", "blockalign", "ba", "rw", "readwrite", "ioengine"),
    *(
        "rate_min",
        "ratemin",
        "rate_iops_min",
        "ratecycle",
        "rate_cycle",
        "runtime",
        "timeout",
        "time_based",
        "ramp_time",
    ),
    *("thinktime", "thinktime_blocks", "randseed", "verify"),
    *SEARCHING,
    *PRIORITIES,
    *(
        "do_verify",
        "verify_backlog",
        "random_generator",
        "invalidate",
        "fadvise_hint",
        "stonewall",
        "wait_for_previous",
        "wait_for",
        "kb_base",
    ),
    *TIES,
    *(name for knob in KNOBS.values() for name in knob.fio or ()),
)
"""Names of options that are driven as fio does."""

_EVENLY = "several files: what is outstanding is held evenly on them, fio sends it to any file with a free slot"
_CACHED = (
    "buffered reads: fio drops its files from the page cache before it begins, here they stay in it (a badge says how "
    "much is read from it)"
)
_ADVISED = (
    "buffered reads: fio tells the kernel their order, which sets how far it reads ahead; here the kernel finds out by "
    "itself, as with fadvise_hint=0"
)
_ALIGNED = "blocks of several sizes: each is at a multiple of its own size, in fio at one of the smallest"


class SectionJob(Struct, frozen=True):
    """What one section specifies."""

    section: FioSection
    ties: Ties
    waits: bool
    """Whether all before it are over when it begins."""
    waits_for: Option | None
    """Names the section that is over then."""
    folder: Path | None
    search: JobSearch | None
    notes: tuple[str, ...]

    @property
    def job(self) -> JobSpec:
        """The job alone."""
        return self.ties.load.job

    @property
    def names(self) -> list[str]:
        """Those of its targets that have one."""
        return [target.path for target in self.job.targets if target.path is not None]


def section_job(section: FioSection, work: str) -> SectionJob:
    """Make a job of a section; `work` is what follows the verb in a command about it alone.

    Raises:
        UsageError: an option cannot be read, or changes the load and is not driven.
    """
    given = Given(section)
    units = units_of(given)
    access, read_pct, jump_bytes = take_order(given, units)
    reads, writes = take_blocks(given, units)
    rate = take_rate(given, units, read_pct, (reads, writes))
    read_pct = rate.read_pct
    knobs = Knobs(read_pct=read_pct, blocks=reads, write_blocks=None if writes == reads else writes)
    workers = take_workers(given, units)
    files = take_files(given, units, workers.jobs)
    knobs = take_numbers(given, units, knobs)
    knobs, mode_notes = _with_mode(given, knobs)
    knobs, align_bytes, where_notes = _with_distribution(given, units, knobs, access)
    knobs = replace(knobs, rate_iops=None if rate.iops is None else rate.iops * workers.jobs)
    runtime_s, ramp_s, timed = _times(given)
    extent = take_extent(given, units, Clones(files, workers.jobs, access, knobs.block_sizes), timed=timed)
    think_s, think_every = take_thinking(given, units, workers)
    verify, verify_notes = take_verify(given, writes=read_pct < 100)
    if verify and align_bytes is not None and given.seen("blockalign", "ba") is None:
        align_bytes, where_notes = None, [*where_notes, _ALIGNED]
    job = JobSpec(
        files.targets,
        replace(knobs, stripe_width=len(files.targets)),
        access,
        workers.backend,
        stripe_unit_bytes=_stripe_unit(knobs.block_sizes, len(files.targets)),
        runtime_s=runtime_s,
        ramp_s=ramp_s,
        jump_bytes=jump_bytes,
        separate=access is Access.SEQUENTIAL and 0 < read_pct < 100,
        align_bytes=align_bytes,
        think_s=think_s,
        think_every=think_every,
        priorities=take_priorities(given, units, (reads, writes)),
        rate_min=take_floor(given, units, workers, read_pct),
        verify=verify,
        seed=take_seed(given, units),
        arrival=rate.arrival,
        name=section.name,
    )
    job = _with_jump(given, replace(job, **fields_of(extent)))
    job, depth_notes = _with_depth(job, workers, files)
    for problem in (*knob_problems(job.knobs), *setting_problems(job)):
        raise section.location.error(section.name, f"{problem.option}: {problem.text}")
    waits, waits_for = switch(given.take("stonewall", "wait_for_previous")), given.take("wait_for")
    notes = [*files.notes, *workers.notes, *depth_notes, *where_notes, *mode_notes, *rate.notes]
    notes += [*extent.notes, *verify_notes]
    search = take_search(given, job.knobs.queue_depth, work)
    notes += [PRIORITIES_NOTE] if any(each.percent is not None for each in job.priorities) else []
    ties = take_ties(given, units, workers, job)
    beside = OtherOptions(
        files.names,
        files=len(files.targets) // (1 if files.shared else workers.jobs),
        depth=workers.depth,
        loops=job.loops or 1,
        writes=read_pct < 100,
        direct=job.knobs.mode.is_direct,
        verify=job.verify,
    )
    notes += notes_of(given.left(), beside)
    left = dict.fromkeys(judge_left_over(given.left(), DRIVEN, beside))
    notes += [f"without effect on the load: {', '.join(left)}"] if left else []
    return SectionJob(section, ties, waits, waits_for, files.folder, search, tuple(notes))


def _with_mode(given: Given, knobs: Knobs) -> tuple[Knobs, list[str]]:
    mode = take_mode(given, writes=knobs.read_pct < 100)
    drops_cache = switch(given.take("invalidate"), default=True)
    hint = given.take("fadvise_hint")
    advises = hint is None or hint.value not in ("0", "none")
    if mode.is_direct or knobs.read_pct == 0:
        return replace(knobs, mode=mode), []
    return replace(knobs, mode=mode), [_CACHED] * drops_cache + [_ADVISED] * advises


def _with_distribution(given: Given, units: Units, knobs: Knobs, access: Access) -> tuple[Knobs, int | None, list[str]]:
    one_size = len(knobs.block_sizes) == 1
    distribution, of_writes, notes = take_distribution(given, one_size=one_size)
    align = given.take("blockalign", "ba")
    if access is Access.SEQUENTIAL:
        sizes = [] if one_size else [_ALIGNED]
        return replace(knobs, distribution=Uniform()), None, sizes
    align_bytes = take_alignment(align, units, knobs)
    notes += [_ALIGNED] if align_bytes is None and any(len(mix) > 1 for mix in used_mixes(knobs)) else []
    if align is not None and align_bytes is not None and isinstance(distribution, Permutation):
        raise align.error("without norandommap fio shortens blocks that overlap, which is not driven: add norandommap")
    return replace(knobs, distribution=distribution, write_distribution=of_writes), align_bytes, notes


def _stripe_unit(block_sizes: Sequence[int], files: int) -> int:
    """Take the least unit in which no I/O reaches from one file into the next, as in fio."""
    if files == 1:
        return JobSpec().stripe_unit_bytes
    unit = math.lcm(SECTOR_BYTES, *block_sizes)
    return unit * -(-MIN_STRIPE_UNIT_BYTES // unit)


def _with_depth(job: JobSpec, workers: Workers, files: Files) -> tuple[JobSpec, list[str]]:
    """Share what all clones keep outstanding out to their files; below their number it goes over them in turn."""
    count, total = len(job.targets), workers.jobs * workers.depth
    threads = 1 if workers.backend is Backend.THREADS else workers.jobs
    knobs = replace(job.knobs, queue_depth=total if total % count else total // count, threads=threads)
    job = replace(job, knobs=knobs, total_queue_depth=total % count > 0)
    files_of_a_clone = count if files.shared else count // workers.jobs
    return job, [_EVENLY] if files_of_a_clone > 1 and total > count else []


def _times(given: Given) -> tuple[float | None, float, bool]:
    """Take the runtime with the ramp that fio adds to it, the ramp, and whether only time ends the job."""
    option, ramp, is_time_based = given.take("runtime", "timeout"), given.take("ramp_time"), given.take("time_based")
    runtime_s = 0.0 if option is None else seconds(option)
    ramp_s = 0.0 if ramp is None else seconds(ramp)
    timed = switch(is_time_based) and runtime_s > 0
    return (runtime_s + ramp_s if runtime_s else None), ramp_s, timed
