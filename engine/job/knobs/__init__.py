"""Knobs: what may be turned while the load runs. `values.py` has one entry for each; all else follows from it."""

from engine.job.knobs.knob import FioNumber, FormLine, Knob, Row, StepContext, StepKey, StepSize
from engine.job.knobs.register import KNOBS, KNOBS_BY_KEY, engine_refusal, knob_problems, knob_rows
from engine.job.knobs.values import Knobs

__all__ = [
    "KNOBS",
    "KNOBS_BY_KEY",
    "FioNumber",
    "FormLine",
    "Knob",
    "Knobs",
    "Row",
    "StepContext",
    "StepKey",
    "StepSize",
    "engine_refusal",
    "knob_problems",
    "knob_rows",
]
