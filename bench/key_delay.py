"""Delay from a key to the screen: while a load saturates all processors, and over 19,800 devices.

Letters are typed into the filter of a table, which is applied at each of them, and deleted again. A key counts as shown
once an emulated terminal shows the new filter. Goal: 50 ms for 99 of 100 keys.
"""

from __future__ import annotations

import os
import statistics
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from bench.scale_screen import HOSTS, LUNS, TARGETS, drain_for, moving
from bench.shown_text import FILTER_PROMPT, ShownText
from bench.terminal import Terminal
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi

GOAL_MS = 50.0
COLUMNS, LINES = 160, 50
WORD = "sda1"
ROUNDS, QUICK_ROUNDS = 40, 10
SETTLE_S, PAUSE_S, STALL_S = 5.0, 0.07, 10.0
"""Seconds before the first key, between two keys, and after which a key counts as lost."""
_DELETE = "\x7f"
_CARET = "▏"


def main(*, quick: bool = False) -> None:
    """Print median, 99th percentile and maximum of both."""
    rounds = QUICK_ROUNDS if quick else ROUNDS
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        threads = os.cpu_count() or 1
        load = ("--scratch-dir", f"{folder}/scratch", "--size=64M", f"--threads={threads}")
        for depth in (threads, 32 * threads):
            # On a file system in memory an I/O is a copy: each outstanding one is a thread that never waits.
            measure(f"a load of {depth} threads", ("run", *load, f"--qd={depth}"), "running", "1", rounds)
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        kernel = FakeKernel(Path(folder))
        FakeScsi(kernel, HOSTS, TARGETS, LUNS).build()
        with moving(kernel):
            roots = ("--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs))
            measure(f"{len(kernel.disks):,} devices", ("watch", *roots), "dm-", "5x", rounds)


def measure(what: str, command: Sequence[str], seen: str, screen: str, rounds: int) -> None:
    started = [sys.executable, "-m", "tui", *command, "--interval=1"]
    terminal = Terminal(started, COLUMNS, LINES, environment={"XDG_CONFIG_HOME": "/nonexistent"})
    try:
        terminal.drain(60.0, until=seen.encode())
        for key in screen:
            terminal.press(key)
            drain_for(terminal, SETTLE_S)
        delays = delays_ms(terminal, rounds)
    finally:
        terminal.close()
    p99 = float(np.percentile(delays, 99))
    print(f"{what:<24} median {statistics.median(delays):5.1f} ms, p99 {p99:5.1f} ms (goal {GOAL_MS:g}), ", end="")
    print(f"longest {max(delays):5.1f} ms of {len(delays)} keys", flush=True)


def delays_ms(terminal: Terminal, rounds: int) -> list[float]:
    """Open the filter, then type and delete the word so many times."""
    shown = ShownText(COLUMNS, LINES)
    terminal.resize(COLUMNS, LINES - 1)
    drain_for(terminal, PAUSE_S)
    terminal.output.clear()
    terminal.resize(COLUMNS, LINES)  # all is drawn anew
    drain_for(terminal, 1.0)
    shown.feed(bytes(terminal.output))
    terminal.press("/")
    if terminal.drain(STALL_S, until=lambda chunk: shown.feed(chunk) or shown.shows(FILTER_PROMPT)) is None:
        raise SystemExit(f"no filter was opened: {shown.text()}")
    steps = [(letter, WORD[: end + 1]) for end, letter in enumerate(WORD)]
    steps += [(_DELETE, WORD[:end]) for end in reversed(range(len(WORD)))]
    return [_delay_ms(terminal, shown, key, f"/{text}{_CARET}") for _ in range(rounds) for key, text in steps]


def _delay_ms(terminal: Terminal, shown: ShownText, key: str, text: str) -> float:
    terminal.drain(PAUSE_S, until=shown.feed)
    pressed_ns = terminal.press(key)
    seen_ns = terminal.drain(STALL_S, until=lambda chunk: shown.feed(chunk) or shown.shows(text))
    if seen_ns is None:
        raise SystemExit(f"{text} was not shown within {STALL_S:g} s: {shown.text()}")
    return (seen_ns - pressed_ns) / 1e6


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
