"""Run in a guest with cgroup v2: the wait for io.max as the kernel's programs and as the reader itself time it."""

from __future__ import annotations

import json
import mmap
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from engine._native import ThrottleTracer

GROUP = Path("/sys/fs/cgroup/lab/capped")
DEVICE = "/dev/nullb0"
READS, BYTES, IOPS = 30, 4096, 4
IDLE_S = 0.1
"""Before each read without a limit: after a wait a CPU has to wake up, which costs time, too."""


def timed_reads(idle_s: float = 0.0) -> Iterator[int]:
    """Read one block after the other past the page cache; how long each took, in nanoseconds."""
    device = os.open(DEVICE, os.O_RDONLY | os.O_DIRECT)
    block = mmap.mmap(-1, BYTES)
    for number in range(READS):
        time.sleep(idle_s)
        before_ns = time.monotonic_ns()
        os.preadv(device, [block], number * BYTES)
        yield time.monotonic_ns() - before_ns
    os.close(device)


def main() -> None:
    """Time reads without and with a limit and print what both saw."""
    number = Path("/sys/block/nullb0/dev").read_text().strip()
    (GROUP / "io.max").write_text(f"{number} riops=max wbps=max")
    tracer = ThrottleTracer("/sys")
    (GROUP / "cgroup.procs").write_text(str(os.getpid()))
    free = list(timed_reads(IDLE_S))
    (GROUP / "io.max").write_text(f"{number} riops={IOPS}")
    capped = list(timed_reads())
    rows, cells = tracer.read()
    again = tracer.read()[1]
    document = {
        "group": GROUP.stat().st_ino,
        "number": number,
        "free_ns": sum(free),
        "capped_ns": sum(capped),
        "rows": rows.tolist(),
        "cells": cells.tolist(),
        "cells_again": again.tolist(),
        "losses": tracer.losses(),
    }
    tracer.close()
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main()
