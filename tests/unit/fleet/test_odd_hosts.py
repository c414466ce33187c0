"""Hosts that are slow, have a wrong clock, another version or are silent: named in text and JSON with the reason."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from collectors.fleet.controller import FleetController
from collectors.fleet.fleet_host import FleetHost
from collectors.fleet.frames import PROTOCOL
from collectors.fleet.hosts_text import fleet_line_document, fleet_lines
from collectors.rates import derive
from tests.app.sources import make_samples
from tests.unit.fleet.made_hosts import ahead, behind, clock, fleet_of, greet, later, old, silent, slow

ODD = pytest.mark.parametrize(
    ("make_odd", "state", "says"),
    [
        (slow, "slow", "round trip 2"),
        (silent, "slow", "silent for 4."),
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
