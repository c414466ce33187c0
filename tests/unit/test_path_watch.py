"""Paths that become unlike their peers are events, reported once."""

from __future__ import annotations

import pytest

from collectors.model import Sample
from collectors.paths import watch as path_watch
from collectors.paths.watch import PathWatch
from engine.events import EventKind
from tests.unit.raw_samples import disks, sample
from tests.unit.test_block_tables import WHO, did, topology

ABOUT = topology()


class Host:
    """Counters that go on from interval to interval of ten seconds."""

    def __init__(self) -> None:
        self.total = {name: {"reads": 0, "read_ms": 0, "read_sectors": 0, "busy_ms": 0} for name in WHO.names}
        self.at_s = 0
        self.watch = PathWatch()

    def sample(self, after_s: int, **of: dict[str, int]) -> Sample:
        self.at_s += after_s
        for name, grown in of.items():
            self.total[name] = {column: self.total[name][column] + amount for column, amount in grown.items()}
        return sample(self.at_s, disks=disks(WHO, *(self.total[name] for name in WHO.names)), topology=ABOUT)

    def texts(self, after_s: int, **of: dict[str, int]) -> list[str]:
        events = self.watch.compare(self.sample(after_s, **of))
        assert all(event.kind is EventKind.PATH for event in events)
        return [event.text for event in events]


HEALTHY = {"sd0h0": did(400, 1, 400), "sd0h1": did(400, 1, 400)}
SICK = {"sd0h0": did(390, 1, 400), "sd0h1": did(610, 4, 900)}


def test_a_sick_path_is_reported_once_and_when_it_is_well_again() -> None:
    host = Host()
    assert host.texts(0) == []
    assert host.texts(10, **HEALTHY) == []
    assert host.texts(10, **SICK) == ["path sd0h1 carries 61 % of dm-0 and its await is 4.0x its peers'"]
    assert host.texts(10, **SICK) == []
    assert host.texts(10, **HEALTHY) == ["path sd0h1 is like its peers again"]
    assert host.texts(10, **SICK) == ["path sd0h1 carries 61 % of dm-0 and its await is 4.0x its peers'"]


def test_a_path_that_is_idle_is_not_called_well() -> None:
    host = Host()
    host.texts(0)
    assert len(host.texts(10, **SICK)) == 1
    assert host.texts(10) == []
    assert host.texts(10, **SICK) == []


def test_intervals_are_put_together_until_they_are_long_enough() -> None:
    host = Host()
    host.texts(0)
    for _ in range(9):
        assert host.texts(1, sd0h0=did(40, 1, 40), sd0h1=did(40, 4, 160)) == []
    assert host.texts(1, sd0h0=did(40, 1, 40), sd0h1=did(40, 4, 160)) == [
        "path sd0h1 carries 50 % of dm-0 and its await is 4.0x its peers'"
    ]


def test_an_event_carries_numbers() -> None:
    host = Host()
    host.watch.compare(host.sample(0))
    (event,) = host.watch.compare(host.sample(10, **SICK))
    assert event.data == {"path": "sd0h1", "sick_times": 4.0, "uneven_times": None, "stalled": 0}


def test_many_at_once_are_reported_together(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(path_watch, "MOST_EVENTS", 1)
    host = Host()
    host.texts(0)
    both = {"sd0h0": did(400, 1, 4), "sd0h1": did(400, 5, 4), "sd1h0": did(400, 9, 4), "sd1h1": did(400, 1, 4)}
    assert host.texts(10, **both) == ["2 paths are not like their peers"]
    well = dict.fromkeys(both, did(400, 1, 4))
    assert host.texts(10, **well) == ["2 paths are like their peers again"]
