"""One load over all hosts of a fleet: armed everywhere, started and turned at one time, ended everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import replace

from collectors.fleet.controller import FleetController
from collectors.fleet.fleet_host import FleetHost
from collectors.fleet.fleet_result import FleetResult, HostResult, host_result
from collectors.fleet.frames import Frame
from collectors.fleet.host_jobs import HostJob
from engine.errors import LunscopeError, RefusedError
from engine.job.file import dump_job
from engine.job.scenario import Turn
from engine.job.spec import Knobs

LEAD_NS = 500_000_000
"""How far ahead a start or a turn is set, so that every host hears of it in time."""
DEFAULT_WINDOW_S = 0.010
_ARM_S = 600.0
_ANSWER_S = 10.0
_CLOCKS_S = 10.0
_LOOK_S = 0.05

Interrupted = Callable[[float], bool]
"""Waits so many seconds; whether the operator asked for the end."""


class FleetLoad:
    """Drives the load; one caller. What a host does not answer, and why, is in `missing`."""

    def __init__(
        self, controller: FleetController, jobs: Mapping[str, HostJob], interrupted: Interrupted, window_s: float
    ) -> None:
        self._controller = controller
        for name in jobs:
            controller.hosts[name].result = None  # of a load before
        self._jobs = {name: job for name, job in jobs.items() if controller.hosts[name].is_connected}
        self._interrupted = interrupted
        self._window_ns = round(window_s * 1e9)
        self.missing = {name: _why(controller.hosts[name]) for name in jobs if not controller.hosts[name].is_connected}
        self._started: dict[str, int] = {}
        self._spreads: list[int] = []
        self._bound_ns: int | None = None

    def prepare(self, *, destroy_data: bool) -> None:
        """Arm on all hosts: each opens and checks its targets by its own guard.

        Raises:
            LunscopeError: a host refuses; nothing is armed anywhere then.
        """
        number = self._controller.ask(
            "arm",
            {
                name: {
                    "job": dump_job(each.job),
                    "allow_write": list(each.allow_write),
                    "destroy_data": destroy_data,
                }
                for name, each in self._jobs.items()
            },
        )
        answers = self._await(number, _ARM_S)
        refused = {name: str(answer.get("error")) for name, answer in answers.items() if answer.get("error")}
        if refused:
            self.stop()
            name, first = next(iter(refused.items()))
            more = f" (and {len(refused) - 1} more hosts refuse)" if len(refused) > 1 else ""
            raise RefusedError(f"{name}: {first}{more}")

    def start(self) -> None:
        """Start everywhere at one time.

        Raises:
            LunscopeError: the clocks are not known well enough, or no host is left.
        """
        self._require_clocks()
        answers, _ = self._at_once("start", {name: {} for name in self._present()})
        for name, answer in answers.items():
            if answer.get("error"):
                self.missing[name] = str(answer["error"])
        if not self._present():
            raise LunscopeError("fleet: no host has started the load")

    def turn(self, turn: Turn) -> None:
        """Turn the knobs everywhere at one time.

        Raises:
            LunscopeError: the clocks are not known well enough.
        """
        self.set_knobs(turn.turned)

    def set_knobs(self, turned: Callable[[Knobs], Knobs]) -> None:
        """Set every host to its knobs changed by a function, at one time.

        Raises:
            LunscopeError: the clocks are not known well enough, or a host refuses.
        """
        self._require_clocks()
        for name, each in self._jobs.items():
            width = len(each.job.targets)
            knobs = turned(each.job.knobs)
            knobs = replace(knobs, stripe_width=min(knobs.stripe_width, width))
            self._jobs[name] = replace(each, job=replace(each.job, knobs=knobs))
        answers, _ = self._at_once("turn", {name: {"job": dump_job(self._jobs[name].job)} for name in self._present()})
        _raise_refusal(answers)

    def part_epoch(self) -> None:
        """Open another epoch with the same knobs on all hosts at one time.

        Raises:
            LunscopeError: the clocks are not known well enough, or no load runs.
        """
        self._require_clocks()
        answers, _ = self._at_once("part", {name: {} for name in self._present()})
        _raise_refusal(answers)

    def ask_now(self, what: str) -> dict[str, Frame]:
        """Ask all hosts for figures and wait for them, without a look at the operator: they come in milliseconds."""
        controller, names = self._controller, self._present()
        number = controller.ask(what, {name: {} for name in names})
        end_s = time.monotonic() + _ANSWER_S
        while True:
            controller.changed.clear()
            answers = controller.answers(number)
            waiting = [name for name in names if name not in answers]
            if not any(controller.hosts[name].is_connected for name in waiting) or time.monotonic() >= end_s:
                break
            controller.changed.wait(_LOOK_S)
        controller.forget(number)
        for name in waiting:
            host = controller.hosts[name]
            self.missing[name] = "no answer" if host.is_connected else _why(host)
        return answers

    def stop(self) -> None:
        """Ask every host to stop."""
        self._controller.ask("stop", {name: {} for name in self._jobs})

    def is_over(self) -> bool:
        """Whether every host has a result or has gone."""
        for name in self._present():
            host = self._controller.hosts[name]
            if not host.is_connected and host.result is None:
                self.missing[name] = _why(host)
        return all(self._controller.hosts[name].result is not None for name in self._present())

    def await_end(self, patience_s: float) -> None:
        """Wait for the results."""
        end_s = time.monotonic() + patience_s
        while not self.is_over() and time.monotonic() < end_s:
            time.sleep(_LOOK_S)

    def result(self) -> FleetResult:
        """Return what was measured, and which hosts are missing."""
        results: list[HostResult] = []
        missing = dict(self.missing)
        for name in self._jobs:
            frame = self._controller.hosts[name].result
            found = None if frame is None else host_result(name, frame, self._started.get(name, 0))
            if found is None:
                missing.setdefault(name, "no result")
            else:
                results.append(found)
        return FleetResult(tuple(results), missing, self.start_spread_ns, tuple(self._spreads), self._bound_ns)

    @property
    def start_spread_ns(self) -> int | None:
        """Between the first host's start and the last one's; None with fewer than two."""
        return _spread(list(self._started.values()))

    @property
    def present(self) -> tuple[str, ...]:
        """Hosts that take part."""
        return tuple(self._present())

    def _present(self) -> list[str]:
        return [name for name in self._jobs if name not in self.missing]

    def _require_clocks(self) -> None:
        """Refuse to call a start or turn synchronous where the clocks are not known within the window."""
        end_s = time.monotonic() + _CLOCKS_S
        while True:
            bound_ns = self._bound_ns = self._controller.worst_bound_ns()
            if bound_ns is not None and bound_ns <= self._window_ns:
                return
            if time.monotonic() >= end_s or self._interrupted(_LOOK_S):
                break
        known = "not known yet" if bound_ns is None else f"known to +-{bound_ns / 1e6:.1f} ms only"
        raise LunscopeError(
            f"fleet: not synchronous: the clock of {self._worst()} is {known}, the window is "
            f"{self._window_ns / 1e6:g} ms: give a larger --window"
        )

    def _worst(self) -> str:
        def bound(name: str) -> float:
            best = self._controller.hosts[name].estimate.best
            return float("inf") if best is None else best.bound_ns

        return max(self._present(), key=bound, default="no host")

    def _at_once(self, what: str, fields: Mapping[str, Mapping[str, object]]) -> tuple[dict[str, Frame], int]:
        """Ask for something at one time of our clock, and note how far apart it was done."""
        at_ns = time.monotonic_ns() + max(LEAD_NS, 20 * (self._bound_ns or 0))
        controller = self._controller
        asked = {name: {**each, "at_ns": controller.host_time_ns(name, at_ns)} for name, each in fields.items()}
        number = controller.ask(what, asked)
        answers = self._await(number, _ANSWER_S + (at_ns - time.monotonic_ns()) / 1e9, tuple(fields))
        times = {
            name: int(answer["at_ns"]) - controller.hosts[name].offset_ns
            for name, answer in answers.items()
            if type(answer.get("at_ns")) is int and not answer.get("error")
        }
        if what == "start":
            self._started = times
        elif what == "turn" and (spread := _spread(list(times.values()))) is not None:
            self._spreads.append(spread)
        return answers, at_ns

    def _await(self, number: int, patience_s: float, names: tuple[str, ...] | None = None) -> dict[str, Frame]:
        """Wait for the answers of all hosts that are still there."""
        wanted = tuple(self._jobs) if names is None else names
        end_s = time.monotonic() + patience_s
        while time.monotonic() < end_s:
            answers = self._controller.answers(number)
            waiting = [name for name in wanted if name not in answers]
            gone = [name for name in waiting if not self._controller.hosts[name].is_connected]
            for name in gone:
                self.missing[name] = _why(self._controller.hosts[name])
            if len(gone) == len(waiting):
                return answers
            if self._interrupted(_LOOK_S):
                self.stop()
                raise LunscopeError("fleet: stopped before the load began")
        for name in waiting:
            self.missing[name] = "no answer"
        return self._controller.answers(number)


def _raise_refusal(answers: Mapping[str, Frame]) -> None:
    for name, answer in answers.items():
        if answer.get("error"):
            raise RefusedError(f"{name}: {answer['error']}")


def _why(host: FleetHost) -> str:
    return host.reason or host.state.value


def _spread(times: list[int]) -> int | None:
    return max(times) - min(times) if len(times) > 1 else None
