"""What is compared of a table: fields, and the histograms of a row."""

from __future__ import annotations

from collections.abc import Sequence

from collectors.field import Distribution, Field, Unit
from collectors.latency.subjects import (
    LOAD,
    TRACE,
    LatencySubject,
    disk_subject,
    host_subject,
    port_subject,
    target_subject,
)
from collectors.model import Frame
from collectors.registry import fields_of
from collectors.subject import Subject


def distributions(table: str) -> tuple[tuple[Distribution, Field], ...]:
    """Return the histograms of a table that are shown as a distribution, and the field with their largest value."""
    return tuple((field.distribution, field) for field in fields_of(table) if field.peak and field.distribution)


def latency_subject(table: str, key: str, frame: Frame) -> LatencySubject | None:
    """Rows of histograms that belong to a row of a frame table; None if there are none."""
    if table == "disks":
        return disk_subject(key, frame)
    if table == "hbas":
        return port_subject(key, frame.topology)
    if table == "target_ports":
        return target_subject(key, frame.topology)
    if table == "whole_host":
        return host_subject(frame.topology)
    source = TRACE if table == "paths" else LOAD
    keys = frozenset[str]() if table == "load_total" else frozenset({key})
    return LatencySubject(key, source, keys)


def compared_fields(subject: Subject) -> tuple[Field, ...]:
    """Fields of a subject that are figures of an interval, but percentiles whose histograms are not collected.

    A mean of the percentiles of intervals is not the percentile of all of their I/Os.
    """
    return tuple(
        field
        for field in subject.fields
        if not field.since_start and (field.percentile is not None or not field.percent)
    )


def collected_fields(subject: Subject, wanted: Sequence[Field]) -> tuple[Field, ...]:
    """Fields to collect for some wanted ones: also the rate that shows the warm-up, and the peaks of distributions."""
    peaks = {peak.id for _, peak in distributions(subject.table)}
    rates = [field.id for field in subject.fields if field.unit is Unit.PER_SECOND][:1]
    kept = {field.id for field in wanted} | peaks | set(rates)
    return tuple(field for field in compared_fields(subject) if field.id in kept)


def main_fields(subject: Subject) -> tuple[Field, ...]:
    """Fields that its reports and its grid show; all of them where it has neither."""
    report = subject.report
    shown = (*report.columns, *report.distribution_columns) if report is not None else subject.columns
    fields = compared_fields(subject)
    return tuple(field for field in fields if field.id in shown) if shown else fields
