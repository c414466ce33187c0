"""Bytes to the terminal, and CPU per key, at 120x40 and 1 Hz.

The devices are in fake trees on tmpfs, read as sysfs is (bench.as_sysfs), whose counters move once a second; the
Latency screen shows a load on /dev/shm, whose I/Os are timed. CPU per key is that of a burst of keys, above that of
the same time without keys; the median of several bursts, as one with a tick more than the time without keys reads too
high by the cost of a tick: of 20 keys over 19,800 devices by 5 ms each.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from bench.scale_screen import HOSTS, LUNS, TARGETS, drain_for, moving
from bench.terminal import Terminal
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import SD_MAJOR, FakeScsi, sd_name

Screens = dict[str, str]

COLUMNS, LINES = 120, 40
DISKS = 50
SETTLE_S, SECONDS, QUICK_SECONDS = 3.0, 20.0, 8.0
BURSTS = 5
SMALL_GOAL_KB, LARGE_GOAL_KB = 3.0, 8.0
SCREENS = {"Overview": "1", "Disk detail": "\r", "Paths": "\x1b5", "Wall": "7"}
LOAD_SCREENS = {"Overview": "1", "Latency": "4", "Load": "2"}
REPEAT_S, KEY_S = 1 / 30, 0.15
"""Between keys: as a keyboard repeats one that is held; so that all that a key changes is painted before the next."""


class KeyCase(NamedTuple):
    """Keys pressed on a screen."""

    screen: str
    keys: str
    goal_ms: float
    """CPU time of each."""
    gap_s: float = KEY_S


Keys = dict[str, KeyCase]
KEYS = {
    "screen switch": KeyCase("1", "57" * 10, 20.0),
    "cursor, key held": KeyCase("1", "\x1b[B" * 40, 5.0, REPEAT_S),
    "cursor, one key and its charts": KeyCase("1", "\x1b[A" * 20, 5.0),
    "sort": KeyCase("1", "><" * 10, 5.0),
    "longer and shorter history": KeyCase("1", "zZ" * 10, 10.0),
}
LOAD_KEYS = {
    "zoom of the heat map, keys held": KeyCase("4", ("+" * 6 + "-" * 6) * 3, 10.0, REPEAT_S),
    "zoom of the heat map, one key": KeyCase("4", "+-" * 10, 10.0),
}
_ESCAPE_S = 0.3


def main(*, quick: bool = False) -> None:
    seconds = QUICK_SECONDS if quick else SECONDS
    on_tree(_disks, "sda", SMALL_GOAL_KB, seconds)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        target = ("run", "--target", f"{folder}/scratch", "--size=64M", "--rate=2000")
        print("a load:")
        measure(target, "running", (LOAD_SCREENS, LOAD_KEYS), SMALL_GOAL_KB, seconds)
    on_tree(_paths, "dm-", LARGE_GOAL_KB, seconds)


def _disks(kernel: FakeKernel) -> None:
    kernel.add(*(FakeDisk(sd_name(number), SD_MAJOR, number * 16, sectors=1 << 31) for number in range(DISKS)))


def _paths(kernel: FakeKernel) -> None:
    FakeScsi(kernel, HOSTS, TARGETS, LUNS).build()


def on_tree(build: Callable[[FakeKernel], object], seen: str, goal_kb: float, seconds: float) -> None:
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        kernel = FakeKernel(Path(folder))
        build(kernel)
        with moving(kernel):
            print(f"{len(kernel.disks):,} devices:")
            roots = ("--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs))
            measure(("watch", *roots), seen, (SCREENS, KEYS), goal_kb, seconds)


def measure(command: Sequence[str], seen: str, cases: tuple[Screens, Keys], goal_kb: float, seconds: float) -> None:
    screens, all_keys = cases
    started = [sys.executable, "-m", "bench.as_sysfs", *command, "--interval=1"]
    # Settings and kept choices of whoever measures would change what is shown.
    terminal = Terminal(started, COLUMNS, LINES, environment={"XDG_CONFIG_HOME": "/nonexistent"})
    try:
        terminal.drain(60.0, until=seen.encode())
        for screen, keys in screens.items():
            type_slowly(terminal, keys)
            drain_for(terminal, SETTLE_S)
            sent, cpu = len(terminal.output), cpu_s(terminal.worker)
            drain_for(terminal, seconds)
            sent_kb = (len(terminal.output) - sent) / 1024 / seconds
            share_pct = (cpu_s(terminal.worker) - cpu) / seconds * 100
            print(f"  {screen:<32} {sent_kb:5.1f} KB/s (goal {goal_kb:g}), {share_pct:4.1f} % of a core", flush=True)
        for name, case in all_keys.items():
            cpu_ms = cpu_ms_per_key(terminal, case)
            print(f"  {name:<32} {cpu_ms:5.1f} ms of CPU per key (goal {case.goal_ms:g})", flush=True)
    finally:
        terminal.close()


def cpu_ms_per_key(terminal: Terminal, case: KeyCase) -> float:
    type_slowly(terminal, case.screen)
    drain_for(terminal, 1.0)
    pressed = [f"\x1b{rest}" for rest in case.keys.split("\x1b")[1:]] or list(case.keys)
    for key in pressed[:2]:
        type_slowly(terminal, key)
    costs_s: list[float] = []
    for _ in range(BURSTS):
        idle_s = _cpu_while(terminal, lambda: drain_for(terminal, len(pressed) * case.gap_s))
        busy_s = _cpu_while(terminal, lambda: press_all(terminal, pressed, case.gap_s))
        costs_s.append(busy_s - idle_s)
    return statistics.median(costs_s) / len(pressed) * 1e3


def press_all(terminal: Terminal, keys: Sequence[str], gap_s: float) -> None:
    for key in keys:
        terminal.press(key)
        drain_for(terminal, gap_s)


def _cpu_while(terminal: Terminal, work: Callable[[], object]) -> float:
    before_s = cpu_s(terminal.worker)
    work()
    return cpu_s(terminal.worker) - before_s


def cpu_s(pid: int) -> float:
    """CPU time of all threads, in ns resolution (Documentation/scheduler/sched-stats.rst)."""
    return sum(int(task.read_text().split()[0]) for task in Path(f"/proc/{pid}/task").glob("*/schedstat")) / 1e9


def type_slowly(terminal: Terminal, keys: str) -> None:
    """Type keys one by one; a lone Esc must not look like the begin of a sequence."""
    for key in [keys] if keys.startswith("\x1b[") else keys:
        terminal.press(key)
        drain_for(terminal, _ESCAPE_S)


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
