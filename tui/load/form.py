"""The job as text fields: formatting and parsing of the form."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

from msgspec import Struct

from engine.errors import UsageError
from engine.job.describe import uses_policy
from engine.job.knobs import KNOBS, FormLine, Knob
from engine.job.knobs.kinds import OneOf
from engine.job.sizes import format_duration, format_number, format_size, parse_duration, parse_size
from engine.job.spec import Access, Arrival, Backend, JobSpec, TargetSpec
from engine.job.target_text import SCRATCH, format_target, parse_target
from engine.job.validate import validate
from engine.replacing import replace
from engine.text import whole_number

KEEP, DESTROY = "refuse", "destroy"
EACH, TOTAL = "each", "total"
_Parsed = TypeVar("_Parsed")


class FormField(Struct, frozen=True):
    """One field of the form; with `choices` it is selected, else typed."""

    id: str
    title: str
    hint: str
    choices: tuple[str, ...] = ()


_SETTINGS = (
    FormField(
        "targets",
        "Targets",
        "Enter: list of devices; scratch: own file; lun:sda,sdb: paths; Esc: knobs",
    ),
    FormField("access", "Access", "order of the offsets", tuple(Access)),
    FormField("backend", "Engine", "auto: the best available", tuple(Backend)),
    FormField("size", "Size", "bytes of each target, e.g. 1g; empty: all"),
    FormField("runtime", "Runtime", "e.g. 30s, 5m; empty: until stopped"),
    FormField("stripe_unit", "Stripe unit", "bytes on one target before the next: 64k"),
    FormField("mirror", "Mirror", "copies on neighbouring targets; 1: none"),
    FormField("depth", "Depth is of", "each target, or all of them together", (EACH, TOTAL)),
    FormField("streams", "Streams", "sequential streams on each target"),
    FormField("seed", "Seed", "the same seed gives the same offsets"),
    FormField("arrival", "Arrival", "closed: as I/Os complete; others: open loop", tuple(Arrival)),
    FormField(
        "destroy",
        "Existing data",
        "of targets written to (--destroy-data)",
        (KEEP, DESTROY),
    ),
)


def _knob_field(knob: Knob, line: FormLine) -> FormField:
    choices = tuple(knob.kind.words) if isinstance(knob.kind, OneOf) else ()
    return FormField(knob.id, knob.name.capitalize(), line.hint, choices)


def _form() -> Iterator[FormField]:
    for setting in _SETTINGS:
        yield setting
        yield from (_knob_field(knob, line) for knob, line in _KNOBS if line.after == setting.id)


_KNOBS = tuple((knob, knob.form) for knob in KNOBS.values() if knob.form is not None)
FORM = tuple(_form())


def form_values(job: JobSpec, *, destroy_data: bool) -> dict[str, str]:
    """Format a job as form fields."""
    return {
        "targets": shlex.join(map(format_target, job.targets)),
        "access": job.access,
        "backend": job.backend,
        "size": "" if job.size_bytes is None else format_size(job.size_bytes),
        "runtime": "" if job.runtime_s is None else format_duration(job.runtime_s),
        "stripe_unit": format_size(job.stripe_unit_bytes),
        "mirror": str(job.copies),
        "depth": TOTAL if job.total_queue_depth else EACH,
        "streams": str(job.streams),
        "seed": str(job.seed),
        "arrival": job.arrival,
        "destroy": DESTROY if destroy_data else KEEP,
        **{knob.id: _knob_text(knob, job) for knob, _ in _KNOBS},
    }


def _knob_text(knob: Knob, job: JobSpec) -> str:
    value = knob.of(job.knobs)
    if value is None:
        return knob.unset or ""
    return format_number(value) if isinstance(value, float) else str(knob.kind.plain(value))


def has_policy(values: Mapping[str, str], job: JobSpec) -> bool:
    """Whether what was typed has paths or copies among which a policy chooses; if it cannot be read, the job."""
    try:
        return uses_policy(replace(job, targets=_targets(values["targets"]), copies=_whole("mirror", values["mirror"])))
    except UsageError:
        return uses_policy(job)


def job_from(values: Mapping[str, str], job: JobSpec) -> JobSpec:
    """Make the job of the form and check it as that of the command line; the stripe width is limited to the targets.

    Raises:
        UsageError: a field is invalid, or fields contradict each other; the text names the option.
    """
    targets = _targets(values["targets"])
    width = min(job.knobs.stripe_width, len(targets))
    copies = _whole("mirror", values["mirror"])
    if len(targets) != len(job.targets):
        width = len(targets) - len(targets) % max(copies, 1) or len(targets)
    edited = replace(
        job,
        targets=targets,
        access=Access(values["access"]),
        backend=Backend(values["backend"]),
        size_bytes=_read("size", parse_size, values["size"]) if values["size"].strip() else None,
        runtime_s=_read("runtime", parse_duration, values["runtime"]) if values["runtime"].strip() else None,
        stripe_unit_bytes=_read("stripe-unit", parse_size, values["stripe_unit"]),
        copies=copies,
        total_queue_depth=values["depth"] == TOTAL,
        streams=_whole("streams", values["streams"]),
        seed=_whole("seed", values["seed"]),
        arrival=Arrival(values["arrival"]),
        knobs=replace(job.knobs, stripe_width=width, **{knob.id: _knob(knob, values[knob.id]) for knob, _ in _KNOBS}),
    )
    validate(edited)
    return edited


def _targets(text: str) -> tuple[TargetSpec, ...]:
    try:
        words = shlex.split(text)
    except ValueError as error:
        raise UsageError(f"targets: {error}") from None
    if not words:
        raise UsageError(f"targets: name a device or a file, or write {SCRATCH}")
    return tuple(map(parse_target, words))


def _knob(knob: Knob, text: str) -> Any:  # noqa: ANN401 (each knob has a type of its own)
    if knob.unset is not None and text.strip() in ("", knob.unset):
        return None
    return _read(knob.option, knob.kind.parse, text)


def _read(option: str, parse: Callable[[str], _Parsed], text: str) -> _Parsed:
    """Read a field, with the name of its option in the error, as checks of the whole job have it."""
    try:
        return parse(text)
    except UsageError as error:
        raise UsageError(f"--{option}: {error}") from None


def _whole(option: str, text: str) -> int:
    number = whole_number(text.strip())
    if number is None:
        raise UsageError(f"--{option}: {text!r} is not a whole number")
    return number
