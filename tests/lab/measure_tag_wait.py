"""Run in a guest: waits for tags as the pair of tracepoints and as block_rq_tag_wait time them, under one load.

The module given has the tracepoint, which kernels before Linux 7.2 lack; a tracer finds it if it is there at its start.
"""

from __future__ import annotations

import json
import mmap
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

from engine._native import TRACE_COLUMNS, BlockTracer

DEVICE, BYTES = "nullb9", 4096
THREADS, SECONDS = 16, 5.0
_COUNTED = ("reads", "tag_waits", "tag_wait_ns")


def read_for(seconds: float, at: int) -> None:
    """Read one block again and again past the page cache."""
    device = os.open(f"/dev/{DEVICE}", os.O_RDONLY | os.O_DIRECT)
    block, until_s = mmap.mmap(-1, BYTES), time.monotonic() + seconds
    while time.monotonic() < until_s:
        os.preadv(device, [block], at * BYTES)
    os.close(device)


def load(threads: int) -> None:
    """Let that many read at once."""
    readers = [threading.Thread(target=read_for, args=(SECONDS, at)) for at in range(threads)]
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()


def counted(tracer: BlockTracer) -> dict[str, int]:
    """What a tracer has counted of the device."""
    values, names = tracer.read(), tracer.names()
    row = values[names.index(DEVICE)] if DEVICE in names else [0] * len(TRACE_COLUMNS)
    found = {name: int(row[TRACE_COLUMNS.index(name)]) for name in _COUNTED}
    return {**found, "tag_sleeps": tracer.losses().get("tag_sleeps", -1)}


def main() -> None:
    """Print what both saw of one reader, of many, and of one again."""
    pair = BlockTracer("/sys")
    subprocess.run(["insmod", sys.argv[1]], check=True)
    event = BlockTracer("/sys")
    tags = Path(f"/sys/block/{DEVICE}/queue/nr_requests").read_text()
    found: dict[str, object] = {"tags": int(tags), "before": [counted(pair), counted(event)]}
    load(1)
    found["alone"] = [counted(pair), counted(event)]
    load(THREADS)
    found["not_watched"] = [counted(pair), counted(event)]
    pair.watch_tag_wait(True)
    event.watch_tag_wait(True)
    load(THREADS)
    found["watched"] = [counted(pair), counted(event)]
    load(1)
    found["alone_again"] = [counted(pair), counted(event)]
    pair.close()
    event.close()
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
