"""What varies in a sweep beside the knobs of the load: it is set between the curves."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from engine.job.knobs import Knob, Knobs


@dataclass(frozen=True, slots=True)
class OuterKnob(Knob):
    """A knob that the engine does not turn; those of the load stay as they are whatever its value."""

    def turned(self, knobs: Knobs, value: Any) -> Knobs:  # noqa: ARG002, ANN401 - as a knob
        """Return the same knobs."""
        return knobs
