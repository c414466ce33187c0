"""`lunscope probe` as a process: it ends at once at SIGTERM with many readers attached, some of them stuck."""

from __future__ import annotations

import signal
import socket
import struct
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from collectors.exact.probe.client import HelperTracer, connect
from collectors.exact.probe.message import Message, encode
from tests import needs
from tests.kernel.forked_command import Forked

pytestmark = [pytest.mark.alone, needs.root, needs.tracer]

READERS = 100
PATIENCE_S = 60.0


class Probe:
    """The command, with its lines in a file."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "probe.sock"
        self.errors = folder / "errors"
        with self.errors.open("wb") as errors:
            self.process = Forked("probe", "--socket", self.path, stderr=errors)
        deadline_s = time.monotonic() + PATIENCE_S
        while not self._listens():
            assert self.process.poll() is None, self.errors.read_text()
            assert time.monotonic() < deadline_s
            time.sleep(0.05)

    def _listens(self) -> bool:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            return connection.connect_ex(str(self.path)) == 0

    def end(self, number: signal.Signals = signal.SIGTERM) -> float:
        """Send a signal; returns the seconds until the process is gone."""
        begun_s = time.monotonic()
        self.process.send_signal(number)
        self.process.wait(PATIENCE_S)
        return time.monotonic() - begun_s


@pytest.fixture
def probe(tmp_path: Path) -> Iterator[Probe]:
    probe = Probe(tmp_path)
    yield probe
    if probe.process.poll() is None:
        probe.process.kill()
        probe.process.wait(PATIENCE_S)


def raw(path: Path) -> socket.socket:
    connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    connection.settimeout(PATIENCE_S)
    connection.connect(str(path))
    return connection


def stop_in_a_request(path: Path) -> socket.socket:
    connection = raw(path)
    connection.sendall(struct.pack("<II", 1000, 0) + b'{"verb"')
    return connection


def never_read(path: Path, count: int) -> list[socket.socket]:
    """Ask on many connections until neither side's socket of any takes any more."""
    connections = [raw(path) for _ in range(count)]
    request = encode(Message({"verb": "turn"}))
    for one in connections:
        one.setblocking(False)
    deadline_s = time.monotonic() + PATIENCE_S
    refused = 0
    while refused < 20 and time.monotonic() < deadline_s:
        taken = [filled(one, request) for one in connections]
        refused = 0 if any(taken) else refused + 1
        time.sleep(0.01)
    return connections


def filled(connection: socket.socket, request: bytes) -> int:
    """Send as many requests as a socket takes; returns how many."""
    count = 0
    with suppress(BlockingIOError):
        while True:
            connection.send(request)
            count += 1
    return count


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_it_ends_within_a_second_whatever_a_hundred_readers_do(probe: Probe, number: signal.Signals) -> None:
    readers: list[HelperTracer | socket.socket] = [connect(probe.path) for _ in range(READERS - 30)]
    readers += [raw(probe.path) for _ in range(10)]
    readers += never_read(probe.path, 10)
    readers += [stop_in_a_request(probe.path) for _ in range(10)]
    answered = connect(probe.path)
    answered.read()
    assert probe.end(number) < 1.0
    assert probe.process.returncode == 0
    assert not probe.path.exists()
    assert "Traceback" not in probe.errors.read_text()
    for one in (*readers, answered):
        one.close()


def test_stuck_readers_do_not_slow_down_the_others(probe: Probe) -> None:
    stuck = [stop_in_a_request(probe.path) for _ in range(10)] + never_read(probe.path, 10)
    reader = connect(probe.path)
    begun_s = time.monotonic()
    for _ in range(20):
        reader.read()
    assert time.monotonic() - begun_s < 5
    for one in stuck:
        one.close()
    reader.close()


def test_what_killed_it_once_does_not(probe: Probe) -> None:
    for head in ('{"verb":"turn","arrays":{"a":["u8",1' + "0" * 40 + "]}}", "[" * 200_000):
        with raw(probe.path) as rude:
            rude.sendall(struct.pack("<II", len(head), 0) + head.encode())
            with suppress(ConnectionResetError):
                while rude.recv(1 << 16):
                    pass
    with_reader = connect(probe.path)
    with_reader.read()
    with_reader.close()
    assert probe.process.poll() is None
    assert probe.end() < 1.0
