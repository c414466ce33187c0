"""How the value axis of a chart runs."""

from __future__ import annotations

from enum import StrEnum


class AxisChoice(StrEnum):
    """How the axis of values runs."""

    AUTO = "automatic"
    """Logarithmic where the largest value would flatten the rest."""
    LOG = "logarithmic"
    LINEAR = "linear"
