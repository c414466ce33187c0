"""Random messages to a probe helper: every one is answered or ends its connection, and the helper stays as it was.

`run` starts the helper as a process of its own, so that its memory and its last words can be judged.
"""

from __future__ import annotations

import json
import os
import random
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from collectors.exact.probe.client import HelperTracer, connect
from collectors.exact.probe.connection import Admission
from collectors.exact.probe.hub import Hub
from collectors.exact.probe.message import receive
from collectors.exact.probe.server import ProbeServer
from collectors.tables.block.schema import TRACE
from tests.unit.hand_tracer import HandTracer

MOST_RSS_KIB = 256 << 10
HANG_S = 5.0
_START_S = 20.0
_CHECK_EVERY = 500
"""Messages between two checks that another reader is served."""
_UNFINISHED_SHARE = 0.0005
"""Share of messages that are left unfinished with the connection open, which takes the helper's whole deadline."""


@dataclass(frozen=True)
class Request:
    """Bytes to send, and whether they are one whole message."""

    data: bytes
    whole: bool


def run(seed: int, count: int, seconds: float) -> int:
    """Send messages until `count` were sent or `seconds` have passed; returns how many were sent.

    Raises:
        AssertionError: the helper ended, hung for over 5 s, took over 256 MiB or printed a traceback; with the seed.
    """
    with tempfile.TemporaryDirectory(prefix="lunscope-fuzz-") as folder:
        helper = _Helper(Path(folder))
        try:
            sent = _Attacker(helper, random.Random(seed)).attack(count, time.monotonic() + seconds)
            helper.check_end()
        except (AssertionError, OSError) as error:
            raise AssertionError(f"seed {seed}: {error}\n{helper.errors.read_text()[-2000:]}") from error
        finally:
            helper.kill()
    return sent


class _Helper:
    """The helper's process and one reader that it has to serve all the time."""

    def __init__(self, folder: Path) -> None:
        self.path, self.errors = folder / "probe.sock", folder / "errors"
        with self.errors.open("wb") as errors:
            self._process = subprocess.Popen([sys.executable, "-m", __name__, str(self.path)], stderr=errors)
        self.reader: HelperTracer = self._first_reader(time.monotonic() + _START_S)

    def _first_reader(self, deadline_s: float) -> HelperTracer:
        """Connect once it listens, which is after its socket has appeared."""
        while True:
            try:
                return connect(self.path)
            except (FileNotFoundError, ConnectionRefusedError):
                assert self._process.poll() is None, "the helper did not start"
                assert time.monotonic() < deadline_s, "the helper does not listen"
                time.sleep(0.05)

    def check(self) -> None:
        """See that the other reader gets the right figures, soon."""
        begun_s = time.monotonic()
        values = self.reader.read()
        taken_s = time.monotonic() - begun_s
        assert taken_s < HANG_S, f"another reader waited {taken_s:.1f} s"
        assert values[:, TRACE.index("reads")].tolist() == [3, 5, 7], "another reader got wrong figures"

    def check_end(self) -> None:
        """See that it is as it was, and ends when it is asked to."""
        self.check()
        rss_kib = self._most_rss_kib()
        assert rss_kib <= MOST_RSS_KIB, f"the helper took {rss_kib} KiB"
        self._process.send_signal(signal.SIGTERM)
        code = self._process.wait(HANG_S)
        assert code == 0, f"the helper ended with {code}"
        words = self.errors.read_text()
        for sign in ("Traceback", "a request failed", "after a reader left"):
            assert sign not in words, "the helper raised something"

    def kill(self) -> None:
        """End the process whatever its state."""
        self.reader.close()
        self._process.kill()
        self._process.wait()

    def _most_rss_kib(self) -> int:
        status = Path(f"/proc/{self._process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmHWM")).split()[1])


class _Attacker:
    def __init__(self, helper: _Helper, chance: random.Random) -> None:
        self._helper = helper
        self._requests = _Requests(chance)
        self._chance = chance
        self._connection: socket.socket | None = None
        self._left: list[socket.socket] = []

    def attack(self, count: int, until_s: float) -> int:
        sent = 0
        while sent < count and time.monotonic() < until_s:
            self._send(self._requests.next())
            sent += 1
            if sent % _CHECK_EVERY == 0:
                self._helper.check()
        for connection in (self._connection, *self._left):
            if connection is not None:
                connection.close()
        return sent

    def _send(self, request: Request) -> None:
        connection = self._connection or self._connect()
        self._connection = None
        try:
            connection.sendall(request.data)
            if not request.whole:
                if request.data and self._chance.random() < _UNFINISHED_SHARE:
                    self._leave(connection)
                    return
                connection.shutdown(socket.SHUT_WR)
            if self._answered(connection) and request.whole:
                self._connection = connection
                return
        except (ConnectionResetError, BrokenPipeError):
            pass
        connection.close()

    def _connect(self) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        connection.settimeout(HANG_S)
        connection.connect(str(self._helper.path))
        receive(connection, HANG_S)
        connection.settimeout(HANG_S)
        return connection

    def _leave(self, connection: socket.socket) -> None:
        """Leave a connection in the middle of a message; the helper has to end it."""
        self._left.append(connection)
        if len(self._left) > 20:
            oldest = self._left.pop(0)
            self._answered(oldest)
            oldest.close()

    def _answered(self, connection: socket.socket) -> bool:
        """Wait for the answer or the end; whether there was an answer."""
        try:
            connection.settimeout(HANG_S)
            receive(connection, HANG_S)
        except TimeoutError:
            raise AssertionError(f"neither answer nor end within {HANG_S:g} s") from None
        except OSError:
            return False
        return True


