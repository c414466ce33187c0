"""The one owner of several loads that run at the same time; read as one load by collector and recorder."""

from __future__ import annotations

import itertools
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from engine._native import FlowShare, flow_shares
from engine.backend.outstanding import Outstanding
from engine.background_call import BackgroundCall
from engine.errors import LunscopeError, StoppedError
from engine.events import Event
from engine.guard import SharedTargets, refuse_conflicts
from engine.job.group import GroupedLoad, LoadGroup
from engine.job.spec import Permissions
from engine.running.control import LoadControl
from engine.running.group_reading import GroupReadings, named, named_event, named_outstanding
from engine.running.status import LoadReading, LoadState, LoadStatus

if TYPE_CHECKING:
    from engine.results.result import RunResult

_POLL_S = 0.05
_ORDER = (
    *(LoadState.PREPARING, LoadState.RUNNING, LoadState.STOPPING, LoadState.FAILED),
    *(LoadState.ARMED, LoadState.FINISHED, LoadState.IDLE),
)
"""States in their order: a group has the first of those of its loads."""


class GroupControl:
    """At most one group at a time, each load with a LoadControl of its own; members may be called from any thread.

    `arm`, `start` and `stop` block. Each load ends by itself and as its job says; a failure of one leaves the others
    alone unless the group says otherwise.
    """

    def __init__(self) -> None:
        self._runs = itertools.count(1)
        self._controls = [LoadControl(self._runs)]
        self._readings = GroupReadings()
        self._group: LoadGroup | None = None
        self._before: tuple[RunResult | None, ...] = ()
        """What the controls had measured before this group."""
        self._stopping = threading.Event()

    def alone(self) -> LoadControl:
        """Return a control for one load alone, between groups; what it counts is read here as well."""
        self._group = None
        return self._controls[0]

    @property
    def loads(self) -> tuple[tuple[str, LoadControl], ...]:
        """The loads of the group with their names; one without a name where there is no group."""
        group = self._group
        names = ("",) if group is None else group.names
        return tuple(zip(names, self._controls, strict=False))

    @property
    def status(self) -> LoadStatus:
        """The state of all together: sums, the longest time, and the first of their states that matters."""
        each = [(name, control.status) for name, control in self.loads]
        states = [status.state for _, status in each]
        progress = next((status.progress for _, status in each if status.state is LoadState.PREPARING), None)
        return LoadStatus(
            min(states, key=_ORDER.index),
            targets=tuple(target for _, status in each for target in status.targets),
            progress=progress,
            message="; ".join(named(name, status.message) for name, status in each if status.message),
            elapsed_s=max(status.elapsed_s for _, status in each),
            errors=sum(status.errors for _, status in each),
            skipped=sum(status.skipped for _, status in each),
            outstanding=tuple(named_outstanding(name, waits) for name, status in each for waits in status.outstanding),
            damaged=sum(status.damaged for _, status in each),
        )

    def arm(self, group: LoadGroup, permissions: Permissions) -> None:
        """Prepare all loads, one after the other; blocks.

        Raises:
            StoppedError: `stop` was called meanwhile.
            LunscopeError: what is wrong with a load or its targets, with its name; nothing is left behind.
        """
        refuse_conflicts(dict(zip(group.names, group.jobs, strict=True)))
        self._stopping.clear()
        while len(self._controls) < len(group.loads):
            self._controls.append(LoadControl(self._runs))
        self._group = group
        self._before = tuple(control.result() for control in self._controls)
        shared, shares = SharedTargets(), _flow_shares(group)
        try:
            self._arm(group, permissions, shared, shares)
        except BaseException:
            self._end_all()
            raise
        finally:
            shared.close()

    def _arm(
        self, group: LoadGroup, permissions: Permissions, shared: SharedTargets, shares: list[FlowShare | None]
    ) -> None:
        from engine.running.prepared_run import Beside  # noqa: PLC0415 (as the driver of a load)

        for (name, control), load, share in zip(self.loads, group.loads, shares, strict=True):
            if self._stopping.is_set():
                raise StoppedError("stopped before the load began")
            with _naming(name):
                control.arm(load.job, permissions, Beside(shared, share))

    def start(self) -> None:
        """Start all that are armed, with all checks before the first I/O of any; some begin later, as the group says.

        Raises:
            LunscopeError: a target changed since it was opened; all loads are let go then.
        """
        group = self._group
        assert group is not None
        delays = group.delays_s
        at_once = [load for load, after_s in zip(self.loads, delays, strict=True) if not after_s]
        try:
            for name, control in at_once:
                with _naming(name):
                    control.recheck()
            for name, control in at_once:
                with _naming(name):
                    control.start()
        except BaseException:
            self._end_all()
            raise
        for (_, control), after_s in zip(self.loads, delays, strict=True):
            if after_s:
                later = (group, control, after_s)
                threading.Thread(target=self._start_later, args=later, name="lunscope-later", daemon=True).start()
        if any(load.ends_others or load.ends_others_on_error for load in group.loads):
            threading.Thread(target=self._end_with, args=(group,), name="lunscope-group", daemon=True).start()

    def _start_later(self, group: LoadGroup, control: LoadControl, after_s: float) -> None:
        """Check and start a load some time after the first of the others, unless it is stopped before."""
        if self._stopping.wait(after_s) or self._group is not group:
            return
        # Its status says why it failed; the others go on.
        with suppress(LunscopeError):
            control.start()

    def wait(self, timeout_s: float) -> bool:
        """Wait for the end of all loads; whether it has come."""
        until_s = time.monotonic() + timeout_s
        return all(control.wait(max(until_s - time.monotonic(), 0.0)) for _, control in self.loads)

    def stop(self, *, verify: bool = True, give_up_s: float | None = None) -> tuple[Outstanding, ...]:
        """End all loads at the same time, each as LoadControl.stop; returns what is still outstanding of them."""
        self._stopping.set()
        self._end_all(verify=verify, give_up_s=give_up_s)
        return self.outstanding

    def abandon(self) -> None:
        """Make present and future calls of `stop` no longer wait for I/Os that do not complete; never blocks."""
        for _, control in self.loads:
            control.abandon()

    @property
    def outstanding(self) -> tuple[Outstanding, ...]:
        """Everything that is outstanding now, or that never completed."""
        return tuple(named_outstanding(name, waits) for name, control in self.loads for waits in control.outstanding)

    def results(self) -> tuple[tuple[str, RunResult | None], ...]:
        """Return what each load measured, None for one that did not run."""
        each = zip(self.loads, self._before, strict=False)
        found = ((name, control.result(), before) for (name, control), before in each)
        return tuple((name, None if result is before else result) for name, result, before in found)

    def reading(self) -> LoadReading | None:
        """Counters of each load from its start to the end of all, once more after that, then None; one caller."""
        return self._readings.combined([(name, control.reading()) for name, control in self._read()])

    def take_events(self) -> tuple[Event, ...]:
        """Return the events since the last call, by time; one caller."""
        events = [named_event(name, event) for name, control in self._read() for event in control.take_events()]
        return tuple(sorted(events, key=lambda event: event.monotonic_ns))

    def _read(self) -> Iterator[tuple[str, LoadControl]]:
        """Yield every control there is: those of the last group may have something left."""
        names = {id(control): name for name, control in self.loads}
        return ((names.get(id(control), ""), control) for control in tuple(self._controls))

    def _end_all(self, *, verify: bool = True, give_up_s: float | None = None) -> None:
        _end([control for _, control in self.loads], verify=verify, give_up_s=give_up_s)

    def _end_with(self, group: LoadGroup) -> None:
        """End those loads that are to end with one that ended, or failed."""
        ending = set(range(len(group.loads)))
        while not self.wait(_POLL_S) and self._group is group:
            controls = [control for _, control in self.loads]
            found = {index for index in ending if _ends_others(group.loads[index], controls[index])}
            ending -= found
            ended = {other for index in found for other in group.ended_by(index)}
            _end([controls[index] for index in sorted(ended)])


