"""The controller of a fleet: connections, leases, clocks, and what each host is asked for."""

from __future__ import annotations

import itertools
import threading
import time
from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from collectors.fleet.connect_pace import AT_ONCE, MOST, RETRIES, ConnectPace, final_words, was_dropped
from collectors.fleet.fleet_host import WRONG_CLOCK_NS, FleetHost, HostState
from collectors.fleet.frames import (
    MAX_GARBAGE_BYTES,
    PROTOCOL,
    Frame,
    FrameError,
    decode,
    encode,
    is_frame,
    text,
    whole,
)
from collectors.fleet.gateways import Gateways
from collectors.fleet.host_summary import Summary, without_sums
from collectors.fleet.lease import Renewals
from collectors.fleet.links import CONNECT_S, Links
from collectors.fleet.waiting import PATIENCE_S, UNGREETED_S
from collectors.sampling.schedule import SECOND_NS
from engine.errors import INSTALL_THERE
from engine.text import safe_text, short_text
from engine.version import version

DEFAULT_COMMAND = "lunscope agent --stdio"
INTERVAL_NS = SECOND_NS
_SLOW_NS = 2_500_000_000
_SLOW_TRIP_NS = 150_000_000
_RETRY_S = 0.5
_GREET_S = CONNECT_S + 10.0
_WORDS = 200
_NOT_THERE = 127
_OF_SSH = 255
"""Exit code of ssh where it is ssh that failed."""
FULL_STREAM = 1
"""Streams of full samples have odd numbers."""


class FleetSettings(Struct, frozen=True):
    """How the hosts are driven."""

    command: str = DEFAULT_COMMAND
    renew_s: float = 1.0
    record_there: bool = False
    """Whether each agent keeps a recording of its own while it is connected."""
    payload: bytes = b""
    """What the command reads before the first frame: the agent itself, for hosts without one."""


