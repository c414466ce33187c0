"""Sweeps of a steady device: what a point costs beyond its measurement, the time to the knee, one limit and three.

The device is a loop over tmpfs where that can be made, else a file. The time of a point is that from its start to the
start of the next one; of the points of a preset warm-up and measurement are fixed, and what is left is turning,
settling, sampling, storing, and the rounding of both times to judgements, 240 ms apart.
"""

from __future__ import annotations

import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from bench.targets import storage_paths

ROUNDS = 3
POINT_S = 0.5
"""Seconds of the warm-up and of the measurement of a point of the preset."""
_SWEEP = (sys.executable, "-m", "tui", "sweep", "--headless", "--json")
_POINTS = ("--preset", "skytap", "--vary", "read_pct=100", "--vary", "bs=4k", "--vary", "qd=1,2,4,8,12,16,24,32")
_LIMITS = ("p99<=2ms", "p99.9<=5ms", "mean<=500us")


def main(*, quick: bool = False) -> None:
    with ExitStack() as stack:
        name, path = next(storage_paths(stack))
        print(f"{name}, {os.cpu_count()} CPUs, load average {os.getloadavg()[0]:.1f}")
        report_points(path)
        report_knee(path, rounds=1 if quick else ROUNDS)
        report_limits(path, rounds=1 if quick else ROUNDS)


def report_points(path: str) -> None:
    """Print what a point costs beyond warm-up and measurement."""
    with tempfile.TemporaryDirectory() as folder:
        kept = ("--trials", str(Path(folder) / "trials"), "--record", str(Path(folder) / "session.luns"))
        document = swept(path, *_POINTS, "--runtime", f"{POINT_S:g}s", *kept)
    starts = sorted(trial["start_s"] for curve in curves(document["parts"][0]["sweep"]) for trial in curve["trials"])
    beyond = [after - before - 2 * POINT_S for before, after in itertools.pairwise(starts)]
    print(
        f"a point beyond its measurement: median {statistics.median(beyond):.2f} s, most {max(beyond):.2f} s (goal 0.5)"
    )


def report_knee(path: str, rounds: int) -> None:
    """Print how long a whole sweep takes."""
    for _ in range(rounds):
        document = swept(path, "--vary", "qd=1..256")
        answer = curves(document)[0]["answer"]
        print(
            f"qd=1..256: {document['elapsed_s']:.0f} s (goal 180), {answer['shape']}, fit error {answer['fit_error']}"
        )


def report_limits(path: str, rounds: int) -> None:
    """Print the time for one limit, for each in turn, and for all together, alternating."""
    for number in range(rounds):
        one_s = swept(path, "--slo", _LIMITS[number % len(_LIMITS)])["elapsed_s"]
        three_s = swept(path, *(word for limit in _LIMITS for word in ("--slo", limit)))["elapsed_s"]
        alone = _LIMITS[number % len(_LIMITS)]
        print(f"{alone} alone {one_s:.0f} s, all three {three_s:.0f} s: {three_s / one_s:.2f}x (goal 1.5)")


def swept(path: str, *arguments: str) -> dict[str, Any]:
    """Measure the target and return the document."""
    done = subprocess.run((*_SWEEP, "--target", path, *arguments), capture_output=True, text=True, check=False)
    if not done.stdout:
        raise SystemExit(done.stderr)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


def curves(document: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the curves of a sweep."""
    found: list[dict[str, Any]] = document["curves"]
    return found
