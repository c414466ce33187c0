"""Time from starting `lunscope watch` to the first painted screen, on a pseudo-terminal, with a warm cache.

Modules are compiled, as in what is installed. Goal: at most 0.35 s.
"""

from __future__ import annotations

import os
import statistics
import sys

from bench.terminal import Terminal

GOAL_S = 0.35


def first_paint_s() -> float:
    """Seconds until the footer's help key is on the screen."""
    terminal = Terminal([sys.executable, "-m", "tui", "watch"])
    painted_ns = terminal.drain(10.0, until=b"Help")
    started_ns = terminal.started_ns
    terminal.close()
    if painted_ns is None:
        raise SystemExit("watch painted nothing within 10 s")
    return (painted_ns - started_ns) / 1e9


def main(*, quick: bool) -> None:
    """Print the median and the spread."""
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    first_paint_s()
    runs = sorted(first_paint_s() for _ in range(5 if quick else 11))
    print(f"first paint: median {statistics.median(runs):.3f} s ({runs[0]:.3f} to {runs[-1]:.3f}), goal {GOAL_S} s")


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
