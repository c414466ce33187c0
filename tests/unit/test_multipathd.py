"""Asking multipathd: a daemon that speaks its protocol on a real socket, and others that do not."""

from __future__ import annotations

import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from collectors.tables.block.counters import BlockCollector
from collectors.topology import scanner as scanner_module
from collectors.topology.multipathd import MultipathDaemon, parse_maps, parse_paths, parse_polling_interval, same_kernel
from collectors.topology.scanner import TopologyScanner
from tests.fake_kernel import FakeKernel
from tests.fake_storage import FakeScsi


@contextmanager
def daemon(path: Path, answer: Callable[[bytes], bytes]) -> Iterator[list[bytes]]:
    """Answer every connection once; yields the commands that came."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(path))
    listener.listen()
    asked: list[bytes] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            with connection:
                (length,) = struct.unpack("@N", connection.recv(8, socket.MSG_WAITALL))
                asked.append(connection.recv(length, socket.MSG_WAITALL))
                connection.sendall(answer(asked[-1]))

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield asked
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        thread.join()


def reply(text: bytes) -> bytes:
    return struct.pack("@N", len(text)) + text


def test_marginal_paths_are_asked_for_and_the_answer_stands_for_a_while(tmp_path: Path) -> None:
    with daemon(tmp_path / "s", lambda _: reply(b"sda|normal|50|tur|ready\nsdb|marginal|1\n\0")) as asked:
        multipathd = MultipathDaemon((str(tmp_path / "none"), str(tmp_path / "s")))
        for _ in range(2):
            assert multipathd.facts().paths == {
                "sda": (False, 50, "tur", "ready"),
                "sdb": (True, 1, "", ""),
            }
            assert multipathd.facts().maps == {}, "the answer is one of another command"
    assert asked == [
        b'show paths raw format "%d|%M|%p|%c|%T"\0',
        b'show maps raw format "%d|%F|%Q|%0|%1|%4"\0',
        b"show config local\0",
    ]


def test_queueing_and_failback_of_maps_and_the_polling_interval() -> None:
    answer = "dm-0|immediate|5 chk|0|1|0\ndm-1|-|12 sec|3|0|2\ndm-2|[XX........] 2/10|on|-|-|-\nfail\n\0"
    assert parse_maps(answer) == {
        "dm-0": ("immediate", "5 chk", 0, 1, 0),
        "dm-1": ("-", "counting", 3, 0, 2),
        "dm-2": ("pending", "on", None, None, None),
    }
    assert parse_polling_interval("defaults {\n\tverbosity 2\n\tpolling_interval 5\n}\n") == 5
    assert parse_polling_interval('defaults {\n\tpolling_interval "7"\n\tmax_polling_interval 20\n}\n') == 7
    assert parse_polling_interval("defaults {\n\tmax_polling_interval 20\n}\n") is None


@pytest.mark.parametrize(
    "answer",
    [b"", b"\1", struct.pack("@N", 1 << 40) + b"sda|marginal", reply(b"fail\n\0"), reply(b"permission deny\n\0")],
)
def test_a_daemon_that_answers_anything_else_says_nothing(tmp_path: Path, answer: bytes) -> None:
    with daemon(tmp_path / "s", lambda _: answer):
        assert MultipathDaemon((str(tmp_path / "s"),)).facts().paths == {}


def test_a_daemon_that_answers_byte_by_byte_is_not_waited_for(tmp_path: Path) -> None:
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    listener.bind(str(tmp_path / "s"))
    listener.listen()
    over = threading.Event()

    def drip() -> None:
        connection, _ = listener.accept()
        with connection:
            connection.sendall(struct.pack("@N", 1 << 20))
            while not over.wait(0.2):
                try:
                    connection.sendall(b"s")
                except OSError:
                    return

    thread = threading.Thread(target=drip)
    thread.start()
    started_s = time.monotonic()
    try:
        assert MultipathDaemon((str(tmp_path / "s"),)).facts().paths == {}
        assert time.monotonic() - started_s < 10
    finally:
        over.set()
        listener.close()
        thread.join()


def test_no_daemon_says_nothing(tmp_path: Path) -> None:
    assert MultipathDaemon((str(tmp_path / "none"),)).facts().paths == {}


def test_unknown_fields_are_passed_over() -> None:
    answer = "sda||\nsdb|[undef]|[undef]\n sdc | marginal \nno bar\nsdd||-1\nsde|[undef]| 10\n"
    assert parse_paths(answer) == {"sdc": (True, None, "", ""), "sde": (None, 10, "", "")}


def test_a_tree_that_is_not_this_kernels_is_not_asked_about(kernel_tree: FakeKernel) -> None:
    assert same_kernel("/sys") == Path("/sys").exists()
    assert not same_kernel(str(kernel_tree.sysfs))
    assert not same_kernel("/none")


def test_what_the_daemon_says_reaches_the_graph(
    kernel_tree: FakeKernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    FakeScsi(kernel_tree, hosts=2, luns=1).build()
    states = {"sda": "normal", "sdb": "normal"}

    def answer(_: bytes) -> bytes:
        return reply("".join(f"{name}|{state}\n" for name, state in states.items()).encode() + b"\0")

    monkeypatch.setattr(scanner_module, "same_kernel", lambda _: True)
    monkeypatch.setattr(scanner_module, "MultipathDaemon", lambda: MultipathDaemon((str(tmp_path / "s"),), ask_s=0))
    rows = BlockCollector(str(kernel_tree.procfs), str(kernel_tree.sysfs)).read().tables["disk"].rows
    with daemon(tmp_path / "s", answer):
        scanner = TopologyScanner(str(kernel_tree.procfs), str(kernel_tree.sysfs))
        graph = scanner.scan(rows)[1]
        assert {path.name: path.marginal for path in graph.paths} == {"sda": False, "sdb": False}
        assert scanner.marginal_changes(graph) == frozenset()
        states["sdb"] = "marginal"
        end_s = time.monotonic() + 10
        while scanner.marginal_changes(graph) != frozenset({"sdb"}):
            assert time.monotonic() < end_s
            time.sleep(0.005)


def test_a_daemon_that_hangs_holds_nobody_up_after_the_first_answer(tmp_path: Path) -> None:
    hangs = threading.Event()
    answers = [b"", b"", b"sda|marginal|7\n\0"]

    def answer(_: bytes) -> bytes:
        if not answers:
            hangs.wait(10)
            return b""
        return reply(answers.pop())

    with daemon(tmp_path / "s", answer):
        multipathd = MultipathDaemon((str(tmp_path / "s"),), ask_s=0)
        assert multipathd.facts().paths == {"sda": (True, 7, "", "")}
        started_s = time.monotonic()
        for _ in range(20):
            assert multipathd.facts().paths == {"sda": (True, 7, "", "")}
        assert time.monotonic() - started_s < 1
        hangs.set()


@pytest.fixture
def kernel_tree(tmp_path: Path) -> FakeKernel:
    (tmp_path / "tree").mkdir()
    return FakeKernel(tmp_path / "tree")
