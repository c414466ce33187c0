"""The file in which a sweep of another process keeps its measurements, read while it is written."""

from __future__ import annotations

import time
from pathlib import Path

_PATIENCE_S = 240.0


def trial_lines(path: Path) -> list[bytes]:
    """Whole lines of measurements, without those of head and host."""
    return [line for line in path.read_bytes().split(b"\n")[:-1] if line.startswith(b'{"curve"')]


def wait_for_trials(path: Path, count: int) -> None:
    """Wait until so many measurements are in the file: on a busy host one takes up to a minute."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not path.exists() or len(trial_lines(path)) < count:
        assert time.monotonic() < deadline_s, f"not {count} measurements in {path}"
        time.sleep(0.05)
