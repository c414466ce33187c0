"""An agent that samples nothing: it plays frames that were encoded before, at the times of the controller's grid.

It needs the standard library only, so that hundreds of them run on one machine. Its clock is its own: the frames have
the times of when they were encoded.
"""

from __future__ import annotations

import json
import os
import select
import sys
import time
from pathlib import Path

MAGIC = b"@lunscope "
SECOND_NS = 1_000_000_000


def send(**fields: object) -> None:
    os.write(1, MAGIC + json.dumps(fields).encode() + b"\n")


def play(hello: str, first_ns: int, frames: list[bytes]) -> None:
    """Answer the controller until it closes the connection, and send a frame each second."""
    os.write(1, hello.encode() + b"\n")
    due_ns, ahead_ns, sent, received = 0, 0, 0, b""
    while True:
        wait_s = max(due_ns - time.monotonic_ns(), 0) / 1e9 if due_ns and sent < len(frames) else 60.0
        if select.select([0], [], [], wait_s)[0]:
            data = os.read(0, 1 << 16)
            if not data:
                return
            now_ns = time.monotonic_ns()
            *lines, received = (received + data).split(b"\n")
            for line in lines:
                frame = json.loads(line[len(MAGIC) :])
                if frame["type"] == "bye":
                    return
                if frame["type"] == "hello":
                    due_ns = (now_ns // SECOND_NS + 2) * SECOND_NS
                    ahead_ns = first_ns - due_ns
                if frame["type"] == "lease":
                    times = {"received_ns": now_ns + ahead_ns, "answered_ns": time.monotonic_ns() + ahead_ns}
                    send(type="clock", sent_ns=frame["sent_ns"], time_ns=time.time_ns(), **times)
        elif due_ns and sent < len(frames):
            os.write(1, frames[sent] + b"\n")
            sent, due_ns = sent + 1, due_ns + SECOND_NS


if __name__ == "__main__":
    greeting, start, *rest = Path(sys.argv[1]).read_bytes().rstrip(b"\n").split(b"\n")
    play(greeting.decode(), int(start), rest)
