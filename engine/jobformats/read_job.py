"""What a job file says, whichever tool it is written for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.scenario import Scenario


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job as it was read, with what a reader of its results must know."""

    scenario: Scenario
    warnings: tuple[str, ...] = ()
    """What the file asks for and the load does not do, one line each; nothing that changes the load."""
    scratch_folder: Path | None = None
    """Where the file wants files that lunscope makes itself."""
    response_times_s: tuple[float, ...] = ()
    """Limits for which the share of I/Os within each is asked for."""
