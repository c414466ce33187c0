"""How the throughput of a sweep over hosts scales with their number."""

from __future__ import annotations

import math

from collectors.reports.documents.content import DocumentTable, Paragraph, Section
from collectors.reports.documents.json_values import figure
from engine.sweep.hosts_axis import HostScaling, ScalingStep

_HEAD = (
    ("hosts", ""),
    ("IOPS", "1/s"),
    ("per host", "1/s"),
    ("efficiency", "%"),
    ("of growth", "%"),
    ("p99", "ms"),
)


def scaling_section(scaling: HostScaling) -> Section:
    """Make the table of the numbers of hosts, and the answer."""
    title = f"Scaling over hosts: {scaling.name}" if scaling.name else "Scaling over hosts"
    return Section(
        title, (Paragraph(scaling.words, important=True), DocumentTable("", _HEAD, tuple(map(_row, scaling.steps))))
    )


def _row(step: ScalingStep) -> tuple[str, ...]:
    iops = step.summary.iops
    shares = (figure(math.nan if share is None else 100 * share) for share in (step.efficiency, step.gain))
    p99 = figure(math.nan if step.p99_ms is None else step.p99_ms, 3)
    return (str(step.hosts), figure(iops), figure(iops / step.hosts), *shares, p99)
