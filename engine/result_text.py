"""The summary of a run for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from engine.describe import describe_job, describe_knobs
from engine.errno_text import error_message, error_name
from engine.job import Backend
from engine.measured import Measured, combine
from engine.result import RunResult, Split

_MOST_ROWS = 16
_SHORT_S = 1.0
_BUSY_SHARE = 0.9
"""From this share of its threads' time on, the generator may be the limit and not the storage."""
_ENDINGS = {"runtime": "runtime over", "stopped": "stopped", "failed": "failed", "": "still running"}
_LARGE_NS = 100_000_000


def summary_lines(result: RunResult) -> list[str]:
    """Say what was run, what it reached, and what a reader should know before believing it."""
    about = result.about
    return [
        f"{describe_job(about.job)}; {about.engine.backend} engine ({about.engine.why})",
        f"on {_listed(about.targets)}",
        f"ran {about.elapsed_s:.1f} s ({_ENDINGS[about.ended]}), measured {result.duration_s:.1f} s",
        "",
        *_tables(result),
        *(f"note: {caveat}" for caveat in _caveats(result)),
        *(f"error: {line}" for line in _errors(result)),
    ]


def _listed(names: tuple[str, ...]) -> str:
    shown = ", ".join(names[:_MOST_ROWS])
    return shown if len(names) <= _MOST_ROWS else f"{shown} and {len(names) - _MOST_ROWS} more"


def _tables(result: RunResult) -> Iterator[str]:
    in_ms = (result.total.total.largest_ns or 0) >= _LARGE_NS
    yield _header("ms" if in_ms else "us")
    for label, part in _directions(result.total):
        yield _row(part, result.duration_s, label, in_ms=in_ms)
    yield ""
    if len(result.epochs) > 1:
        for epoch in result.epochs:
            label = f"epoch {epoch.index}, {epoch.duration_s:.1f} s: {describe_knobs(epoch.knobs)}"
            yield _row(epoch.split.total, epoch.duration_s, label, in_ms=in_ms)
        yield ""
    if len(result.about.targets) > 1:
        for name, part, seconds in _by_target(result):
            yield _row(part, seconds, name, in_ms=in_ms)
        yield ""


def _directions(split: Split) -> list[tuple[str, Measured]]:
    both = [("read", split.read), ("write", split.write)]
    used = [(label, part) for label, part in both if part.ios]
    return used if len(used) == 1 else [*used, ("total", split.total)]


def _by_target(result: RunResult) -> Iterator[tuple[str, Measured, float]]:
    for name in result.about.targets[:_MOST_ROWS]:
        seen = [(epoch, target) for epoch in result.epochs for target in epoch.targets if target.name == name]
        if seen:
            yield name, combine([target.split.total for _, target in seen]), sum(epoch.duration_s for epoch, _ in seen)


def _header(unit: str) -> str:
    titles = (f"mean {unit}", "p50", "p90", "p99", "p99.9", "max")
    return f"{'IOPS':>9}{'MiB/s':>9}" + "".join(f"{title:>9}" for title in titles) + f"{'avg peak':>10}"


def _row(part: Measured, duration_s: float, label: str, *, in_ms: bool) -> str:
    percentiles = (part.percentile_ns(percent) for percent in (50, 90, 99, 99.9))
    latencies = (_latency(value, in_ms=in_ms) for value in (part.mean_ns, *percentiles, part.largest_ns))
    return (
        f"{_rate(part.ios, duration_s, 0):>9}{_rate(part.bytes / (1 << 20), duration_s, 1):>9}"
        + "".join(f"{latency:>9}" for latency in latencies)
        + f"{_latency(part.average_peak_ns, in_ms=in_ms):>10}  {label}"
    )


def _rate(amount: float, duration_s: float, decimals: int) -> str:
    return f"{amount / duration_s:,.{decimals}f}" if duration_s else "-"


def _latency(value_ns: float | None, *, in_ms: bool) -> str:
    if value_ns is None:
        return "-"
    return f"{value_ns / 1e6:.2f}" if in_ms else f"{value_ns / 1e3:.1f}"


def _caveats(result: RunResult) -> Iterator[str]:
    yield from result.about.notices
    for epoch in result.epochs:
        if epoch.start_s is None:
            yield f"epoch {epoch.index} never settled; its {epoch.transient_ios:,} I/Os are in no statistic"
    if 0 < result.duration_s < _SHORT_S:
        yield f"measured for {result.duration_s:.2f} s only: too short to judge by"
    if result.total.total.ios and result.total.total.percentile_ns(99.9) is None:
        yield "a - stands for a percentile that needs more I/Os than there were (p99: 100, p99.9: 1,000)"
    yield from _driver_bound(result)


def _driver_bound(result: RunResult) -> Iterator[str]:
    about = result.about
    if about.engine.backend != Backend.URING or not about.elapsed_s:
        return
    threads = about.job.threads
    share = result.cpu_ns / 1e9 / about.elapsed_s / threads
    if share >= _BUSY_SHARE:
        yield (
            f"driver-bound: the engine was busy {100 * share:.0f} % of the time with {threads} "
            f"thread{'s' if threads > 1 else ''}; the storage may be faster than shown: try --threads {2 * threads}"
        )


def _errors(result: RunResult) -> Iterable[str]:
    for error in result.errors[:_MOST_ROWS]:
        plural = "" if error.ios == 1 else "s"
        yield (
            f"{error.target}: {error.ios:,} {error.direction}{plural} failed: {error_name(error.errno)} "
            f"{error_message(error.errno)}, first at offset {error.first_offset}"
        )
