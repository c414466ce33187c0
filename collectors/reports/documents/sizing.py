"""How many disks a need takes: the answer, and what each measured number of disks gives within the limits."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collectors.reports.documents.content import (
    Block,
    Bullets,
    Charts,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    DrawnCurve,
    Form,
    Paragraph,
    Section,
)
from collectors.reports.documents.json_values import figure
from engine.sizing.need import Need
from engine.sizing.size import Sizing, WidthCapacity

_LEAST_DRAWN = 2
"""Numbers of disks that make a curve."""
_CLOSED = (
    "Measured in a closed loop, which issues an I/O when another completes; where I/Os arrive whatever completes they "
    "wait longer: the highest rate within a limit is searched with --slo and no --vary"
)


def sizing_section(need: Need, sizings: Sequence[Sizing]) -> Section:
    """Make the section of a need; empty where nothing was measured."""
    if not sizings:
        return Section("", ())
    caveat = (Bullets((_CLOSED,)),) if need.limits and any(each.size is not None for each in sizings) else ()
    answers = tuple(Paragraph(_words(each), important=True) for each in sizings)
    return Section(f"Sizing: {need.text}", (*answers, *caveat), tuple(_tables(need, sizings)))


def _words(sizing: Sizing) -> str:
    text = f"{sizing.words[0].upper()}{sizing.words[1:]}."
    return f"{sizing.load}: {text}" if sizing.load else text


def _tables(need: Need, sizings: Sequence[Sizing]) -> Iterator[Block]:
    metrics = [limit.metric for limit in need.limits] or ["mean"]
    head = (
        ("disks", ""), ("qd up to", ""), ("IOPS", "1/s"), ("+-", "%"), ("of each disk", "1/s"),
        *((metric, "ms") for metric in metrics), ("", ""),
    )  # fmt: skip
    for sizing in sizings:
        of = f" with {sizing.load}" if sizing.load else ""
        limits = f" within {need.limits_text}" if need.limits else ""
        rows = tuple(_row(width, metrics) for width in sizing.widths)
        yield DocumentTable(f"Highest throughput{limits} by number of disks{of}", head, rows)
        yield from _charts(sizing)


def _charts(sizing: Sizing) -> Iterator[Block]:
    """Draw what the numbers of disks give beside the need, and the disks that do it."""
    known = [(width.disks, width.iops, width.uncertainty) for width in sizing.widths if width.iops is not None]
    if len(known) < _LEAST_DRAWN:
        return
    disks, iops, shares = zip(*known, strict=True)
    low, high = (tuple(y * (1 + sign * u) for y, u in zip(iops, shares, strict=True)) for sign in (-1, 1))
    curves = [DrawnCurve("measured", tuple(map(float, disks)), iops, Form.POINTS, low, high)]
    last = float(disks[-1])
    if sizing.size is not None:
        last = max(last, float(sizing.size.disks))
        found = (float(sizing.size.disks),), (sizing.size.most_iops,)
        curves.append(DrawnCurve(f"{sizing.verdict}: {sizing.size.disks} disks", *found, Form.OPEN_POINTS))
    curves.append(DrawnCurve("need", (float(disks[0]), last), (sizing.iops, sizing.iops)))
    title = "Highest throughput within the limits over the number of disks"
    yield Charts((DrawnChart(title, "1/s", tuple(curves), DrawnAxis.LOG, "disks"),), sizing.load)


def _row(width: WidthCapacity, metrics: Sequence[str]) -> tuple[str, ...]:
    latencies = (figure(width.latencies_ns[each] / 1e6, 3) if each in width.latencies_ns else "-" for each in metrics)
    if width.iops is None:
        why = width.problem or "no depth keeps the limits; latency at the lowest"
        return (str(width.disks), "-", "-", "-", "-", *latencies, why)
    return (
        str(width.disks), str(width.depth), figure(width.iops), figure(100 * width.uncertainty, 1),
        figure(width.iops / width.disks), *latencies, "",
    )  # fmt: skip
