"""Control groups of this kernel: what a group of ours does is counted, named and limited, and is gone with it."""

from __future__ import annotations

import mmap
import os
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from collectors.model import Table
from collectors.tables.block.counters import BlockCollector
from collectors.tables.cgroup.reader import CgroupCollector
from collectors.tables.cgroup.tree import find_hierarchy
from tests import needs
from tests.kernel.conftest import Storage
from tests.kernel.throttle import slowed, throttle

pytestmark = [needs.root, needs.loop, throttle]

PATIENCE_S = 60.0
IOPS = 200
BYTES = 4096


@pytest.fixture
def collector() -> Iterator[CgroupCollector]:
    hierarchy = find_hierarchy("/sys")
    assert hierarchy is not None
    block = BlockCollector()
    block.read()

    def disks() -> Table | None:
        block.read()
        return block.table

    collector = CgroupCollector(hierarchy, disks)
    yield collector
    collector.close()
    block.close()


def row_of(collector: CgroupCollector, name: str) -> dict[str, int] | None:
    table = collector.read().tables["cgroup"]
    if name not in table.rows.names:
        return None
    values = table.values[table.rows.names.index(name)].tolist()
    return dict(zip((column.id for column in table.schema.columns), values, strict=True))


def wait_for(collector: CgroupCollector, name: str, *, present: bool) -> dict[str, int] | None:
    deadline_s = time.monotonic() + PATIENCE_S
    while (((row := row_of(collector, name)) is None) is present) and time.monotonic() < deadline_s:
        time.sleep(0.05)
    return row


def transfer(device: str, reads: int, writes: int) -> None:
    descriptor, buffer = os.open(device, os.O_RDWR | os.O_DIRECT), mmap.mmap(-1, BYTES)
    try:
        for place in range(reads):
            os.preadv(descriptor, [buffer], place * BYTES)
        for place in range(writes):
            os.pwrite(descriptor, buffer, place * BYTES)
    finally:
        buffer.close()
        os.close(descriptor)


def test_a_group_is_counted_exactly_and_gone_when_it_is(storage: Storage, collector: CgroupCollector) -> None:
    device = storage.loop()
    name = f"/lunscope-test-{os.getpid()} {Path(device).name}"
    collector.read()
    with slowed(device, IOPS):
        transfer(device, 1, 0)
        before = wait_for(collector, name, present=True)
        transfer(device, 20, 7)
        now = row_of(collector, name)
    assert before is not None
    assert now is not None
    grown = {name: now[name] - before[name] for name in ("reads", "read_bytes", "writes", "write_bytes", "discards")}
    assert grown == {"reads": 20, "read_bytes": 20 * BYTES, "writes": 7, "write_bytes": 7 * BYTES, "discards": 0}
    assert (now["read_limit_ios"], now["write_limit_ios"]) == (IOPS, IOPS)
    assert wait_for(collector, name, present=False) is None


def test_groups_by_the_hundred_come_and_go(collector: CgroupCollector) -> None:
    hierarchy = find_hierarchy("/sys")
    assert hierarchy is not None
    home = Path(hierarchy.root, f"lunscope-many-{os.getpid()}")
    folders = [home, *(home / f"group-{number}" for number in range(100))]
    try:
        for folder in folders:
            folder.mkdir()
            collector.read()
        assert not any("lunscope-many" in name for name in collector.read().tables["cgroup"].rows.names)
    finally:
        for folder in reversed(folders):
            if folder.is_dir():
                folder.rmdir()
            collector.read()
    values = collector.read().tables["cgroup"].values
    assert values.dtype == np.uint64
