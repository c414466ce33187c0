"""The one owner of the load that screens, the recorder and the command line share."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from engine.job import JobSpec, Knobs


class LoadState(StrEnum):
    """Where a load stands."""

    IDLE = "idle"
    PREPARING = "preparing"
    ARMED = "armed"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"


@dataclass(frozen=True, slots=True)
class LoadStatus:
    """A frozen view of the load for screens."""

    state: LoadState = LoadState.IDLE
    job: JobSpec | None = None
    knobs: Knobs | None = None
    targets: tuple[str, ...] = ()
    """What people read: path, or "scratch 1 (256 MiB in ~/.cache/lunscope)"."""
    backend: str = ""
    progress: float | None = None
    """Share of the preparation done, 0 to 1, while preparing."""
    message: str = ""
    """One line: why it failed, what it waits for, or a notice such as "QD 256 is above nr_requests 128"."""
    epoch: int = 0
    elapsed_s: float = 0.0
    errors: int = 0
