"""Run in a guest: known writes and reads on devices, and what the exact tier counted of them, as one JSON document."""

from __future__ import annotations

import json
import subprocess
import sys
import time

from engine import _native

READS, WRITES, BYTES = 400, 200, 4096
SETTLE_S = 0.5


def dd(*arguments: str) -> None:
    subprocess.run(["dd", f"bs={BYTES}", "status=none", *arguments], check=True)


def main(devices: list[str]) -> None:
    """Drive every device in turn; udev may read them, too, once they are closed after writing."""
    tracer = _native.BlockTracer()
    for device in devices:
        dd(f"if={device}", "of=/dev/null", "iflag=direct", f"count={READS}")
        dd("if=/dev/zero", f"of={device}", "oflag=direct", f"count={WRITES}")
    time.sleep(SETTLE_S)
    values = tracer.read().tolist()
    rows = zip(tracer.names(), values, strict=True)
    document = {
        "refusal": _native.tracer_refusal(),
        "rows": {name: dict(zip(_native.TRACE_COLUMNS, row, strict=True)) for name, row in rows},
        "losses": tracer.losses(),
    }
    sys.stdout.write(json.dumps(document) + "\n")


if __name__ == "__main__":
    main(sys.argv[1:])
