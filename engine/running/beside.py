"""What a load has in common with those that run at the same time."""

from __future__ import annotations

from msgspec import Struct

from engine._native import FlowShare
from engine.guard import SharedTargets


class Beside(Struct, frozen=True, eq=False):
    """One of several loads."""

    shared: SharedTargets
    """Targets that others may have open too."""
    flow: FlowShare | None = None
    """Its part of the I/Os."""
