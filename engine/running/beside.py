"""What a load has in common with those that run at the same time."""

from __future__ import annotations

from dataclasses import dataclass

from engine._native import FlowShare
from engine.guard import SharedTargets


@dataclass(frozen=True, slots=True, eq=False)
class Beside:
    """One of several loads."""

    shared: SharedTargets
    """Targets that others may have open too."""
    flow: FlowShare | None = None
    """Its part of the I/Os."""
