"""One section of a fio job file as a job of our own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from engine.job.distribution import Uniform
from engine.job.formats.fio_engine import Workers, take_mode, take_rate, take_workers
from engine.job.formats.fio_ignored import judge_left_over
from engine.job.formats.fio_options import take_numbers
from engine.job.formats.fio_pattern import take_blocks, take_distribution
from engine.job.formats.fio_sections import FioSection, Given, Option
from engine.job.formats.fio_targets import Files, take_files
from engine.job.formats.fio_values import Units, seconds, switch, units_of
from engine.job.formats.text_file import quoted
from engine.job.knobs import KNOBS, knob_problems
from engine.job.limits import SECTOR_BYTES
from engine.job.settings import READ_WRITE
from engine.job.spec import Access, Backend, JobSpec, Knobs, Mode
from engine.job.validate import MAX_SEED, MIN_STRIPE_UNIT_BYTES, setting_problems


def take_order(given: Given, units: Units) -> tuple[Access, float]:
    """Take the order of offsets and the share of reads; without them fio reads in sequence.

    Raises:
        UsageError: the job trims or jumps, or shares are no percentages.
    """
    option = given.take("rw", "readwrite")
    word = "read" if option is None else option.text
    word = "rw" if word == "readwrite" else word
    if option is not None and word not in READ_WRITE:
        raise option.error(
            f"{quoted(word)} is not driven: reads, writes and their mixes are, without trims and without an offset "
            "after a colon"
        )
    access, share = READ_WRITE[word]
    mixed = _share_of_reads(given.take("rwmixread"), given.take("rwmixwrite"), units)
    return access, mixed if word in ("rw", "randrw") and mixed is not None else share


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
    *("directory", "size", "rw", "readwrite", "ioengine", "runtime", "timeout", "time_based", "randseed"),
    *("invalidate", "stonewall", "wait_for_previous", "kb_base"),
    *(name for knob in KNOBS.values() for name in knob.fio or ()),
)
"""Names of options that are driven as fio does."""

_NO_END = "no runtime: fio ends when size is done, here the load goes on until it is stopped (10 s without a screen)"
_NOT_TIME_BASED = "time_based is not set: fio might end when size is done, here the runtime is over first"
_EVENLY = "several files: what is outstanding is held evenly on them, fio sends it to any file with a free slot"
_ONE_SEQUENCE = "reads and writes in sequence: they take turns in one sequence here, in fio each have their own"
_CACHED = (
    "buffered reads: fio drops its files from the page cache before it begins, here they stay in it (a badge says how "
    "much is read from it)"
)
_ALIGNED = "blocks of several sizes: each is at a multiple of its own size, in fio at one of the smallest"


@dataclass(frozen=True, slots=True)
class SectionJob:
    """What one section specifies."""

    section: FioSection
    job: JobSpec
    waits: bool
    """Whether all before it are over when it begins."""
    folder: Path | None
    notes: tuple[str, ...]


def section_job(section: FioSection) -> SectionJob:
    """Make a job of a section.

    Raises:
        UsageError: an option cannot be read, or changes the load and is not driven.
    """
    given = Given(section)
    units = units_of(given)
    access, read_pct = take_order(given, units)
    reads, writes = take_blocks(given, units)
    knobs = Knobs(read_pct=read_pct, blocks=reads, write_blocks=None if writes == reads else writes)
    workers = take_workers(given, units)
    files = take_files(given, units, workers.jobs, knobs.block_sizes)
    knobs = take_numbers(given, units, knobs)
    knobs, mode_notes = _with_mode(given, knobs)
    knobs, where_notes = _with_distribution(given, knobs, access)
    rate, arrival, rate_notes = take_rate(given, units, read_pct, (reads, writes))
    knobs = replace(knobs, rate_iops=None if rate is None else rate * workers.jobs)
    runtime_s, runtime_notes = _runtime(given)
    job = JobSpec(
        files.targets,
        replace(knobs, stripe_width=len(files.targets)),
        access,
        workers.backend,
        stripe_unit_bytes=_stripe_unit(knobs.block_sizes, len(files.targets)),
        size_bytes=files.size_bytes,
        runtime_s=runtime_s,
        seed=take_seed(given, units),
        arrival=arrival,
        name=section.name,
    )
    job, depth_notes = _with_depth(job, section, workers, files)
    for problem in (*knob_problems(job.knobs), *setting_problems(job)):
        raise section.location.error(section.name, f"{problem.option}: {problem.text}")
    waits = switch(given.take("stonewall", "wait_for_previous"))
    notes = [*files.notes, *workers.notes, *depth_notes, *where_notes, *mode_notes, *rate_notes, *runtime_notes]
    left = dict.fromkeys(judge_left_over(given.left(), DRIVEN, writes=read_pct < 100))
    notes += [f"without effect on the load: {', '.join(left)}"] if left else []
    return SectionJob(section, job, waits, files.folder, tuple(notes))


def _with_mode(given: Given, knobs: Knobs) -> tuple[Knobs, list[str]]:
    mode = take_mode(given, writes=knobs.read_pct < 100)
    drops_cache = switch(given.take("invalidate"), default=True)
    cached = drops_cache and mode is not Mode.DIRECT and knobs.read_pct > 0
    return replace(knobs, mode=mode), [_CACHED] if cached else []


def _with_distribution(given: Given, knobs: Knobs, access: Access) -> tuple[Knobs, list[str]]:
    one_size = len(knobs.block_sizes) == 1
    distribution, of_writes, notes = take_distribution(given, one_size=one_size)
    sizes = [] if one_size else [_ALIGNED]
    if access is Access.SEQUENTIAL:
        return replace(knobs, distribution=Uniform()), sizes + [_ONE_SEQUENCE] * (0 < knobs.read_pct < 100)
    notes += sizes
    return replace(knobs, distribution=distribution, write_distribution=of_writes), notes


def _stripe_unit(block_sizes: Sequence[int], files: int) -> int:
    """Take the least unit in which no I/O reaches from one file into the next, as in fio."""
    if files == 1:
        return JobSpec().stripe_unit_bytes
    unit = math.lcm(SECTOR_BYTES, *block_sizes)
    return unit * -(-MIN_STRIPE_UNIT_BYTES // unit)


def _with_depth(job: JobSpec, section: FioSection, workers: Workers, files: Files) -> tuple[JobSpec, list[str]]:
    """Share what all clones keep outstanding out to their files.

    Raises:
        UsageError: clones go through the same sequence, or there are more files than I/Os.
    """
    count, total = len(job.targets), workers.jobs * workers.depth
    if job.access is Access.SEQUENTIAL and files.shared and workers.jobs > 1:
        raise section.location.error(
            section.name,
            f"numjobs={workers.jobs} with sequential order: all clones of fio go through the same blocks, which is not "
            f"driven: use numjobs=1 with ioengine=io_uring and iodepth={total}",
        )
    if total < count:
        raise section.location.error(
            section.name, f"{total} I/Os outstanding over {count} files are not driven: give at least one for each"
        )
    threads = 1 if workers.backend is Backend.THREADS else workers.jobs
    knobs = replace(job.knobs, queue_depth=total if total % count else total // count, threads=threads)
    job = replace(job, knobs=knobs, total_queue_depth=total % count > 0)
    files_of_a_clone = count if files.shared else count // workers.jobs
    return job, [_EVENLY] if files_of_a_clone > 1 and total > count else []


def _runtime(given: Given) -> tuple[float | None, list[str]]:
    option, is_time_based = given.take("runtime", "timeout"), switch(given.take("time_based"))
    runtime_s = None if option is None else seconds(option)
    if not runtime_s:
        return None, [_NO_END]
    return runtime_s, [] if is_time_based else [_NOT_TIME_BASED]
