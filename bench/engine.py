"""IOPS and CPU per I/O of the load engine against fio, alternating on the same device.

4 KiB random reads with O_DIRECT on a loop device over tmpfs, zram and a file on disk, by one and two threads. fio runs
its io_uring engine with registered buffers and files and no random map, by interrupt and polling; so does the engine.
Every round runs all of them in a new order, fio twice (the control, for the noise); the result is the median of the
ratios within rounds. CPU is that of the I/O threads, on both sides.
"""

from __future__ import annotations

import argparse
import functools
import random
import shutil
import statistics
from collections.abc import Callable, Sequence
from contextlib import ExitStack

from bench.contenders import Cell, Result, run_engine, run_fio
from bench.targets import storage_paths

DEPTHS = (1, 8, 32, 128)
THREADS = (1, 2)
ROUNDS = 9
DEEP = 32
"""From this depth on the lower CPU goal applies."""
IOPS_GOAL, CPU_GOAL, CPU_GOAL_DEEP = 1.0, 0.85, 0.70

CONTENDERS: dict[str, Callable[[Cell], Result]] = {
    "fio": functools.partial(run_fio, poll=False),
    "control": functools.partial(run_fio, poll=False),
    "engine": functools.partial(run_engine, poll=False),
    "fio polling": functools.partial(run_fio, poll=True),
    "engine polling": functools.partial(run_engine, poll=True),
}
RIVALS = {"control": "fio", "engine": "fio", "fio polling": "fio", "engine polling": "fio polling"}
"""The contender each is compared with."""


def main(
    *, quick: bool = False, only: str = "", depths: Sequence[int] = DEPTHS, threads: Sequence[int] = THREADS
) -> None:
    """Measure every target, or those whose name begins with `only`."""
    if not shutil.which("fio"):
        print("fio is not installed")
        return
    with ExitStack() as stack:
        for name, path in storage_paths(stack):
            for count in threads if name.startswith(only) else ():
                for depth in depths:
                    cell = Cell(path, depth, count)
                    report(name, cell, compare(cell, rounds=3 if quick else ROUNDS))


def compare(cell: Cell, rounds: int) -> list[dict[str, Result]]:
    """Run rounds of every contender, each in a random order."""
    done = []
    for number in range(rounds):
        order = random.Random(number).sample(sorted(CONTENDERS), len(CONTENDERS))
        done.append({name: CONTENDERS[name](cell) for name in order})
    return done


def report(name: str, cell: Cell, rounds: list[dict[str, Result]]) -> None:
    """Print the medians of fio and the ratios of all others to their rival."""
    fio = statistics.median(turn["fio"].iops for turn in rounds)
    cpu = statistics.median(turn["fio"].cpu_us for turn in rounds)
    print(f"{name}, {cell}: fio {fio / 1e3:.0f}k IOPS, {cpu:.2f} us of CPU per I/O", flush=True)
    cpu_goal = CPU_GOAL_DEEP if cell.depth >= DEEP else CPU_GOAL
    for contender, rival in RIVALS.items():
        iops = quartiles([turn[contender].iops / turn[rival].iops for turn in rounds])
        share = quartiles([turn[contender].cpu_us / turn[rival].cpu_us for turn in rounds])
        goals = {"engine": f"   goals: >= {IOPS_GOAL}, <= {cpu_goal}", "engine polling": f"   goal: >= {IOPS_GOAL}"}
        print(f"  {contender:14} to {rival:11} IOPS {iops}   CPU {share}{goals.get(contender, '')}", flush=True)


def quartiles(ratios: list[float]) -> str:
    """Format the median with the interquartile range."""
    low, middle, high = statistics.quantiles(ratios, n=4)
    return f"{middle:.2f}x [{low:.2f}-{high:.2f}]"


if __name__ == "__main__":
    parser = argparse.ArgumentParser(prog="python -m bench.engine", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, for a quick check")
    parser.add_argument("--only", default="", help="targets by prefix of the name: loop, zram, file")
    parser.add_argument("--depths", type=int, nargs="+", default=DEPTHS)
    parser.add_argument("--threads", type=int, nargs="+", default=THREADS)
    arguments = parser.parse_args()
    main(quick=arguments.quick, only=arguments.only, depths=arguments.depths, threads=arguments.threads)
