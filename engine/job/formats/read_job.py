"""What a job file says, whichever tool it is written for."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from engine.job.scenario import Scenario


@dataclass(frozen=True, slots=True)
class JobSearch:
    """What a file looks for rather than drives, as a sweep does it."""

    refusal: str
    """Why it is not driven as it stands."""
    vary: str
    slo: str | None
    """A limit of latency."""

    @property
    def is_steady(self) -> bool:
        """Whether it looks for a steady state, which `run --until-steady` waits for as well."""
        return self.slo is None


@dataclass(frozen=True, slots=True)
class ReadJob:
    """A job as it was read, with what a reader of its results must know."""

    scenarios: tuple[Scenario, ...]
    """At least one; each begins when the one before is over."""
    warnings: tuple[str, ...] = ()
    """Options of the file that the load ignores, one line each; none of them changes the load."""
    scratch_folder: Path | None = None
    """Where the file wants files that lunscope makes itself."""
    response_limits_s: tuple[float, ...] = ()
    """Limits for which the share of I/Os within each is reported, ascending."""
    response_edges_s: tuple[float, ...] = ()
    """Edges of a histogram of response times, ascending."""
    search: JobSearch | None = None
    """Set if it has to be a sweep."""

    @property
    def is_timed(self) -> bool:
        """Whether knobs turn at set times, so that no operator is needed."""
        return len(self.scenarios) > 1 or bool(self.scenarios[0].turns)
