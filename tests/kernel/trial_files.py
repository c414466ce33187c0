"""The file in which a sweep of another process keeps its measurements, read while it is written."""

from __future__ import annotations

import subprocess
import time
from pathlib import Path

_PATIENCE_S = 240.0


def trial_lines(path: Path) -> list[bytes]:
    """Whole lines of measurements, without those of head and host."""
    return [line for line in path.read_bytes().split(b"\n")[:-1] if line.startswith(b'{"curve"')]


def wait_for_trials(process: subprocess.Popen[str], path: Path, count: int) -> None:
    """Wait until a sweep has so many measurements in its file: on a busy host one takes up to a minute."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while not path.exists() or len(trial_lines(path)) < count:
        if process.poll() is not None:
            said = " ".join(stream.read() for stream in (process.stdout, process.stderr) if stream)
            raise AssertionError(f"it ended with {process.returncode} before measurement {count}: {said.strip()}")
        assert time.monotonic() < deadline_s, f"not {count} measurements in {path}"
        time.sleep(0.05)
