"""Run in a guest: large reads of a disk, and how many cuts the exact tier and blktrace counted of them, on one line."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

from engine import _native
from tests.kernel.tracing import grown, opened, read_device, read_extents

PATIENCE_S = 60.0
READS, BYTES = 50, 1 << 20


def wait_for(file: Path, text: str) -> None:
    deadline_s = time.monotonic() + PATIENCE_S
    while file.read_text().strip() != text:
        assert time.monotonic() < deadline_s, f"{file} does not become {text}"
        time.sleep(0.05)


def main(device: str) -> None:
    """Trace with both while the disk is read."""
    tracer = _native.BlockTracer()
    subprocess.run(["udevadm", "settle"], check=True)
    words = ["blktrace", "-d", device, "-o", "-"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as trace, opened(device) as disk:
        wait_for(Path("/sys/block", Path(device).name, "trace/enable"), "1")
        before = read_device(tracer, device)
        read_extents(disk, [(at * BYTES, BYTES) for at in range(READS)])
        seen = grown(before, read_device(tracer, device))
        os.kill(trace.pid, signal.SIGINT)
        events, _ = trace.communicate()
    told = subprocess.run(["blkparse", "-q", "-i", "-", "-f", "%a\\n"], input=events, capture_output=True, check=True)
    sys.stdout.write(f"cuts {seen['splits']} {told.stdout.split().count(b'X')} {seen['reads']}\n")


if __name__ == "__main__":
    main(sys.argv[1])
