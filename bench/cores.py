"""Many cores: one process of N workers against N processes of one, and fio, with exact time off and on.

4 KiB random reads with O_DIRECT from N loop devices over tmpfs, one for each worker, for N = 1, 2, 4 ... up to the
processors of this host: above half of them the devices' own threads and the workers share processors. How much workers
of one process disturb each other shows in the ratio of one process to N; `jobs` are N loads of one worker in one
process. Rounds are interleaved, the figures are medians. No-ops need no device: N workers do N times what one does.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO

from bench.contenders import LEANEST_FIO
from bench.targets import loop
from collectors.derive.percentiles import RowCells, percentiles_ns
from collectors.sources.load import SCALE
from engine._native import BlockTracer, LoadEngine, LoadTarget, fill, tracer_refusal
from engine.backend.protocol import LoadSettings
from engine.job.spec import Knobs

DEPTH = 32
ROUNDS = 7
RUN_S = 2.0
SIZE_BYTES = 64 << 20
"""Size of each loop device."""
IOPS_GOAL, CPU_GOAL, EXACT_GOAL, NO_OPS_GOAL = 1.0, 0.8, 0.95, 0.95


@dataclass(frozen=True, slots=True)
class Figures:
    """What one run took, summed over its processes."""

    iops: float
    cpu_us: float
    """CPU time of the I/O threads per I/O."""
    sleeps: float
    """Voluntary context switches of these threads per I/O."""
    mean_us: float
    """Mean latency, from submit to reap, by the clock of the load itself."""
    p99_us: float
    """Its 99th percentile; the mean of those of several processes."""


def main(*, quick: bool = False) -> None:
    """Print a table for each number of workers, and the no-ops."""
    if os.geteuid() != 0 or not shutil.which("fio"):
        print("left out: needs root and fio")
        return
    processors = len(os.sched_getaffinity(0))
    counts = [count for count in (1 << step for step in range(12)) if count <= processors]
    print(f"{processors} processors, Linux {os.uname().release}, QD {DEPTH} for each worker")
    with ExitStack() as stack:
        devices = [stack.enter_context(loop(_backing(stack))) for _ in range(counts[-1])]
        for count in counts:
            _table(devices[:count], 3 if quick else ROUNDS)
    _no_ops(counts, 3 if quick else ROUNDS)


def _backing(stack: ExitStack) -> Path:
    file = tempfile.NamedTemporaryFile(dir="/dev/shm", prefix="lunscope-bench-")  # noqa: SIM115
    stack.enter_context(file)
    if fill(file.fileno(), 0, SIZE_BYTES, seed=1) < SIZE_BYTES:
        raise OSError(f"/dev/shm: no room for {SIZE_BYTES} bytes")
    return Path(file.name)


def _table(devices: Sequence[str], rounds: int) -> None:
    """Run all forms on these devices, one worker for each."""
    forms: dict[str, Callable[[], Figures]] = {
        "fio": lambda: _fio(devices),
        "one process": lambda: _lunscopes([devices]),
    }
    if len(devices) > 1:
        forms["one process, jobs"] = lambda: _lunscopes([devices], jobs=True)
        forms["processes"] = lambda: _lunscopes([[device] for device in devices])
    exact = {f"{name}, exact time": form for name, form in forms.items() if name in {"fio", "one process"}}
    refusal = tracer_refusal()
    tracer = None if refusal else BlockTracer()
    found: dict[str, list[Figures]] = {name: [] for name in (*forms, *(exact if tracer else ()))}
    try:
        for number in range(rounds):
            if tracer:
                tracer.pause()
            for name in random.Random(number).sample(sorted(forms), len(forms)):
                found[name].append(forms[name]())
            if tracer:
                tracer.resume()
                for name in random.Random(number).sample(sorted(exact), len(exact)):
                    found[name].append(exact[name]())
    finally:
        if tracer:
            tracer.close()
    _print(len(devices), found)
    if refusal:
        print(f"  exact time left out: {refusal}")


def _print(count: int, found: dict[str, list[Figures]]) -> None:
    print(f"{count} workers, {count} loop devices" if count > 1 else "1 worker, 1 loop device")
    print(
        f"  {'':24} {'kIOPS':>8} {'to fio':>7} {'CPU us':>7} {'to fio':>7} {'sleeps':>7} {'mean us':>8} {'p99 us':>8}"
    )
    for name, runs in found.items():
        figures = {field: statistics.median(getattr(run, field) for run in runs) for field in Figures.__slots__}
        beside = list(zip(runs, found["fio"], strict=True))
        iops = statistics.median(run.iops / fio.iops for run, fio in beside)
        cpu = statistics.median(run.cpu_us / fio.cpu_us for run, fio in beside)
        print(
            f"  {name:24} {figures['iops'] / 1e3:8.0f} {iops:6.2f}x {figures['cpu_us']:7.2f} {cpu:6.2f}x "
            f"{figures['sleeps']:7.3f} {figures['mean_us']:8.1f} {figures['p99_us']:8.1f}",
            flush=True,
        )
    for name in ("fio", "one process"):
        if with_exact := found.get(f"{name}, exact time"):
            pairs = zip(with_exact, found[name], strict=True)
            kept = statistics.median(on.iops / off.iops for on, off in pairs)
            print(f"  {name}: {kept:.3f}x of the IOPS with exact time (goal: >= {EXACT_GOAL})")
    print(f"  goals of one process: >= {IOPS_GOAL}x of fio's IOPS and of the processes', <= {CPU_GOAL}x of fio's CPU")


def _fio(devices: Sequence[str]) -> Figures:
    """Run one fio with a thread for each device, with its leanest options."""
    settings = {
        **LEANEST_FIO,
        "iodepth": DEPTH,
        "time_based": 1,
        "group_reporting": 1,
        "runtime": f"{int(RUN_S * 1000)}ms",
        "output-format": "json",
    }
    command = ["fio", *(f"--{name}={value}" for name, value in settings.items())]
    for number, device in enumerate(devices):
        command += [f"--name=job{number}", f"--filename={device}"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (group,) = json.loads(done.stdout[done.stdout.index("{") :])["jobs"]
    reads = group["read"]
    busy_s = (group["usr_cpu"] + group["sys_cpu"]) / 100 * group["job_runtime"] / 1000
    return Figures(
        iops=reads["iops"],
        cpu_us=busy_s / reads["total_ios"] * 1e6,
        sleeps=group["ctx"] / reads["total_ios"],
        mean_us=reads["clat_ns"]["mean"] / 1e3,
        p99_us=reads["clat_ns"]["percentile"]["99.000000"] / 1e3,
    )


def _lunscopes(shares: Sequence[Sequence[str]], *, jobs: bool = False) -> Figures:
    """Run a process for each share of the devices, all at the same time."""
    command = [sys.executable, "-m", "bench.cores", *(["--jobs"] if jobs else [])]
    running = [
        subprocess.Popen([*command, *share], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for share in shares
    ]
    pipes = [(_pipe(process.stdin), _pipe(process.stdout)) for process in running]
    for _, output in pipes:
        output.readline()
    for start, _ in pipes:
        start.write("start\n")
        start.flush()
    parts = [Figures(**json.loads(output.readline())) for _, output in pipes]
    for process in running:
        process.communicate()
    return _sum(parts)


def _pipe(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


def _sum(parts: Sequence[Figures]) -> Figures:
    iops = sum(part.iops for part in parts)
    mean = [sum(getattr(part, field) * part.iops for part in parts) / iops for field in Figures.__slots__[1:]]
    return Figures(iops, *mean)


def _drive(paths: Sequence[str], *, jobs: bool) -> None:
    """Run the load of one process once there is a line to read, and print its figures."""
    shares = [[path] for path in paths] if jobs else [paths]
    engines = [_engine(share) for share in shares]
    print("ready", flush=True)
    sys.stdin.readline()
    for engine in engines:
        engine.start()
    slept = 0
    while any(engine.running for engine in engines):
        slept = max(slept, _sleeps())
        time.sleep(0.02)
    print(json.dumps(asdict(_sum([_figures(engine, slept / len(engines)) for engine in engines]))), flush=True)


def _engine(paths: Sequence[str], *, dry: bool = False, depth: int = DEPTH) -> LoadEngine:
    """Make a load of a worker for each path, each of which has the depth outstanding over all of them."""
    opened = []
    for path in paths:
        fd = os.open(path, os.O_RDONLY | (0 if dry else os.O_DIRECT))
        try:
            opened.append(LoadTarget(fd, path, SIZE_BYTES, 4096, writable=False))
        finally:
            os.close(fd)
    knobs = Knobs(queue_depth=depth, stripe_width=len(opened), threads=len(opened))
    return LoadEngine(opened, knobs, LoadSettings(backend="uring", runtime_s=RUN_S, dry=dry))


def _figures(engine: LoadEngine, slept: float) -> Figures:
    assert engine.stop()
    (epoch,) = engine.epochs()
    assert epoch.start_ns is not None
    assert epoch.end_ns is not None
    ios, waited_ns = (float(epoch.counts[:, 0, column].sum()) for column in (0, 2))
    every_io = ios + epoch.transient_ios
    target, _, bucket, count = epoch.cells
    cells = RowCells(SCALE, target, bucket, count)
    return Figures(
        iops=ios / (epoch.end_ns - epoch.start_ns) * 1e9,
        cpu_us=engine.cpu_ns() / every_io / 1e3,
        sleeps=slept / every_io,
        mean_us=waited_ns / ios / 1e3,
        p99_us=float(percentiles_ns(cells.together(), 1, [99.0])[0, 0]) / 1e3,
    )


def _sleeps() -> int:
    """Count how often the workers of this process gave up their processor by themselves."""
    total = 0
    for task in Path("/proc/self/task").iterdir():
        # A thread may end meanwhile.
        with suppress(OSError):
            if (task / "comm").read_text().strip() == "load":
                lines = (task / "status").read_text().splitlines()
                total += next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches"))
    return total


def _no_ops(counts: Sequence[int], rounds: int) -> None:
    """Print how no-ops of N workers compare with one's, per CPU time, which other work on the host leaves alone."""
    with tempfile.NamedTemporaryFile(prefix="lunscope-bench-") as file:
        file.truncate(SIZE_BYTES)
        found: dict[int, list[Figures]] = {count: [] for count in counts}
        for number in range(rounds):
            for count in random.Random(number).sample(list(counts), len(counts)):
                engine = _engine([file.name] * count, dry=True)
                engine.start()
                while engine.running:
                    time.sleep(0.02)
                found[count].append(_figures(engine, 0))
    for count, runs in found.items():
        iops, cpu_us = (statistics.median(getattr(run, field) for run in runs) for field in ("iops", "cpu_us"))
        beside = zip(runs, found[counts[0]], strict=True)
        ratio = statistics.median(one.cpu_us / many.cpu_us for many, one in beside)
        goal = f"   {ratio:.2f}x of one worker (goal: >= {NO_OPS_GOAL})" if count > 1 else ""
        print(f"no-ops, {count} workers: {iops / 1e6:.2f} M/s, {1 / cpu_us:.2f} M/s of CPU time{goal}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.cores", description="The load of one process of this part.")
    parser.add_argument("paths", nargs="+")
    parser.add_argument("--jobs", action="store_true", help="a load for each path")
    arguments = parser.parse_args()
    _drive(arguments.paths, jobs=arguments.jobs)
