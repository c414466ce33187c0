"""CPU time of an interval of `report`, and of reading a tick of a recording in order, both from a simulated recording.

Figures are the minimum of several runs, to exclude other load on the machine.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Callable
from itertools import islice
from pathlib import Path

from bench.session import simulated
from collectors.model import Step
from collectors.reports.report import ReportOptions, report_text
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter

_SHAPES = ((200, 1.0, 300), (2_000, 0.05, 120))
_OPTIONS = {
    "disks": ReportOptions(tables=("disks",)),
    "disks of which none is shown": ReportOptions(tables=("tapes",)),
    "-P every 5 s": ReportOptions(tables=("disks",), distribution=True, interval_s=5.0),
}


def main(*, quick: bool = False) -> None:
    """Measure and print every shape."""
    runs = 3 if quick else 9
    for devices, share, ticks in _SHAPES:
        with tempfile.TemporaryDirectory(prefix="lunscope-bench-") as folder:
            path = Path(folder) / "report.luns"
            with SessionWriter(path) as writer:
                for sample in islice(simulated(devices, share), ticks):
                    writer.write(sample)
            _report(f"{devices:6,} devices, {share:4.0%} active", path, ticks, runs)


def _report(name: str, path: Path, ticks: int, runs: int) -> None:
    steps = _steps(path)
    print(f"{name}: read {_least_ms(lambda: _steps(path), runs) / ticks:.3f} ms a tick")
    for what, options in _OPTIONS.items():
        spent_ms = _least_ms(lambda chosen=options: sum(map(len, report_text(iter(steps), chosen))), runs)  # type: ignore[misc]
        print(f"{name}: report {what:<30} {spent_ms / ticks:.3f} ms a tick")


def _steps(path: Path) -> list[Step]:
    with SessionReader(path) as reader:
        return list(reader.steps(0, len(reader) - 1))


def _least_ms(work: Callable[[], object], runs: int) -> float:
    least = float("inf")
    for _ in range(runs):
        start = time.process_time_ns()
        work()
        least = min(least, (time.process_time_ns() - start) / 1e6)
    return least


if __name__ == "__main__":
    main(quick="--quick" in sys.argv)