class _Requests:
    """Makes requests, most of them wrong in one way or another."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._kinds: list[Callable[[], Request]] = [
            self._right,
            self._odd,
            self._odd,
            self._array,
            self._array,
            self._deep,
            self._cut,
            self._flipped,
            self._flipped,
            self._noise,
        ]

    def next(self) -> Request:
        return self._chance.choice(self._kinds)()

    def _right(self) -> Request:
        return _framed(json.dumps(self._plain()).encode())

    def _plain(self) -> dict[str, Any]:
        heads: list[dict[str, Any]] = [
            {"verb": "turn"},
            {"verb": "rescan"},
            {"verb": "throttle"},
            {"verb": "nfs"},
            {"verb": "tag_wait", "on": self._chance.random() < 0.5},
            {"verb": "regroup", "groups": [["sda", "sdb"], ["sdc"]]},
        ]
        return {**self._chance.choice(heads), "arrays": {}}

    def _odd(self) -> Request:
        """A value of another type or size somewhere."""
        head = self._plain()
        head[self._chance.choice([*head, "verb", "groups", "on", "arrays", "\ud800"])] = self._value(3)
        return _framed(json.dumps(head).encode())

    def _array(self) -> Request:
        shape = [self._chance.choice(["u4", "u8", "O", "i8", "u8,u8", self._value(1)])]
        shape += [self._value(1) for _ in range(self._chance.randrange(5))]
        body = self._chance.randbytes(self._chance.choice([0, 0, 0, 8, 64]))
        return _framed(json.dumps({"verb": "turn", "arrays": {"a": shape}}).encode(), body)

    def _deep(self) -> Request:
        depth = self._chance.choice([10, 900, 1_000, 5_000, 100_000])
        opened, closed = self._chance.choice([("[", "]"), ('{"a":', "}")])
        inner = opened * depth + "1" * self._chance.randrange(2) + closed * self._chance.choice([depth, 0])
        return _framed(('{"arrays":{},"' + self._chance.choice(["verb", "groups", "on"]) + f'":{inner}}}').encode())

    def _cut(self) -> Request:
        data = self._right().data
        return Request(data[: self._chance.randrange(len(data))], whole=False)

    def _flipped(self) -> Request:
        data = bytearray(self._right().data)
        for _ in range(self._chance.randrange(1, 4)):
            data[self._chance.randrange(len(data))] = self._chance.randrange(256)
        return Request(bytes(data), whole=False)

    def _noise(self) -> Request:
        return Request(self._chance.randbytes(self._chance.choice([0, 1, 7, 8, 9, 100, 10_000])), whole=False)

    def _value(self, depth: int) -> Any:
        values: list[Any] = [None, True, -1, 0, 1, 2**31, 2**63, -(2**64), 10**40, 1e300, float("nan"), float("inf")]
        values += ["", "u8", "sda", "\0", "\udcff", "\x1b[2J", "x" * self._chance.choice([10, 300_000]), [], {}]
        if depth and self._chance.random() < 0.4:
            inner = [self._value(depth - 1) for _ in range(self._chance.choice([1, 3, 50]))]
            return self._chance.choice([inner, [inner], {"a": inner}])
        return self._chance.choice(values)


def _framed(head: bytes, body: bytes = b"") -> Request:
    return Request(struct.pack("<II", len(head), len(body)) + head + body, whole=True)


def _serve(path: Path) -> None:
    def open_tracer() -> HandTracer:
        tracer = HandTracer()
        for number, reads in enumerate((3, 5, 7)):
            tracer.add(f"sd{number}", 8, number, reads=reads)
        return tracer

    def log(line: str) -> None:
        sys.stderr.write(line[:200].encode("ascii", "backslashreplace").decode() + "\n")

    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    server = ProbeServer(path, Admission(frozenset({os.getuid()})), Hub(open_tracer), log)
    try:
        server.serve(stop)
    finally:
        server.close()


if __name__ == "__main__":
    _serve(Path(sys.argv[1]))