class FleetController:
    """Connects to hosts and keeps their leases until it is closed; `hosts` may be read from any thread."""

    def __init__(
        self,
        names: Sequence[str],
        links: Links,
        settings: FleetSettings,
        gateway_of: Callable[[str], str] = lambda _: "",
        gateways: Gateways | None = None,
    ) -> None:
        """Connect to nothing yet.

        Args:
            names: the hosts.
            links: their connections.
            settings: how they are driven.
            gateway_of: names what connections to a host are paced together by.
            gateways: has other gateways for hosts whose own fails.
        """
        self.hosts = {name: FleetHost(name, gateway_of(name)) for name in names}
        self._links = links
        self._settings = settings
        self._gateways = gateways or Gateways({})
        by_gateway: dict[str, list[str]] = {}
        for host in self.hosts.values():
            by_gateway.setdefault(host.gateway or host.name, []).append(host.name)
        self._paces = {gateway: ConnectPace(tuple(members)) for gateway, members in by_gateway.items()}
        self._judged_s = 0.0
        self._renewals = Renewals(self.hosts, settings.renew_s)
        self._numbers = itertools.count(1)
        self.changed = threading.Event()
        """Set when something came that a caller may wait for."""
        self._closed = False

    def start(self) -> None:
        """Begin to connect."""
        now_s = time.monotonic()
        for host in self.hosts.values():
            host.since_s = now_s
        self._links.start(self)

    def close(self) -> None:
        """Dismiss all agents and end all connections; may be called twice."""
        if self._closed:
            return
        self._closed = True
        self._links.call(self._dismiss)
        end_s = time.monotonic() + 3.0
        while any(host.is_connected for host in self.hosts.values()) and time.monotonic() < end_s:
            time.sleep(0.02)
        self._links.close()

    def _dismiss(self) -> None:
        for host in self._connected():
            self._links.send(host.name, encode("bye"))

    def ask(self, type_: str, per_host: Mapping[str, Mapping[str, object]]) -> int:
        """Send a frame to some hosts, with what differs; returns its number, under which the answers come."""
        number = next(self._numbers)

        def send() -> None:
            for name, fields in per_host.items():
                self._links.send(name, encode(type_, number=number, **fields))

        self._links.call(send)
        return number

    def show_full(self, name: str, full: bool) -> None:
        """Ask a host for all of its samples, or for the summary again."""

        def send() -> None:
            self.hosts[name].wants_full = full
            self._links.send(name, encode("level", full=full))

        self._links.call(send)

    def answers(self, number: int) -> dict[str, Frame]:
        """Return what hosts answered to what was asked."""
        return {name: host.done[number] for name, host in tuple(self.hosts.items()) if number in host.done}

    def forget(self, number: int) -> None:
        """Drop the answers to what was asked often."""
        for host in tuple(self.hosts.values()):
            host.done.pop(number, None)

    def host_time_ns(self, name: str, ours_ns: int) -> int:
        """Convert a time of our CLOCK_MONOTONIC to that of a host."""
        return ours_ns + self.hosts[name].offset_ns

    def worst_bound_ns(self) -> int | None:
        """Return the largest bound of the offsets of connected hosts; None where one is not known."""
        bests = [host.estimate.best for host in self._connected()]
        return None if not bests or None in bests else max(best.bound_ns for best in bests if best is not None)

    def settled(self) -> bool:
        """Whether every host has answered, or will not, or has sent nothing for too long after its first frame."""
        return not any(host.is_awaited and not host.is_mute for host in tuple(self.hosts.values()))

    def waiting(self) -> dict[str, str]:
        """Hosts that have neither sent a sample nor failed, and what they have not done."""
        now_s = time.monotonic()
        return {name: host.why_waiting(now_s) for name, host in tuple(self.hosts.items()) if host.is_awaited}

    def is_worth_showing(self) -> bool:
        """Whether each host is there, or has been waited for as long as the others can wait for it."""
        now_s = time.monotonic()
        return not any(
            host.is_awaited and not host.is_mute and host.waiting_s(now_s) < UNGREETED_S
            for host in tuple(self.hosts.values())
        )

    # What the links call, all in their thread.

    def tick(self) -> None:
        """Connect, renew leases and find silent hosts."""
        now_s = time.monotonic()
        if not self._closed:
            self._connect_some(now_s)
        self._renew(now_s)
        if now_s - self._judged_s >= self._settings.renew_s:
            self._judged_s = now_s
            self._judge(now_s)

    def line(self, host: str, line: bytes) -> None:
        """Take a frame, or what a login shell prints before the first."""
        arrived_ns = time.monotonic_ns()
        state = self.hosts[host]
        state.received_bytes += len(line) + 1
        try:
            if not is_frame(line):
                self._garbage(state, line)
            else:
                self._frame(state, decode(line), arrived_ns)
        except FrameError as error:
            self._fail(state, f"its agent sent {error}")

    def words(self, host: str, line: bytes) -> None:
        """Keep a line of standard error."""
        self.hosts[host].words.append(short_text(safe_text(line.decode("utf-8", "replace")), _WORDS))

    def broken(self, reason: str) -> None:
        """Give up every host: nothing connects any more, and nobody is to wait for it."""
        for host in self.hosts.values():
            if host.state not in {HostState.LOST, HostState.FAILED}:
                self._leave(host, f"all connections ended: {short_text(safe_text(reason), _WORDS)}")

    def ended(self, host: str, code: int | None) -> None:
        """Say why a host has gone."""
        state = self.hosts[host]
        words = state.words[-1] if state.words else ""
        if not state.is_greeted and code == _OF_SSH:
            words = final_words(state.words) or words
        dropped = not state.is_greeted and code == _OF_SSH and was_dropped(state.words)
        if dropped and state.attempts < RETRIES * (1 + state.moves) and not self._closed:
            self._pace(state).dropped(host, time.monotonic() + _RETRY_S * (1 + state.attempts % 4))
            state.state, state.reason = HostState.WAITING, words
            return
        self._pace(state).failed(host)
        if state.state is HostState.FAILED:
            return
        why = _why_ended(state, code, words)
        if code != _OF_SSH or self._closed or not self._moved(state, why):
            self._leave(state, why)

    # Parts.

    def _connected(self) -> list[FleetHost]:
        return [host for host in self.hosts.values() if host.is_connected]

    def _pace(self, host: FleetHost) -> ConnectPace:
        return self._paces[host.gateway or host.name]

    def _moved(self, host: FleetHost, why: str) -> bool:
        """Have a host connected again through another gateway, if there is one that may reach it."""
        before = host.gateway
        gateway = self._gateways.lost(host.name, tuple(host.words), was_connected=host.is_greeted)
        if self._gateways.has_failed(before):
            self._leave_gateway(before, why)
        if gateway is None:
            return False
        self._move(host, gateway, why)
        return True

    def _leave_gateway(self, gateway: str, why: str) -> None:
        """Move the hosts that wait for a gateway that has failed."""
        for name in self._paces[gateway].give_up():
            other = self._gateways.move(name)
            if other is None:
                self._leave(self.hosts[name], f"{gateway}: {why}")
            else:
                self._move(self.hosts[name], other, why)

    def _move(self, host: FleetHost, gateway: str, why: str) -> None:
        host.move(gateway, why)
        self._paces.setdefault(gateway, ConnectPace(())).add(host.name)
        self.changed.set()

    def _connect_some(self, now_s: float) -> None:
        room = min(AT_ONCE, MOST - sum(pace.under_way for pace in self._paces.values()))
        for pace in tuple(self._paces.values()):
            if room <= 0:
                return
            begun = pace.begin(now_s, room)
            room -= len(begun)
            for name in begun:
                self._connect(name, now_s)

    def _connect(self, name: str, now_s: float) -> None:
        self.hosts[name].begin_attempt(now_s)
        self._links.connect(name, self._settings.command)
        if self._settings.payload:
            self._links.send(name, self._settings.payload)

    def _renew(self, now_s: float) -> None:
        for name in self._renewals.due(now_s):
            host = self.hosts[name]
            if host.is_connected:
                phase_ns = host.offset_ns % INTERVAL_NS
                self._links.send(host.name, encode("lease", sent_ns=time.monotonic_ns(), phase_ns=phase_ns))

    def _judge(self, now_s: float) -> None:
        now_ns = time.monotonic_ns()
        for host in self.hosts.values():
            if host.is_connected:
                self._judge_samples(host, now_s)
                host.state = _state_of(host, now_ns)
            elif host.state is HostState.CONNECTING and host.waiting_s(now_s) > _GREET_S:
                self._links.cut(host.name)
                words = f": {host.words[-1]}" if host.words else ""
                self._pace(host).failed(host.name)
                self._leave(host, f"no answer of its agent within {_GREET_S:.0f} s{words}")

    def _judge_samples(self, host: FleetHost, now_s: float) -> None:
        """Name a host that answers but sends no samples, once."""
        was_mute, host.is_mute = host.is_mute, host.waiting_s(now_s) >= PATIENCE_S
        if host.is_mute and not was_mute:
            host.news.append(host.why_waiting(now_s))
            self.changed.set()

    def _garbage(self, host: FleetHost, line: bytes) -> None:
        if host.is_greeted:
            host.dropped_frames += 1
            return
        host.garbage_bytes += len(line) + 1
        if host.garbage_bytes > MAX_GARBAGE_BYTES:
            said = short_text(safe_text(line.decode("utf-8", "replace")), 60)
            self._fail(host, f"prints more than {MAX_GARBAGE_BYTES >> 10} KiB that is no frame: {said}")

    def _frame(self, host: FleetHost, frame: Frame, arrived_ns: int) -> None:
        host.heard_ns = arrived_ns
        kind = text(frame, "type")
        if kind == "hello":
            self._greet(host, frame)
        elif not host.is_greeted:
            raise FrameError("a frame before its first one")
        elif kind == "clock":
            self._clock(host, frame, arrived_ns)
        elif kind == "sample":
            self._sample(host, frame)
        elif kind == "status":
            host.status = frame
        elif kind == "done":
            host.done[whole(frame, "number")] = frame
            self.changed.set()
        elif kind == "result":
            host.result = frame
            self.changed.set()
        elif kind == "log":
            host.said = short_text(safe_text(text(frame, "text")), _WORDS)
            host.news.append(host.said)
        else:
            host.dropped_frames += 1

    def _greet(self, host: FleetHost, frame: Frame) -> None:
        protocol, host.version = whole(frame, "protocol"), short_text(safe_text(text(frame, "version")), 40)
        if protocol != PROTOCOL:
            newer = "here" if protocol > PROTOCOL else "there"
            self._fail(
                host,
                f"lunscope {host.version} there speaks version {protocol} of the protocol, lunscope {version()} here "
                f"version {PROTOCOL}: upgrade it {newer}",
            )
            return
        host.is_greeted, host.state, host.reason = True, HostState.LIVE, host.moved
        host.since_s = time.monotonic()
        self._pace(host).connected(host.name)
        self._gateways.reached(host.name)
        host.summary = Summary(host.name)
        fields = {"protocol": PROTOCOL, "version": version(), "name": host.name}
        self._links.send(host.name, encode("hello", **fields, record=self._settings.record_there))
        self._links.send(host.name, encode("lease", sent_ns=time.monotonic_ns(), phase_ns=0))
        if host.wants_full:
            self._links.send(host.name, encode("level", full=True))
        self.changed.set()

    def _clock(self, host: FleetHost, frame: Frame, arrived_ns: int) -> None:
        received_ns = whole(frame, "received_ns")
        host.estimate.add(whole(frame, "sent_ns"), received_ns, whole(frame, "answered_ns"), arrived_ns)
        best = host.estimate.best
        if best is not None:
            ours_ns = time.time_ns() - (time.monotonic_ns() - (whole(frame, "answered_ns") - best.offset_ns))
            host.wall_error_ns = whole(frame, "time_ns") - ours_ns

    def _sample(self, host: FleetHost, frame: Frame) -> None:
        sample = host.receiver.sample(frame)
        host.since_s = time.monotonic()
        if whole(frame, "stream") % 2 == FULL_STREAM:
            host.full = without_sums(sample)
            assert host.summary is not None
            host.sample = host.summary.of_full(sample)
        else:
            host.sample, host.full = sample, None

    def _fail(self, host: FleetHost, reason: str) -> None:
        self._links.cut(host.name)
        self._pace(host).failed(host.name)
        host.state, host.reason, host.is_greeted = HostState.FAILED, reason, False
        host.news.append(reason)
        self.changed.set()

    def _leave(self, host: FleetHost, reason: str) -> None:
        host.state = HostState.LOST if host.version else HostState.FAILED
        host.reason, host.is_greeted = f"{reason}; {host.moved}" if host.moved else reason, False
        if not self._closed:
            host.news.append(f"{host.state.value}: {reason}")
        self.changed.set()


