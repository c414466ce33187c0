"""One run of the load engine or of fio on a device: 4 KiB random reads with O_DIRECT."""

from __future__ import annotations

import json
import os
import subprocess
import time
from dataclasses import dataclass

from bench.targets import SIZE_BYTES
from engine._native import LoadEngine, LoadTarget
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs

RUN_S = 1.5


@dataclass(frozen=True, slots=True)
class Cell:
    """Depth per thread, and number of threads."""

    path: str
    depth: int
    threads: int

    def __str__(self) -> str:
        return f"QD {self.depth}" if self.threads == 1 else f"{self.threads} threads x QD {self.depth}"


@dataclass(frozen=True, slots=True)
class Result:
    """Result of one run."""

    iops: float
    cpu_us: float
    """CPU time per I/O of the I/O threads."""


def run_engine(cell: Cell, *, poll: bool) -> Result:
    """Run the engine once."""
    fd = os.open(cell.path, os.O_RDONLY | os.O_DIRECT)
    try:
        target = LoadTarget(fd, cell.path, SIZE_BYTES, 4096, writable=False)
    finally:
        os.close(fd)
    knobs = Knobs(queue_depth=cell.depth * cell.threads, threads=cell.threads)
    return measured(LoadEngine([target], knobs, LoadSettings(backend="uring", runtime_s=RUN_S, poll=poll)))


def measured(engine: LoadEngine) -> Result:
    """Run a read load on one target to its end; counting begins once it has settled."""
    engine.start()
    while engine.running:
        time.sleep(0.05)
    assert engine.stop()
    (epoch,) = engine.epochs()
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    ios = int(epoch.counts[0, 0, 0])
    iops = ios / (epoch.end_ns - epoch.start_ns) * 1e9
    return Result(iops, engine.cpu_ns() / (ios + epoch.transient_ios) / 1e3)


LEANEST_FIO = {
    "ioengine": "io_uring",
    "fixedbufs": 1,
    "registerfiles": 1,
    "nonvectored": 1,
    "norandommap": 1,
    "thread": 1,
    "rw": "randread",
    "bs": 4096,
    "direct": 1,
}
"""The load of 4 KiB random reads as fio makes it with the least work of its own."""


def run_fio(cell: Cell, *, poll: bool) -> Result:
    """Run fio's io_uring engine once with its leanest options; polling reaps completions without waiting."""
    settings = {
        "name": "bench",
        "filename": cell.path,
        **LEANEST_FIO,
        "numjobs": cell.threads,
        "size": SIZE_BYTES,
        "iodepth": cell.depth,
        "time_based": 1,
        "runtime": f"{int(RUN_S * 1000)}ms",
        "output-format": "json",
    }
    if poll:
        settings["iodepth_batch_complete_min"] = 0
    command = ["fio", *(f"--{name}={value}" for name, value in settings.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    jobs = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    busy_s = sum((job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000 for job in jobs)
    ios = sum(job["read"]["total_ios"] for job in jobs)
    return Result(sum(job["read"]["iops"] for job in jobs), busy_s / ios * 1e6)
