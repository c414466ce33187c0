"""One load of a fleet, from the wait for its hosts to its end on all of them; its knobs are turned while it runs."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from collectors.fleet.controller import FleetController
from collectors.fleet.fleet_load import FleetLoad, Interrupted
from collectors.fleet.fleet_result import FleetResult
from collectors.fleet.host_jobs import HostJob
from collectors.fleet.hosts_text import missing_hosts
from collectors.fleet.waiting import Say, WaitWords
from engine.errors import LunscopeError, RefusedError, UsageError
from engine.job.scenario import Turn, unseen_turns_text
from engine.job.spec import JobSpec, Knobs
from engine.job.validate import validate
from engine.replacing import replace
from engine.running.knob_turns import KnobState
from engine.running.status import LoadState, LoadStatus, StatusStore

Done = Callable[[str], None]
"""Called when a turn is over, from the thread of `run`, with what was refused or an empty text."""
Progress = Callable[[float], None]
"""Called about once a second with the seconds since the start."""
_SETTLE_S = 60.0
_POLL_S = 0.05
_END_S = 60.0
_TURN_CLOCKS_S = 1.0
"""How long a turn by hand waits for clocks that are not known well enough."""


class FleetWork(Struct, frozen=True):
    """What to drive, and how."""

    jobs: Mapping[str, HostJob]
    turns: Sequence[Turn]
    window_s: float
    destroy_data: bool
    partial: bool
    """Whether to go on without hosts that do not answer."""


def await_hosts(controller: FleetController, interrupted: Interrupted, say: Say, *, partial: bool) -> None:
    """Wait until every host has answered or failed, and say who is waited for.

    Raises:
        LunscopeError: one failed or sends no samples and `partial` is not given, or none is there.
    """
    words = WaitWords(say)
    end_s = time.monotonic() + _SETTLE_S
    while not controller.settled() and time.monotonic() < end_s:
        if interrupted(_POLL_S):
            raise LunscopeError("fleet: stopped before the load began")
        waiting = controller.waiting()
        words.note(waiting, len(controller.hosts) - len(waiting), "ready")
    gone = missing_hosts(controller.hosts) | controller.waiting()
    if gone and (not partial or len(gone) == len(controller.hosts)):
        name, why = next(iter(gone.items()))
        more = f" (and {len(gone) - 1} more hosts)" if len(gone) > 1 else ""
        fix = "" if len(gone) == len(controller.hosts) else "; --partial goes on without"
        raise LunscopeError(f"{name}: {why}{more}{fix}")


class FleetDrive:
    """Drives the load in the thread that calls `run`; every other member may be called from any thread."""

    def __init__(self, controller: FleetController, work: FleetWork) -> None:
        self._controller, self._work = controller, work
        self._jobs = dict(work.jobs)
        self._stopping, self._ended = threading.Event(), threading.Event()
        self._ended.set()
        self._interrupted: Interrupted = self._stopping.wait
        self._store = StatusStore()
        self._lock = threading.Lock()
        """Guards the knobs and the request that waits."""
        self._knobs = KnobState(self._widest().job.knobs)
        self._next: tuple[Knobs, Done] | None = None
        self._load: FleetLoad | None = None
        self._started_s = 0.0

    @property
    def status(self) -> LoadStatus:
        """Where the load stands; its targets are the hosts that take part."""
        status = self._store.status
        return replace(status, elapsed_s=self._elapsed_s()) if status.state is LoadState.RUNNING else status

    @property
    def job(self) -> JobSpec:
        """The job of the host with the most targets, with the knobs last asked for."""
        return replace(self._widest().job, knobs=self.knobs)

    @property
    def knobs(self) -> Knobs:
        """The knobs of every host last asked for: in force, pending, or for the next start."""
        return self._knobs.asked

    @property
    def paths(self) -> tuple[str, ...]:
        """Targets of any host that have a path, each once."""
        nodes = (node for each in self._jobs.values() for target in each.job.targets for node in target.nodes)
        return tuple(dict.fromkeys(nodes))

    @property
    def is_turning(self) -> bool:
        """Whether a turn is not yet in force."""
        return self._knobs.asked != self._knobs.knobs

    @property
    def clock_text(self) -> str:
        """How exactly starts and turns are at one time now, or why they are refused."""
        load = self._load
        if load is None:
            return ""
        if refusal := load.clock_refusal():
            return refusal
        bound_ns, spread_ns = self._controller.worst_bound_ns() or 0, load.last_turn_spread_ns
        turned = "" if spread_ns is None else f", the last turn within {spread_ns / 1e6:.2f} ms"
        return f"synchronous within {self._work.window_s * 1e3:g} ms: clocks +-{bound_ns / 1e6:.2f} ms{turned}"

    def run(
        self,
        progress: Progress = lambda _elapsed_s: None,
        interrupted: Interrupted | None = None,
        say: Say = lambda _line: None,
    ) -> None:
        """Drive the load until it has ended on all hosts; blocks.

        Args:
            progress: called about once a second.
            interrupted: ends it, too; without it only `stop` does.
            say: called with the hosts that are waited for; it is the message of the status, too.

        Raises:
            LunscopeError: a host refuses, or is missing and `partial` was not given; no load has run then.
        """
        with self._lock:
            if not self._ended.is_set():
                raise UsageError("the load runs already")
            self._ended.clear()
            self._stopping.clear()
            self._interrupted = interrupted or self._stopping.wait
        self._store.reset(LoadStatus(LoadState.PREPARING, message="waiting for the hosts"))
        try:
            self._run(progress, say)
        except LunscopeError as error:
            state = LoadState.IDLE if self._stopping.is_set() else LoadState.FAILED
            self._store.reset(LoadStatus(state, message=str(error)))
            raise
        finally:
            self._refuse_next("the load has ended")
            self._ended.set()

    def _run(self, progress: Progress, say: Say) -> None:
        def wait(line: str) -> None:
            self._store.change(message=f"waiting: {line}")
            say(f"waiting: {line}")

        await_hosts(self._controller, self._interrupted, wait, partial=self._work.partial)
        self._store.change(message="checking the targets on every host")
        with self._lock:
            self._jobs = {name: each.turned(lambda _: self.knobs) for name, each in self._jobs.items()}
        load = self._load = FleetLoad(self._controller, self._jobs, self._interrupted, self._work.window_s, wait)
        try:
            load.prepare(destroy_data=self._work.destroy_data)
            load.start(open_ended=bool(self._work.turns))
            self._started_s = time.monotonic()
            self._store.reset(LoadStatus(LoadState.RUNNING, targets=load.present))
            self._go_on(load, progress, say)
        finally:
            self._store.change(state=LoadState.STOPPING, elapsed_s=self._elapsed_s())
            if not load.is_over():
                load.stop()
        load.await_end(_END_S)
        self._store.change(state=LoadState.FINISHED)

    def _go_on(self, load: FleetLoad, progress: Progress, say: Say) -> None:
        turns, shown_s = deque(self._work.turns), 0.0
        due_ns = _due_ns(load, 0.0, turns)
        while not load.is_over() and not self._interrupted(_POLL_S):
            elapsed_s = self._elapsed_s()
            if turns and time.monotonic_ns() >= due_ns - load.lead_ns:
                turn = turns[0]
                if not self._turn(load, turn, due_ns):
                    continue
                turns.popleft()
                due_ns = _due_ns(load, turn.at_s, turns)
                if not turns:
                    self._end_after(load, turn.at_s)
            self._turn_as_asked(load)
            self._store.change(message=_missing_text(load.missing), targets=load.present)
            if elapsed_s - shown_s >= 1.0:
                shown_s += 1.0
                progress(elapsed_s)
        if turns and not self._interrupted(0):
            say(unseen_turns_text(turns, self._elapsed_s()))

    def _turn(self, load: FleetLoad, turn: Turn, due_ns: int) -> bool:
        """Turn, unless the load ends or is ended meanwhile; whether the knobs are in force."""
        try:
            load.turn(turn, due_ns)
        except LunscopeError:
            if self._interrupted(0):
                return False
            raise
        if load.is_over():
            return False
        with self._lock:
            self._take(turn.turned(self._knobs.knobs))
        return True

    def _end_after(self, load: FleetLoad, at_s: float) -> None:
        """End the load when its last step is as long as it says; that began with the turn at this time of the file."""
        runtime_s = self._widest().job.runtime_s
        if runtime_s is not None:
            load.end_at(load.in_force_ns + round((runtime_s - at_s) * 1e9))

    def _turn_as_asked(self, load: FleetLoad) -> None:
        with self._lock:
            asked, self._next = self._next, None
        if asked is None:
            return
        knobs, done = asked
        try:
            load.set_knobs(lambda _: knobs, _TURN_CLOCKS_S)
        except LunscopeError as error:
            with self._lock:
                self._take(self._knobs.knobs)
            done(str(error))
        else:
            with self._lock:
                self._take(knobs)
            done("")

    def _take(self, knobs: Knobs) -> None:
        """Note the knobs in force: no others are asked for unless a request waits; by the holder of the lock."""
        self._knobs.put(knobs, None)
        if self._next is None:
            self._knobs.ask(None)

    def request_turn(self, knobs: Knobs, done: Done) -> None:
        """Turn the knobs of all hosts at one time, unless others are asked for before; never blocks.

        Without a load they are those of the next start.

        Raises:
            LunscopeError: they do not fit the job of a host, or write to what it may not write to.
        """
        for name, each in self._jobs.items():
            validate(each.turned(lambda _: knobs).job)
            if path := each.unwritable(knobs):
                raise RefusedError(f"{name}:{path}: writing is not allowed: start with --allow-write {name}:{path}")
        with self._lock:
            running = self._store.status.state is LoadState.RUNNING
            if self._store.status.state in {LoadState.PREPARING, LoadState.STOPPING}:
                raise UsageError(f"wait: the load is {self._store.status.state}")
            replaced, self._next = self._next, ((knobs, done) if running else None)
            if running:
                self._knobs.ask(knobs)
            else:
                self._take(knobs)
        if replaced is not None:
            replaced[1]("")
        if not running:
            done("")

    def stop(self) -> None:
        """Ask every host to stop, and wait until all have, or have gone."""
        self._stopping.set()
        self._ended.wait(_END_S)

    def result(self) -> FleetResult | None:
        """Return what the last load measured; None before the first."""
        return None if self._load is None else self._load.result()

    def _refuse_next(self, why: str) -> None:
        with self._lock:
            waiting, self._next = self._next, None
            self._take(self._knobs.knobs)
        if waiting is not None:
            waiting[1](why)

    def _widest(self) -> HostJob:
        return max(self._jobs.values(), key=lambda each: len(each.job.targets))

    def _elapsed_s(self) -> float:
        return time.monotonic() - self._started_s if self._started_s else 0.0


def _due_ns(load: FleetLoad, at_s: float, turns: Sequence[Turn]) -> int:
    """When the next turn is due, so that the step that began at this time of the file is as long as it says."""
    return load.in_force_ns + round((turns[0].at_s - at_s) * 1e9) if turns else 0


def _missing_text(missing: Mapping[str, str]) -> str:
    if not missing:
        return ""
    name, why = next(iter(missing.items()))
    more = f" (and {len(missing) - 1} more hosts)" if len(missing) > 1 else ""
    return f"without {name}: {why}{more}"
