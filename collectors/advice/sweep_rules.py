"""Findings from a sequence of measurements: one load after another, and curves beside each other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct, field

from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind
from engine.job.sizes import format_size

_RISES = 0.10
"""Gain for a doubled load: less is within what neighbouring loads of a saturated device differ by."""
_RISES_CLEARLY = 0.20
_NEAR_HIGHEST = 0.97
"""Share of the highest throughput (as engine/sweep/knee.py): the lowest load that reaches it is preferred."""
_NO_GAIN = 1.03
_LATENCY_GROWS = 1.5
"""Factor at a doubled depth: without any gain latency doubles (Little's law); less growth is no plateau."""
_NOISY = 0.10
"""Half-width of the interval of throughput: noisier points are not compared."""
_PRECISE = 0.05
_KEPT_DEPTH = 0.5
"""Share of the depth that is outstanding: below, the depth is not what limits."""
_NEAR_BEST = 0.90
"""A block size so near to the best serves as well."""
_MODES_DIFFER = 1.10
_RAISE = {
    "qd": (FindingKind.OWN_DEPTH, "queue depth", "sweep to a higher --vary qd"),
    "threads": (FindingKind.DRIVER, "threads of the engine", "sweep to more threads"),
    "stripe_width": (FindingKind.FEW_DISKS, "stripe width", "use more targets"),
}


class LoadPoint(Struct, frozen=True):
    """All measurements of one load on a curve."""

    load: float
    iops: float
    """Median."""
    latency_ns: float
    """Mean."""
    spread: float = 0.0
    """Half-width of the interval of `iops`, relative."""
    count: int = 1
    """Measurements."""
    is_steady: bool = True
    bytes_per_s: float = math.nan
    depth_share: float = math.nan
    """Outstanding I/Os as a share of those that the load may have."""

    @property
    def is_usable(self) -> bool:
        """Whether it can be compared with others."""
        return self.is_steady and self.iops > 0 and self.spread < _NOISY


class LoadCurve(Struct, frozen=True):
    """Points that differ in load alone, ascending."""

    name: str
    key: str
    """Key of the knob of the load: qd, threads or stripe_width; empty without one."""
    points: tuple[LoadPoint, ...]
    values: Mapping[str, str] = field(default_factory=dict)
    """Values of the other axes, by key of the knob."""
    block_bytes: float = math.nan
    """Block size; NaN for several."""

    @property
    def best(self) -> LoadPoint | None:
        """The highest throughput."""
        usable = [point for point in self.points if point.is_usable]
        return max(usable, key=lambda point: point.iops, default=None)


def curve_findings(curves: Sequence[LoadCurve]) -> Iterator[Finding]:
    """Find what closed loops without a rate limit show over their loads and other axes."""
    for curve in curves:
        yield from _still_rises(curve)
        yield from _too_high(curve)
    yield from _block_sizes(curves)
    yield from _modes(curves)


def _still_rises(curve: LoadCurve) -> Iterator[Finding]:
    """Throughput that rises up to the last load: the load itself is the limit.

    The gain from the last load but one is taken for a doubling, and must exceed both intervals. Certain if both were
    measured repeatedly and it is 20 % and twice the intervals. A depth that the load does not keep is no limit.
    """
    if curve.key not in _RAISE or len(curve.points) < 2:
        return
    before, last = curve.points[-2:]
    if not before.is_usable or not last.is_usable or last.load <= before.load:
        return
    if curve.key == "qd" and not last.depth_share >= _KEPT_DEPTH:
        return
    gain = (last.iops / before.iops) ** (1 / math.log2(last.load / before.load)) - 1
    change, noise = last.iops / before.iops - 1, last.spread + before.spread
    if gain < _RISES or change <= noise:
        return
    clear = gain >= _RISES_CLEARLY and change > 2 * noise
    repeated = min(before.count, last.count) > 1
    kind, words, advice = _RAISE[curve.key]
    yield Finding(
        kind,
        Confidence.CERTAIN if clear and repeated else Confidence.LIKELY if clear else Confidence.HINT,
        f"throughput still rises at the last {words} of {last.load:g}: that is the limit; {advice}",
        (
            Evidence("gain for a doubling", 100 * gain, "%"),
            Evidence(f"at {before.load:g}", before.iops, "IOPS"),
            Evidence(f"at {last.load:g}", last.iops, "IOPS"),
            Evidence("intervals +-", 100 * noise, "%"),
        ),
        where=curve.name,
    )


def _too_high(curve: LoadCurve) -> Iterator[Finding]:
    """Twice the best load or more, without any gain while latency grows: I/Os only wait."""
    best = curve.best
    if curve.key not in ("qd", "threads") or best is None:
        return
    enough = next(point for point in curve.points if point.is_usable and point.iops >= _NEAR_HIGHEST * best.iops)
    last = curve.points[-1]
    if not last.is_usable or last.load < 2 * enough.load or last.iops > _NO_GAIN * enough.iops:
        return
    if last.latency_ns < _LATENCY_GROWS * enough.latency_ns:
        return
    precise = max(enough.spread, last.spread) <= _PRECISE and min(enough.count, last.count) > 1
    yield Finding(
        FindingKind.DEPTH_TOO_HIGH,
        Confidence.CERTAIN if precise else Confidence.LIKELY,
        f"above {curve.key}={enough.load:g} only latency grows: use no more than that",
        (
            Evidence(f"at {enough.load:g}", enough.iops, "IOPS"),
            Evidence(f"at {last.load:g}", last.iops, "IOPS"),
            Evidence(f"latency at {enough.load:g}", enough.latency_ns / 1e6, "ms"),
            Evidence(f"latency at {last.load:g}", last.latency_ns / 1e6, "ms"),
        ),
        where=curve.name,
    )


def _block_sizes(curves: Sequence[LoadCurve]) -> Iterator[Finding]:
    """Largest block within 10 % of the most IOPS, and smallest within 10 % of the most bytes per second.

    Each curve counts with its best load. Nothing where both goals want the same size or a curve is noisy.
    """
    for name, group in _varying(curves, "bs"):
        best = sorted((curve.block_bytes, point) for curve in group if (point := curve.best) is not None)
        if len(best) < len(group) or any(math.isnan(size) for size, _ in best):
            continue
        most_iops = max(best, key=lambda one: one[1].iops)[1].iops
        most_bytes = max(best, key=lambda one: one[1].bytes_per_s)[1].bytes_per_s
        for_iops = max(((size, at) for size, at in best if at.iops >= _NEAR_BEST * most_iops), key=lambda one: one[0])
        reaching = [(size, at) for size, at in best if at.bytes_per_s >= _NEAR_BEST * most_bytes]
        if not reaching or reaching[0][0] <= for_iops[0]:
            continue
        small, large = format_size(int(for_iops[0])), format_size(int(reaching[0][0]))
        yield Finding(
            FindingKind.BLOCK_SIZE,
            Confidence.LIKELY,
            f"for I/Os per second use blocks of at most {small}, for bytes per second of at least {large}",
            (
                Evidence(f"at {small}", for_iops[1].iops, "IOPS"),
                Evidence(f"at {small}", for_iops[1].bytes_per_s / 1e6, "MB/s"),
                Evidence(f"at {large}", reaching[0][1].iops, "IOPS"),
                Evidence(f"at {large}", reaching[0][1].bytes_per_s / 1e6, "MB/s"),
            ),
            where=name,
        )


def _modes(curves: Sequence[LoadCurve]) -> Iterator[Finding]:
    """Best mode, each with its best load; a hint only unless it is direct, as that may be the speed of memory."""
    for name, group in _varying(curves, "mode"):
        best = [(curve.values["mode"], point) for curve in group if (point := curve.best) is not None]
        if len(best) < len(group):
            continue
        mode, point = max(best, key=lambda one: one[1].iops)
        other, second = max((one for one in best if one[0] != mode), key=lambda one: one[1].iops)
        ratio = point.iops / second.iops
        if ratio < max(_MODES_DIFFER, 1 + point.spread + second.spread):
            continue
        cached = "" if mode == "direct" else "; that may be the page cache: compare with the counters of the disks"
        yield Finding(
            FindingKind.MODE,
            Confidence.LIKELY if mode == "direct" else Confidence.HINT,
            f"mode {mode} is {100 * (ratio - 1):.0f} % faster than {other}{cached}",
            (Evidence(mode, point.iops, "IOPS"), Evidence(other, second.iops, "IOPS")),
            where=name,
        )


def _varying(curves: Sequence[LoadCurve], key: str) -> Iterator[tuple[str, list[LoadCurve]]]:
    """Yield groups of curves that differ in one knob alone, with a name of what they have in common."""
    groups: dict[tuple[tuple[str, str], ...], list[LoadCurve]] = {}
    for curve in curves:
        if key in curve.values:
            rest = tuple((each, value) for each, value in curve.values.items() if each != key)
            groups.setdefault(rest, []).append(curve)
    for rest, group in groups.items():
        if len({curve.values[key] for curve in group}) > 1:
            yield " ".join(f"{each}={value}" for each, value in rest), group
