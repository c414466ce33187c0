"""The readers on real loop devices that come, go and work."""

from __future__ import annotations

import mmap
import os
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from collectors.kernel.identity import read_device_instances
from collectors.model import MISSING, Step
from collectors.sources.live import LiveSource
from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.schema import DISK
from engine._native import BlockReader, InflightSampler
from tests import needs
from tests.attaching import attached
from tests.kernel.backends import eventually

pytestmark = [pytest.mark.alone, needs.loop]

DEADLINE_S = 30.0
MakeLoop = Callable[..., str]


def detach(device: str) -> None:
    subprocess.run(["losetup", "--detach", device], check=True)


class Load:
    """Threads that read a device past the page cache until closed."""

    def __init__(self, device: str, threads: int = 4) -> None:
        self._stop = threading.Event()
        self._threads = [threading.Thread(target=self._read, args=(device,)) for _ in range(threads)]
        for thread in self._threads:
            thread.start()

    def _read(self, device: str) -> None:
        descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
        with mmap.mmap(-1, 1 << 20) as buffer:
            while not self._stop.is_set():
                os.preadv(descriptor, [buffer], 0)
        os.close(descriptor)

    def close(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


@pytest.fixture
def source() -> Iterator[LiveSource]:
    source = LiveSource(0.1)
    yield source
    source.close()


def wait_for(source: LiveSource, condition: Callable[[Step], bool]) -> Step:
    """The first step for which something holds."""
    stop = threading.Event()
    deadline = time.monotonic() + DEADLINE_S
    for step in source.steps(stop):
        if condition(step):
            return step
        assert time.monotonic() < deadline, "did not happen in time"
    raise AssertionError("the source has ended")


def keys_of(step: Step, name: str) -> list[str]:
    rows = step.current.tables["disk"].rows
    return [key for key, known in zip(rows.keys, rows.names, strict=True) if known == name]


def texts_of(step: Step) -> list[str]:
    return [event.text for event in step.current.events]


def test_a_loop_device_is_seen_coming_and_going(source: LiveSource, make_loop: MakeLoop) -> None:
    wait_for(source, lambda _: True)
    device = make_loop(64 << 20)
    name = Path(device).name
    step = wait_for(source, lambda step: any(text.startswith(f"disk {name} added") for text in texts_of(step)))
    assert any("64 MiB, over " in text for text in texts_of(step))
    step = wait_for(source, lambda step: any(key in step.current.topology.devices for key in keys_of(step, name)))
    fact = step.current.topology.devices[keys_of(step, name)[0]]
    assert (fact.kind, fact.size_bytes) == ("loop", 64 << 20)
    assert fact.friendly_name.endswith(".img")
    detach(device)
    wait_for(source, lambda step: f"disk {name} removed" in texts_of(step))


def test_another_file_under_a_loop_device_is_another_row(
    source: LiveSource, make_loop: MakeLoop, tmp_path: Path
) -> None:
    device = make_loop(8 << 20)
    name = Path(device).name
    (before,) = keys_of(wait_for(source, lambda step: bool(keys_of(step, name))), name)
    detach(device)
    other = tmp_path / "other.img"
    other.write_bytes(bytes(8 << 20))
    with attached("losetup", "--show", device, str(other)):
        seqs = [found.diskseq for found in read_device_instances("/sys", [name])]
        step = wait_for(source, lambda step: keys_of(step, name) not in ([], [before]))
        (after,) = keys_of(step, name)
        assert after.endswith(f"#{seqs[0]}")


def test_counters_follow_what_was_read(make_loop: MakeLoop) -> None:
    device = make_loop(8 << 20)
    name = Path(device).name
    collector = BlockCollector()

    def counters() -> dict[str, int]:
        table = collector.read().tables["disk"]
        row = table.values[table.rows.names.index(name)].tolist()
        return dict(zip([column.id for column in DISK.columns], row, strict=True))

    before = counters()
    descriptor = os.open(device, os.O_RDONLY | os.O_DIRECT)
    with mmap.mmap(-1, 4096) as buffer:
        for block in range(64):
            os.preadv(descriptor, [buffer], block * 4096)
    os.close(descriptor)
    after = counters()
    assert after["reads"] - before["reads"] == 64
    assert after["read_sectors"] - before["read_sectors"] == 64 * 8
    assert after["writes"] == before["writes"]
    collector.close()


def test_the_sampler_sees_requests_of_a_load(make_loop: MakeLoop) -> None:
    device = make_loop(8 << 20)
    name = Path(device).name
    sampler = InflightSampler()
    sampler.watch([name, "no-such-device"])
    load = Load(device)
    try:
        eventually(lambda: sampler.read()[1][0, 2] > 20)
        names, sums = sampler.read()
    finally:
        load.close()
    assert names == [name]
    total, sample_count, busy_sample_count = sums[0, :3].tolist()
    assert sample_count >= busy_sample_count > 20
    assert total >= busy_sample_count
    sampler.close()
    assert sampler.read()[0] == []


def test_sums_go_on_for_devices_that_stay_watched(make_loop: MakeLoop) -> None:
    first, second = (Path(make_loop(8 << 20)).name for _ in range(2))
    sampler = InflightSampler()
    sampler.watch([first])
    eventually(lambda: sampler.read()[1][0, 1] > 5)
    before = sampler.read()[1][0, 1]
    sampler.watch([second, first])
    names, sums = sampler.read()
    assert names == [second, first]
    assert sums[1, 1] >= before
    sampler.watch([])
    assert sampler.read()[0] == []
    sampler.close()


def test_a_source_watches_the_busy_device_and_its_samples_grow(source: LiveSource, make_loop: MakeLoop) -> None:
    device = make_loop(8 << 20)
    name = Path(device).name
    load = Load(device)

    def looked(step: Step) -> bool:
        table = step.current.tables["disk"]
        sample_count = table.column("driver_in_flight_samples")[table.rows.names.index(name)]
        return bool(sample_count != MISSING and sample_count > 50)

    def sampled() -> bool:
        return source._watch is not None and source._watch.cpu_ns > 0

    try:
        wait_for(source, lambda step: bool(keys_of(step, name)) and looked(step) and sampled())
    finally:
        load.close()


def test_the_reader_follows_devices_through_kept_open_files(make_loop: MakeLoop, tmp_path: Path) -> None:
    name = Path(make_loop(8 << 20)).name
    reader = BlockReader(method="sysfs")
    values = reader.read()
    assert name in reader.names()
    assert values.dtype == np.uint64
    assert reader.malformed == 0
