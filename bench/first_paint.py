"""Time from starting `lunscope watch` to the first painted screen, on a pseudo-terminal, with a warm cache.

Modules are compiled, as in what is installed. A minimal Textual app is started in turn: hosts differ by a factor of
two, which the ratio does not show. Goals: 0.35 s where that app takes 0.18 s, which is 1.94 times as long.
"""

from __future__ import annotations

import os
import statistics
import sys
from collections.abc import Sequence

from bench.terminal import Terminal

GOAL_S, GOAL_RATIO = 0.35, 0.35 / 0.18
PAIRS, QUICK_PAIRS = 15, 5
MINIMAL = """
from textual.app import App
from textual.widgets import Footer, Static

class Minimal(App):
    BINDINGS = [("q", "quit", "Help")]

    def compose(self):
        yield Static("minimal")
        yield Footer()

Minimal().run()
"""
COMMANDS = {"lunscope": (sys.executable, "-m", "tui", "watch"), "minimal": (sys.executable, "-c", MINIMAL)}


def first_paint_s(command: Sequence[str]) -> float:
    """Seconds until the footer's help key is on the screen."""
    terminal = Terminal(command)
    painted_ns = terminal.drain(10.0, until=b"Help")
    started_ns = terminal.started_ns
    terminal.close()
    if painted_ns is None:
        raise SystemExit(f"{command[1:3]} painted nothing within 10 s")
    return (painted_ns - started_ns) / 1e9


def main(*, quick: bool) -> None:
    """Print the medians, the spread, and the ratio of the pairs."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    for command in COMMANDS.values():
        first_paint_s(command)
    pairs = [
        {name: first_paint_s(command) for name, command in COMMANDS.items()}
        for _ in range(QUICK_PAIRS if quick else PAIRS)
    ]
    runs = sorted(pair["lunscope"] for pair in pairs)
    minimal_s = statistics.median(pair["minimal"] for pair in pairs)
    ratio = statistics.median(pair["lunscope"] / pair["minimal"] for pair in pairs)
    print(f"first paint: median {statistics.median(runs):.3f} s ({runs[0]:.3f} to {runs[-1]:.3f}), goal {GOAL_S} s")
    print(f"a minimal Textual app: median {minimal_s:.3f} s; ratio of the pairs {ratio:.2f}, goal {GOAL_RATIO:.2f}")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
