"""What is known of one run of the load, from any thread: its state, its figures, what is outstanding."""

from __future__ import annotations

import time

import numpy as np
from numpy.typing import NDArray

from engine._native import VerifyPass
from engine.backend.outstanding import Outstanding, Waits
from engine.errors import LunscopeError
from engine.job.spec import JobSpec
from engine.replacing import replace
from engine.results.badge import Badge
from engine.results.caveats import run_badges
from engine.results.result import (
    About,
    EngineFacts,
    EpochResult,
    ErrorCount,
    RunResult,
    epoch_result,
    error_counts,
    evaluate,
    nothing_measured,
)
from engine.results.steadiness import steady_badges
from engine.running.counter_reader import LayoutCounters, PathHistory, tail_line
from engine.running.knob_turns import KnobState
from engine.running.prepared_run import PreparedRun
from engine.running.status import LoadReading
from engine.running.steady_watch import SteadyWatch
from engine.verify.passing import PassResult
from engine.verify.run_result import Verified, verified_so_far

_DAMAGED_RANGES = 4
"""Position in LoadEngine.verified."""


class ObservedRun:
    """State of a run, which the driver changes; `run_number` is part of the keys of its rows."""

    def __init__(self, job: JobSpec, knobs: KnobState, run_number: int) -> None:
        self._job = job
        self._knobs = knobs
        self._run_number = run_number
        self._prepared_run: PreparedRun | None = None
        self._keys: tuple[str, ...] = ()
        self._layout: LayoutCounters | None = None
        """Counters of paths and whole I/Os; there as long as the prepared run is."""
        self._path_history = PathHistory()
        self._devices: tuple[tuple[int, ...], ...] = ()
        self._steady = SteadyWatch(job)
        self._started_ns: int | None = None
        self._ended_ns: int | None = None
        self._result: RunResult | None = None
        self._last_reading: LoadReading | None = None
        self._waits = Waits()
        self._pass: tuple[VerifyPass, str] | None = None
        """The final pass that is being made, and its target."""
        self._never_returned: tuple[Outstanding, ...] = ()

    @property
    def target_names(self) -> tuple[str, ...]:
        """What people call the targets; empty before `prepare`."""
        return () if self._prepared_run is None else self._prepared_run.names

    @property
    def used_bytes(self) -> tuple[int, ...]:
        """How many bytes of each target the job may use; empty before `prepare`."""
        prepared_run = self._prepared_run
        targets = () if prepared_run is None else prepared_run.targets
        return tuple(target.size_bytes - self._job.offset_bytes for target in targets)

    @property
    def device_numbers(self) -> tuple[tuple[int, ...], ...]:
        """Numbers of the devices that every target is or is stored on, all paths of it; empty before `prepare`."""
        return self._devices

    @property
    def backend(self) -> str:
        """The engine taken; empty before `prepare`."""
        return "" if self._prepared_run is None else self._prepared_run.choice.backend.value

    @property
    def notices(self) -> tuple[str, ...]:
        """What a reader of the numbers must know, one line each."""
        return () if self._prepared_run is None else self._prepared_run.notices(self._knobs.knobs)

    @property
    def badges(self) -> tuple[Badge, ...]:
        """What makes the figures less than they seem, by what is known so far."""
        prepared_run = self._prepared_run
        if prepared_run is not None:
            knobs = self._knobs.knobs
            own = prepared_run.badges(knobs) if self._job.stays_awake else prepared_run.live_badges(knobs)
            epochs = self._knobs.now.epoch + 1
            return (*own, *steady_badges(self._steady.found, self._job, wanted=False, epochs=epochs))
        return () if self._result is None else run_badges(self._result)

    @property
    def message(self) -> str:
        """Notices and badges in one line."""
        return "; ".join((*self.notices, *(badge.line for badge in self.badges)))

    @property
    def running(self) -> bool:
        """Whether I/Os are being issued."""
        return self._started_ns is not None and self._prepared_run is not None and self._prepared_run.engine.running

    @property
    def waits(self) -> bool:
        """Whether older I/Os, or dirty pages where the page cache is turned off, hold up those of the new epoch."""
        return self._prepared_run is not None and self._prepared_run.engine.waits

    @property
    def fault(self) -> str:
        """Why the engine ended by itself, empty if it did not or if its runtime was over."""
        return "" if self._prepared_run is None else self._prepared_run.engine.fault

    @property
    def done(self) -> bool:
        """Whether the engine ended by itself because all bytes of the job were transferred."""
        return self._prepared_run is not None and self._prepared_run.engine.done

    @property
    def ending(self) -> str:
        """Why a load without a fault is over: all bytes were transferred, it is steady, or its runtime is over."""
        return "size" if self.done else "steady" if self.ends_steady else "runtime"

    @property
    def started_ns(self) -> int | None:
        """Monotonic time of the start; None before it."""
        return self._started_ns

    @property
    def elapsed_s(self) -> float:
        """Seconds since the start, up to the end."""
        if self._started_ns is None:
            return 0.0
        return ((self._ended_ns or time.monotonic_ns()) - self._started_ns) / 1e9

    @property
    def ends_steady(self) -> bool:
        """Whether the load is to end because it is steady."""
        return self._job.until_steady and self._steady.is_steady

    def outstanding(self, at_least_s: float = 0.0) -> tuple[Outstanding, ...]:
        """Return what has been outstanding for a time; after it was given up, what never completed."""
        prepared_run, reads = self._prepared_run, self._pass
        own = self._never_returned if prepared_run is None else prepared_run.outstanding(at_least_s)
        ios, since_ns = (0, 0) if reads is None else reads[0].outstanding(at_least_s)
        of_pass = () if reads is None or not ios else (Outstanding(reads[1], ios, since_ns, "read-back"),)
        return (*own, *of_pass, *self._waits.outstanding(at_least_s))

    def damaged_ranges(self) -> int:
        """How many ranges the reads of a verified load found damaged so far."""
        engine = None if self._prepared_run is None else self._prepared_run.verifying
        return 0 if engine is None else int(engine.verified()[:, _DAMAGED_RANGES].sum())

    def verified(self, passes: list[PassResult | None] | None = None) -> Verified | None:
        """Gather what a verified load found so far, and its final passes; None for others, and when it is over."""
        prepared_run = self._prepared_run
        engine = None if prepared_run is None else prepared_run.verifying
        return None if prepared_run is None or engine is None else verified_so_far(engine, prepared_run.names, passes)

    def peek(self) -> NDArray[np.uint64] | None:
        """Counters now, columns as the raw table load, peaks left for `reading`; None while there is no engine."""
        prepared_run = self._prepared_run
        return None if prepared_run is None else prepared_run.counters.peek()

    def observe_paths(self) -> tuple[NDArray[np.uint64], tuple[str, ...]]:
        """Path counters now, columns as the raw table load_path, and the name of each row; none without paths."""
        prepared_run, layout = self._prepared_run, self._layout
        if prepared_run is None or layout is None:
            return np.zeros((0, 12), np.uint64), ()
        counters = layout.peek()
        self._path_history.observe(counters, prepared_run.names, layout.names, self.elapsed_s)
        return counters, layout.names

    def tail(self) -> str:
        """Say what the fan-out of the open epoch costs; empty where no I/O is cut or copied."""
        prepared_run = self._prepared_run
        epochs = () if prepared_run is None else prepared_run.engine.epochs()
        return "" if prepared_run is None or not epochs else tail_line(epochs[-1], prepared_run.names)

    def reading(self) -> LoadReading | None:
        """Take counters, peaks and histogram cells since the last call, and once more after the end; one caller."""
        prepared_run, layout = self._prepared_run, self._layout
        if prepared_run is not None and layout is not None:
            return self._take(prepared_run, layout) if self._started_ns is not None else None
        last, self._last_reading = self._last_reading, None
        return last

    def _take(self, prepared_run: PreparedRun, layout: LayoutCounters) -> LoadReading:
        engine = prepared_run.engine
        device_numbers = tuple(target.device_number for target in prepared_run.targets)
        own = prepared_run.counters.take(), engine.cells(), engine.slowest()
        return LoadReading(self._keys, prepared_run.names, *own, device_numbers, layout.take())

    def errors(self) -> tuple[ErrorCount, ...]:
        """I/Os that failed so far, the most frequent first."""
        prepared_run = self._prepared_run
        return () if prepared_run is None else error_counts(prepared_run.engine.errors(), prepared_run.names)

    def result(self) -> RunResult:
        """Everything measured so far."""
        prepared_run = self._prepared_run
        if prepared_run is not None and self._started_ns is not None:
            return self._evaluate(prepared_run, "", prepared_run.badges(self._knobs.knobs))
        return self._result or nothing_measured(self._job)

    def _evaluate(
        self,
        prepared_run: PreparedRun,
        ended: str,
        badges: tuple[Badge, ...],
        passes: list[PassResult | None] | None = None,
    ) -> RunResult:
        self.observe_paths()
        choice, engine = prepared_run.choice, prepared_run.engine
        about = About(
            self._job,
            EngineFacts(choice.backend.value, choice.why, tuple(engine.features)),
            prepared_run.names,
            prepared_run.notices(self._knobs.knobs),
            badges,
            ended,
            self.elapsed_s,
            prepared_run.path_names,
            self._started_ns or 0,
            self._devices,
            prepared_run.solid_state,
        )
        result = evaluate(about, engine, prepared_run.counters.peek(), time.monotonic_ns())
        result = replace(result, paths=self._path_history.outcomes, steadiness=self._steady.found)
        verified = self.verified(passes)
        return result if verified is None else replace(result, verified=verified)

    def last_epoch(self) -> EpochResult | None:
        """Everything measured since the last turn of the knobs, or of the last epoch of all; None before the first."""
        prepared_run, started_ns = self._prepared_run, self._started_ns
        if prepared_run is None or started_ns is None:
            return None if self._result is None or not self._result.epochs else self._result.epochs[-1]
        last = prepared_run.engine.epochs()[-1]
        return epoch_result(last, prepared_run.names, started_ns, time.monotonic_ns(), prepared_run.path_names)

    def _prepared(self) -> PreparedRun:
        if self._prepared_run is None:
            raise LunscopeError("the load is not prepared")
        return self._prepared_run
