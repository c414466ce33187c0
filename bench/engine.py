"""IOPS and CPU per I/O of the load engine against fio, in turns on the same device.

4 KiB random reads with O_DIRECT by one thread; fio runs its io_uring engine with registered buffers and files and no
random map, in its default mode. Every round runs fio, fio again (the control: how far the same thing differs from
itself) and the engine in a new order; what counts is the median of the ratios within rounds. CPU is that of the thread
which does the I/O, on both sides.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from engine._native import LoadEngine, LoadTarget, fill
from engine.job import Knobs

DEPTHS = (1, 8, 32, 128)
ROUNDS = 9
SIZE_BYTES = 1 << 30
RUN_S = 1.5
IOPS_GOAL, CPU_GOAL = 0.97, 0.85


@dataclass(frozen=True)
class Result:
    """What one run did."""

    iops: float
    cpu_us: float
    """CPU time of the thread per I/O."""


def main(*, quick: bool = False) -> None:
    if not shutil.which("fio"):
        print("fio is not installed")
        return
    with ExitStack() as stack:
        for name, path in places(stack):
            for depth in DEPTHS:
                report(name, depth, compare(path, depth, rounds=3 if quick else ROUNDS))


def places(stack: ExitStack) -> Iterator[tuple[str, str]]:
    """Where to measure: a loop device over tmpfs and a file on the disk of the temporary folder."""
    if os.geteuid() == 0:
        backing = stack.enter_context(scratch(Path("/dev/shm")))
        yield "loop over tmpfs", stack.enter_context(loop(backing))
    else:
        print("loop over tmpfs: left out, needs root")
    yield "file on disk", str(stack.enter_context(scratch(Path(tempfile.gettempdir()))))


@contextmanager
def scratch(folder: Path) -> Iterator[Path]:
    with tempfile.NamedTemporaryFile(dir=folder, prefix="lunscope-bench-") as file:
        if fill(file.fileno(), 0, SIZE_BYTES, seed=1) < SIZE_BYTES:
            raise OSError(f"{folder}: no room for {SIZE_BYTES} bytes")
        os.fsync(file.fileno())
        yield Path(file.name)


@contextmanager
def loop(backing: Path) -> Iterator[str]:
    command = ["losetup", "--find", "--show", "--direct-io=on", str(backing)]
    device = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    try:
        yield device
    finally:
        subprocess.run(["losetup", "--detach", device], check=True)


def run_engine(path: str, depth: int) -> Result:
    """One run of the engine; what is counted begins once it has settled."""
    fd = os.open(path, os.O_RDONLY | os.O_DIRECT)
    try:
        target = LoadTarget(fd, path, SIZE_BYTES, 4096, writable=False)
    finally:
        os.close(fd)
    engine = LoadEngine([target], Knobs(queue_depth=depth), backend="uring", runtime_s=RUN_S)
    engine.start()
    while engine.running:
        time.sleep(0.05)
    assert engine.stop()
    (epoch,) = engine.epochs()
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    measured = int(epoch.counts[0, 0, 0])
    iops = measured / (epoch.end_ns - epoch.start_ns) * 1e9
    return Result(iops, engine.cpu_ns() / (measured + epoch.transient_ios) / 1e3)


def run_fio(path: str, depth: int) -> Result:
    settings = {
        "name": "bench",
        "filename": path,
        "ioengine": "io_uring",
        "fixedbufs": 1,
        "registerfiles": 1,
        "nonvectored": 1,
        "norandommap": 1,
        "thread": 1,
        "rw": "randread",
        "bs": 4096,
        "direct": 1,
        "size": SIZE_BYTES,
        "iodepth": depth,
        "time_based": 1,
        "runtime": f"{int(RUN_S * 1000)}ms",
        "output-format": "json",
    }
    command = ["fio", *(f"--{name}={value}" for name, value in settings.items())]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    job = json.loads(done.stdout[done.stdout.index("{") :])["jobs"][0]
    busy_s = (job["usr_cpu"] + job["sys_cpu"]) / 100 * job["job_runtime"] / 1000
    return Result(job["read"]["iops"], busy_s / job["read"]["total_ios"] * 1e6)


def compare(path: str, depth: int, rounds: int) -> list[dict[str, Result]]:
    """Make rounds of every contender, each in an order of its own."""
    contenders: dict[str, Callable[[str, int], Result]] = {"fio": run_fio, "control": run_fio, "engine": run_engine}
    done = []
    for number in range(rounds):
        order = random.Random(number).sample(sorted(contenders), len(contenders))
        done.append({name: contenders[name](path, depth) for name in order})
    return done


def report(name: str, depth: int, rounds: list[dict[str, Result]]) -> None:
    fio = statistics.median(turn["fio"].iops for turn in rounds)
    cpu = statistics.median(turn["fio"].cpu_us for turn in rounds)
    print(f"{name}, QD {depth}: fio {fio / 1e3:.0f}k IOPS, {cpu:.2f} us of CPU per I/O", flush=True)
    for contender, goals in (("control", ""), ("engine", f"   goals: >= {IOPS_GOAL}, <= {CPU_GOAL}")):
        iops = quartiles([turn[contender].iops / turn["fio"].iops for turn in rounds])
        share = quartiles([turn[contender].cpu_us / turn["fio"].cpu_us for turn in rounds])
        print(f"  {contender:8} IOPS {iops}   CPU per I/O {share}{goals}", flush=True)


def quartiles(ratios: list[float]) -> str:
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f}x [{low:.2f}-{high:.2f}]"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds: a look, not a result")
    main(quick=parser.parse_args().quick)
