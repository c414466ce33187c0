"""Run in a guest: what exact time makes of I/Os that interrupt each other, and the kernel's event log of the same ones.

Prints a JSON document for each form of the programs. The device ends its I/Os in the interrupt of a timer, in the midst
of whatever else runs.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from contextlib import AbstractContextManager, closing, nullcontext
from pathlib import Path
from typing import Any

from engine import _native
from tests.kernel.block_events import Between, event_log
from tests.kernel.tracing import TYPES, grown, queue_set, read_device, row_of, sysfs_without_types

SECONDS = 4
FIO = [
    "fio",
    "--name=truth",
    "--direct=1",
    "--ioengine=libaio",
    "--rw=randrw",
    "--bs=4k",
    "--numjobs=3",
    "--group_reporting",
]


def in_words(logs: Between) -> dict[str, Any]:
    """Counts of the logs, and least and most of sums and maxima."""
    bounds: dict[str, tuple[int, int]] = {"busy_us": logs.busy_us}
    truth = logs.first
    counts = {"lost": truth.lost + logs.last.lost, "ios_of_last": len(logs.last.bytes)}
    for part, (least, most) in (("service", logs.service_us), ("queue", logs.queue_us)):
        bounds[f"{part}_max_us"] = int(least.max()), int(most.max())
        for name, mine in (("read", ~truth.write), ("write", truth.write)):
            counts |= {f"{name}s": int(mine.sum()), f"{name}_bytes": int(truth.bytes[mine].sum())}
            bounds[f"{part}_{name}_us"] = int(least[mine].sum()), int(most[mine].sum())
    return {**counts, "bounds": bounds}


def compare(
    device: str, sysfs: str, meanwhile: Callable[[], AbstractContextManager[object]] = nullcontext
) -> dict[str, object]:
    """Drive the device under the tracer and two logs: tracepoints call in the order of attaching."""
    number = Path(device).stat().st_rdev
    numbers = os.major(number), os.minor(number)
    with (
        event_log(*numbers, "first") as first,
        closing(_native.BlockTracer(sysfs)) as tracer,
        event_log(*numbers, "last") as last,
        queue_set(device, nomerges="2"),
    ):
        before = read_device(tracer, device)
        tracer.cells()
        first.start()
        last.start()
        load = [*FIO, f"--filename={device}", "--iodepth=16", "--time_based", f"--runtime={SECONDS}"]
        with meanwhile():
            subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
        seen = grown(before, read_device(tracer, device))
        row, series, _, count = tracer.cells()
        mine = row == row_of(tracer, device)
        return {
            "seen": seen,
            "timed": [int(count[mine & (series == one)].sum()) for one in range(4)],
            "losses": tracer.losses(),
            "form": tracer.form(),
            "truth": in_words(Between(first.truth(), last.truth())),
        }


def main(device: str) -> None:
    """Once with the programs that fit this kernel best, and once as if it had no types of its own."""
    os.environ["LUNSCOPE_BTF"] = TYPES
    for sysfs in ("/sys", sysfs_without_types(Path(tempfile.mkdtemp(), "sys"))):
        sys.stdout.write(json.dumps(compare(device, sysfs)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
