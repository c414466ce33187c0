"""What is asked before a target is written: its name, beside what is on it."""

from __future__ import annotations

from msgspec import Struct

from engine.job.spec import TargetIdentity


class WriteQuestion(Struct, frozen=True):
    """One target whose name is to be typed; the permission is for what has the name now."""

    path: str
    found: str
    """What the guard found on it; safe to print."""
    refusal: str = ""
    """Why it is not written, whatever is typed; empty if its name permits it."""
    identity: TargetIdentity | None = None
    forgotten: str = ""
    """Why permissions given before no longer hold; empty if they do."""
