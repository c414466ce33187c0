"""Texts of the latency screen: subject, summary, peaks, slowest I/Os and NFS calls, and the waterfall of the load."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from textual.content import Content

from collectors.field import Unit
from collectors.latency.load_waterfall import LoadWaterfall
from collectors.latency.slow_calls import SlowCall
from collectors.latency.slow_ios import SlowIo
from collectors.latency.subjects import LOAD, NFS, Direction, LatencySubject
from collectors.latency.summary import LatencySummary, Peak
from collectors.latency.waterfall import MatchedIo, Stage, Waterfall
from collectors.model import Part
from collectors.session.time_format import clock_text
from engine.text import safe_text
from tui.text.format import SECOND_NS, format_quantity, precise_clock, span_text
from tui.text.glyphs import Glyphs
from tui.text.safe import fit
from tui.widgets.heatmap.legend import latency_text

_NS_PER_MS = 1e6
_PARTS = {
    Part.TOTAL: "whole time",
    Part.QUEUE: "queue time",
    Part.SERVICE: "service time",
    Part.RTT: "RTT",
}
_DIRECTIONS = {Direction.BOTH: "reads and writes", Direction.READ: "reads", Direction.WRITE: "writes"}
_TIME_WIDTH, _FIGURE_WIDTH = 12, 6
_SECTOR_WIDTH = 11
_PID_WIDTH, _COMMAND_WIDTH = 7, 15
"""Widths of the largest PID, and of the longest command (TASK_COMM_LEN of the kernel)."""
_SLOW_COLUMNS = (
    f"{'device':<10} {'op':<7} {'size':>5}{'tag':>6}{'Q':>6}{'S ms':>6}"
    f" {'PID':>{_PID_WIDTH}} {'process':<{_COMMAND_WIDTH}}{'sector':>{_SECTOR_WIDTH}}"
)
SLOW_HEAD = f" {'Slowest I/Os':<{_TIME_WIDTH}} {_SLOW_COLUMNS}"
"""Heading of the lines of `slow_line`."""
_CALL_COLUMNS = (
    f"{'mount':<13} {'op':<11}{'#':>3}{'Q':>6}{'RTT':>6}{'ex ms':>6}"
    f" {'PID':>{_PID_WIDTH}} {'process':<{_COMMAND_WIDTH}}"
)
CALLS_HEAD = f" {'Slow calls':<{_TIME_WIDTH}} {_CALL_COLUMNS}{'XID':>11}"
"""Heading of the lines of `call_line`."""


def subject_line(
    subject: LatencySubject, part: Part | None, direction: Direction, shown_ns: tuple[int, int], *, newest: bool
) -> Content:
    """Name subject, part, direction and time range; `newest` if it ends now."""
    start_ns, end_ns = shown_ns
    span = span_text((end_ns - start_ns) / SECOND_NS)
    when = f"last {span}" if newest else f"{span} up to {clock_text(end_ns)}"
    every = subject.source == NFS and direction is Direction.BOTH
    whose = "all operations" if every else _DIRECTIONS[direction]
    what = "" if part is None else f"{_PARTS[part]} of {whose}, {when}"
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


def peak_line(peak: Peak, names: Mapping[str, str]) -> Content:
    """Write time, latency, subject and kind of a peak."""
    name = names.get(peak.key, safe_text(peak.name)).partition(" (")[0]
    name = f"load on {name}" if peak.source == LOAD else name
    when = clock_text(peak.time_ns)
    return Content.assemble(f" {when} ", (f"{latency_text(peak.latency_ns):>9}", "bold"), f"  {name} {peak.what}")


def slow_line(io: SlowIo, luns: Mapping[str, str]) -> Content:
    """Write time, operation, latencies by part, process and sector of an I/O; `luns` names the LUN of a path."""
    size = "-" if io.size_bytes is None else format_quantity(float(io.size_bytes), Unit.BYTES, 5)
    times = "".join(f"{_part(value):>{_FIGURE_WIDTH}}" for value in (io.tag_wait_ns, io.queue_ns, io.service_ns))
    where = "-" if io.sector is None else str(io.sector)
    head = f" {precise_clock(io.time_ns)} {fit(io.device, 10)} {io.operation:<7} {size:>5}{times}"
    pid = "?" if io.pid is None else str(io.pid)
    who = f"{pid:>{_PID_WIDTH}} {fit(safe_text(io.command or '?'), _COMMAND_WIDTH)}"
    return Content(f"{head} {who}{where:>{_SECTOR_WIDTH}}{_context(io, luns)}")


def call_line(call: SlowCall) -> Content:
    """Write time, mount, operation, transport, times by part, process and XID of an NFS call."""
    times = "".join(f"{_part(value):>{_FIGURE_WIDTH}}" for value in (call.queue_ns, call.rtt_ns, call.execute_ns))
    what = f"{fit(call.mount, 13)} {fit(call.operation, 11)}{call.transport:>3}"
    pid, command = ("-", "-") if call.pid is None else (str(call.pid), call.command)
    xid = "-" if call.xid is None else f"{call.xid:08x}"
    who = f"{pid:>{_PID_WIDTH}} {fit(command, _COMMAND_WIDTH)}"
    return Content(f" {precise_clock(call.time_ns)} {what}{times} {who}{xid:>11}")


def _context(io: SlowIo, luns: Mapping[str, str]) -> str:
    lun = f"  path to {safe_text(luns[io.device_key])}" if io.device_key in luns else ""
    return lun if io.cgroup is None else f"{lun}  cgroup {io.cgroup}"


def _part(value_ns: int | None) -> str:
    return format_quantity(float("nan") if value_ns is None else value_ns / _NS_PER_MS, Unit.MILLISECONDS, 5)


def _figure(latency_ns: float) -> str:
    return format_quantity(latency_ns / _NS_PER_MS, Unit.MILLISECONDS, 5)


_STYLES = {
    Stage.SUBMIT: "$write",
    Stage.THROTTLE: "$warning",
    Stage.TAG: "$peak",
    Stage.QUEUE: "$queue",
    Stage.SERVICE: "$service",
    Stage.REAP: "$busy",
    Stage.OUTSIDE: "$muted",
}
_BAR_OF_IO = 24


def waterfall_lines(waterfall: LoadWaterfall, width: int, glyphs: Glyphs) -> Content:
    """Draw the mean as one bar with its dominant stage, and below it the slowest I/Os, each with its own."""
    return Content("\n").join([*_mean_lines(waterfall, width, glyphs), *_io_lines(waterfall, glyphs)])


def _mean_lines(waterfall: LoadWaterfall, width: int, glyphs: Glyphs) -> Iterator[Content]:
    mean = waterfall.mean
    if mean is None:
        yield Content.assemble((" Waterfall, no mean: ", "bold"), waterfall.caveat)
        return
    yield Content.assemble((f" Waterfall, mean {latency_text(mean.total_ns)}: ", "bold"), mean.verdict())
    yield Content.assemble(" ", *_bar(mean, width - 2, glyphs))
    parts = [
        (f" {glyphs.stages[stage]} {stage} {latency_text(time_ns)}, {100 * mean.share(stage):.0f} % ", _STYLES[stage])
        for stage, time_ns in mean.parts
    ]
    yield Content.assemble(*parts, (f" {waterfall.caveat}", "italic"))


def _io_lines(waterfall: LoadWaterfall, glyphs: Glyphs) -> Iterator[Content]:
    if not waterfall.slowest:
        return
    yield Content.assemble((" Slowest I/Os seen from both sides", "bold"))
    for one in waterfall.slowest:
        yield Content.assemble(*_io_head(one), *_bar(one.waterfall, _BAR_OF_IO, glyphs), *_io_parts(one, glyphs))


def _io_head(one: MatchedIo) -> Iterator[tuple[str, str] | str]:
    yield f" {precise_clock(one.load.issued_ns + one.load.latency_ns)} "
    yield f"{latency_text(one.load.latency_ns):>9} ", "bold"


def _io_parts(one: MatchedIo, glyphs: Glyphs) -> Iterator[tuple[str, str] | str]:
    for stage, time_ns in one.waterfall.parts:
        if one.waterfall.share(stage) >= 0.01:
            yield f"  {glyphs.stages[stage]} {stage} {latency_text(time_ns)}", _STYLES[stage]
    yield f"  {safe_text(one.load.name).partition(' (')[0]} {one.load.direction} at {one.load.offset}"


def _bar(waterfall: Waterfall, width: int, glyphs: Glyphs) -> Iterator[tuple[str, str]]:
    """Divide a bar by the shares; every stage above zero gets a cell if there is room."""
    shares = [waterfall.share(stage) for stage, _ in waterfall.parts]
    edges = [round(sum(shares[:number]) * width) for number in range(len(shares) + 1)]
    for (stage, _), start, end in zip(waterfall.parts, edges, edges[1:], strict=False):
        yield glyphs.stages[stage] * (end - start), _STYLES[stage]