def _state_of(host: FleetHost, now_ns: int) -> HostState:
    best = host.estimate.best
    if now_ns - host.heard_ns > _SLOW_NS or (best is not None and best.round_trip_ns > _SLOW_TRIP_NS):
        host.reason = (
            f"silent for {(now_ns - host.heard_ns) / 1e9:.1f} s"
            if now_ns - host.heard_ns > _SLOW_NS
            else f"round trip {best.round_trip_ns / 1e6:.0f} ms"
            if best is not None
            else ""
        )
        return HostState.SLOW
    if host.is_mute:
        host.reason = host.why_waiting(now_ns / 1e9)
        return HostState.SLOW
    if host.wall_error_ns is not None and abs(host.wall_error_ns) > WRONG_CLOCK_NS:
        way = "ahead" if host.wall_error_ns > 0 else "behind"
        host.reason = f"its clock is {abs(host.wall_error_ns) / 1e9:.1f} s {way}"
        return HostState.CLOCK
    host.reason = host.moved
    return HostState.LIVE


def _why_ended(host: FleetHost, code: int | None, words: str) -> str:
    if not host.is_greeted and code == _NOT_THERE:
        return (
            f"{words or 'command not found'}: install lunscope there ({INSTALL_THERE}), "
            "copy it with --push, or name it with --agent"
        )
    if host.is_greeted and code == _OF_SSH:
        return words or "ssh: the connection was closed"
    if words:
        return words
    return "the connection was closed" if code is None else f"its agent ended with exit code {code}"
