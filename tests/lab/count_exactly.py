"""Run in a guest: known writes and reads on devices, and what the exact tier counted of them, as one JSON document."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from engine import _native

READS, WRITES, BYTES = 400, 200, 4096
PATIENCE_S, LOOK_S = 30.0, 0.5
_OUTSTANDING = [_native.TRACE_COLUMNS.index(name) for name in ("in_flight_now", "in_driver_now")]


def dd(*arguments: str) -> None:
    subprocess.run(["dd", f"bs={BYTES}", "status=none", *arguments], check=True)


def settled(tracer: _native.BlockTracer) -> list[list[int]]:
    """Read what was counted once nothing is outstanding any more; as it is when that never comes."""
    deadline = time.monotonic() + PATIENCE_S
    while True:
        time.sleep(LOOK_S)
        values: list[list[int]] = tracer.read().tolist()
        if time.monotonic() > deadline or not any(row[column] for row in values for column in _OUTSTANDING):
            return values


def main(devices: list[str]) -> None:
    """Drive every device in turn; udev may read them, too, once they are closed after writing."""
    tracer = _native.BlockTracer()
    for device in devices:
        dd(f"if={device}", "of=/dev/null", "iflag=direct", f"count={READS}")
        dd("if=/dev/zero", f"of={device}", "oflag=direct", f"count={WRITES}")
    values = settled(tracer)
    rows = zip(tracer.names(), values, strict=True)
    document = {
        "refusal": _native.tracer_refusal(),
        "rows": {name: dict(zip(_native.TRACE_COLUMNS, row, strict=True)) for name, row in rows},
        "losses": tracer.losses(),
    }
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
