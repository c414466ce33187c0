"""Jobs as fio job files: what both tools mean alike is written, everything else is refused by name."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields

from engine.config import DEFAULT_SCRATCH_BYTES, scratch_folder
from engine.errors import UsageError
from engine.job.formats.fio_options import Options, fio_options
from engine.job.knobs import KNOBS
from engine.job.scenario import Scenario
from engine.job.sizes import format_size, round_up
from engine.job.spec import Access, Arrival, Backend, JobSpec, Knobs, TargetSpec
from engine.replacing import replace
from engine.text import safe_text

_WRITTEN = frozenset(
    """
    targets knobs access backend streams stripe_unit_bytes copies total_queue_depth size_bytes runtime_s seed arrival
    poll name separate stream_step_bytes jump_bytes offset_bytes align_bytes io_bytes loops ramp_s think_s think_every
    rate_min response_limits_s response_edges_s
    """.split()  # noqa: SIM905 (one name a line would fill a page)
) | {knob.id for knob in KNOBS.values() if knob.fio is not None}
"""Fields of JobSpec and Knobs that are written, refused by their own words, or no part of the load.

What is reported of response times is no part of it, and `save_job` says that it is left out.
"""


def dump_fio(scenarios: Sequence[Scenario]) -> str:
    """Write jobs one after another, with a stonewall before every turn of their knobs as well, as a fio job file.

    Every target is a section of its own, for fio keeps a depth per job. Which engine auto takes, worker threads and
    polling are not the load and are not written.

    Raises:
        UsageError: fio has no way to say it; names what.
    """
    sections: list[tuple[str, Options]] = []
    for scenario in scenarios:
        for number, (knobs, length_s) in enumerate(_phases(scenario), 1):
            job = replace(scenario.job, knobs=knobs, runtime_s=length_s)
            phase = _sections(job, f"-{number}" if scenario.turns else "")
            if sections:
                phase[0][1]["stonewall"] = None
            sections += phase
    shared = _shared([options for _, options in sections])
    parts = [("global", shared), *((name, _without(options, shared)) for name, options in sections)]
    return "\n".join(f"[{name}]\n{_lines(options)}" for name, options in parts if options or name != "global")


def _phases(scenario: Scenario) -> list[tuple[Knobs, float | None]]:
    begins = [(0.0, scenario.job.knobs), *scenario.states()]
    ends = [at_s for at_s, _ in begins[1:]] + [scenario.job.runtime_s]
    if scenario.turns and scenario.job.runtime_s is None:
        raise UsageError(
            "--save-job: turns of knobs are jobs behind a stonewall in fio, each with an end: give --runtime"
        )
    spans = (
        (knobs, None if end_s is None else end_s - at_s) for (at_s, knobs), end_s in zip(begins, ends, strict=True)
    )
    return [(knobs, length_s) for knobs, length_s in spans if length_s != 0]


def _sections(job: JobSpec, suffix: str) -> list[tuple[str, Options]]:
    targets = job.targets[: job.knobs.stripe_width]
    _refuse(job, len(targets))
    name = _said("name", job.name.replace("]", ")")) + suffix
    if job.total_queue_depth and len(targets) > 1:
        return [(name, fio_options(job, 1) | _on(targets, job))]
    options = fio_options(job, len(targets))
    if len(targets) == 1:
        return [(name, options | _on(targets, job))]
    return [(f"{name}-{number}", options | _on((target,), job)) for number, target in enumerate(targets, 1)]


def _refuse(job: JobSpec, width: int) -> None:
    largest = max(job.knobs.block_sizes)
    missing = {
        "--lun (several paths to one LUN)": any(target.paths for target in job.targets),
        "--mirror": job.copies > 1,
        "--streams": job.streams > 1,
        "--arrival constant": job.arrival is Arrival.CONSTANT,
        f"--bs {format_size(largest)} cut over stripe units of {format_size(job.stripe_unit_bytes)}": (
            width > 1 and largest > job.stripe_unit_bytes
        ),
        "--rw rw without --separate (one sequence that reads and writes share)": (
            job.access is Access.SEQUENTIAL and 0 < job.knobs.read_pct < 100 and not job.separate
        ),
        "--engine threads with several I/Os in sequence": (
            job.backend is Backend.THREADS and job.access is Access.SEQUENTIAL and job.knobs.queue_depth > 1
        ),
        "--qd-total over scratch files": job.total_queue_depth and width > 1 and job.targets[0].path is None,
    }
    missing |= {f"--{name.replace('_', '-')}": True for name in _set_but_not_written(job)}
    for what, is_asked in missing.items():
        if is_asked:
            raise UsageError(f"--save-job: fio has no {what}: save it as .toml")


def _set_but_not_written(job: JobSpec) -> list[str]:
    """Name fields that this module does not write, so that a new one is refused until it does."""
    pairs: list[tuple[JobSpec | Knobs, JobSpec | Knobs]] = [(job, JobSpec()), (job.knobs, Knobs())]
    return [
        field.name
        for one, default in pairs
        for field in fields(one)
        if field.name not in _WRITTEN and getattr(one, field.name) != getattr(default, field.name)
    ]


def _on(targets: Sequence[TargetSpec], job: JobSpec) -> Options:
    size = job.size_bytes
    if any(target.path is None for target in targets):
        size = size or round_up(DEFAULT_SCRATCH_BYTES, max(job.knobs.block_sizes))
        if job.backend is Backend.THREADS and job.knobs.queue_depth > 1:
            raise UsageError("--save-job: threads of fio do not share a scratch file: name one with --target")
        return {"directory": _name(str(scratch_folder())), "size": format_size(size)}
    names: Options = {"filename": ":".join(_name(target.path or "") for target in targets)}
    return names if size is None else names | {"size": format_size(size * len(targets))}


def _name(path: str) -> str:
    return _said("target", path).replace(":", "\\:")


def _said(what: str, text: str) -> str:
    """Refuse text that a fio job file would read as something else."""
    if text != text.strip() or not text.isprintable() or any(mark in text for mark in ("#", ";", "${", "\\")):
        raise UsageError(f"--save-job: a fio job file cannot hold the {what} {safe_text(text)}: save it as .toml")
    return text


def _shared(sections: Sequence[Options]) -> Options:
    """Options that all of several sections have alike."""
    first, *others = sections
    missing = object()
    return {
        name: value
        for name, value in first.items()
        if others and all(other.get(name, missing) == value for other in others)
    }


def _without(options: Options, shared: Options) -> Options:
    return {name: value for name, value in options.items() if name not in shared}


def _lines(options: Options) -> str:
    return "".join(f"{name}\n" if value is None else f"{name}={value}\n" for name, value in options.items())
