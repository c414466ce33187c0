"""The probe helper over a real socket, with a tracer in the test's hand: who is let in, several readers, death."""

from __future__ import annotations

import os
import socket
import struct
from pathlib import Path

import numpy as np
import pytest

from collectors.exact.probe.client import HelperTracer, connect
from collectors.exact.probe.connection import Admission
from collectors.exact.probe.hub import Hub
from collectors.exact.probe.message import Message, receive, send
from collectors.exact.probe.server import Limits, ProbeServer, QuietLog
from collectors.exact.tracer import PROCESS_COLUMNS
from collectors.tables.block.schema import TRACE
from engine.errors import LunscopeError, UsageError
from tests import needs
from tests.unit.hand_tracer import HandTracer
from tests.unit.probe_server import MYSELF, PATIENCE_S, Helper, raw, wait_for

READS, PEAK = TRACE.index("reads"), TRACE.index("service_max_ns")
PROCESS_READS = PROCESS_COLUMNS.index("reads")


def test_a_reader_sees_what_the_tracer_has(helper: Helper, reader: HelperTracer) -> None:
    row = helper.tracer.add("sd\udcff", 8, 16, reads=5, service_max_ns=900)
    helper.tracer.finish(row, 2, 40, 3)
    helper.tracer.slow(row, "postgres", latency_ns=900)
    helper.tracer.lost = {"stale": 2}
    values = reader.read()
    assert (values[0, READS], values[0, PEAK]) == (5, 900)
    assert (reader.names(), reader.numbers().tolist()) == (["sd\udcff"], [[8, 16]])
    assert [column.tolist() for column in reader.cells()] == [[0], [2], [40], [3]]
    assert reader.slowest()[1] == ["postgres"]
    assert reader.losses() == {"stale": 2}
    assert reader.generation == helper.tracer.generation


def test_only_changes_are_reported_and_everything_is_known(helper: Helper, reader: HelperTracer) -> None:
    for number in range(3):
        helper.tracer.add(f"sd{number}", 8, number, reads=number, service_max_ns=50)
    reader.read()
    helper.tracer.grow(1, reads=10)
    values = reader.read()
    assert values[:, READS].tolist() == [0, 11, 2]
    assert values[:, PEAK].tolist() == [0, 0, 0]
    assert len(reader.cells()[0]) == 0
    assert reader.slowest()[1] == []


def test_every_reader_has_intervals_of_its_own(helper: Helper, reader: HelperTracer) -> None:
    other = connect(helper.path)
    row = helper.tracer.add("sda", 8, 0, reads=1, service_max_ns=700)
    helper.tracer.finish(row, 2, 7, 1)
    helper.tracer.slow(row, "first", latency_ns=700)
    assert reader.read()[0, PEAK] == 700
    helper.tracer.grow(row, service_max_ns=20)
    helper.tracer.finish(row, 2, 7, 2)
    assert reader.read()[0, PEAK] == 20
    assert other.read()[0, PEAK] == 700
    cells = np.stack(other.cells()[:3], axis=1).tolist()
    assert cells == [[0, 2, 7], [0, 2, 7]]
    assert other.slowest()[1] == ["first"]
    other.close()


def test_every_reader_has_what_processes_did_since_its_own_reading(helper: Helper, reader: HelperTracer) -> None:
    other = connect(helper.path)
    row = helper.tracer.add("sda", 8, 0, reads=1)
    helper.tracer.process(row, "dd", {5: 2}, process=7, reads=2, latency_ns=10)
    reader.read()
    assert reader.processes()[0][:, PROCESS_READS].tolist() == [2]
    assert len(reader.processes()[0]) == 0
    helper.tracer.process(row, "cp", {6: 1}, process=8, reads=1, latency_ns=10)
    helper.tracer.process(row, "dd", {5: 1}, process=7, reads=3, latency_ns=10)
    reader.read()
    other.read()
    mine, theirs = reader.processes(), other.processes()
    assert sorted(mine[0][:, PROCESS_READS].tolist()) == [1, 3]
    assert sorted(theirs[0][:, PROCESS_READS].tolist()) == [1, 5]
    assert sorted(theirs[1][:, 1:].tolist()) == [[5, 3], [6, 1]]
    other.close()


def test_processes_of_a_device_that_is_not_there_are_refused(helper: Helper, reader: HelperTracer) -> None:
    helper.tracer.process(3, "dd", process=7, reads=2, latency_ns=10)
    with pytest.raises(OSError, match="of a device that is not there"):
        reader.read()


def test_groups_of_all_readers_are_counted_once(helper: Helper, reader: HelperTracer) -> None:
    other = connect(helper.path)
    reader.regroup([["sda", "sdb"], ["sdc"]])
    other.regroup([["sdc"], ["sdd"]])
    assert helper.tracer.groups == [["sda", "sdb"], ["sdc"], ["sdd"]]
    helper.tracer.group_values = [[1, 0], [2, 0], [3, 0]]
    reader.read()
    other.read()
    assert reader.read_groups()[:, 0].tolist() == [1, 2]
    assert other.read_groups()[:, 0].tolist() == [2, 3]
    other.close()


def test_waits_for_tags_are_watched_while_any_reader_wants_it(helper: Helper, reader: HelperTracer) -> None:
    other = connect(helper.path)
    reader.watch_tag_wait(True)
    other.watch_tag_wait(True)
    reader.watch_tag_wait(False)
    other.watch_tag_wait(False)
    assert helper.tracer.tag_wait == [True, False]
    other.close()


