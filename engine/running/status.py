"""The state and counters of the load: frozen views, and the store of the current one."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from enum import StrEnum
from typing import Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.backend.outstanding import Outstanding
from engine.backend.protocol import Cells
from engine.events import Event, EventKind
from engine.job.spec import JobSpec, Knobs
from engine.replacing import replace
from engine.results.badge import Badge
from engine.running.counter_reader import LayoutReading


class LoadState(StrEnum):
    """State of a load."""

    IDLE = "idle"
    PREPARING = "preparing"
    ARMED = "armed"
    RUNNING = "running"
    STOPPING = "stopping"
    FINISHED = "finished"
    FAILED = "failed"


class LoadStatus(Struct, frozen=True):
    """A frozen view of the load for screens."""

    state: LoadState = LoadState.IDLE
    job: JobSpec | None = None
    """Job with the knobs in force."""
    targets: tuple[str, ...] = ()
    """What people read: path, or "scratch 1 (256 MiB in ~/.cache/lunscope)"."""
    devices: tuple[tuple[int, ...], ...] = ()
    """Numbers of the devices that every target is or is stored on, all paths of it."""
    backend: str = ""
    progress: float | None = None
    """Share of the preparation done, 0 to 1, while preparing."""
    message: str = ""
    """One line: why it failed, what it waits for, or a notice such as "QD 256 is above nr_requests 128"."""
    tail: str = ""
    """What the fan-out over several targets costs now; empty where no I/O is cut or copied."""
    badges: tuple[Badge, ...] = ()
    """What makes the figures less than they seem, by what is known so far."""
    waits: bool = False
    """Whether I/Os of the last knobs must wait for older ones and for cached data to reach the medium."""
    epoch: int = 0
    elapsed_s: float = 0.0
    errors: int = 0
    skipped: int = 0
    """Arrivals of an open loop that found no free slot in time."""
    outstanding: tuple[Outstanding, ...] = ()
    """I/Os outstanding for longer than a second."""
    damaged: int = 0
    """Ranges that a verified load found damaged."""

    @property
    def knobs(self) -> Knobs | None:
        """The knobs in force; None without a job."""
        return None if self.job is None else self.job.knobs


class LoadReading(Struct, frozen=True, eq=False):
    """What the load collector turns into a table and histograms."""

    keys: tuple[str, ...]
    """One per target and unique per run; the same object during a run."""
    names: tuple[str, ...]
    values: NDArray[np.uint64]
    """Shape (targets, 17), columns as the raw table load."""
    cells: Cells
    slowest: NDArray[np.uint64]
    """Slowest I/Os since the reading before, shape (n, 6), the first columns of the raw table slow_load."""
    device_numbers: tuple[tuple[int, int], ...]
    """Major and minor of the device that each target is or is stored on."""
    layout: LayoutReading | None = None
    """Paths and logical I/Os; None for a load that has neither."""


class StatusStore:
    """The status and the events not yet taken; every member may be called from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._status = LoadStatus()
        self._events: list[Event] = []
        self._taken: tuple[Event, ...] = ()

    @property
    def status(self) -> LoadStatus:
        """What was last written."""
        return self._status

    def reset(self, status: LoadStatus) -> None:
        """Write a whole status."""
        with self._lock:
            self._status = status

    def change(self, **fields: Any) -> None:  # noqa: ANN401 (the fields of LoadStatus, which `replace` checks)
        """Write some fields and keep the others."""
        with self._lock:
            self._status = replace(self._status, **fields)

    def note(
        self, kind: EventKind, text: str, data: Mapping[str, str | float | None], monotonic_ns: int | None = None
    ) -> None:
        """Add an event of the given monotonic time, else of now."""
        event = Event.now(kind, text, **data)
        if monotonic_ns is not None:
            event = event.moved_to(monotonic_ns)
        with self._lock:
            self._events.append(event)

    @property
    def recent_events(self) -> tuple[Event, ...]:
        """The events that were taken last, and those since."""
        with self._lock:
            return (*self._taken, *self._events)

    def take_events(self) -> tuple[Event, ...]:
        """Return the events since the last call; one caller."""
        with self._lock:
            self._taken, self._events = tuple(self._events), []
            return self._taken
