"""Life of a tracer: what it leaves behind, who else may trace or read, what it survives."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from engine import _native
from tests import needs
from tests.kernel.bpf_calls import program_ids, programs_of
from tests.kernel.conftest import Storage, run
from tests.kernel.tracing import eventually, grown, opened, read_device, read_extents, row_of

pytestmark = [pytest.mark.alone, needs.loop, needs.tracer]

SIZE_BYTES = 64 << 20
NOBODY = 65_534
PROGRAMS = 6
"""For requests alone; more where disks without requests are."""

TRACE_AND_WAIT = """
import sys
from engine import _native
tracer = _native.BlockTracer()
print("ready", flush=True)
sys.stdin.read()
"""

READ_AS_NOBODY = """
import json, os, sys
import numpy
from engine import _native
descriptors, user = json.loads(sys.argv[1]), int(sys.argv[2])
os.setgroups([]); os.setresgid(user, user, user); os.setresuid(user, user, user)
reader = _native.TraceReader(descriptors)
print("ready", flush=True)
sys.stdin.readline()
values = reader.read()
print(json.dumps({
    "names": reader.names(), "values": values.tolist(), "ios": int(reader.cells()[3].sum()),
    "slowest": len(reader.slowest()[1]), "oldest": len(reader.oldest()), "losses": reader.losses(),
    "groups": reader.groups_at(json.loads(sys.argv[3])).tolist(),
}))
"""


def test_nothing_is_left_of_a_killed_process() -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", TRACE_AND_WAIT], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    held = programs_of(process.pid)
    assert len(held) >= PROGRAMS
    assert held <= set(program_ids())
    process.kill()
    process.communicate()
    eventually(lambda: not held & set(program_ids()), "programs of a killed process stay")


def test_a_closed_tracer_holds_nothing_and_says_so() -> None:
    before = programs_of(os.getpid())
    tracer = _native.BlockTracer()
    assert len(programs_of(os.getpid()) - before) >= PROGRAMS
    tracer.close()
    tracer.close()
    assert programs_of(os.getpid()) == before
    with pytest.raises(ValueError, match="closed"):
        tracer.read()


def test_two_tracers_do_not_disturb_each_other(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    device = make_loop(SIZE_BYTES, folder=Path("/dev/shm"))
    other = _native.BlockTracer()
    with opened(device) as descriptor:
        read_extents(descriptor, [(number * 4096, 4096) for number in range(200)])
        seen = [read_device(one, device)["reads"] for one in (tracer, other)]
        # The kernel skips all programs or none.
        assert seen[0] == seen[1] > 190
        before = read_device(tracer, device)
        other.close()
        read_extents(descriptor, [(number * 4096, 4096) for number in range(200)])
        assert 190 < grown(before, read_device(tracer, device))["reads"] <= 200


def test_a_process_without_rights_can_read(make_loop: Callable[..., str], tracer: _native.BlockTracer) -> None:
    device = make_loop(SIZE_BYTES, folder=Path("/dev/shm"))
    places = tracer.regroup([[device.removeprefix("/dev/")]])
    descriptors = tracer.map_descriptors()
    arguments = [json.dumps(descriptors), str(NOBODY), json.dumps(places)]
    try:
        reader = subprocess.Popen(
            [sys.executable, "-c", READ_AS_NOBODY, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            pass_fds=list(descriptors.values()),
        )
    finally:
        for descriptor in descriptors.values():
            os.close(descriptor)
    assert reader.stdout is not None
    assert reader.stdout.readline() == "ready\n"
    with opened(device) as descriptor:
        read_extents(descriptor, [(number * 4096, 4096) for number in range(100)])
    values = tracer.read()
    found = json.loads(reader.communicate("now\n")[0])
    row = row_of(tracer, device)
    assert found["names"][row] == device.removeprefix("/dev/")
    assert found["values"][row] == values[row].tolist()
    assert values[row, 0] > 90
    assert found["ios"] >= 2 * values[row, 0]
    assert found["slowest"] > 0
    assert found["oldest"] == len(values)
    assert found["losses"].keys() < tracer.losses().keys()
    assert found["groups"] == tracer.read_groups().tolist()


def test_descriptors_that_are_no_maps_are_refused(tracer: _native.BlockTracer) -> None:
    with pytest.raises(ValueError, match="descriptors: none that is open for control"):
        _native.TraceReader({})
    names = tracer.map_descriptors()
    try:
        with pytest.raises(OSError, match="control"):
            _native.TraceReader({**names, "control": names["octaves"]})
        with Path("/dev/null").open() as null, pytest.raises(OSError, match="not a BPF map"):
            _native.TraceReader({**names, "octaves": null.fileno()})
    finally:
        for descriptor in names.values():
            os.close(descriptor)


@contextmanager
def write_in_driver(storage: Storage, tracer: _native.BlockTracer) -> Iterator[str]:
    """Give a device with a write that ends afterwards: a loop device over a file in a frozen file system."""
    lower = storage.mkfs(storage.loop())
    point = storage.mount(lower)
    with (point / "image").open("wb") as file:
        file.truncate(8 << 20)
    upper = storage.loop(backing=point / "image", options=("--direct-io=on",))
    run("fsfreeze", "--freeze", str(point))
    try:
        writer = subprocess.Popen(["dd", "if=/dev/zero", f"of={upper}", "bs=4096", "count=1", "oflag=direct"])
        eventually(lambda: read_device(tracer, upper)["in_driver_now"] == 1, "the write did not get to the driver")
        yield upper
    finally:
        run("fsfreeze", "--unfreeze", str(point))
    assert writer.wait() == 0


@needs.mkfs_ext4
def test_ios_whose_end_was_not_seen_do_not_stay(storage: Storage, tracer: _native.BlockTracer) -> None:
    with write_in_driver(storage, tracer) as device:
        tracer.pause()
    eventually(lambda: read_device(tracer, device)["in_flight_now"] == 0, "the write stays in flight")
    assert tracer.losses()["healed"] > 0
    counted = read_device(tracer, device)
    assert read_device(tracer, device)["busy_ns"] == counted["busy_ns"]
    assert counted["lost_in_driver_ns"] > 0
    assert counted["busy_ns"] - counted["lost_in_driver_ns"] <= counted["service_write_ns"]
    tracer.resume()
    with opened(device) as descriptor:
        before = read_device(tracer, device)
        read_extents(descriptor, [(number * 4096, 4096) for number in range(100)])
        after = grown(before, read_device(tracer, device))
    assert 90 < after["reads"] <= 100
    assert after["service_max_ns"] < 1e9


@needs.mkfs_ext4
def test_an_io_that_takes_long_is_not_taken_for_lost(storage: Storage, tracer: _native.BlockTracer) -> None:
    with write_in_driver(storage, tracer) as upper:
        first, began_s = read_device(tracer, upper), time.monotonic()
        for _ in range(5):
            time.sleep(0.05)
            now = read_device(tracer, upper)
            assert now["in_driver_now"] == now["in_flight_now"] == now["in_driver_peak"] == 1
        assert (now["busy_ns"] - first["busy_ns"]) / 1e9 == pytest.approx(time.monotonic() - began_s, rel=0.1)
        assert 0.2e9 < tracer.oldest()[row_of(tracer, upper)] < 1e12
    after = read_device(tracer, upper)
    assert after["in_flight_now"] == 0
    assert after["service_max_ns"] > 0.2e9
    assert np.uint64(2**64 - 1) == tracer.oldest()[row_of(tracer, upper)]


@needs.mkfs_ext4
def test_a_disk_with_an_io_that_hangs_since_before_tracing_is_not_idle(
    storage: Storage, tracer: _native.BlockTracer
) -> None:
    """Nobody saw it begin, so that busy time is that of the next tier."""
    report = (sys.executable, "-m", "tui", "report", "--json", "--all", "--tier", "exact", "0.2", "2")
    with write_in_driver(storage, tracer) as device:
        done = subprocess.run(report, capture_output=True, text=True, check=True)
    disks = [disk for line in done.stdout.splitlines() for disk in json.loads(line)["disks"]]
    mine = [disk for disk in disks if disk["name"] == device.removeprefix("/dev/")]
    assert [disk["in_flight"] for disk in mine] == [1.0, 1.0]
    assert all(disk["tiers"].get("busy_pct") != "exact" for disk in mine)
