"""Run in a guest: a check of an array that is recorded, and what /proc/mdstat said meanwhile, as one JSON document."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from pathlib import Path

from collectors.model import MISSING
from collectors.session.reader import SessionReader
from collectors.tables.background.schema import BACKGROUND

MDSTAT = Path("/proc/mdstat")
PATIENCE_S, PERIOD_S = 60.0, 0.02
SECONDS = 20
Progress = list[tuple[int, int]]
"""Times of CLOCK_MONOTONIC in nanoseconds, and bytes done."""


def told(recorder: subprocess.Popen[bytes]) -> Progress:
    """Read what the kernel says until the recording ends; the time is that at the end of the reading."""
    found: Progress = []
    while recorder.poll() is None:
        said = re.search(r"check = .*\((\d+)/\d+\)", MDSTAT.read_text())
        if said:
            found.append((time.monotonic_ns(), int(said[1]) << 10))
        time.sleep(PERIOD_S)
    return found


def recorded(file: str, key: str) -> Progress:
    """Progress of the work as it was sampled."""
    at = [column.id for column in BACKGROUND.columns]
    found: Progress = []
    with SessionReader(file) as reader:
        for step in reader.steps(0, len(reader) - 1):
            table = step.current.tables.get(BACKGROUND.name)
            row = None if table is None else table.rows.positions.get(key)
            if table is not None and row is not None:
                done, sampled_ns = (int(table.values[row][at.index(name)]) for name in ("done_bytes", "sampled_ns"))
                found.extend([(sampled_ns, done)] if MISSING not in (done, sampled_ns) else [])
    return found


def main(array: str, file: str) -> None:
    """Begin the check once the recording has begun."""
    words = [sys.executable, "-m", "tui", "record", "-o", file, "--duration", f"{SECONDS}s", "--tier", "kernel"]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL) as recorder:
        deadline_s = time.monotonic() + PATIENCE_S
        while not (Path(file).exists() and Path(file).stat().st_size):
            assert recorder.poll() is None, "the recording ended"
            assert time.monotonic() < deadline_s, f"{file} does not come"
            time.sleep(0.05)
        Path(f"/sys/block/{array}/md/sync_action").write_text("check")
        witness = told(recorder)
    whole = int(Path(f"/sys/block/{array}/md/component_size").read_text()) << 10
    sys.stdout.write(json.dumps({"told": witness, "whole": whole, "recorded": recorded(file, f"{array} check")}) + "\n")


if __name__ == "__main__":
    main(*sys.argv[1:])
