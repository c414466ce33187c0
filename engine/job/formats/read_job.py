"""What a job file says, whichever tool it is written for."""

from __future__ import annotations

from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError
from engine.job.group import LoadGroup
from engine.job.scenario import Scenario
from engine.text import safe_text

_MOST_NAMES = 4


class JobSearch(Struct, frozen=True):
    """What a file looks for rather than drives, as a sweep does it."""

    refusal: str
    """Why it is not driven as it stands."""
    vary: str
    slo: str | None
    """A limit of latency."""
    steady_limit: str = ""
    """Limit by which it would be steady, as the file has it."""
    steady_s: float | None = None
    """Over how long a time that is to hold; None where it does not say."""

    @property
    def is_steady(self) -> bool:
        """Whether it looks for a steady state, which `run --until-steady` waits for as well."""
        return self.slo is None


class ReadJob(Struct, frozen=True):
    """A job as it was read, with what a reader of its results must know."""

    phases: tuple[Scenario | LoadGroup, ...]
    """At least one phase; each begins when the one before is over."""
    warnings: tuple[str, ...] = ()
    """Options of the file that the load ignores, one line each; none of them changes the load."""
    scratch_folder: Path | None = None
    """Folder where the file wants files that lunscope makes itself."""
    search: JobSearch | None = None
    """Set if it has to be a sweep."""

    @property
    def scenarios(self) -> tuple[Scenario, ...]:
        """The phases, where each is one load.

        Raises:
            UsageError: several unlike loads run at once, which only `run --headless` drives.
        """
        found = tuple(phase for phase in self.phases if isinstance(phase, Scenario))
        if len(found) < len(self.phases):
            raise UsageError(f"{self.at_once}, which only `run --headless` drives: choose one with --section")
        return found

    @property
    def jobs(self) -> tuple[tuple[Scenario, ...], ...]:
        """What runs at the same time, phase by phase."""
        return tuple(
            (phase,) if isinstance(phase, Scenario) else tuple(map(Scenario, phase.jobs)) for phase in self.phases
        )

    @property
    def has_groups(self) -> bool:
        """Whether several loads run at the same time anywhere."""
        return any(isinstance(phase, LoadGroup) for phase in self.phases)

    @property
    def is_timed(self) -> bool:
        """Whether knobs turn at set times, so that no operator is needed."""
        first = self.phases[0]
        return len(self.phases) > 1 or (isinstance(first, Scenario) and bool(first.turns))

    @property
    def at_once(self) -> str:
        """Name the loads of the first group, as in "[a] and [b] run at the same time with unlike settings"."""
        group = next(phase for phase in self.phases if isinstance(phase, LoadGroup))
        names = [f"[{safe_text(name)}]" for name in group.names]
        shown = (
            names if len(names) <= _MOST_NAMES else [*names[: _MOST_NAMES - 1], f"{len(names) - _MOST_NAMES + 1} more"]
        )
        return f"{', '.join(shown[:-1])} and {shown[-1]} run at the same time with unlike settings"
