"""The steps of all knobs by the keys that make them."""

from __future__ import annotations

from collections.abc import Mapping

from engine.job.knobs import StepKey, knob_rows

TURNS: Mapping[str, StepKey] = {key.id: key for _, row in knob_rows() for key in row.keys}
"""By the part of the action id after `knob.`."""
