"""How the figures of intervals make one figure of a longer time: weights, peaks, and percentiles from histograms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from collectors.field import Field, Unit
from collectors.latency.subjects import LOAD, TRACE, LatencySubject, Part, disk_subject, port_subject
from collectors.model import Frame
from collectors.subject import Subject

_PEAK_ID = re.compile(r"(.+_)?max_ms|in_flight_peak")
_PERCENTILE_ID = re.compile(r"(.+_)?p\d+_ms")
_LOAD_SERVICE = "load_service"

Distribution = tuple[str, Part]
"""Source of histograms and the part of the time in them."""

_OF_LOAD: Mapping[str, tuple[float, Distribution]] = {
    "p50_ms": (50.0, (LOAD, Part.TOTAL)),
    "p99_ms": (99.0, (LOAD, Part.TOTAL)),
    "p999_ms": (99.9, (LOAD, Part.TOTAL)),
    "service_p99_ms": (99.0, (_LOAD_SERVICE, Part.TOTAL)),
}
_OF_DISKS: Mapping[str, tuple[float, Distribution]] = {
    "p50_ms": (50.0, (TRACE, Part.SERVICE)),
    "p99_ms": (99.0, (TRACE, Part.SERVICE)),
    "p999_ms": (99.9, (TRACE, Part.SERVICE)),
    "queue_p99_ms": (99.0, (TRACE, Part.QUEUE)),
}
_PERCENTILES = {"load": _OF_LOAD, "load_total": _OF_LOAD} | dict.fromkeys(("disks", "paths", "hbas"), _OF_DISKS)

DISTRIBUTIONS: Mapping[str, tuple[tuple[str, Distribution, str], ...]] = {
    "load": (("latency", (LOAD, Part.TOTAL), "max_ms"),),
    "load_total": (("latency", (LOAD, Part.TOTAL), "max_ms"),),
} | dict.fromkeys(
    ("disks", "paths", "hbas"),
    (
        ("service time", (TRACE, Part.SERVICE), "service_max_ms"),
        ("queue time", (TRACE, Part.QUEUE), "queue_max_ms"),
    ),
)
"""By frame table: title, histograms, and the field with the exact largest value, of what is shown as a distribution."""


def percentile_of(field: Field) -> tuple[float, Distribution] | None:
    """Percentile of a field and the histograms it comes from; None if it is not a percentile."""
    return _PERCENTILES.get(field.table, {}).get(field.id)


def is_peak(field: Field) -> bool:
    """Whether it is the largest value of an interval: comparable only between intervals of equal length."""
    return _PEAK_ID.fullmatch(field.id) is not None


def weight_of(field: Field, known: frozenset[str]) -> str:
    """Field that counts the I/Os of which this one is a mean; empty where an interval counts by its length."""
    if is_peak(field) or not (field.unit is Unit.MILLISECONDS or field.id.endswith("_per_io")):
        return ""
    kind = field.id.partition("_")[0]
    counted = {"read": "reads_per_s", "write": "writes_per_s"}.get(kind, "iops")
    return counted if counted in known else ""


def latency_subject(table: str, key: str, frame: Frame) -> LatencySubject | None:
    """Rows of histograms that belong to a row of a frame table; None if there are none."""
    if table == "disks":
        return disk_subject(key, frame)
    if table == "hbas":
        return port_subject(key, frame.topology)
    source = TRACE if table == "paths" else LOAD
    keys = frozenset[str]() if table == "load_total" else frozenset({key})
    return LatencySubject(key, source, keys)


def compared_fields(subject: Subject) -> tuple[Field, ...]:
    """Fields of a subject that are figures of an interval, but percentiles whose histograms are not collected.

    A mean of the percentiles of intervals is not the percentile of all of their I/Os.
    """
    return tuple(field for field in subject.fields if not field.since_start and _is_mergeable(field))


def _is_mergeable(field: Field) -> bool:
    return percentile_of(field) is not None or not _PERCENTILE_ID.fullmatch(field.id)


def collected_fields(subject: Subject, wanted: Sequence[Field]) -> tuple[Field, ...]:
    """Fields to collect for some wanted ones: also the rate that shows the warm-up, and the peaks of distributions."""
    peaks = {peak for _, _, peak in DISTRIBUTIONS.get(subject.table, ())}
    rates = [field.id for field in subject.fields if field.unit is Unit.PER_SECOND][:1]
    kept = {field.id for field in wanted} | peaks | set(rates)
    return tuple(field for field in compared_fields(subject) if field.id in kept)


def main_fields(subject: Subject) -> tuple[Field, ...]:
    """Fields that its reports and its grid show; all of them where it has neither."""
    report = subject.report
    shown = (*report.columns, *report.distribution_columns) if report is not None else subject.columns
    fields = compared_fields(subject)
    return tuple(field for field in fields if field.id in shown) if shown else fields
