"""The summary of a run, and of several loads at once, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from engine.errors import error_words
from engine.job.describe import describe_job, describe_knobs
from engine.results.caveats import caveats, run_badges
from engine.results.cpu_use import CpuUse, per_gb_s
from engine.results.group_result import GroupResult
from engine.results.histogram import Latencies
from engine.results.layout_result import path_outcome_lines
from engine.results.measured import Measured, Split, combine
from engine.results.result import FsyncResult, RunResult
from engine.verify.run_result import verified_lines

_MOST_ROWS = 16
ENDINGS = {
    "runtime": "runtime over",
    "size": "all bytes transferred",
    "steady": "steady state reached",
    "stopped": "stopped",
    "failed": "failed",
    "": "still running",
}
"""Why a load is over, in words."""
_WIDTHS = (10, 8, 9, 7, 7, 7, 8, 9, 9)
"""Widths of the columns: with the label they fill 79, which a terminal of 80 shows unbroken."""
_WHOLE_FROM = 1000
"""Latency from which a decimal says nothing."""
_SLOW_NS = 10_000_000
"""Mean from which latencies are in milliseconds."""


def summary_lines(result: RunResult) -> list[str]:
    """Say what was run, what it reached, and what a reader should know before believing it."""
    about = result.about
    return [
        f"{describe_job(about.job)}; {about.engine.backend} engine ({about.engine.why})",
        f"on {listed(about.targets)}",
        f"ran {about.elapsed_s:.1f} s ({ENDINGS[about.ended]}), measured {result.duration_s:.1f} s"
        + _rested_on(result.total),
        "",
        *_tables(result),
        *(f"note: {caveat}" for caveat in caveats(result)),
        *(f"badge: {badge.line}" for badge in run_badges(result)),
        *(() if result.verified is None else verified_lines(result.verified)),
        *path_outcome_lines(result.paths),
        *([f"failed: {result.failure}"] if result.failure else ()),
        *(f"error: {line}" for line in _errors(result)),
        *(f"stall: {line}" for line in _stalls(result)),
        *(f"outstanding: {line}" for line in _outstanding(result)),
    ]


def _stalls(result: RunResult) -> Iterator[str]:
    for stall in result.stalls[:_MOST_ROWS]:
        begun_s = (stall.since_ns - result.about.started_ns) / 1e9
        yield f"from {max(begun_s, 0):.1f} s on {stall.text}{', past the end' if stall.at_end else ''}"
    if len(result.stalls) > _MOST_ROWS:
        yield f"and {len(result.stalls) - _MOST_ROWS} more"


def _outstanding(result: RunResult) -> Iterator[str]:
    for each in result.outstanding:
        waited = f"given up after {each.oldest_s(result.ended_ns):.1f} s"
        yield f"{each.what} never came back: {waited}; in no figure above; the kernel still holds them"


def listed(names: tuple[str, ...]) -> str:
    """Name targets, the first of them if there are many."""
    shown = ", ".join(names[:_MOST_ROWS])
    return shown if len(names) <= _MOST_ROWS else f"{shown} and {len(names) - _MOST_ROWS} more"


def _tables(result: RunResult) -> Iterator[str]:
    in_ms = in_milliseconds(result.total.total)
    yield table_header(in_ms=in_ms)
    for label, part in _directions(result.total):
        yield table_row(part, result.duration_s, label, in_ms=in_ms)
        if part.service is not None:
            yield _service_row(part.service, f"{label}, service time", in_ms=in_ms)
    if result.logical is not None:
        yield "whole I/Os, over all targets they touch"
        for label, part in _directions(result.logical.split):
            yield table_row(part, result.duration_s, label, in_ms=in_ms)
    yield from _costs(result.cpu, result.total.total, [epoch.fsyncs for epoch in result.epochs])
    yield ""
    if len(result.epochs) > 1:
        for epoch in result.epochs:
            yield f"epoch {epoch.index}, {epoch.duration_s:.1f} s: {describe_knobs(epoch.knobs)}"
            yield table_row(epoch.split.total, epoch.duration_s, in_ms=in_ms)
            yield from _costs(epoch.cpu, epoch.split.total, [epoch.fsyncs])
        yield ""
    if len(result.about.targets) > 1:
        for name, part, seconds in _by_target(result):
            yield name
            yield table_row(part, seconds, in_ms=in_ms)
        yield ""
    for name, part, seconds in _by_path(result):
        failed = f": {part.errors:,} failed, tried on another path" if part.errors else ""
        yield f"path {name}{failed}"
        yield table_row(part, seconds, in_ms=in_ms)


def _rested_on(split: Split) -> str:
    """Say how many I/Os the percentiles rest on."""
    counts = [f"{part.ios:,} {label}s" for label, part in (("read", split.read), ("write", split.write)) if part.ios]
    return f": {' and '.join(counts)}" if counts else ""


def _directions(split: Split) -> list[tuple[str, Measured]]:
    both = [("read", split.read), ("write", split.write)]
    used = [(label, part) for label, part in both if part.ios]
    return used if len(used) == 1 else [*used, ("total", split.total)]


def _costs(cpu: CpuUse | None, done: Measured, fsyncs: Sequence[FsyncResult]) -> Iterator[str]:
    """CPU of the engine and of the host beside what it bought, and flushes with their latency."""
    if cpu is not None and done.ios:
        of_engine, of_host = (
            f"{ns / done.ios / 1e3:.2f} us/IO, {_three_digits(per_gb_s(ns, done.bytes))} s/GB"
            for ns in (cpu.engine_ns, cpu.host_used_ns)
        )
        least = "at least " if cpu.host_is_least else ""
        yield f"cpu  engine {of_engine}; host {least}{of_host}" + (
            "" if cpu.host_busy_pct is None else f", {cpu.host_busy_pct:.0f} % busy"
        )
    ios = sum(one.ios for one in fsyncs)
    if ios:
        mean_us = sum(one.latency_sum_ns for one in fsyncs) / ios / 1e3
        yield f"sync {ios:,} fsyncs, mean {mean_us:,.0f} us, max {max(one.largest_ns for one in fsyncs) / 1e3:,.0f} us"


def _three_digits(value: float | None) -> str:
    """Three significant digits, without an exponent for large values; "-" if unknown."""
    if value is None:
        return "-"
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def _by_target(result: RunResult) -> Iterator[tuple[str, Measured, float]]:
    for name in result.about.targets[:_MOST_ROWS]:
        seen = [(epoch, target) for epoch in result.epochs for target in epoch.targets if target.name == name]
        if seen:
            yield name, combine([target.split.total for _, target in seen]), sum(epoch.duration_s for epoch, _ in seen)


def _by_path(result: RunResult) -> Iterator[tuple[str, Measured, float]]:
    seen: dict[str, list[tuple[Measured, float]]] = {}
    for epoch in result.epochs:
        for path in (path for target in epoch.targets for path in target.paths):
            seen.setdefault(path.name, []).append((path.split.total, epoch.duration_s))
    for name, parts in seen.items():
        yield name, combine([part for part, _ in parts]), sum(seconds for _, seconds in parts)


def in_milliseconds(measured: Measured) -> bool:
    """Whether latencies are shown in milliseconds, else in microseconds."""
    return (measured.mean_ns or 0) >= _SLOW_NS


def table_header(*, in_ms: bool) -> str:
    """Write the titles of `table_row`."""
    titles = ("IOPS", "MiB/s", "mean ms" if in_ms else "mean us", "p50", "p90", "p99", "p99.9", "max", "avg peak")
    return _line("", titles)


def table_row(part: Measured, duration_s: float, label: str = "", *, in_ms: bool) -> str:
    """Write rates and latencies in one line."""
    percentiles = (part.percentile_ns(percent) for percent in (50, 90, 99, 99.9))
    latencies = (part.mean_ns, *percentiles, part.largest_ns, part.average_peak_ns)
    rates = (_rate(part.ios, duration_s, 0), _rate(part.bytes / (1 << 20), duration_s, 1))
    return _line(label, (*rates, *(_latency(value, in_ms=in_ms) for value in latencies)))


def _line(label: str, figures: Iterable[str]) -> str:
    return f"{label:<5}" + "".join(f"{figure:>{width}}" for figure, width in zip(figures, _WIDTHS, strict=True))


def _service_row(service: Latencies, label: str, *, in_ms: bool) -> str:
    percentiles = (service.percentile_ns(percent) for percent in (50, 90, 99, 99.9))
    values = (service.mean_ns, *percentiles, service.largest_ns)
    return f"{'':18}" + "".join(f"{_latency(value, in_ms=in_ms):>9}" for value in values) + f"{'':10}  {label}"


def _rate(amount: float, duration_s: float, decimals: int) -> str:
    return f"{amount / duration_s:,.{decimals}f}" if duration_s else "-"


def _latency(value_ns: float | None, *, in_ms: bool) -> str:
    if value_ns is None:
        return "-"
    value = value_ns / (1e6 if in_ms else 1e3)
    return f"{value:.1f}" if value < _WHOLE_FROM else f"{value:.0f}"


def _errors(result: RunResult) -> Iterable[str]:
    for error in result.errors[:_MOST_ROWS]:
        plural = "" if error.ios == 1 else "s"
        yield (
            f"{error.target}: {error.ios:,} {error.direction}{plural} failed: {error_words(error.errno)}, "
            f"first at offset {error.first_offset}"
        )


def group_lines(group: GroupResult) -> Iterator[str]:
    """Yield figures of each load of a group and of the sum, in which percentiles are of all I/Os together."""
    total, seconds = group.total.total, group.duration_s
    in_ms = in_milliseconds(total)
    yield f"{len(group.loads)} loads at the same time on {listed(group.targets)}"
    yield f"ran {group.elapsed_s:.1f} s ({ENDINGS[group.ended]}), measured {seconds:.1f} s" + _rested_on(group.total)
    yield ""
    yield table_header(in_ms=in_ms)
    for load in group.loads:
        yield f"[{load.name}]"
        yield table_row(load.result.total.total, load.result.duration_s, in_ms=in_ms)
    yield f"all, over {seconds:.1f} s"
    for label, part in (("read", group.total.read), ("write", group.total.write), ("total", total)):
        if part.ios and (label == "total" or part.ios < total.ios):
            yield table_row(part, seconds, label, in_ms=in_ms)
    for load in group.loads:
        if load.result.failure:
            yield f"failed: [{load.name}] {load.result.failure}"