def _end(controls: Sequence[LoadControl], *, verify: bool = True, give_up_s: float | None = None) -> None:
    calls = [BackgroundCall(_stop_of(each, verify=verify, give_up_s=give_up_s), "lunscope-stop") for each in controls]
    for call in calls:
        call.done.wait()
    for call in calls:
        call.result()


def _stop_of(control: LoadControl, *, verify: bool, give_up_s: float | None) -> Callable[[], tuple[Outstanding, ...]]:
    return lambda: control.stop(verify=verify, give_up_s=give_up_s)


def _ends_others(load: GroupedLoad, control: LoadControl) -> bool:
    failed = control.status.state is LoadState.FAILED
    return control.wait(0) and (load.ends_others or (load.ends_others_on_error and failed))


def _flow_shares(group: LoadGroup) -> list[FlowShare | None]:
    by_number: dict[int, list[int]] = defaultdict(list)
    for index, load in enumerate(group.loads):
        if load.flow is not None:
            by_number[load.flow.number].append(index)
    shares: list[FlowShare | None] = [None] * len(group.loads)
    for indices in by_number.values():
        loads = [(group.loads[index], {index, *group.ended_by(index)} >= set(indices)) for index in indices]
        found = flow_shares(
            [
                (load.flow.weight, load.flow.wait_s, load.ends_others and ends_all)
                for load, ends_all in loads
                if load.flow is not None
            ]
        )
        for index, share in zip(indices, found, strict=True):
            shares[index] = share
    return shares


@contextmanager
def _naming(load: str) -> Iterator[None]:
    """Say which load an error belongs to."""
    try:
        yield
    except StoppedError:
        raise
    except LunscopeError as error:
        raise type(error)(named(load, str(error))) from None
