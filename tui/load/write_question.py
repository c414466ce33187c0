"""What is asked before a target is written: its name, beside what is on it."""

from __future__ import annotations

from msgspec import Struct

from engine.job.spec import TargetIdentity


class WriteQuestion(Struct, frozen=True):
    """One target whose name is to be typed; the permission is for what has the name now."""

    path: str
    found: str
    """What the guard found on it, or why it refuses; safe to print."""
    identity: TargetIdentity | None = None
    forgotten: str = ""
    """Why permissions given before no longer hold; empty if they do."""
