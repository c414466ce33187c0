"""Jobs that step through the values of one knob, as NDISK parameter files do: to a sweep the steps are an axis."""

from __future__ import annotations

from engine.job.knobs import KNOBS
from engine.job.knobs.kinds import WholeNumber
from engine.job.scenario import Scenario
from engine.sweep.axes import SweepAxis


def axis_of_steps(scenario: Scenario) -> SweepAxis | None:
    """Return the axis of a job whose turns all change the same knob; None where none or several change."""
    names = {name for turn in scenario.turns for name, _ in turn.changes}
    if len(names) != 1:
        return None
    knob = KNOBS[names.pop()]
    values = [getattr(scenario.job.knobs, knob.id), *(getattr(knobs, knob.id) for _, knobs in scenario.states())]
    once = dict.fromkeys(values)
    return SweepAxis(knob, tuple(sorted(once)) if isinstance(knob.kind, WholeNumber) else tuple(once))
