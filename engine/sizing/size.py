"""How many disks a need takes: fitted over the numbers of disks that were measured, and at most twice as many."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct

from engine.sizing.measured import DiskLoad
from engine.sizing.need import Need
from engine.sizing.scale import Capacity, DiskScale
from engine.sizing.width import DiskCurve

MOST_TIMES = 2
"""How many times the disks that were measured it extrapolates to: a limit beyond them leaves no trace in the curve."""
_KEPT = 64
"""Answers that are kept: those of the loads of one sweep."""
_NO_GAIN = 1.05
"""Throughput that twice the disks have to gain, or more disks are of no use."""
_WHOLE_FROM = 10
"""Factors from here on are whole numbers."""


class SizeVerdict(StrEnum):
    """What can be said of a need."""

    FOUND = "found"
    """By measurements, or between them."""
    EXTRAPOLATED = "extrapolated"
    IMPOSSIBLE = "impossible"
    """No number of disks does it."""
    BEYOND = "beyond"
    """It takes more than twice the disks that were measured."""
    UNKNOWN = "unknown"
    """The measurements do not tell."""


class WidthCapacity(Struct, frozen=True):
    """What a measured number of disks can give within the limits."""

    disks: int
    problem: str = ""
    """Why it is not known; empty if it is."""
    depth: int | None = None
    """The highest depth that keeps the limits; None if none does."""
    iops: float | None = None
    """The most of all depths up to it."""
    uncertainty: float = 0.0
    """Half of the 95 % interval of `iops`, as a share of it."""
    latencies_ns: Mapping[str, float] = {}
    """At that depth, or at the lowest where none keeps the limits; of each limit, or the mean without any."""


class DiskSize(Struct, frozen=True):
    """Disks that do it."""

    disks: int
    low: int
    """Lower end of the interval of `disks`, by how far the throughputs are certain."""
    high: int | None
    """None: more than twice the disks that were measured, or no number."""
    depth: int
    """The lowest queue depth of each disk that reaches the need."""
    most_depth: int
    """The highest that keeps the limits."""
    iops: float
    """Throughput at `depth`."""
    most_iops: float
    """Throughput at the best of the depths up to `most_depth`."""
    latencies_ns: Mapping[str, float]
    """At `depth`, of each limit, or the mean without any."""


class Sizing(Struct, frozen=True):
    """The answer for one load."""

    load: str
    """Values of the axes that make no size, such as "bs=4k"; empty without any."""
    verdict: SizeVerdict
    words: str
    """The answer, or why there is none and what to do."""
    size: DiskSize | None = None
    widths: tuple[WidthCapacity, ...] = ()
    iops: float = 0.0
    """I/Os per second that are needed, of I/Os of the size of this load."""


@functools.lru_cache(maxsize=_KEPT)
def size_load(load: DiskLoad, need: Need) -> Sizing:
    """Say how many disks a need takes for one load; screens ask again and again."""
    curves = {disks: DiskCurve(disks, trials) for disks, trials in load.widths}
    widths = tuple(_capacity(curve, need) for curve in curves.values())
    sizer = _Sizer(load, need, curves, widths)
    verdict, words, size = sizer.answer()
    return Sizing(load.name, verdict, words, size, widths, need.iops_of(load.bytes_per_io))


def _capacity(curve: DiskCurve, need: Need) -> WidthCapacity:
    problem = curve.problem
    if not problem and (missing := curve.missing(need)):
        problem = f"too few I/Os for {missing} at some depth: the limits have to be named when it is measured"
    if problem:
        return WidthCapacity(curve.disks, problem)
    kept = curve.most(need)
    latencies = _latencies(curve, need, max(kept - 1, 0))
    if not kept:
        return WidthCapacity(curve.disks, uncertainty=curve.uncertainty, latencies_ns=latencies)
    iops = float(curve.iops[:kept].max())
    return WidthCapacity(curve.disks, "", int(curve.depths[kept - 1]), iops, curve.uncertainty, latencies)


def _latencies(curve: DiskCurve, need: Need, position: int) -> dict[str, float]:
    metrics = [limit.metric for limit in need.limits] or ["mean"]
    known = ((metric, curve.latency_ns(metric)) for metric in metrics)
    return {metric: float(values[position]) for metric, values in known if values is not None}


class _Sizer:
    """Reads the curves of one load the other way round."""

    def __init__(
        self, load: DiskLoad, need: Need, curves: Mapping[int, DiskCurve], widths: Sequence[WidthCapacity]
    ) -> None:
        self._need, self._curves, self._widths = need, curves, widths
        self._bytes_per_io = load.bytes_per_io
        self._wanted = need.iops_of(self._bytes_per_io)
        self._kept = [width for width in widths if width.iops is not None]

    def answer(self) -> tuple[SizeVerdict, str, DiskSize | None]:
        if not self._kept:
            return (*self._never_kept(), None)
        scale = DiskScale([Capacity(each.disks, each.iops or 0.0, each.uncertainty / 2) for each in self._kept])
        found = self._first_enough(scale, range(scale.first, scale.last + 1))
        if found is not None:
            size = self._size(scale, found)
            return SizeVerdict.FOUND, self._found_words(size), size
        if self._may_extrapolate(scale):
            found = self._first_enough(scale, range(scale.last + 1, MOST_TIMES * scale.last + 1))
        if found is not None:
            size = self._size(scale, found)
            return SizeVerdict.EXTRAPOLATED, self._extrapolated_words(scale, size), size
        return (*self._not_enough(scale), None)

    def _first_enough(self, scale: DiskScale, numbers: range) -> int | None:
        return next((disks for disks in numbers if scale.most(disks).best >= self._wanted), None)

    def _may_extrapolate(self, scale: DiskScale) -> bool:
        """Whether two numbers of disks or more show how they scale, and no larger one breaks the limits."""
        return len(self._kept) > 1 and self._breaking(scale) is None

    def _breaking(self, scale: DiskScale) -> WidthCapacity | None:
        """Return the fewest disks that break the limits at any depth although fewer keep them."""
        return next((width for width in self._widths if width.disks > scale.last and not width.problem), None)

    def _size(self, scale: DiskScale, disks: int) -> DiskSize:
        below, most = self._width(scale.below(disks)), scale.most(disks)
        curve, factor = self._curves[below.disks], most.best / (below.iops or 1.0)
        depths = int((curve.depths <= (below.depth or 0)).sum())
        enough = np.flatnonzero(factor * curve.iops[:depths] >= self._wanted * (1 - 1e-9))
        position = int(enough[0]) if len(enough) else int(curve.iops[:depths].argmax())
        numbers = range(scale.first, MOST_TIMES * scale.last + 1)
        low = next(each for each in numbers if scale.most(each).high >= self._wanted)
        high = next((each for each in numbers if scale.most(each).low >= self._wanted), None)
        return DiskSize(
            disks,
            min(low, disks),
            high if high is None else max(high, disks),
            int(curve.depths[position]),
            below.depth or 0,
            float(factor * curve.iops[position]),
            most.best,
            _latencies(curve, self._need, position),
        )

    def _width(self, disks: int) -> WidthCapacity:
        return next(width for width in self._kept if width.disks == disks)

    # ------------------------------------------------------------------ words

    def _found_words(self, size: DiskSize) -> str:
        ends = "" if size.low == size.high == size.disks else f" ({size.low} {_up_to(size.high)})"
        between = "" if size.disks in self._curves else ", between those that were measured"
        return f"{_disks(size.disks)}{ends} at qd={size.depth}{between}: {self._gives(size)}"

    def _extrapolated_words(self, scale: DiskScale, size: DiskSize) -> str:
        times = size.disks / scale.last
        return (
            f"about {_disks(size.disks)} at qd={size.depth}: {self._gives(size)}. Extrapolated to {times:.2g} times "
            f"the {_disks(scale.last)} that were measured: a limit of port, link or array in between would not be seen"
        )

    def _gives(self, size: DiskSize) -> str:
        latencies = ", ".join(f"{metric} {_ms(value)}" for metric, value in size.latencies_ns.items())
        limits = (
            f"qd={size.most_depth} keeps {self._need.limits_text}"
            if self._need.limits
            else f"up to qd={size.most_depth}"
        )
        return f"{self._rate(size.iops)}, {latencies}; {limits}, with {self._rate(size.most_iops)} at most"

    def _rate(self, iops: float) -> str:
        text = f"{iops:,.0f} IOPS"
        return text if self._need.bytes_per_s is None else f"{text}, {iops * self._bytes_per_io / 1e6:,.1f} MB/s"

    def _within(self) -> str:
        return f" within {self._need.limits_text}" if self._need.limits else ""

    def _never_kept(self) -> tuple[SizeVerdict, str]:
        known = [width for width in self._widths if not width.problem]
        if not known:
            return SizeVerdict.UNKNOWN, f"not known: {self._widths[0].problem}"
        fewest = known[0]
        lowest = int(self._curves[fewest.disks].depths[0])
        limit = max(self._need.limits, key=lambda each: fewest.latencies_ns[each.metric] / each.limit_ns)
        at = f"{limit.metric} is {_ms(fewest.latencies_ns[limit.metric])} on {_disks(fewest.disks)} at qd={lowest}"
        if lowest > 1 or fewest.disks > 1:
            return SizeVerdict.UNKNOWN, f"not known: {at}, the least that was measured: measure 1 disk from qd=1 on"
        return SizeVerdict.IMPOSSIBLE, f"not possible: {at}; more disks do not shorten an I/O that waits for no other"

    def _not_enough(self, scale: DiskScale) -> tuple[SizeVerdict, str]:
        most = max((scale.most(disks).best, -disks) for disks in range(scale.first, scale.last + 1))
        here = f"{_disks(-most[1])} give{'s' if most[1] == -1 else ''} {self._rate(most[0])} at most{self._within()}"
        breaking = self._breaking(scale)
        if breaking is not None:
            return self._broken(scale, breaking, here)
        if len(self._kept) == 1:
            return (
                SizeVerdict.UNKNOWN,
                f"not known: {here}, and how more disks scale was not measured: vary stripe_width",
            )
        beyond, last = scale.most(MOST_TIMES * scale.last), scale.most(scale.last)
        if beyond.best < last.best * _NO_GAIN:
            if beyond.high < self._wanted:
                return SizeVerdict.IMPOSSIBLE, f"not possible: {here}, and more disks add nothing"
            return SizeVerdict.UNKNOWN, f"not known: {here}, and whether more add anything is not certain: measure more"
        times, least = self._wanted / last.best, -(-scale.last * self._wanted // (last.best * MOST_TIMES))
        factor = f"{times:,.0f}" if times >= _WHOLE_FROM else f"{times:.2g}"
        return SizeVerdict.BEYOND, (
            f"not answered: {here}, the need is {factor} times that: more than {MOST_TIMES} times the disks that "
            f"were measured would be a guess. Measure {least:,.0f} disks or more"
        )

    def _broken(self, scale: DiskScale, breaking: WidthCapacity, here: str) -> tuple[SizeVerdict, str]:
        """Say that more disks break the limits: those in between give as much in proportion at most."""
        lowest = int(self._curves[breaking.disks].depths[0])
        words = ", ".join(f"{metric} is {_ms(value)}" for metric, value in breaking.latencies_ns.items())
        words = f"{here}; on {_disks(breaking.disks)} {words} at qd={lowest} already"
        if lowest == 1 and scale.most(scale.last).high * (breaking.disks - 1) / scale.last < self._wanted:
            return SizeVerdict.IMPOSSIBLE, f"not possible: {words}"
        return SizeVerdict.UNKNOWN, f"not known: {words}: measure the numbers in between, from qd=1 on"


def _disks(count: int) -> str:
    return "1 disk" if count == 1 else f"{count} disks"


def _up_to(high: int | None) -> str:
    return "or more" if high is None else f"to {high}"


def _ms(latency_ns: float) -> str:
    return f"{latency_ns / 1e6:.3g} ms"
