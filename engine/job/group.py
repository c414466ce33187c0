"""Several loads that run at the same time, each with settings of its own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from msgspec import Struct

from engine.job.spec import JobSpec

MOST_LOADS = 64
"""Each has threads of its own."""


class FlowPart(Struct, frozen=True):
    """The part of a load in the I/Os of all loads with the same number (fio(1), flow)."""

    weight: int
    number: int = 0
    wait_s: float | None = None
    """How long the load waits at a time while it is ahead; None: as short as is reasonable."""


class GroupedLoad(Struct, frozen=True):
    """One of several loads."""

    job: JobSpec
    flow: FlowPart | None = None
    ends_others: bool = False
    """Whether others end with it."""
    ends_others_on_error: bool = False
    """Whether others end if it fails."""
    part: int = 0
    """Part of the group; a load ends those of its own part only."""
    ends_all_parts: bool = False
    begins_after_s: float = 0.0
    """How much later than the first of the others it begins."""


class LoadGroup(Struct, frozen=True):
    """Loads that run at the same time; each ends by itself."""

    loads: tuple[GroupedLoad, ...]

    @property
    def delays_s(self) -> tuple[float, ...]:
        """How much later than the first each load begins."""
        first_s = min(load.begins_after_s for load in self.loads)
        return tuple(load.begins_after_s - first_s for load in self.loads)

    def ended_by(self, index: int) -> tuple[int, ...]:
        """Choose the loads that end with one of them, if that ends any; all by index."""
        one = self.loads[index]
        return tuple(
            other
            for other, load in enumerate(self.loads)
            if other != index and (one.ends_all_parts or load.part == one.part)
        )

    @property
    def jobs(self) -> tuple[JobSpec, ...]:
        """The jobs, in the order of the file."""
        return tuple(load.job for load in self.loads)

    @property
    def names(self) -> tuple[str, ...]:
        """Their names, each different."""
        return distinct([job.name for job in self.jobs])


def distinct(names: Sequence[str]) -> tuple[str, ...]:
    """Add a number to names that come more than once, from the second on."""
    seen: dict[str, int] = defaultdict(int)
    found = []
    for name in names:
        seen[name] += 1
        found.append(name if seen[name] == 1 else f"{name} ({seen[name]})")
    return tuple(found)
