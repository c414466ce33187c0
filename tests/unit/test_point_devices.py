"""What a trial keeps of the devices below it: written, read back, and sampled over the measured part alone."""

from __future__ import annotations

import json
import math
import os
import threading
from pathlib import Path
from typing import Any

import pytest

from collectors.advice.point_devices import MOST_ROWS, point_document, point_figures
from collectors.advice.point_watch import DeviceWatch
from collectors.model import Device, Rows, Step, Tier, Topology
from collectors.reports.run_devices import RunSamples
from engine.replacing import replace
from engine.running.status import LoadStatus
from tests.unit.raw_samples import SECOND_NS, disks, sample

NUMBERS = tuple(os.makedev(8, minor) for minor in range(100))
WHO = Rows(tuple(f"disk{minor}" for minor in range(100)), tuple(f"disk{minor}" for minor in range(100)))
TOPOLOGY = Topology({key: Device(key, key, "disk", 8, minor, size_bytes=1 << 30) for minor, key in enumerate(WHO.keys)})


def status(*minors: int) -> LoadStatus:
    names = tuple(f"/dev/disk{minor}" for minor in minors)
    return replace(LoadStatus(), targets=names, devices=tuple((NUMBERS[minor],) for minor in minors))


def moment(at_s: float, ios: int, previous: Step | None = None) -> Step:
    """Disk n reads n times as much as disk 1, each I/O in 2 ms."""
    values = [
        {
            "reads": n * ios,
            "read_sectors": 8 * n * ios,
            "read_ms": 2 * n * ios,
            "busy_ms": ios,
            "weighted_ms": 2 * n * ios,
        }
        for n in range(100)
    ]
    current = sample(at_s, disks=disks(WHO, *values), topology=TOPOLOGY)
    return Step(None if previous is None else previous.current, current)


def document(*minors: int) -> dict[str, Any]:
    samples = RunSamples()
    samples.begin(SECOND_NS)
    first = moment(2.0, 0)
    samples.observe(first)
    samples.observe(moment(4.0, 200, first))
    found = point_document(samples.below(status(*minors), Path("/nowhere")))
    assert found is not None
    return json.loads(json.dumps(found, allow_nan=False))  # type: ignore[no-any-return]


def test_what_is_written_is_read_back() -> None:
    written = document(3)
    assert (written["elapsed_s"], written["samples"], written["left_out"]) == (2.0, 2, 0)
    read = point_figures(written)
    assert read is not None
    (disk,) = read.disks
    assert (disk.name, disk.targets, disk.is_top, disk.is_lowest) == ("disk3", ("/dev/disk3",), True, True)
    assert (disk.value("iops"), disk.value("await_ms"), disk.value("busy_pct")) == (300, 2, 10)
    assert (disk.tier("iops"), disk.tier("queue_limit")) == (Tier.KERNEL, Tier.NONE)
    assert math.isnan(disk.value("queue_ms"))
    assert (read.paths, read.ports) == ((), ())


def test_of_many_devices_those_with_most_outstanding_are_kept() -> None:
    written = document(*range(100))
    assert [row["name"] for row in written["disks"]] == [f"disk{n}" for n in range(100 - MOST_ROWS, 100)]
    assert written["left_out"] == 100 - MOST_ROWS


@pytest.mark.parametrize("found", [{}, {"disks": 1}, {"disks": [1, {}, {"iops": "x", "tiers": [], "targets": 7}]}])
def test_anything_else_is_read_as_missing(found: dict[str, Any]) -> None:
    read = point_figures(found)
    assert read is not None
    assert all(math.isnan(disk.value("iops")) for disk in read.disks)


def test_without_samples_there_is_nothing() -> None:
    assert (point_document(None), point_figures(None)) == (None, None)


def test_a_point_has_the_samples_from_its_begin_to_its_end_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """The requests are answered at once, by samples of a clock of their own."""
    now_s, ios = [10.0], [1000]
    monkeypatch.setattr("time.monotonic_ns", lambda: round(now_s[0] * SECOND_NS))
    watch = DeviceWatch(lambda: status(1), Path("/nowhere"))
    last: list[Step] = []

    def take() -> None:
        step = moment(now_s[0], ios[0], last[-1] if last else None)
        last.append(step)
        watch.observe(step)

    watch.attach(take)
    take()
    now_s[0], ios[0] = 12.0, 9000
    watch.begin()
    now_s[0], ios[0] = 16.0, 9400
    found = watch.end()
    assert found is not None
    (disk,) = found["disks"]
    assert (found["elapsed_s"], disk["iops"]) == (4.0, 100)


def test_a_host_that_is_not_sampled_holds_no_point_up() -> None:
    watch = DeviceWatch(lambda: status(1), Path("/nowhere"))
    done = threading.Event()

    def measure() -> None:
        watch.begin()
        assert watch.end() is None
        done.set()

    threading.Thread(target=measure, daemon=True).start()
    assert done.wait(60)
