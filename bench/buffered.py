"""The threads backend against fio's psync where reads block: a file in memory through the page cache.

4 KiB random reads, the same number of threads on both sides, rounds and ratios as in bench.engine. The uring engine is
measured too, to show why `--engine auto` takes threads for such a file.
"""

from __future__ import annotations

import json
import os
import random
import shutil
import statistics
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Literal

from bench.contenders import RUN_S, Result, measured
from bench.engine import quartiles
from bench.targets import SIZE_BYTES, scratch
from engine._native import LoadEngine, LoadTarget
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs, Mode

THREADS = (1, 2, 4)
ROUNDS = 9


def main(*, quick: bool = False) -> None:
    if not shutil.which("fio"):
        print("fio is not installed")
        return
    with scratch(Path("/dev/shm")) as path:
        for threads in THREADS:
            report(threads, compare(str(path), threads, rounds=3 if quick else ROUNDS))


def run_engine(path: str, threads: int, backend: Literal["threads", "uring"]) -> Result:
    """One run; the ring has as many outstanding I/Os in one thread."""
    fd = os.open(path, os.O_RDONLY)
    try:
        target = LoadTarget(fd, path, SIZE_BYTES, 1, writable=False)
    finally:
        os.close(fd)
    knobs = Knobs(queue_depth=threads, mode=Mode.BUFFERED)
    return measured(LoadEngine([target], knobs, LoadSettings(backend=backend, runtime_s=RUN_S)))


def run_fio(path: str, threads: int) -> Result:
    settings = {
        "name": "bench",
        "filename": path,
        "ioengine": "psync",
        "norandommap": 1,
        "thread": 1,
        "numjobs": threads,
        "group_reporting": 1,
        "rw": "randread",
        "bs": 4096,
        "size": SIZE_BYTES,
        "time_based": 1,
        "runtime": f"{int(RUN_S * 1000)}ms",
        "output-format": "json",
    }
    command = ["fio", *(f"--{name}={value}" for name, value in settings.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    busy_s = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000
    return Result(job["read"]["iops"], busy_s / job["read"]["total_ios"] * 1e6)


def compare(path: str, threads: int, rounds: int) -> list[dict[str, Result]]:
    """Run rounds of every contender, each in a random order."""
    contenders: Mapping[str, Callable[[], Result]] = {
        "fio": lambda: run_fio(path, threads),
        "control": lambda: run_fio(path, threads),
        "threads": lambda: run_engine(path, threads, "threads"),
        "uring": lambda: run_engine(path, threads, "uring"),
    }
    done = []
    for number in range(rounds):
        order = random.Random(number).sample(sorted(contenders), len(contenders))
        done.append({name: contenders[name]() for name in order})
    return done


def report(threads: int, rounds: list[dict[str, Result]]) -> None:
    fio = statistics.median(turn["fio"].iops for turn in rounds)
    cpu = statistics.median(turn["fio"].cpu_us for turn in rounds)
    print(
        f"buffered tmpfs, {threads} threads: fio psync {fio / 1e3:.0f}k IOPS, {cpu:.2f} us of CPU per I/O", flush=True
    )
    for contender, goal in (("control", ""), ("threads", "   goal: >= 1.0 within the control's range"), ("uring", "")):
        iops = quartiles([turn[contender].iops / turn["fio"].iops for turn in rounds])
        share = quartiles([turn[contender].cpu_us / turn["fio"].cpu_us for turn in rounds])
        print(f"  {contender:8} IOPS {iops}   CPU per I/O {share}{goal}", flush=True)
