"""Readers of the probe helper that send anything, stop in the middle or never read: the others do not notice."""

from __future__ import annotations

import json
import os
import socket
import struct
import threading
import time
from pathlib import Path

import numpy as np
import pytest

from collectors.exact.probe import connection, hub
from collectors.exact.probe.client import HelperTracer, connect
from collectors.exact.probe.connection import Admission
from collectors.exact.probe.message import MOST_REQUEST_BYTES, Message, MessageError, decode, encode, receive, send
from collectors.exact.probe.server import Limits
from collectors.tables.block.schema import TRACE
from engine.errors import LunscopeError
from tests import needs
from tests.unit.hand_tracer import HandTracer
from tests.unit.probe_server import PATIENCE_S, Helper, raw

HUGE = "1" + "0" * 40


def framed(head: str | bytes, body: bytes = b"") -> bytes:
    head = head.encode() if isinstance(head, str) else head
    return struct.pack("<II", len(head), len(body)) + head + body


def outcome(connection: socket.socket) -> str:
    """The error that a request was answered with, or "gone"."""
    try:
        return str(receive(connection, PATIENCE_S).head["error"])
    except TimeoutError:
        raise
    except OSError:
        return "gone"


MALFORMED = {
    "deep list": "[" * 200_000,
    "deep object": '{"a":' * 200_000,
    "closed deep list": '{"arrays": {}, "verb": ' + "[" * 100_000 + "]" * 100_000 + "}",
    "array of 10**40": '{"verb": "turn", "arrays": {"a": ["u8", ' + HUGE + "]}}",
    "no columns but 10**40 rows": '{"verb": "turn", "arrays": {"a": ["u8", ' + HUGE + ", 0]}}",
    "negative size": '{"verb": "turn", "arrays": {"a": ["u8", -1]}}',
    "two negative sizes": '{"verb": "turn", "arrays": {"a": ["u8", -1, -1]}}',
    "size that is a float": '{"verb": "turn", "arrays": {"a": ["u8", 1e300]}}',
    "size that is true": '{"verb": "turn", "arrays": {"a": ["u8", true]}}',
    "sixty dimensions": '{"verb": "turn", "arrays": {"a": ["u8"' + ", 1" * 60 + "]}}",
    "type of objects": '{"verb": "turn", "arrays": {"a": ["O", 1]}}',
    "type that is a list": '{"verb": "turn", "arrays": {"a": [[], 1]}}',
    "no type": '{"verb": "turn", "arrays": {"a": []}}',
    "arrays that are none": '{"verb": "turn", "arrays": 5}',
    "head that is a number": "5",
    "head that is a list": "[]",
    "integer of 5,000 digits": '{"arrays": {}, "verb": ' + "9" * 5_000 + "}",
    "no UTF-8": b'{"arrays": {}, "verb": "\xff"}',
    "no head": "",
}


@pytest.mark.parametrize("head", MALFORMED.values(), ids=MALFORMED)
def test_what_is_not_a_request_ends_its_connection_alone(
    helper: Helper, reader: HelperTracer, head: str | bytes
) -> None:
    with raw(helper) as rude:
        rude.sendall(framed(head))
        assert outcome(rude) == "gone"
    assert reader.read().shape == (0, len(TRACE.columns))


@pytest.mark.parametrize("verb", [None, 5, [], {}, True, HUGE, "x" * 900_000, "\x1b[2J", "\ud800"])
def test_a_verb_of_any_type_is_answered_in_short(helper: Helper, reader: HelperTracer, verb: object) -> None:
    with raw(helper) as rude:
        send(rude, Message({"verb": verb}))
        answer = outcome(rude)
    assert answer.startswith(("no request", "a request has a verb"))
    assert len(answer) < 200
    reader.read()


@pytest.mark.parametrize("lengths", [(MOST_REQUEST_BYTES + 1, 0), (2, 1), (2**32 - 1, 2**32 - 1)])
def test_no_memory_is_set_aside_for_what_a_frame_announces(helper: Helper, lengths: tuple[int, int]) -> None:
    with raw(helper) as rude:
        rude.sendall(struct.pack("<II", *lengths))
        assert outcome(rude) == "gone"
    assert any("too long" in line for line in helper.said)


def test_a_request_that_nobody_foresaw_ends_nothing(helper: Helper, reader: HelperTracer) -> None:
    def fail() -> None:
        raise RuntimeError("not foreseen")

    helper.tracer.rescan = fail  # type: ignore[method-assign]
    with pytest.raises(OSError, match="the request failed: RuntimeError"):
        reader.rescan()
    reader.read()


