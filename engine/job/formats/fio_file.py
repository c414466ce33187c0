"""fio job files: what sections that run together become, and what those behind a stonewall do.

Sections that differ in their targets only are one load on all of them; others are loads of their own that begin
together. Those behind a stonewall come after them, with targets opened anew and a time of their own, as in fio.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError
from engine.job.formats.fio_job import SectionJob, section_job
from engine.job.formats.fio_sections import FioSection, Given, Option, fio_lines, sections_of
from engine.job.formats.fio_values import Units, switch, units_of
from engine.job.formats.read_job import ReadJob
from engine.job.group import MOST_LOADS, LoadGroup
from engine.job.scenario import Scenario
from engine.job.spec import Backend, JobSpec, Knobs
from engine.replacing import replace
from engine.text import safe_text

_MOST_NAMES = 4
_CHOOSE = "run one of them with --section NAME"


def read_fio(path: str | Path, chosen: Sequence[str] = ()) -> ReadJob:
    """Read a fio job file, only the sections `chosen` by name, if any are.

    Raises:
        LunscopeError: it, or a file it includes, cannot be read.
        UsageError: it is invalid, or needs what is not supported; names file, line and option.
    """
    driven = without_read_back(_chosen(sections_of(fio_lines(path), str(path)), chosen, str(path)))
    many = len(driven.sections) > 1
    jobs = [
        section_job(clone, _words(path, section.name if many else None))
        for section in driven.sections
        for clone in apart(section)
    ]
    phases, never = _until_all_exit(_phases(jobs, all_at_once=bool(chosen)))
    folders = {job.folder for job in jobs if any(target.path is None for target in job.job.targets)} or {None}
    if len(folders) > 1:
        raise jobs[-1].section.location.error(jobs[-1].section.name, f"another directory than the others: {_CHOOSE}")
    search = next((job.search for job in jobs if job.search is not None), None)
    _refuse_late_delays(phases)
    warnings = (*_warnings(str(path), jobs), *(f"{path}: {note}" for note in driven.notes), *never)
    return ReadJob(tuple(map(_together, phases)), warnings, folders.pop(), search=search)


def _words(path: str | Path, section: str | None) -> str:
    chosen = [] if section is None else ["--section", section]
    return safe_text(shlex.join([str(path), *chosen]))


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


def _until_all_exit(phases: list[list[SectionJob]]) -> tuple[list[list[SectionJob]], list[str]]:
    """Leave out what never begins, as a job before it ends all jobs of the file; says so."""
    if not any(each.ties.exits_all for phase in phases for each in phase):
        return phases, []
    for number, phase in enumerate(phases[:-1], 1):
        ending = [each.section for each in phase if each.ties.exits_file]
        if ending:
            never = _names_of([each.section.name for later in phases[number:] for each in later])
            return phases[:number], [
                f"{ending[0].location}: [{ending[0].name}] ends all jobs, so these never run: {never}"
            ]
    return phases, []


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


def _together(phase: Sequence[SectionJob]) -> Scenario | LoadGroup:
    """Make one job of sections that run at the same time and differ in nothing but targets, else a load of each.

    Raises:
        UsageError: one of several loads begins later than the others, or there are too many.
    """
    first = phase[0].job
    if len(phase) == 1:
        return Scenario(first)
    names = [path for section in phase for path in section.names]
    if len(set(names)) < len(names) or any(_is_tied(each) or _is_unlike(each.job, first) for each in phase):
        return _group(phase)
    knobs, many = first.knobs, len(phase)
    targets = tuple(target for each in phase for target in each.job.targets)
    knobs = replace(
        knobs,
        stripe_width=len(targets),
        rate_iops=None if knobs.rate_iops is None else knobs.rate_iops * many,
        threads=1 if first.backend is Backend.THREADS else knobs.threads * many,
    )
    return Scenario(replace(first, targets=targets, knobs=knobs, name=_names_of([each.section.name for each in phase])))


def _names_of(names: Sequence[str]) -> str:
    shown = names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} more"]
    return ", ".join(shown)


def _is_unlike(job: JobSpec, first: JobSpec) -> bool:
    """Whether a job cannot be part of one load with the first: fio judges rate_min of each by itself."""
    knobs = replace(job.knobs, stripe_width=first.knobs.stripe_width)
    one_by_one = first.total_queue_depth or first.rate_min is not None
    return one_by_one or bool(_differing(knobs, first.knobs) or _differing(job, first, "targets", "name", "knobs"))


def _group(phase: Sequence[SectionJob]) -> LoadGroup:
    if len(phase) > MOST_LOADS:
        section = phase[MOST_LOADS].section
        raise section.location.error(
            section.name, f"{len(phase)} jobs with unlike settings at once: at most {MOST_LOADS}: {_CHOOSE}"
        )
    exits_all, part, loads = any(each.ties.exits_all for each in phase), 0, []
    for number, each in enumerate(phase):
        part += number > 0 and each.ties.begins_part
        loads.append(replace(each.ties.load, ends_others=exits_all, part=part))
    return LoadGroup(tuple(loads))


def _refuse_late_delays(phases: Sequence[Sequence[SectionJob]]) -> None:
    for each in (each for phase in phases[1:] if len(phase) > 1 for each in phase):
        if each.ties.load.begins_after_s:
            raise each.section.location.error(
                each.section.name, "startdelay: behind a stonewall fio counts it from the first job: take it out"
            )


def _is_tied(job: SectionJob) -> bool:
    """Whether it cannot be part of one load with others."""
    load, ties = job.ties.load, job.ties
    return bool(load.flow or load.begins_after_s or load.ends_others_on_error or ties.exits_all)


def _differing(one: JobSpec | Knobs, other: JobSpec | Knobs, *but: str) -> list[str]:
    names = (field.name for field in fields(one) if field.name not in but)
    return [name for name in names if getattr(one, name) != getattr(other, name)]


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


_OF_THE_FIRST = ("stonewall", "wait_for_previous", "new_group")
"""What only the first of them says of all."""


def apart(section: FioSection) -> tuple[FioSection, ...]:
    """Make a section of each clone that begins elsewhere than the others; the section alone if one load does it.

    Clones in sequence through parts of one length are one load with streams (fio_extent.py). Those with random order,
    and those that go on to the end of the file from wherever they begin, are a load each.

    Raises:
        UsageError: there are too many of them, or a number cannot be read.
    """
    given = Given(section)
    units = units_of(given)
    step, clones = given.take("offset_increment"), given.take("numjobs")
    begin, file = given.take("offset", "fileoffset"), given.take("filename")
    if (
        step is None
        or clones is None
        or file is None
        or any(each is not None and "%" in each.text for each in (step, begin))
    ):
        return (section,)
    step_bytes, count = units.integer(step), units.integer(clones)
    if not step_bytes or count < 2 or not (_is_random(given) or given.take("size") is None):
        return (section,)
    if count > MOST_LOADS:
        raise clones.error(f"{count} clones that begin apart, which are a load each: at most {MOST_LOADS}")
    return tuple(_clone(section, number, _begin(begin, units) + number * step_bytes, step) for number in range(count))


def _is_random(given: Given) -> bool:
    order = given.take("rw", "readwrite")
    return order is not None and order.text.startswith("rand")


def _begin(option: Option | None, units: Units) -> int:
    return 0 if option is None else units.integer(option)


def _clone(section: FioSection, number: int, begin: int, step: Option) -> FioSection:
    left_out = ("offset_increment", *(_OF_THE_FIRST if number else ()))
    kept = [option for option in section.options if option.name not in left_out]
    own = [Option("numjobs", "1", step.location), Option("offset", f"{begin}b", step.location)]
    if not any(option.name == "randseed" for option in kept):
        own.append(Option("randseed", str(JobSpec().seed + number), step.location))
    return FioSection(section.name, section.location, (*kept, *own))


_SAME = ("filename", "directory", "size", "offset", "fileoffset", "verify")
_OFF = ("0", "none", "null")
_READS = ("read", "randread")
_WRITES = ("write", "randwrite")


class ReadBack(Struct, frozen=True):
    """The sections that are driven, and what to say of those that are not."""

    sections: tuple[FioSection, ...]
    notes: tuple[str, ...] = ()


def without_read_back(sections: Sequence[FioSection]) -> ReadBack:
    """Leave out each section that only checks, behind a stonewall, what the one before wrote without checking it.

    The marks of fio's checksums are not those of --verify, so that a load cannot check what another wrote. A load with
    --verify reads everything back itself when its last write is done, which is what such a section is for.
    """
    kept: list[FioSection] = []
    notes: list[str] = []
    for section in sections:
        if kept and _reads_back(kept[-1], section):
            writer = kept[-1]
            checks = Option("do_verify", "1", writer.location)
            kept[-1] = FioSection(writer.name, writer.location, (*writer.options, checks))
            notes.append(
                f"[{section.name}] reads back what [{writer.name}] wrote: that is done by the --verify of "
                f"[{writer.name}] after its last write, with its own marks and order, and is not measured"
            )
        else:
            kept.append(section)
    return ReadBack(tuple(kept), tuple(notes))


def _reads_back(writer: FioSection, reader: FioSection) -> bool:
    wrote, reads = Given(writer), Given(reader)
    if not switch(reads.take("stonewall", "wait_for_previous")) or not switch(reads.take("do_verify"), default=True):
        return False
    verify, checked = wrote.seen("verify"), wrote.take("do_verify")
    leaves_marks = verify is not None and verify.value not in _OFF and checked is not None and not switch(checked)
    orders = [each.take("rw", "readwrite") for each in (wrote, reads)]
    words = ["read" if order is None else order.text for order in orders]
    return (
        leaves_marks
        and words[0] in _WRITES
        and words[1] in _READS
        and wrote.seen("filename") is not None
        and all(_text(wrote, name) == _text(reads, name) for name in _SAME)
    )


def _text(given: Given, name: str) -> str | None:
    option = given.seen(name)
    return None if option is None else option.text