def test_nothing_is_attached_while_nobody_reads(helper: Helper) -> None:
    assert helper.tracers == []
    first, second = connect(helper.path), connect(helper.path)
    assert len(helper.tracers) == 1
    first.close()
    second.close()
    wait_for(lambda: helper.tracer.closed == 1)
    connect(helper.path).close()
    assert len(helper.tracers) == 2


def test_a_helper_that_dies_is_an_error_that_says_so(helper: Helper, reader: HelperTracer) -> None:
    helper.end()
    with pytest.raises(OSError, match=r"the probe helper is gone|does not answer"):
        reader.read()


def test_what_the_tracer_refuses_reaches_the_reader(helper: Helper, reader: HelperTracer) -> None:
    helper.tracer.trouble = "no more"
    with pytest.raises(OSError, match=r"the probe helper: .*no more"):
        reader.read()


@needs.root
def test_another_user_is_turned_away_and_a_member_of_the_group_is_not(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for parent in tmp_path.parents:
        if parent == Path("/tmp"):
            break
        parent.chmod(0o755)
    helper = Helper(tmp_path / "probe.sock", Admission(frozenset(), 65_533))
    try:
        assert "let in" in as_user(helper.path, 65_534, 65_533)
        assert "may not read" in as_user(helper.path, 65_534, 65_532)
    finally:
        helper.end()


def as_user(path: Path, user: int, group: int) -> str:
    """What the helper says to a process of another user."""
    read_fd, write_fd = os.pipe()
    child = os.fork()
    if child == 0:
        os.setgroups([])
        os.setgid(group)
        os.setuid(user)
        try:
            connect(path).close()
            os.write(write_fd, b"let in")
        except BaseException as error:
            os.write(write_fd, str(error).encode())
        finally:
            os._exit(0)
    os.close(write_fd)
    os.waitpid(child, 0)
    with os.fdopen(read_fd) as answers:
        return answers.read()


def test_too_many_readers_are_turned_away(helper: Helper) -> None:
    readers = [connect(helper.path) for _ in range(Limits().readers)]
    with pytest.raises(LunscopeError, match="serves 128 readers already"):
        connect(helper.path)
    for reader in readers:
        reader.close()


def test_a_reader_learns_why_the_helper_cannot_attach(helper: Helper) -> None:
    helper.refusal = "Operation not permitted"
    with pytest.raises(LunscopeError, match="Operation not permitted"):
        connect(helper.path)


@pytest.mark.parametrize(
    "rude",
    [
        b"GET / HTTP/1.1\r\n\r\n" * 4,
        struct.pack("<II", 1 << 31, 0),
        struct.pack("<II", 2, 0) + b"[]",
        struct.pack("<II", 14, 0) + b'{"arrays": {}}'[:13],
        struct.pack("<II", 33, 0) + b'{"arrays": {"x": ["u8", 99, 99]}}',
    ],
)
def test_a_rude_reader_is_let_go_and_the_others_are_served(helper: Helper, reader: HelperTracer, rude: bytes) -> None:
    connection = raw(helper)
    connection.sendall(rude)
    with pytest.raises(OSError, match=r"the connection ended|reset by peer"):
        receive(connection, PATIENCE_S)
    connection.close()
    assert reader.read().shape == (0, len(TRACE.columns))


@pytest.mark.parametrize("groups", [None, "sda", [["sda"], "sdb"], [[1]]])
def test_what_cannot_be_asked_is_an_answer(helper: Helper, groups: object) -> None:
    connection = raw(helper)
    send(connection, Message({"verb": "regroup", "groups": groups}))
    assert receive(connection, PATIENCE_S).head["error"] == "groups are lists of names"
    send(connection, Message({"verb": "format c:"}))
    assert receive(connection, PATIENCE_S).head["error"] == "no request 'format c:'"
    connection.close()


def test_a_dead_helpers_socket_is_taken_over_and_a_living_ones_is_not(helper: Helper, tmp_path: Path) -> None:
    with pytest.raises(LunscopeError, match=r"probe.sock: a probe helper serves it already"):
        ProbeServer(helper.path, MYSELF, Hub(HandTracer), print)
    left = tmp_path / "left.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as dead:
        dead.bind(str(left))
    ProbeServer(left, MYSELF, Hub(HandTracer), print).close()
    assert not left.exists()
    left.write_text("data")
    with pytest.raises(LunscopeError, match="a file that is no socket"):
        ProbeServer(left, MYSELF, Hub(HandTracer), print)
    assert left.read_text() == "data"


def test_names_that_nobody_has_are_a_usage_error() -> None:
    with pytest.raises(UsageError, match="no such user or group"):
        Admission.of(["nobody of that name"], None)


def test_the_caller_of_sudo_is_let_in_where_nobody_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SUDO_UID", "1234")
    assert Admission.of([], None).users == {1234}
    assert Admission.of(["root"], None).users == {0}


def test_the_log_has_each_kind_of_line_once_in_a_minute() -> None:
    lines, now_s = list[str](), [0.0]
    log = QuietLog(lines.append, lambda: now_s[0])
    for number in range(600):
        log(f"turned away: reader {number}")
        log("let go: it did not finish its request in time")
        now_s[0] += 0.1
    assert lines == ["turned away: reader 0", "let go: it did not finish its request in time"]
    now_s[0] += 1.0
    log("turned away: reader 600")
    assert lines[2:] == ["turned away: reader 600 (599 more of this kind before it)"]
