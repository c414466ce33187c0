"""One load over all hosts of a fleet: armed everywhere, started and turned at one time, ended everywhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from collectors.fleet.controller import INTERVAL_NS, FleetController
from collectors.fleet.fleet_host import FleetHost
from collectors.fleet.fleet_result import FleetResult, HostResult, host_result
from collectors.fleet.frames import Frame
from collectors.fleet.host_jobs import HostJob
from collectors.fleet.waiting import Say, WaitWords
from engine.errors import LunscopeError, RefusedError
from engine.job.file import dump_job
from engine.job.scenario import Turn
from engine.job.spec import Knobs

LEAD_NS = 500_000_000
"""How far ahead a start or a turn is set, so that every host hears of it in time."""
_SAMPLED_NS, _NEARLY_NS = 300_000_000, 50_000_000
"""Hosts sample on whole seconds of our clock: nothing is set so soon after one, nor so shortly before the next."""
DEFAULT_WINDOW_S = 0.010
_ARM_S = 600.0
_ANSWER_S = 10.0
_TURN_S = 600.0
"""How long a turn may take to be in force: older I/Os, dirty pages or the check of a target may hold it up."""
CLOCKS_S = 10.0
"""How long clocks that are not known well enough are waited for."""
_POLL_S = 0.05

Interrupted = Callable[[float], bool]
"""Waits for a number of seconds; returns whether the operator asked for the end."""


class FleetLoad:
    """Drives the load; one caller. What a host does not answer, and why, is in `missing`."""

    def __init__(
        self,
        controller: FleetController,
        jobs: Mapping[str, HostJob],
        interrupted: Interrupted,
        window_s: float,
        say: Say = lambda _line: None,
    ) -> None:
        self._say = say
        self._controller = controller
        for name in jobs:
            controller.hosts[name].result = None  # of a load before
        self._jobs = {name: job for name, job in jobs.items() if controller.hosts[name].is_connected}
        self._connections = {name: controller.hosts[name].attempts for name in self._jobs}
        self._interrupted = interrupted
        self._window_ns = round(window_s * 1e9)
        self.missing = {name: _why(controller.hosts[name]) for name in jobs if not controller.hosts[name].is_connected}
        self._started: dict[str, int] = {}
        self._spreads: list[int] = []
        self._bound_ns: int | None = None
        self.in_force_ns = 0
        """Time at which the last start or turn was in force on every host, on our CLOCK_MONOTONIC."""

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
                    "given": self._controller.hosts[name].given,
                }
                for name, each in self._jobs.items()
            },
        )
        answers = self._await(number, _ARM_S)
        for name, answer in answers.items():
            host = self._controller.hosts[name]
            host.given = answer.get("given", host.given)
        refused = {name: str(answer.get("error")) for name, answer in answers.items() if answer.get("error")}
        if refused:
            self.stop()
            name, first = next(iter(refused.items()))
            more = f" (and {len(refused) - 1} more hosts refuse)" if len(refused) > 1 else ""
            raise RefusedError(f"{name}: {first}{more}")

    def start(self, *, open_ended: bool = False) -> None:
        """Start everywhere at one time; an open-ended load does not end after its runtime, but as `end_at` says.

        Raises:
            LunscopeError: the clocks are not known well enough, or no host is left.
        """
        self._require_clocks()
        fields = {"open_ended": open_ended}
        answers, self._started = self._at_once("start", dict.fromkeys(self._present(), fields))
        self.in_force_ns = max(self._started.values(), default=time.monotonic_ns())
        for name, answer in answers.items():
            if answer.get("error"):
                self.missing[name] = str(answer["error"])
        if not self._present():
            name, why = next(iter(self.missing.items()), ("fleet", "no host"))
            refused = answers.get(name, {}).get("error")
            raise (RefusedError if refused else LunscopeError)(f"fleet: no host has started the load: {name}: {why}")

    def turn(self, turn: Turn, earliest_ns: int) -> None:
        """Turn the knobs everywhere at one time, which is not before the given one of our CLOCK_MONOTONIC.

        Raises:
            LunscopeError: the clocks are not known well enough.
        """
        self.set_knobs(turn.turned, earliest_ns=earliest_ns)

    def end_at(self, at_ns: int) -> None:
        """End an open-ended load everywhere at a time of our CLOCK_MONOTONIC.

        Raises:
            LunscopeError: a host refuses.
        """
        names = self._running()
        asked = {name: {"end_ns": self._controller.host_time_ns(name, at_ns)} for name in names}
        _raise_refusal(self._await(self._controller.ask("end", asked), _ANSWER_S, tuple(names)))

    def set_knobs(self, turned: Callable[[Knobs], Knobs], clocks_s: float = CLOCKS_S, earliest_ns: int = 0) -> None:
        """Set every host to its knobs changed by a function, at one time; waits so long for the clocks.

        Raises:
            LunscopeError: the clocks are not known well enough, or a host refuses; all have the old knobs then.
        """
        self._require_clocks(clocks_s)
        before = self._jobs
        self._jobs = {name: each.turned(turned) for name, each in before.items()}
        answers, times = self._send_knobs(earliest_ns)
        try:
            _raise_refusal(answers)
        except RefusedError:
            self._jobs = before
            self._send_knobs()
            raise
        if (spread := _spread(list(times.values()))) is not None:
            self._spreads.append(spread)
        ended = (
            int(answer["ended_ns"]) - self._controller.hosts[name].offset_ns
            for name, answer in answers.items()
            if type(answer.get("ended_ns")) is int
        )
        self.in_force_ns = max(ended, default=time.monotonic_ns())

    def _send_knobs(self, earliest_ns: int = 0) -> tuple[dict[str, Frame], dict[str, int]]:
        asked = {name: {"job": dump_job(self._jobs[name].job)} for name in self._running()}
        return self._at_once("turn", asked, earliest_ns, _TURN_S)

    def part_epoch(self) -> None:
        """Open another epoch with the same knobs on all hosts at one time.

        Raises:
            LunscopeError: the clocks are not known well enough, or no load runs.
        """
        self._require_clocks()
        answers, _ = self._at_once("part", {name: {} for name in self._present()})
        _raise_refusal(answers)

    def ask_now(self, what: str) -> dict[str, Frame]:
        """Ask all hosts for figures and wait for them, without a check for keys: they come in milliseconds."""
        controller, names = self._controller, self._present()
        number = controller.ask(what, {name: {} for name in names})
        end_s = time.monotonic() + _ANSWER_S
        while True:
            controller.changed.clear()
            answers = controller.answers(number)
            waiting = [name for name in names if name not in answers]
            if all(map(self._is_gone, waiting)) or time.monotonic() >= end_s:
                break
            controller.changed.wait(_POLL_S)
        controller.forget(number)
        for name in waiting:
            host = controller.hosts[name]
            self.missing[name] = _why(host) if self._is_gone(name) else "no answer"
        return answers

    def stop(self) -> None:
        """Ask every host to stop."""
        self._controller.ask("stop", {name: {} for name in self._jobs})

    def is_over(self) -> bool:
        """Whether every host has a result or has gone."""
        for name in self._present():
            host = self._controller.hosts[name]
            if self._is_gone(name) and host.result is None:
                self.missing[name] = _why(host)
        return all(self._controller.hosts[name].result is not None for name in self._present())

    def await_end(self, patience_s: float) -> None:
        """Wait for the results, and say whose are not there."""
        words, begun_s = WaitWords(self._say), time.monotonic()
        while not self.is_over() and time.monotonic() < begun_s + patience_s:
            time.sleep(_POLL_S)
            late = [name for name in self._present() if self._controller.hosts[name].result is None]
            why = f"has not ended its load for {time.monotonic() - begun_s:.0f} s"
            words.note(dict.fromkeys(late, why), len(self._present()) - len(late), "at the end")

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
    def last_turn_spread_ns(self) -> int | None:
        """Between the first host and the last one at the last turn; None before it."""
        return self._spreads[-1] if self._spreads else None

    @property
    def present(self) -> tuple[str, ...]:
        """Hosts that take part."""
        return tuple(self._present())

    def _is_gone(self, name: str) -> bool:
        """Whether the agent with the load has gone; another one of the host, after a new connection, has none."""
        host = self._controller.hosts[name]
        return not host.is_connected or host.attempts != self._connections[name]

    def _present(self) -> list[str]:
        return [name for name in self._jobs if name not in self.missing]

    def _running(self) -> list[str]:
        """Hosts whose load has not ended."""
        return [name for name in self._present() if self._controller.hosts[name].result is None]

    def clock_refusal(self) -> str:
        """Say why a turn now would not be synchronous: a clock is not known within the window; empty where it is."""
        bound_ns = self._controller.worst_bound_ns()
        if bound_ns is not None and bound_ns <= self._window_ns:
            return ""
        known = "not known yet" if bound_ns is None else f"known to +-{bound_ns / 1e6:.1f} ms only"
        return (
            f"not synchronous: the clock of {self._worst()} is {known}, the window is "
            f"{self._window_ns / 1e6:g} ms: give a larger --window"
        )

    def _require_clocks(self, patience_s: float = CLOCKS_S) -> None:
        """Refuse to call a start or turn synchronous where the clocks are not known within the window."""
        end_s = time.monotonic() + patience_s
        while refusal := self.clock_refusal():
            if time.monotonic() >= end_s or self._interrupted(_POLL_S):
                self._bound_ns = self._controller.worst_bound_ns()
                raise LunscopeError(f"fleet: {refusal}")
        self._bound_ns = self._controller.worst_bound_ns()

    @property
    def lead_ns(self) -> int:
        """How far ahead a start or a turn is asked for."""
        return max(LEAD_NS, 20 * (self._bound_ns or 0))

    def _worst(self) -> str:
        def bound(name: str) -> float:
            best = self._controller.hosts[name].estimate.best
            return float("inf") if best is None else best.bound_ns

        return max(self._present(), key=bound, default="no host")

    def _at_once(
        self,
        what: str,
        fields: Mapping[str, Mapping[str, object]],
        earliest_ns: int = 0,
        patience_s: float = _ANSWER_S,
    ) -> tuple[dict[str, Frame], dict[str, int]]:
        """Ask for something at one time of our clock; returns the answers, and when each host did it."""
        at_ns = quiet_time_ns(max(time.monotonic_ns() + self.lead_ns, earliest_ns))
        controller = self._controller
        asked = {name: {**each, "at_ns": controller.host_time_ns(name, at_ns)} for name, each in fields.items()}
        number = controller.ask(what, asked)
        answers = self._await(number, patience_s + (at_ns - time.monotonic_ns()) / 1e9, tuple(fields))
        times = {
            name: int(answer["at_ns"]) - controller.hosts[name].offset_ns
            for name, answer in answers.items()
            if type(answer.get("at_ns")) is int and not answer.get("error") and not answer.get("over")
        }
        return answers, times

    def _await(self, number: int, patience_s: float, names: tuple[str, ...] | None = None) -> dict[str, Frame]:
        """Wait for the answers of all hosts that are still there."""
        wanted = tuple(self._jobs) if names is None else names
        words, begun_s = WaitWords(self._say), time.monotonic()
        end_s = begun_s + patience_s
        while time.monotonic() < end_s:
            answers = self._controller.answers(number)
            waiting = [name for name in wanted if name not in answers]
            not_yet = dict.fromkeys(waiting, f"has not answered for {time.monotonic() - begun_s:.0f} s")
            words.note(not_yet, len(answers), "ready")
            gone = [name for name in waiting if self._is_gone(name)]
            for name in gone:
                self.missing[name] = _why(self._controller.hosts[name])
            if len(gone) == len(waiting):
                return answers
            if self._interrupted(_POLL_S):
                self.stop()
                raise LunscopeError("fleet: stopped before the load began")
        for name in waiting:
            self.missing[name] = "no answer"
        return self._controller.answers(number)


def quiet_time_ns(earliest_ns: int) -> int:
    """Return the next time of our clock at which no host samples, as that would delay what it is asked for."""
    after_ns = (earliest_ns + _NEARLY_NS) % INTERVAL_NS
    return earliest_ns + max(0, _SAMPLED_NS + _NEARLY_NS - after_ns)


def _raise_refusal(answers: Mapping[str, Frame]) -> None:
    for name, answer in answers.items():
        if answer.get("error"):
            raise RefusedError(f"{name}: {answer['error']}")


def _why(host: FleetHost) -> str:
    return host.reason or host.state.value


def _spread(times: list[int]) -> int | None:
    return max(times) - min(times) if len(times) > 1 else None
