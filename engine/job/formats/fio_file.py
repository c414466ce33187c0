"""fio job files: sections that run together are one load on several targets, those behind a stonewall follow it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path

from engine.errors import UsageError
from engine.job.distribution import Permutation
from engine.job.formats.fio_job import SectionJob, section_job
from engine.job.formats.fio_sections import FioSection, fio_lines, sections_of
from engine.job.formats.read_job import ReadJob
from engine.job.scenario import Scenario, turn_between
from engine.job.spec import Access, Backend, JobSpec, Knobs
from engine.text import safe_text

_CHOOSE = "run one of them with --section NAME"


def read_fio(path: str | Path, chosen: Sequence[str] = ()) -> ReadJob:
    """Read a fio job file; of its sections only those `chosen` by name, if any are.

    Raises:
        LunscopeError: it, or a file it includes, cannot be read.
        UsageError: it is invalid, or needs what is not supported; names file, line and option.
    """
    sections = _chosen(sections_of(fio_lines(path), str(path)), chosen, str(path))
    jobs = [section_job(section) for section in sections]
    phases = _phases(jobs, all_at_once=bool(chosen))
    together = [_together(phase) for phase in phases]
    folders = {job.folder for job in jobs}
    if len(folders) > 1:
        raise jobs[-1].section.location.error(jobs[-1].section.name, f"another directory than the others: {_CHOOSE}")
    search = next((job.search for job in jobs if job.search is not None), None)
    return ReadJob(_one_after_another(together), _warnings(str(path), jobs), folders.pop(), search=search)


def _chosen(sections: tuple[FioSection, ...], names: Sequence[str], path: str) -> tuple[FioSection, ...]:
    known = [section.name for section in sections]
    for name in names:
        if name not in known:
            shown = ", ".join(map(safe_text, known[:10]))
            raise UsageError(f"{safe_text(path)}: no section {safe_text(name)}: it has {shown}")
    return tuple(section for section in sections if not names or section.name in names)


def _phases(jobs: Sequence[SectionJob], *, all_at_once: bool) -> list[list[SectionJob]]:
    phases: list[list[SectionJob]] = []
    for job in jobs:
        waits = not all_at_once and (_waits_for_all(job, phases) or job.waits)
        if waits or not phases:
            phases.append([])
        phases[-1].append(job)
    return phases


def _waits_for_all(job: SectionJob, phases: Sequence[Sequence[SectionJob]]) -> bool:
    """Whether a section that waits for another one waits for all that run.

    Raises:
        UsageError: it waits for one of several that run together, or for none before it.
    """
    option = job.waits_for
    if option is None:
        return False
    names = [[each.section.name for each in phase] for phase in phases]
    if names[-1:] == [[option.text]]:
        return True
    if any(option.text in phase for phase in names[:-1]):
        return False
    if names and option.text in names[-1]:
        raise option.error("waiting for one of several jobs that run together is not driven: use stonewall")
    raise option.error("no section of that name is above it")


def _together(phase: Sequence[SectionJob]) -> JobSpec:
    """Make one job of sections that run at the same time, which must differ in their targets only."""
    first = phase[0].job
    for other in phase[1:]:
        _refuse_difference(other, first, phase[0].section.name)
    if len(phase) == 1:
        return first
    knobs, many = first.knobs, len(phase)
    targets = tuple(target for each in phase for target in each.job.targets)
    knobs = replace(
        knobs,
        stripe_width=len(targets),
        rate_iops=None if knobs.rate_iops is None else knobs.rate_iops * many,
        threads=1 if first.backend is Backend.THREADS else knobs.threads * many,
    )
    return replace(first, targets=targets, knobs=knobs)


def _refuse_difference(other: SectionJob, first: JobSpec, name: str) -> None:
    knobs = _differing(replace(other.job.knobs, stripe_width=first.knobs.stripe_width), first.knobs)
    differing = [*knobs, *_differing(other.job, first, "targets", "name", "knobs")]
    differing += ["total_queue_depth"] if first.total_queue_depth else []
    if first.rate_min is not None and not differing:
        raise other.section.location.error(
            other.section.name,
            f"rate_min of several jobs at once, each judged by itself as in fio, is not driven: {_CHOOSE}",
        )
    if differing:
        raise other.section.location.error(
            other.section.name, f"another {_words(differing[0])} than [{safe_text(name)}] beside it: {_CHOOSE}"
        )


def _differing(one: JobSpec | Knobs, other: JobSpec | Knobs, *but: str) -> list[str]:
    names = (field.name for field in fields(one) if field.name not in but)
    return [name for name in names if getattr(one, name) != getattr(other, name)]


def _one_after_another(jobs: Sequence[JobSpec]) -> tuple[Scenario, ...]:
    """Make a turn of every job that has an end and differs from the one before in knobs only, else another run."""
    runs: list[list[JobSpec]] = []
    for job in jobs:
        if runs and _is_a_turn(runs[-1][-1], job) and _are_aligned_alike([*runs[-1], job]):
            runs[-1].append(job)
        else:
            runs.append([job])
    return tuple(map(_scenario, runs))


def _is_a_turn(before: JobSpec, after: JobSpec) -> bool:
    ends = not before.ends_by_bytes and before.runtime_s is not None and after.runtime_s is not None
    return ends and not _differing(after, before, "align_bytes", "knobs", "name", "runtime_s", "stripe_unit_bytes")


def _are_aligned_alike(jobs: Sequence[JobSpec]) -> bool:
    """Whether one alignment says where the random blocks of all of them begin, or all have that of their own."""
    return all(job.align_bytes is None for job in jobs) or len(set(map(_alignment, jobs))) == 1


def _alignment(job: JobSpec) -> int | None:
    """Say what offsets are multiples of, also where that is the one block size; None for none or several."""
    knobs = job.knobs
    if job.access is Access.SEQUENTIAL or isinstance(knobs.distribution, Permutation):
        return None
    return job.align_bytes or (knobs.block_sizes[0] if len(knobs.block_sizes) == 1 else None)


def _scenario(jobs: Sequence[JobSpec]) -> Scenario:
    lengths_s = [job.runtime_s or 0.0 for job in jobs]
    begins_s = list(itertools.accumulate(lengths_s))
    turns = (
        turn_between(at_s, before.knobs, after.knobs)
        for at_s, (before, after) in zip(begins_s, itertools.pairwise(jobs), strict=False)
    )
    job = replace(
        jobs[0],
        runtime_s=begins_s[-1] or None,
        align_bytes=next((job.align_bytes for job in jobs if job.align_bytes is not None), None),
        stripe_unit_bytes=math.lcm(*(job.stripe_unit_bytes for job in jobs)),
    )
    return Scenario(job, tuple(turns))


def _words(field: str) -> str:
    return {"access": "order (random or sequential)", "backend": "ioengine", "blocks": "bs"}.get(
        field, field.removesuffix("_s").removesuffix("_bytes").replace("_", " ")
    )


def _warnings(path: str, jobs: Sequence[SectionJob]) -> tuple[str, ...]:
    """Say each thing once, with the sections it is about unless it is all of them."""
    about: dict[str, list[str]] = {}
    for job in jobs:
        for note in job.notes:
            about.setdefault(note, []).append(job.section.name)
    return tuple(
        f"{path}: " + (note if len(names) == len(jobs) else f"[{', '.join(names[:4])}]: {note}")
        for note, names in about.items()
    )
