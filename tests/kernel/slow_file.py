"""A file whose reads each take the same time, however many there are at once: FUSE, served by this module as a process.

A loop device over it is a disk with a known service time. Numbers and layouts are those of include/uapi/linux/fuse.h.
"""

from __future__ import annotations

import ctypes
import heapq
import os
import select
import struct
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import IntEnum
from pathlib import Path

SIZE_BYTES = 64 << 20
NAME = "disk"
_PATIENCE_S = 60.0
_LARGEST = 1 << 20
_ROOT, _FILE = 1, 2


class _Request(IntEnum):
    LOOKUP, FORGET, GETATTR = 1, 2, 3
    OPEN, READ, STATFS, RELEASE, FSYNC, FLUSH = 14, 15, 17, 18, 20, 25
    INIT, OPENDIR, RELEASEDIR, INTERRUPT, BATCH_FORGET = 26, 27, 29, 36, 42


_ASYNC_READ, _ASYNC_DIO = 1 << 0, 1 << 15
_ENOENT, _ENOSYS = 2, 38
_HEADER = struct.Struct("<IIQQIIII")


@contextmanager
def slow_file(folder: Path, service_s: float) -> Iterator[Path]:
    """Serve one under a folder while the block lasts."""
    folder.mkdir()
    server = subprocess.Popen(
        [sys.executable, "-m", "tests.kernel.slow_file", str(folder), str(service_s)],
        cwd=Path(__file__).parents[2],
        stdout=subprocess.PIPE,
    )
    try:
        assert server.stdout is not None
        assert server.stdout.readline() == b"ready\n", "the mount of FUSE failed"
        yield folder / NAME
    finally:
        # Lazily: a loop device lets go of the file a moment after it is detached.
        subprocess.run(["umount", "--lazy", str(folder)], check=False, capture_output=True, timeout=_PATIENCE_S)
        server.terminate()
        server.wait(_PATIENCE_S)


def _mount(folder: str) -> int:
    channel = os.open("/dev/fuse", os.O_RDWR | os.O_NONBLOCK)
    options = f"fd={channel},rootmode=40000,user_id=0,group_id=0,allow_other"
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.mount(b"slow", folder.encode(), b"fuse", 0, options.encode()):
        sys.exit(os.strerror(ctypes.get_errno()))
    return channel


def _attributes(node: int) -> bytes:
    mode, size = (0o40755, 0) if node == _ROOT else (0o100600, SIZE_BYTES)
    return struct.pack("<6Q10I", node, size, size // 512, 0, 0, 0, 0, 0, 0, mode, 1, 0, 0, 0, 4096, 0)


def _answer(opcode: int, node: int, body: bytes) -> tuple[int, bytes]:
    """Give the error and the reply to what needs no time."""
    error, reply = 0, b""
    match opcode:
        case _Request.INIT:
            flags = struct.unpack_from("<I", body, 12)[0] & (_ASYNC_READ | _ASYNC_DIO)
            reply = struct.pack("<4I2HII2HI28x", 7, 31, 1 << 17, flags, 512, 384, _LARGEST, 1, 0, 0, 0)
        case _Request.LOOKUP if body.rstrip(b"\0") == NAME.encode():
            reply = struct.pack("<4QII", _FILE, 0, 3600, 3600, 0, 0) + _attributes(_FILE)
        case _Request.LOOKUP:
            error = _ENOENT
        case _Request.GETATTR:
            reply = struct.pack("<QII", 3600, 0, 0) + _attributes(node)
        case _Request.OPEN | _Request.OPENDIR:
            reply = bytes(16)
        case _Request.STATFS:
            reply = struct.pack("<5Q4I24x", 0, 0, 0, 0, 0, 4096, 255, 4096, 0)
        case _Request.RELEASE | _Request.RELEASEDIR | _Request.FSYNC | _Request.FLUSH:
            pass
        case _:
            error = _ENOSYS
    return error, reply


def _reply(channel: int, unique: int, error: int, body: bytes) -> None:
    with suppress(FileNotFoundError):  # the request was given up
        os.write(channel, struct.pack("<IiQ", 16 + len(body), -error, unique) + body)


def _serve(channel: int, service_s: float) -> None:
    waiting: list[tuple[float, int, int]] = []
    zeros = bytes(_LARGEST)
    poll = select.poll()
    poll.register(channel, select.POLLIN)
    while True:
        timeout_ms = max(waiting[0][0] - time.monotonic(), 0) * 1000 if waiting else None
        poll.poll(timeout_ms)
        for _ in range(64):
            try:
                request = os.read(channel, _LARGEST + 4096)
            except BlockingIOError:
                break
            length, opcode, unique, node, *_ = _HEADER.unpack_from(request)
            body = request[_HEADER.size : length]
            if opcode == _Request.READ:
                due_s = time.monotonic() + service_s
                heapq.heappush(waiting, (due_s, unique, struct.unpack_from("<I", body, 16)[0]))
            elif opcode not in (_Request.FORGET, _Request.BATCH_FORGET, _Request.INTERRUPT):
                _reply(channel, unique, *_answer(opcode, node, body))
        while waiting and waiting[0][0] <= time.monotonic():
            _, unique, size = heapq.heappop(waiting)
            _reply(channel, unique, 0, zeros[:size])


if __name__ == "__main__":
    # A disk does not get slower where the tests beside it compute.
    os.nice(-15)
    device = _mount(sys.argv[1])
    print("ready", flush=True)  # noqa: T201 (the test waits for it)
    with suppress(OSError):  # unmounted
        _serve(device, float(sys.argv[2]))
