"""The fleet as a source of samples: one merged sample an interval, or those of one host while it is shown alone."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Iterator

from collectors.fleet.controller import INTERVAL_NS, FleetController
from collectors.fleet.merge import FleetMerge
from collectors.model import Sample, Source, Step
from collectors.sampling.schedule import SECOND_NS
from engine.events import Event
from engine.replacing import replace

GRACE_NS = 300_000_000
"""How long after the time of the grid frames are awaited."""


class FleetSource:
    """Merges the samples of a controller, which it starts and closes; implements collectors.model.Source."""

    seekable = False
    interval_s = INTERVAL_NS / SECOND_NS

    def __init__(self, controller: FleetController) -> None:
        self.controller = controller
        self._merge = FleetMerge(controller.hosts)
        self._is_started = False
        self._events: deque[Event] = deque()

    def start(self) -> None:
        """Begin to connect; `steps` does so, too."""
        if not self._is_started:
            self._is_started = True
            self.controller.start()

    def add_event(self, event: Event) -> None:
        """Add an event of the controller to the next sample; from any thread."""
        self._events.append(event)

    def steps(self, stop: threading.Event) -> Iterator[Step]:
        """Yield a step an interval until `stop` is set."""
        self.start()
        previous: Sample | None = None
        due_ns = _next_due(time.monotonic_ns())
        while not stop.is_set():
            wait_ns = due_ns + GRACE_NS - time.monotonic_ns()
            if wait_ns > 0:
                stop.wait(wait_ns / SECOND_NS)
                continue  # a sample asked for ahead of schedule must wait for its hosts all the same
            current = self._with_own_events(self._merge.sample(due_ns, INTERVAL_NS))
            yield Step(previous, current)
            previous = current
            due_ns = max(due_ns + INTERVAL_NS, _next_due(time.monotonic_ns() - GRACE_NS))

    def _with_own_events(self, sample: Sample) -> Sample:
        own = [self._events.popleft() for _ in range(len(self._events))]
        if not own:
            return sample
        events = sorted((*sample.events, *own), key=lambda event: event.monotonic_ns)
        return replace(sample, events=tuple(events))

    def close(self) -> None:
        """Dismiss all agents; may be called twice."""
        self.controller.close()


def _next_due(now_ns: int) -> int:
    return (now_ns // INTERVAL_NS + 1) * INTERVAL_NS


class HostOrFleet:
    """The merged samples of a source, or all samples of one host while it is in `focus`.

    A recording below goes on with the merged samples.
    """

    seekable = False

    def __init__(self, source: Source, controller: FleetController) -> None:
        self._source = source
        self._controller = controller
        self._focus: str | None = None
        self._trouble = ""

    @property
    def interval_s(self) -> float:
        """Nominal time between samples, in seconds."""
        return self._source.interval_s

    @property
    def controller(self) -> FleetController:
        """The hosts."""
        return self._controller

    @property
    def focus(self) -> str | None:
        """The host that is shown alone."""
        return self._focus

    @property
    def trouble(self) -> str:
        """Why nothing is measured over the hosts, in one line; empty where something is, or was not asked for."""
        return self._trouble

    def report(self, trouble: str) -> None:
        """Say why nothing is measured over the hosts; from any thread."""
        self._trouble = trouble

    def set_focus(self, name: str | None) -> None:
        """Show one host with all that its agent reads, or all hosts."""
        if self._focus is not None:
            self._controller.show_full(self._focus, full=False)
        self._focus = name
        if name is not None:
            self._controller.show_full(name, full=True)

    def steps(self, stop: threading.Event) -> Iterator[Step]:
        """Yield steps; the first after a change has no previous one."""
        shown: str | None = None
        last: Sample | None = None
        for step in self._source.steps(stop):
            focus = self._focus
            if focus is None:
                yield Step(None if shown is not None else step.previous, step.current, step.frame)
                shown = last = None
                continue
            sample = self._controller.hosts[focus].full
            if sample is None or sample is last:
                continue
            yield Step(last if shown == focus else None, sample)
            shown, last = focus, sample

    def close(self) -> None:
        """Close the source."""
        self._source.close()
