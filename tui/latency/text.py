"""Texts of the latency screen: subject, summary, peaks and slowest I/Os."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from textual.content import Content

from collectors.field import Unit
from collectors.latency.peaks import Peak
from collectors.latency.slow_ios import SlowIo
from collectors.latency.subjects import LOAD, Direction, LatencySubject, Part
from collectors.latency.summary import LatencySummary
from collectors.session.time_format import clock_text
from engine.text import safe_text
from tui.text.clock import SECOND_NS, precise_clock, span_text
from tui.text.format import format_quantity
from tui.text.safe import fit
from tui.widgets.heatmap.text import latency_text

_NS_PER_MS = 1e6
_PARTS = {
    Part.TOTAL: "whole time",
    Part.QUEUE: "queue time",
    Part.SERVICE: "service time",
}
_DIRECTIONS = {Direction.BOTH: "reads and writes", Direction.READ: "reads", Direction.WRITE: "writes"}
_TIME_WIDTH, _FIGURE_WIDTH = 12, 6
_SECTOR_WIDTH = 11
_SLOW_COLUMNS = f"{'device':<10} {'op':<6}{'size':>5}{'tag':>6}{'Q':>6}{'S ms':>6}{'sector':>{_SECTOR_WIDTH}}  process"
SLOW_HEAD = f" {'Slowest I/Os':<{_TIME_WIDTH}} {_SLOW_COLUMNS}"
"""Heading of the lines of `slow_lines`."""


def subject_line(
    subject: LatencySubject, part: Part | None, direction: Direction, shown_ns: tuple[int, int], *, newest: bool
) -> Content:
    """Name subject, part, direction and time range; `newest` if it ends now."""
    start_ns, end_ns = shown_ns
    span = span_text((end_ns - start_ns) / SECOND_NS)
    when = f"last {span}" if newest else f"{span} up to {clock_text(end_ns)}"
    what = "" if part is None else f"{_PARTS[part]} of {_DIRECTIONS[direction]}, {when}"
    return Content.assemble((f" Latency of {subject.title}", "bold"), f"  {what}")


def summary_line(summary: LatencySummary, *, marked_ns: int | None) -> Content:
    """Summarise a range in one line: percentiles of all its I/Os, peak and average peak."""
    head = "shown" if marked_ns is None else f"marked {span_text(marked_ns / SECOND_NS)}"
    if not summary.ios:
        return Content.assemble((f" {head}", "bold"), "  no I/O")
    ios = format_quantity(float(summary.ios), Unit.COUNT, 5)
    figures = [
        ("p50", summary.p50_ns),
        ("p99", summary.p99_ns),
        ("p99.9", summary.p999_ns),
        ("max", summary.max_ns),
        ("avg peak", summary.average_peak_ns),
    ]
    words = "  ".join(f"{name} {_figure(value)}" for name, value in figures)
    return Content.assemble((f" {head}", "bold"), f"  {words} ms  {ios} I/Os")


def peak_lines(peaks: list[Peak], names: Mapping[str, str]) -> Iterator[Content]:
    """Yield time, latency, subject and kind of each peak."""
    for peak in peaks:
        name = names.get(peak.key, safe_text(peak.name)).partition(" (")[0]
        name = f"load on {name}" if peak.source == LOAD else name
        when = clock_text(peak.time_ns)
        yield Content.assemble(f" {when} ", (f"{latency_text(peak.latency_ns):>9}", "bold"), f"  {name} {peak.what}")


def slow_lines(ios: Sequence[SlowIo], luns: Mapping[str, str]) -> Iterator[Content]:
    """Yield time, operation, latencies by part, process and sector of each I/O; `luns` names the LUN of a path."""
    for io in ios:
        size = "-" if io.size_bytes is None else format_quantity(float(io.size_bytes), Unit.BYTES, 5)
        times = "".join(f"{_part(value):>{_FIGURE_WIDTH}}" for value in (io.tag_wait_ns, io.queue_ns, io.service_ns))
        where = "-" if io.sector is None else str(io.sector)
        head = f" {precise_clock(io.time_ns)} {fit(io.device, 10)} {io.operation:<6}{size:>5}{times}"
        who = f"{safe_text(io.command or '?')}/{io.pid if io.pid is not None else '?'}"
        yield Content(f"{head}{where:>{_SECTOR_WIDTH}}  {who}{_context(io, luns)}")


def _context(io: SlowIo, luns: Mapping[str, str]) -> str:
    lun = f"  path to {safe_text(luns[io.device_key])}" if io.device_key in luns else ""
    return lun if io.cgroup is None else f"{lun}  cgroup {io.cgroup}"


def _part(value_ns: int | None) -> str:
    return format_quantity(float("nan") if value_ns is None else value_ns / _NS_PER_MS, Unit.MILLISECONDS, 5)


def _figure(latency_ns: float) -> str:
    return format_quantity(latency_ns / _NS_PER_MS, Unit.MILLISECONDS, 5)
