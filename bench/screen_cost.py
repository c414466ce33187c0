"""Cost of the screens to a running load, and delay from key to knob.

The same job runs headless and on a pseudo-terminal of 160x50 at 2 Hz, alternating, both recorded; the result is the
median of the ratios of their IOPS. Goals: at most 3 % of the IOPS; a knob in force within 50 ms of its key.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

from bench.engine import quartiles
from bench.targets import SIZE_BYTES, storage_paths
from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from engine.events import EventKind

RUN_S = 6
SETTLE_S = 1.5
PAIRS = 9
TURNS = 20


def lunscope(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "tui", "run", *arguments]


def job(path: str, depth: int, session: Path, runtime_s: int) -> list[str]:
    size = f"--size={SIZE_BYTES}"
    rest = ("--interval=0.5", f"--record={session}", "--overwrite", f"--runtime={runtime_s}s")
    return ["--target", path, size, f"--qd={depth}", *rest]


def headless(path: str, depth: int, session: Path) -> float:
    command = lunscope("--headless", *job(path, depth, session, RUN_S))
    subprocess.run(command, check=True, capture_output=True)
    return steady_iops(session)


def on_screen(path: str, depth: int, session: Path) -> float:
    terminal = Terminal(lunscope(*job(path, depth, session, RUN_S)))
    terminal.drain(RUN_S + 20.0, until=b"finished")
    terminal.press("q")
    terminal.wait(10.0)
    terminal.close()
    return steady_iops(session)


def steady_iops(session: Path) -> float:
    """IOPS of the load between its first seconds and its end."""
    with SessionReader(session) as reader:
        steps = list(reader.steps(reader.first, len(reader) - 1))
    points = []
    for step in steps:
        load = step.current.tables.get("load")
        if load is not None and len(load.rows) and load.column("in_flight_now").sum() > 0:
            points.append((step.current.monotonic_ns, int(load.column("read_ios").sum())))
    points = [point for point in points if point[0] - points[0][0] >= SETTLE_S * 1e9]
    (first_ns, first), (last_ns, last) = points[0], points[-1]
    return (last - first) / (last_ns - first_ns) * 1e9


def key_delays_ms(path: str, session: Path) -> list[float]:
    """From writing `+` to the terminal until the engine has the new queue depth."""
    terminal = Terminal(lunscope(*job(path, 8, session, 600)))
    terminal.drain(30.0, until=b"RUNNING")
    terminal.drain(2.0)
    pressed = []
    for turn in range(TURNS):
        pressed.append(terminal.press("+" if turn % 2 == 0 else "-"))
        terminal.drain(0.4 + random.random() * 0.3)
    terminal.press("q")
    terminal.wait(10.0)
    terminal.close()
    with SessionReader(session) as reader:
        turned = [event.monotonic_ns for event in reader.events() if event.kind is EventKind.KNOB]
    if len(turned) != len(pressed):
        raise SystemExit(f"{len(pressed)} keys, but {len(turned)} knob turns were recorded")
    return [(there - here) / 1e6 for here, there in zip(pressed, turned, strict=True)]


def main(*, quick: bool = False) -> None:
    """Print the cost of the screens on each target, and the delay of the keys."""
    with ExitStack() as stack:
        session = Path(stack.enter_context(tempfile.TemporaryDirectory())) / "bench.luns"
        for name, path in storage_paths(stack):
            for depth in (8, 32):
                ratios = []
                for number in range(3 if quick else PAIRS):
                    runs = {"headless": headless, "screen": on_screen}
                    order = random.Random(number).sample(sorted(runs), 2)
                    iops = {which: runs[which](path, depth, session) for which in order}
                    ratios.append(iops["screen"] / iops["headless"])
                print(
                    f"{name}, QD {depth}: IOPS with the screen {quartiles(ratios)} of headless   goal >= 0.97",
                    flush=True,
                )
            delays = sorted(key_delays_ms(path, session))
            slowest = delays[-1]
            print(
                f"{name}: key to knob median {statistics.median(delays):.1f} ms, slowest {slowest:.1f} ms   goal 50 ms"
            )
            time.sleep(0.1)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
