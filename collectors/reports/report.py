"""The report: steps of any source into sar-like text, or one JSON document per interval."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from collectors.derive.coarser import coarser
from collectors.latency.average_peaks import AveragePeaks
from collectors.model import Frame, FrameTable, Step, Topology
from collectors.rates import derive
from collectors.registry import REPORTED
from collectors.reports.document import UNASKED_TABLES, report_line
from collectors.reports.page import PageOptions, ReportPage
from collectors.subject import Averages

__all__ = ["ReportOptions", "report_json", "report_line", "report_text"]


@dataclass(frozen=True, slots=True)
class ReportOptions:
    """What `lunscope report` shows."""

    tables: tuple[str, ...] = ()
    """Of subjects with a report; nothing chosen is disks in text and UNASKED_TABLES in JSON."""
    split: bool = False
    """Reads and writes apart (-R)."""
    distribution: bool = False
    """Percentiles and peaks instead of means, and average peak latencies at the end (-P)."""
    all_disks: bool = False
    """Also disks without I/O in text; JSON always has them, so that all its lines have the same rows."""
    count: int | None = None
    """Intervals after which it ends; None: as many as the source has."""
    header_every: int = 20
    """Lines after which the header is repeated."""
    interval_s: float | None = None
    """Least length of what a line tells; None: as long as the steps are."""


def report_text(steps: Iterable[Step], options: ReportOptions | None = None) -> Iterator[str]:
    """Yield the lines of a report: a line per disk, path, port or tape and interval, then the averages.

    The averages come when `steps` ends or `options.count` is reached, over the whole time and not over the lines.
    """
    options = options or ReportOptions()
    looks = PageOptions(options.split, options.all_disks, options.header_every, options.distribution)
    page = ReportPage(options.tables or ("disks",), looks)
    averages, peaks, topology = _averages(), AveragePeaks(), Topology()
    if options.interval_s is not None:
        steps = coarser(_noting(steps, peaks) if options.distribution else steps, options.interval_s)
    for step, frame in _intervals(steps, options.count):
        topology = step.current.topology
        for added in averages:
            added.add(step)
        if options.interval_s is None:
            peaks.add(frame)
        yield from page.lines(step, frame)
    tables: dict[str, FrameTable] = {}
    for added in averages:
        tables |= added.tables()
    yield from page.averages(tables, topology)
    if options.distribution:
        yield from page.average_peaks(tables, peaks, topology)


def report_json(steps: Iterable[Step], options: ReportOptions | None = None) -> Iterator[str]:
    """Yield one JSON document per interval, as `report_line` makes them, without line ends."""
    options = options or ReportOptions()
    if options.interval_s is not None:
        steps = coarser(steps, options.interval_s)
    for _, frame in _intervals(steps, options.count):
        if not math.isnan(frame.elapsed_s):
            line = report_line(frame, options.tables or UNASKED_TABLES)
            yield json.dumps(line, allow_nan=False, separators=(",", ":"))


def _averages() -> list[Averages]:
    """One of each kind, whatever is shown: those of disks give the tables of paths and ports, too."""
    makers = dict.fromkeys(subject.report.averages for subject in REPORTED if subject.report is not None)
    return [make() for make in makers]


def _noting(steps: Iterable[Step], peaks: AveragePeaks) -> Iterator[Step]:
    """Note the peaks of steps before they are put together: of a longer time the largest is another figure."""
    for step in steps:
        peaks.add(derive(step.previous, step.current))
        yield step


def _intervals(steps: Iterable[Step], count: int | None) -> Iterator[tuple[Step, Frame]]:
    """Derive steps until `count` intervals have passed."""
    left = count
    for step in steps:
        frame = derive(step.previous, step.current)
        yield step, frame
        if left is not None and not math.isnan(frame.elapsed_s):
            left -= 1
        if left == 0:
            return