@pytest.mark.slow
def test_tens_of_thousands_of_groups_take_no_longer_than_reading_them(helper: Helper, reader: HelperTracer) -> None:
    with raw(helper) as rude:
        groups = [[str(number)] for number in range(60_000)]
        send(rude, Message({"verb": "regroup", "groups": groups}))
        begun_s = time.monotonic()
        assert outcome(rude) == ""
        reader.read()
        assert time.monotonic() - begun_s < 5


def test_groups_that_are_refused_do_not_stay_in_the_way_of_others(
    helper: Helper, reader: HelperTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    def regroup(tracer: HandTracer, groups: list[tuple[str, ...]]) -> None:
        if any("too many" in group for group in groups):
            raise ValueError("groups: more than the tables hold")
        tracer.groups = [list(group) for group in groups]
        tracer.group_values = [[7, 0] for _ in groups]

    monkeypatch.setattr(HandTracer, "regroup", regroup)
    with raw(helper) as rude:
        send(rude, Message({"verb": "regroup", "groups": [["too many"]]}))
        assert "more than the tables hold" in outcome(rude)
        reader.regroup([["sda"]])
        assert reader.read_groups().tolist() == [[7, 0]]


def test_what_only_one_reader_wanted_ends_with_it(helper: Helper, reader: HelperTracer) -> None:
    other = connect(helper.path)
    other.watch_tag_wait(True)
    other.close()
    reader.rescan()
    deadline_s = time.monotonic() + PATIENCE_S
    while helper.tracer.tag_wait != [True, False] and time.monotonic() < deadline_s:
        reader.rescan()
    assert helper.tracer.tag_wait == [True, False]


def drip(connection: socket.socket, stop: threading.Event) -> None:
    """Send one byte every 0.8 s, none of which is late by itself."""
    for byte in framed('{"verb": "turn", "arrays": {}}'):
        try:
            connection.send(bytes([byte]))
        except OSError:
            return
        if stop.wait(0.8):
            return


def test_a_request_has_a_deadline_as_a_whole(helper: Helper, reader: HelperTracer) -> None:
    stop = threading.Event()
    with raw(helper) as slow:
        dripping = threading.Thread(target=drip, args=(slow, stop))
        begun_s = time.monotonic()
        dripping.start()
        assert outcome(slow) == "gone"
        assert time.monotonic() - begun_s < connection.REQUEST_S + 3
        stop.set()
        dripping.join()
    assert any("did not finish its request in time" in line for line in helper.said)
    reader.read()


def pump(connection: socket.socket, request: bytes) -> None:
    """Send requests until the socket takes no more, and read no answer."""
    connection.setblocking(False)
    try:
        while True:
            connection.send(request)
    except BlockingIOError:
        return


@pytest.mark.slow
def test_readers_that_never_read_hold_up_nobody(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "ANSWER_S", 1.0)
    stuck = [raw(helper) for _ in range(7)]
    reader = connect(helper.path)
    for rude in stuck:
        pump(rude, encode(Message({"verb": "turn"})))
    begun_s = time.monotonic()
    for _ in range(20):
        reader.read()
    assert time.monotonic() - begun_s < 5
    deadline_s = time.monotonic() + PATIENCE_S
    while sum("did not take its answer" in line for line in helper.said) < 7 and time.monotonic() < deadline_s:
        reader.read()
    assert sum("did not take its answer in time" in line for line in helper.said) == 7
    for rude in stuck:
        rude.close()
    reader.close()


def test_memory_of_unfinished_messages_is_bounded(tmp_path: Path) -> None:
    helper = Helper(tmp_path / "probe.sock", limits=Limits(held_bytes=1 << 20))
    try:
        rude = [raw(helper) for _ in range(4)]
        for one in rude:
            one.sendall(struct.pack("<II", MOST_REQUEST_BYTES, 0) + b" " * (MOST_REQUEST_BYTES // 3))
        assert outcome(rude[0]) == "gone"
        assert any("memory is short" in line for line in helper.said)
        with raw(helper) as other:
            send(other, Message({"verb": "turn"}))
            assert outcome(other) == ""
        for one in rude:
            one.close()
    finally:
        helper.end()


def test_a_reader_that_never_asks_is_let_go_before_memory_is_short(
    helper: Helper, reader: HelperTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "MOST_CELLS", 10)
    monkeypatch.setattr(hub, "MOST_KEPT_CELLS", 100)
    row = helper.tracer.add("sda", 8, 0)
    with raw(helper) as silent:
        for bucket in range(200):
            helper.tracer.finish(row, 2, bucket)
            reader.read()
        assert outcome(silent) == "gone"
    assert any("did not ask for so long" in line for line in helper.said)
    reader.read()


def test_cells_of_many_intervals_are_added_up(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hub, "MOST_CELLS", 10)
    other = connect(helper.path)
    reader = connect(helper.path)
    row = helper.tracer.add("sda", 8, 0)
    for number in range(30):
        helper.tracer.finish(row, number % 2, 500 + number % 3, 2)
        reader.read()
    other.read()
    cells = np.stack([column.astype(np.int64) for column in other.cells()], axis=1)
    sums: dict[tuple[int, ...], int] = {}
    for *place, count in cells.tolist():
        sums[tuple(place)] = sums.get(tuple(place), 0) + count
    assert sums == {(0, series, 500 + bucket): 10 for series in range(2) for bucket in range(3)}
    assert len(cells) < 30
    other.close()
    reader.close()


@needs.root
def test_one_user_cannot_keep_the_others_out(tmp_path: Path) -> None:
    for folder in (tmp_path, *tmp_path.parents):
        if folder == Path("/tmp"):
            break
        folder.chmod(0o755)
    limits = Limits(readers=10, readers_of_user=3)
    helper = Helper(tmp_path / "probe.sock", Admission(frozenset({65_534})), limits)
    try:
        refusals = greedy(helper.path, 65_534, 5)
        assert refusals == ["", "", "", *["serves 3 readers of this user already"] * 2]
        many = [connect(helper.path) for _ in range(10)]
        with pytest.raises(LunscopeError, match="serves 10 readers already"):
            connect(helper.path)
        for reader in many:
            reader.close()
    finally:
        helper.end()


def greedy(path: Path, user: int, count: int) -> list[str]:
    """How the connections of another user's process were received, one after the other."""
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(user)
        os.setuid(user)
        said, held = [], []
        for _ in range(count):
            try:
                held.append(connect(path))
                said.append("")
            except BaseException as error:
                said.append(str(error).rpartition("helper ")[2])
        os.write(write_fd, json.dumps(said).encode())
        os._exit(0)
    os.close(write_fd)
    os.waitpid(child, 0)
    with os.fdopen(read_fd) as answers:
        return list(json.loads(answers.read()))


def test_readers_that_cannot_be_accepted_for_lack_of_descriptors_are_accepted_later(
    helper: Helper, reader: HelperTracer, monkeypatch: pytest.MonkeyPatch
) -> None:
    listener = helper.server._listener
    failures = iter([OSError(24, "Too many open files")] * 2)

    class Short:
        def accept(self) -> object:
            for failure in failures:
                raise failure
            return listener.accept()

        def __getattr__(self, name: str) -> object:
            return getattr(listener, name)

    monkeypatch.setattr(helper.server, "_listener", Short())
    connect(helper.path).close()
    reader.read()
    assert [line for line in helper.said if "no new readers" in line]


def test_a_client_gives_up_on_an_answer_that_arrives_too_slowly(tmp_path: Path) -> None:
    ours, theirs = socket.socketpair()
    stop = threading.Event()
    dripping = threading.Thread(target=drip, args=(theirs, stop))
    dripping.start()
    begun_s = time.monotonic()
    with pytest.raises(OSError, match=r"timed out|no whole message within 2 s"):
        receive(ours, 2.0)
    assert time.monotonic() - begun_s < 5
    stop.set()
    dripping.join()
    ours.close()
    theirs.close()


def test_arrays_survive_the_way_and_bytes_of_none_are_refused() -> None:
    values = np.arange(6, dtype=np.uint64).reshape(2, 3)
    framed_bytes = encode(Message({"x": 1}, {"values": values, "row": np.zeros(0, np.uint32)}))
    head_bytes, _ = struct.unpack("<II", framed_bytes[:8])
    head, body = framed_bytes[8 : 8 + head_bytes], framed_bytes[8 + head_bytes :]
    message = decode(head, body)
    assert message.head == {"x": 1}
    assert message.arrays["values"].tolist() == values.tolist()
    assert message.arrays["row"].shape == (0,)
    with pytest.raises(MessageError, match="belong to no array"):
        decode(head, body + b"\0" * 8)
