"""Run in a guest: known writes and reads on devices, and what the exact tier counted of them, as one JSON document."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from engine import _native

READS, WRITES, BYTES = 400, 200, 4096
PATIENCE_S = 30.0
"""udev reads a disk once it is closed after writing, and emulated CPUs are slow."""


def dd(*arguments: str) -> None:
    subprocess.run(["dd", f"bs={BYTES}", "status=none", *arguments], check=True)


def settled(tracer: _native.BlockTracer) -> list[list[int]]:
    """Counters once nothing is in flight, or as they are when patience ends."""
    gauges = [_native.TRACE_COLUMNS.index(name) for name in ("in_flight_now", "in_driver_now")]
    deadline_s = time.monotonic() + PATIENCE_S
    subprocess.run(["udevadm", "settle", f"--timeout={PATIENCE_S:.0f}"], check=True)
    while True:
        values = tracer.read()
        if not values[:, gauges].any() or time.monotonic() > deadline_s:
            rows: list[list[int]] = values.tolist()
            return rows
        time.sleep(0.1)


def of_dd(tracer: _native.BlockTracer) -> dict[str, dict[str, int]]:
    """Reads and writes by device of all processes named dd."""
    names, found = tracer.names(), {name: {"dd_reads": 0, "dd_writes": 0} for name in tracer.names()}
    for values in tracer.processes()[0]:
        one = dict(zip(_native.PROCESS_COLUMNS, values.tolist(), strict=True))
        if values[-4:].astype("<u8").tobytes().split(b"\0")[0] == b"dd":
            found[names[one["row"]]]["dd_reads"] += one["reads"]
            found[names[one["row"]]]["dd_writes"] += one["writes"]
    return found


def main(devices: list[str]) -> None:
    """Drive every device in turn; udev may read them, too, once they are closed after writing."""
    tracer = _native.BlockTracer()
    for device in devices:
        dd(f"if={device}", "of=/dev/null", "iflag=direct", f"count={READS}")
        dd("if=/dev/zero", f"of={device}", "oflag=direct", f"count={WRITES}")
    values = settled(tracer)
    by_dd, rows = of_dd(tracer), zip(tracer.names(), values, strict=True)
    document = {
        "refusal": _native.tracer_refusal(),
        "rows": {name: dict(zip(_native.TRACE_COLUMNS, row, strict=True)) | by_dd[name] for name, row in rows},
        "losses": tracer.losses(),
        "fetch": tracer.form()[1],
    }
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
