"""Hosts that are slow, have a wrong clock, another version or are silent: named in text and JSON with the reason."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from collectors.fleet import waiting
from collectors.fleet.controller import FleetController
from collectors.fleet.fleet_host import FleetHost
from collectors.fleet.frames import PROTOCOL
from collectors.fleet.hosts_text import fleet_line_document, fleet_lines
from collectors.fleet.waiting import waiting_words
from collectors.rates import derive
from tests.app.sources import make_samples
from tests.unit.fleet.made_hosts import ahead, behind, clock, fleet_of, greet, later, mute, old, silent, slow

ODD = pytest.mark.parametrize(
    ("make_odd", "state", "says"),
    [
        (slow, "slow", "round trip 2"),
        (silent, "slow", "silent for 4."),
        (mute, "slow", "greeted but sends no sample for 5 s: samples nothing: no room"),
        (ahead, "clock", "s ahead"),
        (behind, "clock", "s behind"),
        (old, "failed", f"lunscope 0.9 there speaks version {PROTOCOL - 1} of the protocol"),
        (later, "failed", "upgrade it here"),
    ],
)


def judged(make_odd: Callable[[FleetController], None]) -> dict[str, FleetHost]:
    fleet = fleet_of("good", "odd")
    greet(fleet, "good")
    clock(fleet, "good")
    make_odd(fleet)
    fleet._judge(time.monotonic())
    return fleet.hosts


@ODD
def test_an_odd_host_is_named_with_the_reason(
    make_odd: Callable[[FleetController], None], state: str, says: str
) -> None:
    hosts = judged(make_odd)
    frame = derive(None, make_samples(count=1)[0])
    (found,) = (each for each in fleet_line_document(frame, hosts)["hosts"] if each["name"] == "odd")  # type: ignore[attr-defined]
    assert found["state"] == state
    assert says in found["reason"]
    named = [line for line in fleet_lines(frame, hosts) if line.startswith("  odd: ")]
    assert len(named) == 1
    assert says in named[0]
    assert not [line for line in fleet_lines(frame, hosts) if line.startswith("  good: ")]


def test_a_host_of_an_old_version_says_where_to_upgrade() -> None:
    assert judged(old)["odd"].reason.endswith("upgrade it there")


def test_a_host_that_sends_nothing_is_waited_for_5_seconds_and_named() -> None:
    fleet = fleet_of("good", "odd", "later")
    for name in ("good", "odd"):
        greet(fleet, name)
    fleet.hosts["good"].sample = make_samples(count=1)[0]
    fleet._judge(time.monotonic())
    assert not fleet.settled()
    assert list(fleet.waiting()) == ["odd", "later"]
    fleet.hosts["odd"].since_s -= 5.1
    fleet.hosts["later"].since_s -= 9.0
    fleet._judge(time.monotonic())
    assert not fleet.is_worth_showing(), "a host that has not answered may still do so"
    fleet.hosts["later"].since_s -= 1.1
    assert fleet.is_worth_showing()
    assert not fleet.settled(), "a load waits longer: ssh has a limit of its own"
    fleet._judge(time.monotonic() + 20)
    assert fleet.hosts["later"].state == "failed"
    assert fleet.settled()
    (news,) = fleet.hosts["odd"].news
    assert news == "greeted but sends no sample for 5 s"
    assert waiting_words(fleet.waiting(), 11, "shown").startswith("odd greeted but sends no sample for 5 s; 11 others")


def test_who_is_waited_for_is_said_once_in_5_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    said, now_s = list[str](), [100.0]
    monkeypatch.setattr("collectors.fleet.waiting.time.monotonic", lambda: now_s[0])
    words = waiting.WaitWords(said.append)
    for _ in range(150):
        words.note({"a": "is late", "b": "is later"}, 1, "ready")
        now_s[0] += 0.1
    assert said == ["a is late (and 1 more hosts); 1 other is ready"] * 2
    words.note({}, 3, "ready", at_once=True)
    words.note({"b": "is late"}, 0, "shown", at_once=True)
    assert said[2:] == ["b is late"]


def test_all_hosts_are_given_up_where_the_connections_break() -> None:
    fleet = fleet_of("good", "odd")
    greet(fleet, "good")
    fleet.broken("WorkerError: no such worker")
    assert {host.state.value for host in fleet.hosts.values()} == {"lost", "failed"}
    assert {host.reason for host in fleet.hosts.values()} == {"all connections ended: WorkerError: no such worker"}
    assert fleet.settled()
