"""What a job file says, whichever tool it is written for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.job.scenario import Scenario


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job as it was read, with what a reader of its results must know."""

    scenarios: tuple[Scenario, ...]
    """At least one; each begins when the one before is over."""
    warnings: tuple[str, ...] = ()
    """What the file asks for and the load does not do, one line each; nothing that changes the load."""
    scratch_folder: Path | None = None
    """Where the file wants files that lunscope makes itself."""
    response_times_s: tuple[float, ...] = ()
    """Limits for which the share of I/Os within each is asked for."""

    @property
    def is_timed(self) -> bool:
        """Whether something happens at set times, which nobody at a screen would do."""
        return len(self.scenarios) > 1 or bool(self.scenarios[0].turns)
