"""The document of a sweep: per curve the answer in words, best values, charts, the points, and what devices did."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from collectors.reports.documents.content import (
    NONE,
    Band,
    Block,
    Bullets,
    Charts,
    Document,
    DocumentTable,
    DrawnAxis,
    DrawnChart,
    DrawnCurve,
    Form,
    Mark,
    Paragraph,
    Section,
)
from collectors.reports.documents.findings import finding_section
from collectors.reports.documents.host import host_section_of
from collectors.reports.documents.json_values import figure
from collectors.reports.documents.open_loop import OpenPoint, open_answers, open_curves, open_figures
from collectors.reports.documents.run_devices import point_device_blocks
from collectors.reports.documents.sizing import sizing_section
from collectors.reports.documents.sweep_file import Swept, SweptCurve
from engine.errors import UsageError
from engine.sweep.knee import Answer
from engine.sweep.optimum import Optimum
from engine.sweep.target_share import TargetShare, hottest_target
from engine.sweep.text import PointSummary, evidence_lines, shape_words, summaries
from engine.sweep.trial import Trial, best_trial
from engine.version import version

_NAMES = ("mean", "p50", "p99", "p99.9")
_WIDE = 20
"""Range of latencies from which an axis is logarithmic."""
MOST_CURVES = 50
"""Curves with charts of their own."""
_MEDIANS = "n: measurements; figures are their medians; I/Os: of all, which the percentiles rest on"


def sweep_report(path: Path, swept: Swept) -> Document:
    """Describe a sweep.

    Raises:
        UsageError: it holds no measurement.
    """
    count = sum(len(curve.trials) for curve in swept.curves)
    count += sum(len(point.trials) for curve in swept.open_loop for point in curve.points)
    if not count:
        raise UsageError(f"{path}: holds no measurement of a sweep: give another file")
    number = len(swept.curves) or len(swept.open_loop)
    curves = "1 curve" if number == 1 else f"{number} curves"
    on = f" on {', '.join(swept.targets[:8])}" if swept.targets else ""
    return Document(
        "Sweep report",
        f"{path.name}: {count} measurements, {curves}{on}; report made by lunscope {version()}",
        (
            *sweep_sections(swept),
            finding_section(swept.findings),
            host_section_of(swept.host),
        ),
    )


def sweep_sections(swept: Swept) -> list[Section]:
    """Make a section per curve, and one of notes."""
    return [
        *_curves(swept),
        *_open_curves(swept),
        *(() if swept.need is None else (sizing_section(swept.need, swept.sizings),)),
        Section("Notes and caveats of the sweep", (Bullets(notes) if (notes := tuple(_notes(swept))) else NONE,)),
    ]


def _curves(swept: Swept) -> list[Section]:
    measured = [curve for curve in swept.curves if curve.trials]
    if not measured:
        return []
    if not swept.load:
        rows = tuple((curve.name, *_point_row(PointSummary.of(1.0, curve.trials))[1:]) for curve in measured)
        return [Section("Points", (DocumentTable("", _head("point"), rows, note=_MEDIANS),))]
    return [
        Section(
            f"Sweep: {curve.name}" if curve.name else "Sweep",
            tuple(_answer_blocks(swept.load, curve)),
            tuple(_figure_blocks(swept.load, curve, _open_beside(swept, curve))),
        )
        for curve in measured[:MOST_CURVES]
    ]


def _open_beside(swept: Swept, curve: SweptCurve) -> tuple[OpenPoint, ...]:
    return next((each.points for each in swept.open_loop if each.name == curve.name), ())


def _open_curves(swept: Swept) -> list[Section]:
    """Make a section for each open loop, with a chart of its own where no closed curve has its points."""
    beside = {curve.name for curve in swept.curves if swept.load and len(summaries(curve.trials)) > 1}
    return [
        Section(
            f"Open loop: {curve.name}" if curve.name else "Open loop",
            tuple(open_answers(curve)),
            tuple(open_figures(curve, with_chart=curve.name not in beside)),
        )
        for curve in swept.open_loop[:MOST_CURVES]
    ]


def _answer_blocks(load: str, curve: SweptCurve) -> Iterator[Block]:
    found = curve.answer
    yield Paragraph(_answer_words(load, found), important=True)
    optima = tuple(_optimum_row(name, optimum) for name, optimum in _named(found))
    if optima:
        head = (("", ""), (load, ""), ("between", ""), ("IOPS", "1/s"), ("mean latency", "ms"), ("", ""))
        yield DocumentTable("Best values", head, optima, note="between: the 95 % interval")
    if evidence := tuple(evidence_lines(found)):
        yield Bullets(evidence)


def _figure_blocks(load: str, curve: SweptCurve, beside: Sequence[OpenPoint]) -> Iterator[Block]:
    points = summaries(curve.trials)
    if len(points) > 1:
        charts = (
            _against_latency(load, curve, points, beside),
            _over_load(load, curve, points),
            _latencies(load, points),
        )
        yield Charts(charts, "Curves")
    yield _points_grid(load, points)
    yield from point_blocks(load, curve.trials)


def _answer_words(load: str, found: Answer) -> str:
    best = found.balance or found.highest
    words = f"{shape_words(found)}."
    if best is None:
        return words
    what = "Best balance" if found.balance is not None else found.highest_name.capitalize()
    return (
        f"{words} {what} at {load}={best.whole_load} (between {best.low:.0f} and {best.high:.0f}): "
        f"{figure(best.at.iops)} IOPS at {figure(best.at.latency_ns / 1e6, 3)} ms."
    )


def _named(found: Answer) -> Iterator[tuple[str, Optimum | None]]:
    if found.balance is not None:
        yield "best balance", found.balance
    for limit, optimum in found.within:
        yield f"best with {limit.text}", optimum
    if found.highest is not None:
        yield found.highest_name, found.highest


def _optimum_row(name: str, optimum: Optimum | None) -> tuple[str, ...]:
    if optimum is None:
        return (name, "-", "-", "-", "-", "no load keeps it")
    share = optimum.set_back_share
    note = f"set back by {100 * share:.0f} % from {optimum.found:.0f}: it is steep there" if optimum.is_set_back else ""
    if optimum.ios is not None:
        note = f"by {optimum.ios:,} I/Os" + (f"; {note}" if note else "")
    interval = f"{optimum.low:.0f} to {optimum.high:.0f}"
    reading = optimum.at
    return (name, str(optimum.whole_load), interval, figure(reading.iops), figure(reading.latency_ns / 1e6, 3), note)


def _against_latency(
    load: str, curve: SweptCurve, points: Sequence[PointSummary], beside: Sequence[OpenPoint]
) -> DrawnChart:
    """Draw the closed loop, and the open one with another glyph on the same axes."""
    iops = tuple(point.iops for point in points)
    mean = _latency(points, "mean")
    labels = tuple(f"{point.load:g}" for point in points)
    closed = "mean latency, closed loop" if beside else "mean latency"
    curves = (DrawnCurve(closed, iops, mean, Form.POINTS, labels=labels), *open_curves(beside))
    marks, bands = [], []
    for name, optimum in _best(curve.answer):
        low, high = sorted(np.interp([optimum.low, optimum.high], [point.load for point in points], iops).tolist())
        low, high = min(low, optimum.at.iops), max(high, optimum.at.iops)
        marks.append(Mark(optimum.at.iops, name, f"{name}: {load}={optimum.whole_load}"))
        bands.append(Band(low, high, f"{name}: 95 % interval"))
    title = f"Latency against throughput, points labelled by {load}"
    # On one linear scale the latencies of an open loop beyond its limit flatten all others.
    known = [value for drawn in curves for value in drawn.y if value > 0]
    is_wide = bool(known) and max(known) > _WIDE * min(known)
    return DrawnChart(title, "ms", curves, DrawnAxis.LOG, "IOPS", tuple(marks), tuple(bands), log_y=is_wide)


def _over_load(load: str, curve: SweptCurve, points: Sequence[PointSummary]) -> DrawnChart:
    x, iops = tuple(point.load for point in points), tuple(point.iops for point in points)
    spread = [min(point.spread, 1.0) if math.isfinite(point.spread) else 0.0 for point in points]
    low = tuple(value * (1 - share) for value, share in zip(iops, spread, strict=True))
    high = tuple(value * (1 + share) for value, share in zip(iops, spread, strict=True))
    marks = [Mark(each.at.load, name, f"{name}: {load}={each.whole_load}") for name, each in _best(curve.answer)]
    bands = [Band(each.low, each.high, f"{name}: 95 % interval") for name, each in _best(curve.answer)]
    points_curve = DrawnCurve("IOPS", x, iops, Form.POINTS, low, high)
    return DrawnChart("Throughput over load", "1/s", (points_curve,), DrawnAxis.LOG, load, tuple(marks), tuple(bands))


def _best(found: Answer) -> Iterator[tuple[str, Optimum]]:
    """Yield the optimum that is marked: the knee where there is one."""
    if found.balance is not None:
        yield "knee", found.balance
    elif found.highest is not None:
        yield found.highest_name.split()[0], found.highest


def _latencies(load: str, points: Sequence[PointSummary]) -> DrawnChart:
    x = tuple(point.load for point in points)
    curves = tuple(DrawnCurve(name, x, _latency(points, name), Form.POINTS) for name in _NAMES)
    known = tuple(curve for curve in curves if any(math.isfinite(value) for value in curve.y))
    return DrawnChart("Latency over load", "ms", known, DrawnAxis.LOG, load, log_y=True)


def _latency(points: Sequence[PointSummary], name: str) -> tuple[float, ...]:
    values = (point.latency_ms(name) for point in points)
    return tuple(math.nan if value is None else value for value in values)


def _points_grid(load: str, points: Sequence[PointSummary]) -> DocumentTable:
    return DocumentTable("Points", _head(load), tuple(map(_point_row, points)), note=_MEDIANS)


def _head(first: str) -> tuple[tuple[str, str], ...]:
    figures = (("IOPS", "1/s"), ("+-", "%"), ("throughput", "MB/s"), *((name, "ms") for name in _NAMES))
    return ((first, ""), *figures, ("I/Os", ""), ("n", ""), ("", ""))


def _point_row(point: PointSummary) -> tuple[str, ...]:
    amount = float(np.median([trial.bytes_per_s for trial in point.trials])) / 1e6
    latencies = (figure(value, 3) for value in (_latency([point], name)[0] for name in _NAMES))
    head = (f"{point.load:g}", figure(point.iops), figure(100 * point.spread), figure(amount, 1))
    return (*head, *latencies, f"{point.ios:,}", str(len(point.trials)), point.notes)


def _notes(swept: Swept) -> Iterator[str]:
    yield from swept.notes
    if swept.load and len(swept.curves) > MOST_CURVES:
        yield f"{len(swept.curves) - MOST_CURVES:,} more curves are not shown"
    trials = [trial for curve in swept.curves for trial in curve.trials]
    noisy = sum(trial.is_noisy for trial in trials)
    if noisy:
        yield f"{noisy} of {len(trials)} measurements ended because they are noisy, not because they were precise"
    unsettled = sum(not trial.is_settled for trial in trials)
    if unsettled:
        yield f"{unsettled} of {len(trials)} measurements never became steady"
    failing = sorted({name for trial in trials for name in trial.failing})
    if failing:
        yield f"I/Os failed on {', '.join(failing)}: such measurements are in no curve"


_BAR_CELLS = 20
_MOST_LANES = 32
_TARGETS = (
    ("target", ""),
    ("", ""),
    ("I/Os", "%"),
    ("IOPS", "1/s"),
    ("mean", "ms"),
    ("p99", "ms"),
    ("I/Os", ""),
    ("", ""),
)


def point_blocks(load: str, trials: Sequence[Trial]) -> Iterator[Block]:
    """Yield the lanes of a curve at its highest throughput; nothing of trials without them."""
    best = best_trial(trials)
    if best is None:
        return
    at = f" at {load}={best.load:g}" if load else ""
    if len(best.targets) > 1:
        rows = tuple(_target(share, best.targets) for share in best.targets[:_MOST_LANES])
        yield DocumentTable(f"Targets{at}", _TARGETS, rows, texts=2, note=hottest_words(best.targets))
    yield from point_device_blocks(best.devices or {}, at, tuple(share.name for share in best.targets))


def hottest_words(shares: Sequence[TargetShare]) -> str:
    """Say what the slowest target costs."""
    hottest = hottest_target(shares)
    if hottest is None:
        return "none is slower than its peers by 5 % or more"
    return f"without the lag of {hottest.target.name} the mean latency would be {hottest.cost_pct:.0f} % lower"


def _target(share: TargetShare, shares: Sequence[TargetShare]) -> tuple[str, ...]:
    part, hottest = share.ios / max(sum(each.ios for each in shares), 1), hottest_target(shares)
    cost = f"costs {hottest.cost_pct:.0f} %" if hottest is not None and hottest.target is share else ""
    p99 = "-" if share.p99_ns is None else figure(share.p99_ns / 1e6, 3)
    figures = (figure(100 * part), figure(share.iops), figure(share.latency_ns / 1e6, 3), p99, figure(share.ios))
    return (share.name, "#" * round(_BAR_CELLS * part), *figures, cost)
