"""Hosts of a fleet without connections: what their agents say is made here."""

from __future__ import annotations

import time
from collections.abc import Callable

from collectors.fleet.controller import FleetController, FleetSettings
from collectors.fleet.frames import PROTOCOL, encode
from collectors.fleet.links import LinkEvents
from engine.version import version

SECOND_NS = 1_000_000_000


class NoLinks:
    """Connections that lead nowhere; what hosts say is given to the controller."""

    def start(self, events: LinkEvents) -> None:
        """Begin nothing."""

    def connect(self, host: str, command: str) -> None:
        """Connect to nothing."""

    def send(self, host: str, data: bytes) -> None:
        """Send to nobody."""

    def cut(self, host: str) -> None:
        """Cut nothing."""

    def call(self, act: Callable[[], None]) -> None:
        """Call at once."""
        act()

    def close(self) -> None:
        """Close nothing."""


def fleet_of(*names: str) -> FleetController:
    """A controller of hosts that have said nothing yet."""
    made = FleetController(names, NoLinks(), FleetSettings())
    made.tick()
    return made


def greet(fleet: FleetController, host: str, protocol: int = PROTOCOL, of_version: str = "") -> None:
    """The first frame of an agent."""
    fields = {"protocol": protocol, "version": of_version or version(), "host": host, "time_ns": time.time_ns()}
    fleet.line(host, encode("hello", **fields).rstrip(b"\n"))


def clock(fleet: FleetController, host: str, *, trip_ns: int = 100_000, ahead_ns: int = 0) -> None:
    """The answer to a renewal of the lease."""
    now_ns = time.monotonic_ns()
    times = {"sent_ns": now_ns - trip_ns, "received_ns": now_ns - trip_ns // 2, "answered_ns": now_ns - trip_ns // 2}
    fleet.line(host, encode("clock", **times, time_ns=time.time_ns() + ahead_ns).rstrip(b"\n"))


def slow(fleet: FleetController, host: str = "odd") -> None:
    """A long way to it."""
    greet(fleet, host)
    clock(fleet, host, trip_ns=200_000_000)


def silent(fleet: FleetController, host: str = "odd") -> None:
    """Heard, and then no more."""
    greet(fleet, host)
    clock(fleet, host)
    fleet.hosts[host].heard_ns -= 4 * SECOND_NS


def mute(fleet: FleetController, host: str = "odd") -> None:
    """Answers, but sends no sample, and has said why."""
    greet(fleet, host)
    clock(fleet, host)
    fleet.line(host, encode("log", text="samples nothing: no room").rstrip(b"\n"))
    fleet.hosts[host].since_s -= 5.1


def ahead(fleet: FleetController, host: str = "odd") -> None:
    """A wall clock that is wrong."""
    greet(fleet, host)
    clock(fleet, host, ahead_ns=5 * SECOND_NS)


def behind(fleet: FleetController, host: str = "odd") -> None:
    """A wall clock that is wrong the other way."""
    greet(fleet, host)
    clock(fleet, host, ahead_ns=-5 * SECOND_NS)


def old(fleet: FleetController, host: str = "odd") -> None:
    """An agent of an earlier version."""
    greet(fleet, host, PROTOCOL - 1, "0.9")


def later(fleet: FleetController, host: str = "odd") -> None:
    """An agent of a later version."""
    greet(fleet, host, PROTOCOL + 1, "99.0")
