"""Runs in a guest of the lab: loads over a suspended device-mapper device and a paused NBD device, ended by signals.

Prints one JSON object: for every case what the load said and when, how it ended, and what its document holds.
"""

from __future__ import annotations

import fcntl
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

SIZE_BYTES = 64 << 20
_NBD_SET_SOCK, _NBD_SET_BLKSIZE, _NBD_DO_IT, _NBD_CLEAR_SOCK = 0xAB00, 0xAB01, 0xAB03, 0xAB04
_NBD_SET_SIZE_BLOCKS, _NBD_DISCONNECT = 0xAB07, 0xAB08
_REQUEST, _REPLY = 0x25609513, 0x67446698
DEPTH = 4
ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


@contextmanager
def dm_device() -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """A linear device-mapper device, and how to suspend and resume it."""
    table = f"0 {SIZE_BYTES // 512} linear /dev/nullb0 0"
    subprocess.run(["dmsetup", "create", "stalls", "--table", table], check=True)
    device = "/dev/mapper/stalls"
    try:
        yield (
            device,
            lambda: _do("dmsetup", "suspend", "--noflush", "--nolockfs", "stalls"),
            lambda: _do("dmsetup", "resume", "stalls"),
        )
    finally:
        _do("dmsetup", "resume", "stalls")
        for _ in range(50):
            if subprocess.run(["dmsetup", "remove", "stalls"], check=False, capture_output=True).returncode == 0:
                break
            time.sleep(0.2)


def _do(*command: str) -> None:
    subprocess.run(command, check=True)


def _receive(connection: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = connection.recv(length - len(data))
        if not piece:
            raise EOFError
        data += piece
    return data


def serve_nbd(connection: socket.socket) -> None:
    """Answer reads with zeros and writes with success until disconnected (linux/nbd.h)."""
    while True:
        magic, kind, handle, _offset, length = struct.unpack(">II8sQI", _receive(connection, 28))
        assert magic == _REQUEST
        if kind & 0xFFFF == 2:
            return
        if kind & 0xFFFF == 1:
            _receive(connection, length)
        connection.sendall(struct.pack(">II8s", _REPLY, 0, handle) + (bytes(length) if kind & 0xFFFF == 0 else b""))


@contextmanager
def nbd_device() -> Iterator[tuple[str, Callable[[], None], Callable[[], None]]]:
    """A network block device with a server of our own, and how to stop and continue that."""
    _do("modprobe", "nbd")
    kernel, server = socket.socketpair()
    child = os.fork()
    if child == 0:
        kernel.close()
        try:
            serve_nbd(server)
        finally:
            os._exit(0)
    server.close()
    device = os.open("/dev/nbd0", os.O_RDWR)
    fcntl.ioctl(device, _NBD_SET_BLKSIZE, 4096)
    fcntl.ioctl(device, _NBD_SET_SIZE_BLOCKS, SIZE_BYTES // 4096)
    fcntl.ioctl(device, _NBD_CLEAR_SOCK)
    fcntl.ioctl(device, _NBD_SET_SOCK, kernel.fileno())
    threading.Thread(target=lambda: fcntl.ioctl(device, _NBD_DO_IT), daemon=True).start()
    time.sleep(1)
    try:
        yield "/dev/nbd0", lambda: os.kill(child, signal.SIGSTOP), lambda: os.kill(child, signal.SIGCONT)
    finally:
        os.kill(child, signal.SIGCONT)
        fcntl.ioctl(device, _NBD_DISCONNECT)


class Load:
    """`lunscope run` as a process, with its standard error as it comes."""

    def __init__(self, device: str, engine: str) -> None:
        command = [sys.executable, "-m", "tui", "run", "--headless", "--json", "--target", device, "--engine", engine]
        self.process = subprocess.Popen(
            [*command, "--qd", str(DEPTH), "--runtime", "600s", "--interval", "5"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.lines: list[tuple[float, str]] = []
        self.out: list[str] = []
        threading.Thread(target=self._read_errors, daemon=True).start()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read_errors(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            self.lines.append((time.monotonic(), line.rstrip()))

    def _read(self) -> None:
        assert self.process.stdout is not None
        self.out.append(self.process.stdout.read())

    def said(self, text: str, timeout_s: float) -> float | None:
        """When a line of standard error held a text; None if none did in time."""
        deadline_s = time.monotonic() + timeout_s
        while time.monotonic() < deadline_s:
            found = next((moment_s for moment_s, line in list(self.lines) if text in line), None)
            if found is not None:
                return found
            time.sleep(0.05)
        return None

    def ended(self, timeout_s: float) -> tuple[int | None, str]:
        """Exit code and output; None if it still runs."""
        try:
            code = self.process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return None, ""
        self._reader.join(5)
        return code, self.out[0] if self.out else ""


def _reads(device: str) -> int:
    name = Path(device).resolve().name
    return int(Path(f"/sys/block/{name}/stat").read_text().split()[0])


def one_case(
    device: str, stop: Callable[[], None], go_on: Callable[[], None], engine: str, number: signal.Signals
) -> dict[str, Any]:
    """Stall a load, end it with the same signal twice, and let the device go on."""
    load, before = Load(device, engine), _reads(device)
    deadline_s = time.monotonic() + 60
    while _reads(device) < before + 200 and time.monotonic() < deadline_s and load.process.poll() is None:
        time.sleep(0.1)
    stop()
    stalled_s = time.monotonic()
    try:
        named_s = load.said("waiting for ", 20)
        load.process.send_signal(number)
        first = load.ended(2)[0]
        load.process.send_signal(number)
        sent_s = time.monotonic()
        code, out = load.ended(60)
        took_s = time.monotonic() - sent_s
    finally:
        go_on()
    if code is None:
        load.process.kill()
    document = json.loads(out) if out.strip() else {}
    return {
        "named_after_s": None if named_s is None else named_s - stalled_s,
        "after_first": first,
        "code": code,
        "took_s": took_s,
        "ended": document.get("ended"),
        "outstanding": document.get("outstanding"),
        "said": [line for _, line in load.lines],
    }


def main() -> None:
    """Try every signal, each on a device-mapper device with a ring and on a network block device with threads."""
    found: dict[str, Any] = {}
    for kind, make, engine in (("dm", dm_device, "uring"), ("nbd", nbd_device, "threads")):
        with make() as (device, stop, go_on):
            for number in ENDING:
                found[f"{kind}-{number.name}"] = row = one_case(device, stop, go_on, engine, number)
                sys.stderr.write(f"{kind} {number.name}: {json.dumps(row)}\n")
    sys.stdout.write(json.dumps(found) + "\n")


if __name__ == "__main__":
    main()
