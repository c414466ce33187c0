"""Figures of one run from its preparation to its end: counters with the keys of its rows, its errors, its result."""

from __future__ import annotations

import time

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.job.knobs import Knobs
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.results.badge import Badge
from engine.results.result import (
    About,
    EngineFacts,
    EpochResult,
    ErrorCount,
    RunResult,
    epoch_result,
    error_counts,
    evaluate,
)
from engine.results.steadiness import Steadiness
from engine.running.counter_reader import LayoutCounters, PathHistory, tail_line
from engine.running.prepared_run import PreparedRun
from engine.running.status import LoadReading
from engine.verify.passing import PassResult
from engine.verify.run_result import Verified, verified_so_far

_DAMAGED_RANGES = 4
"""Position in LoadEngine.verified."""


class RunState(Struct, frozen=True):
    """What the owner of a run knows of it at the moment of a result."""

    ended: str
    started_ns: int
    elapsed_s: float
    knobs: Knobs
    badges: tuple[Badge, ...]
    steadiness: Steadiness | None


class DriverFigures:
    """Reads what is set up for one run; every member may be called from any thread."""

    def __init__(self, job: JobSpec, prepared_run: PreparedRun, run_number: int) -> None:
        self._job = job
        self._prepared_run = prepared_run
        self._keys = tuple(f"load:{run_number}:{index}" for index in range(len(prepared_run.names)))
        self._layout = LayoutCounters(prepared_run.engine, self._keys, prepared_run.path_names)
        self._path_history = PathHistory()
        self.devices = prepared_run.devices()
        """Numbers of the devices that every target is or is stored on, all paths of it."""

    def damaged_ranges(self) -> int:
        """How many ranges the reads of a verified load found damaged so far."""
        engine = self._prepared_run.verifying
        return 0 if engine is None else int(engine.verified()[:, _DAMAGED_RANGES].sum())

    def verified(self, passes: list[PassResult | None] | None = None) -> Verified | None:
        """Gather what a verified load found so far, and its final passes; None for others."""
        engine = self._prepared_run.verifying
        return None if engine is None else verified_so_far(engine, self._prepared_run.names, passes)

    def observe_paths(self, elapsed_s: float) -> tuple[NDArray[np.uint64], tuple[str, ...]]:
        """Path counters now, columns as the raw table load_path, and the name of each row; none without paths."""
        counters = self._layout.peek()
        self._path_history.observe(counters, self._prepared_run.names, self._layout.names, elapsed_s)
        return counters, self._layout.names

    def tail(self) -> str:
        """Say what the fan-out of the open epoch costs; empty where no I/O is cut or copied."""
        epochs = self._prepared_run.engine.epochs()
        return tail_line(epochs[-1], self._prepared_run.names) if epochs else ""

    def take(self) -> LoadReading:
        """Take counters, peaks and histogram cells since the last call; one caller."""
        prepared_run, layout = self._prepared_run, self._layout.take()
        device_numbers = tuple(target.device_number for target in prepared_run.targets)
        return LoadReading(self._keys, prepared_run.names, *prepared_run.counters.take(), device_numbers, layout)

    def errors(self) -> tuple[ErrorCount, ...]:
        """I/Os that failed so far, the most frequent first."""
        return error_counts(self._prepared_run.engine.errors(), self._prepared_run.names)

    def last_epoch(self, started_ns: int) -> EpochResult:
        """Everything measured since the last turn of the knobs."""
        prepared_run = self._prepared_run
        last = prepared_run.engine.epochs()[-1]
        return epoch_result(last, prepared_run.names, started_ns, time.monotonic_ns(), prepared_run.path_names)

    def result(self, state: RunState, passes: list[PassResult | None] | None = None) -> RunResult:
        """Everything measured so far, with the final passes of a verified load."""
        self.observe_paths(state.elapsed_s)
        prepared_run = self._prepared_run
        result = evaluate(self._about(state), prepared_run.engine, prepared_run.counters.peek(), time.monotonic_ns())
        result = replace(result, paths=self._path_history.outcomes, steadiness=state.steadiness)
        verified = self.verified(passes)
        return result if verified is None else replace(result, verified=verified)

    def _about(self, state: RunState) -> About:
        prepared_run = self._prepared_run
        choice, features = prepared_run.choice, tuple(prepared_run.engine.features)
        return About(
            self._job,
            EngineFacts(choice.backend.value, choice.why, features),
            prepared_run.names,
            prepared_run.notices(state.knobs),
            state.badges,
            state.ended,
            state.elapsed_s,
            prepared_run.path_names,
            state.started_ns,
            self.devices,
            prepared_run.solid_state,
        )
