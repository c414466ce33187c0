"""Events of the hosts of a fleet: by host and cause, in the result of a load over all of them."""

from __future__ import annotations

import json
import time

import pytest

from collectors.fleet.fleet_result import FleetResult, HostResult, fleet_document
from collectors.fleet.merge import FleetMerge
from collectors.model import Sample, Topology
from collectors.paths.event_groups import event_groups
from engine.events import Event, EventKind
from engine.results.measured import combine_splits
from tests.unit.fleet.made_hosts import clock, fleet_of, greet
from tui.headless.fleet_run import print_fleet_result

SECOND_NS = 1_000_000_000


def lost(path: str, at_ns: int) -> Event:
    data = {"path": path, "port": "host0", "now": "running, standby", "change": "lost"}
    return Event(EventKind.HOTPLUG, f"path {path} of m lost", at_ns, at_ns, data)


def removed(disk: str, at_ns: int) -> Event:
    return Event(EventKind.HOTPLUG, f"disk {disk} removed", at_ns, at_ns, {"name": disk, "action": "removed"})


def merged(now_ns: int) -> tuple[Event, ...]:
    """Events of two hosts, of which the first loses paths and disks, as the controller has them."""
    fleet = fleet_of("db1", "db2")
    for name, names in (("db1", ("sda", "sdb")), ("db2", ("sdc",))):
        greet(fleet, name)
        clock(fleet, name)
        happened = [each for disk in names for each in (lost(disk, now_ns), removed(disk, now_ns))]
        fleet.hosts[name].sample = Sample(now_ns, now_ns, Topology(), {}, {}, tuple(happened))
    return FleetMerge(fleet.hosts).sample(now_ns, SECOND_NS).events


def test_events_are_by_host_and_cause() -> None:
    groups = event_groups(event for event in merged(time.monotonic_ns()) if event.kind is EventKind.HOTPLUG)
    assert sorted(group.text for group in groups) == [
        "db1: 2 disks removed (sda, sdb)",
        "db1: host0: 2 paths lost: running, standby (sda, sdb)",
        "db2: disk sdc removed",
        "db2: path sdc of m lost",
    ]


def test_those_of_the_load_are_in_its_result(capsys: pytest.CaptureFixture[str]) -> None:
    now_ns = time.monotonic_ns()
    host = HostResult("db1", {"elapsed_s": 5.0}, combine_splits([]), 3.0, now_ns - 4 * SECOND_NS)
    events = [*merged(now_ns), lost("early", host.started_ns - 1), lost("late", now_ns + 2 * SECOND_NS)]
    result = FleetResult((host,), {}, None).with_events(events)
    document = json.loads(json.dumps(fleet_document(result), allow_nan=False))
    texts = [group["text"] for group in document["events"]]
    assert "db1: host0: 2 paths lost: running, standby (sda, sdb)" in texts
    assert not any("early" in text or "late" in text for text in texts)
    print_fleet_result(result, as_json=False)
    printed = capsys.readouterr().out
    assert "[Events on the host]" in printed
    assert "hotplug  db1: host0: 2 paths lost: running, standby (sda, sdb)" in printed
