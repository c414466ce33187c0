"""A sweep that was made for a need, with the answer to it."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from engine.sizing.measured import MeasuredCurve, curves_of, disk_loads
from engine.sizing.need import Need
from engine.sizing.size import Sizing, size_load
from engine.sweep.runner import SweepResult


class SizedSweep(Struct, frozen=True):
    """What was measured, and what it is read for."""

    result: SweepResult
    need: Need

    @property
    def sizings(self) -> tuple[Sizing, ...]:
        """The answer for each load."""
        return sizings_of(curves_of(self.result.plan, (curve.trials for curve in self.result.curves)), self.need)


def sizings_of(curves: Iterable[MeasuredCurve], need: Need) -> tuple[Sizing, ...]:
    """Answer a need for each load of some curves."""
    return tuple(size_load(load, need) for load in disk_loads(curves))
