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
from contextlib import closing
from pathlib import Path

from engine import _native
from tests.kernel.block_events import Truth, event_log
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


def in_words(truth: Truth) -> dict[str, int]:
    """Counts, sums and maxima of the log."""
    figures = {"lost": truth.lost, "busy_us": truth.busy_us, "busy_spans": truth.busy_spans}
    for name, written in (("read", False), ("write", True)):
        mine = truth.write == written
        figures |= {
            f"{name}s": int(mine.sum()),
            f"{name}_bytes": int(truth.bytes[mine].sum()),
            f"service_{name}_us": int(truth.service_us[mine].sum()),
            f"queue_{name}_us": int(truth.queue_us[mine].sum()),
        }
    return figures | {"service_max_us": int(truth.service_us.max()), "queue_max_us": int(truth.queue_us.max())}


def compare(device: str, sysfs: str) -> dict[str, object]:
    """Drive the device under both."""
    number = Path(device).stat().st_rdev
    with event_log(os.major(number), os.minor(number)) as log, closing(_native.BlockTracer(sysfs)) as tracer:
        with queue_set(device, nomerges="2"):
            before = read_device(tracer, device)
            tracer.cells()
            log.start()
            load = [*FIO, f"--filename={device}", "--iodepth=16", "--time_based", f"--runtime={SECONDS}"]
            subprocess.run(load, check=True, stdout=subprocess.DEVNULL)
            seen = grown(before, read_device(tracer, device))
            truth = log.truth()
        row, series, _, count = tracer.cells()
        mine = row == row_of(tracer, device)
        return {
            "seen": seen,
            "timed": [int(count[mine & (series == one)].sum()) for one in range(4)],
            "losses": tracer.losses(),
            "form": tracer.form(),
            "truth": in_words(truth),
        }


def main(device: str) -> None:
    """Once with the programs that fit this kernel best, and once as if it had no types of its own."""
    os.environ["LUNSCOPE_BTF"] = TYPES
    for sysfs in ("/sys", sysfs_without_types(Path(tempfile.mkdtemp(), "sys"))):
        sys.stdout.write(json.dumps(compare(device, sysfs)) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
