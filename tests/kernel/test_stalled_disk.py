"""A disk that really stops: how long it has completed nothing is known at every sample, and never overstated."""

from __future__ import annotations

import mmap
import os
import threading
import time
from pathlib import Path

from collectors.tables.block.counters import BlockCollector
from collectors.tables.block.schema import DISK
from tests import needs
from tests.kernel.stalling import stalling_disk

pytestmark = [needs.root, needs.loop, needs.mkfs_ext4, needs.fsfreeze]

PATIENCE_S = 60.0


def write_block(device: str) -> None:
    handle = os.open(device, os.O_WRONLY | os.O_DIRECT)
    try:
        os.pwrite(handle, mmap.mmap(-1, 4096), 0)
    finally:
        os.close(handle)


class Watched:
    def __init__(self, device: str) -> None:
        self._collector, self._name = BlockCollector(), Path(device).name

    def stalled_ms(self) -> int:
        table = self._collector.read().tables[DISK.name]
        return int(table.column("stalled_ms")[table.rows.names.index(self._name)])

    def wait(self, *, least_ms: int = 0, most_ms: int = 1 << 40) -> int:
        deadline_s = time.monotonic() + PATIENCE_S
        while not least_ms <= (found := self.stalled_ms()) <= most_ms:
            assert time.monotonic() < deadline_s, f"stalled for {found} ms"
            time.sleep(0.05)
        return found


def test_a_write_to_a_frozen_filesystem_is_a_stall_until_the_thaw(tmp_path: Path) -> None:
    with stalling_disk(tmp_path) as disk:
        watched = Watched(disk.device)
        assert watched.stalled_ms() == 0
        disk.freeze()
        begun_s = time.monotonic()
        writer = threading.Thread(target=write_block, args=(disk.device,), daemon=True)
        writer.start()
        found_ms = watched.wait(least_ms=500)
        assert found_ms <= 1e3 * (time.monotonic() - begun_s)
        assert watched.stalled_ms() >= found_ms
        disk.thaw()
        writer.join(PATIENCE_S)
        assert watched.wait(most_ms=0) == 0
