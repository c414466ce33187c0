"""Times of NFS calls through the probe helper: each reader has all calls once, and detaching with the last one."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from collectors.exact.probe.client import HelperNfs, connect_nfs
from collectors.exact.probe.hub import Hub
from collectors.exact.probe.message import PATH_VARIABLE, Message
from collectors.exact.tracer_supervisor import NFS_CALLS
from collectors.sampling.programs import NfsCalls
from engine import _native
from engine.errors import LunscopeError
from tests.unit.hand_tracer import HandTracer
from tests.unit.probe_server import Helper, wait_for

READ = [4, 7, 4, 2, 10, 200, 210, 6, 150, 160]
MORE = [4, 7, 4, 1, 1, 300, 310, 1, 300, 310]
WRITE = [4, 7, 4, 1, 5, 6, 11, 5, 6, 11]
BOTH = [4, 7, 4, 3, 11, 500, 520, 6, 300, 310]


@pytest.fixture
def calls(helper: Helper) -> Iterator[HelperNfs]:
    calls = connect_nfs(helper.path)
    yield calls
    calls.close()


def listed(found: NfsCalls) -> tuple[list[list[int]], list[str], list[list[int]]]:
    return found[0].tolist(), found[1], found[2].tolist()


def test_every_reader_has_all_calls_once(helper: Helper, calls: HelperNfs) -> None:
    assert listed(calls.read()) == ([], [], [])
    program = helper.nfs[0]
    other = connect_nfs(helper.path)
    other.read()
    program.next = [READ], ["READ"], [[0, 1, 90, 2]]
    assert listed(other.read()) == ([READ], ["READ"], [[0, 1, 90, 2]])
    program.next = [WRITE, MORE], ["WRITE", "READ"], [[0, 2, 5, 1], [1, 1, 90, 1]]
    assert listed(other.read()) == ([WRITE, MORE], ["WRITE", "READ"], [[0, 2, 5, 1], [1, 1, 90, 1]])
    assert listed(calls.read()) == ([BOTH, WRITE], ["READ", "WRITE"], [[0, 1, 90, 3], [1, 2, 5, 1]])
    assert listed(calls.read()) == ([], [], [])
    assert calls.losses() == (5, 6)
    other.close()
    assert [each.closed for each in helper.nfs] == [False]
    calls.close()
    wait_for(lambda: helper.nfs[0].closed)


def test_every_reader_has_the_slowest_calls(helper: Helper, calls: HelperNfs) -> None:
    calls.read()
    other = connect_nfs(helper.path)
    other.read()
    program = helper.nfs[0]
    fast, slow = [1, 4, 7, 4, 10, 20, 30, 77, 42], [2, 4, 7, 4, 10, 200, 210, 78, 0]
    program.next, program.slow = ([READ], ["READ"], []), ([fast], ["READ"], ["dd\udc80"])
    other.read()
    program.next, program.slow = ([WRITE], ["WRITE"], []), ([slow], ["WRITE"], [""])
    calls.read()
    values, operations, commands = calls.slowest()
    assert (values.tolist(), operations, commands) == ([slow, fast], ["WRITE", "READ"], ["", "dd\udc80"])
    assert other.slowest()[0].tolist() == [fast]
    calls.read()
    assert calls.slowest()[1] == []
    other.close()


def test_an_older_helper_lists_no_slow_calls(calls: HelperNfs, monkeypatch: pytest.MonkeyPatch) -> None:
    arrays = {"calls": np.array([READ], np.uint64), "cells": np.zeros((0, 4), np.uint64)}
    answer = Message({"losses": [0, 0], "operations": ["READ"]}, arrays)
    monkeypatch.setattr("collectors.exact.probe.client.receive", lambda *_: answer)
    assert calls.read()[1] == ["READ"]
    assert calls.slowest()[1] == []


@pytest.mark.parametrize(
    ("columns", "operations", "commands"), [(8, ["READ"], ["dd"]), (9, [], ["dd"]), (9, ["READ"], [3])]
)
def test_slow_calls_of_another_shape_are_refused(
    calls: HelperNfs, monkeypatch: pytest.MonkeyPatch, columns: int, operations: list[str], commands: list[object]
) -> None:
    arrays = {"calls": np.array([READ], np.uint64), "cells": np.zeros((0, 4), np.uint64)}
    arrays["slow"] = np.zeros((1, columns), np.uint64)
    head = {"losses": [0, 0], "operations": ["READ"], "slow_operations": operations, "commands": commands}
    monkeypatch.setattr("collectors.exact.probe.client.receive", lambda *_: Message(head, arrays))
    with pytest.raises(OSError, match="of another version"):
        calls.read()


def test_an_older_helper_says_that_it_has_none() -> None:
    hub = Hub(HandTracer)
    entered = hub.enter()
    with pytest.raises(ValueError, match="this probe helper times no NFS calls"):
        hub.answer(entered, Message({"verb": "nfs"}))


@pytest.mark.parametrize(
    ("operations", "rows", "cells"),
    [
        (["READ"], (1, 9), (0, 4)),
        ([], (1, 10), (0, 4)),
        ([3], (1, 10), (0, 4)),
        (["READ"], (1, 10), (1, 3)),
        (["READ"], (0, 10), (0, 4)),
        ([], (0, 10), (1, 4)),
    ],
)
def test_an_answer_of_another_shape_is_refused(
    calls: HelperNfs,
    monkeypatch: pytest.MonkeyPatch,
    operations: list[object],
    rows: tuple[int, int],
    cells: tuple[int, int],
) -> None:
    arrays = {"calls": np.zeros(rows, np.uint64), "cells": np.zeros(cells, np.uint64)}
    answer = Message({"losses": [0, 0], "operations": operations}, arrays)
    monkeypatch.setattr("collectors.exact.probe.client.receive", lambda *_: answer)
    with pytest.raises(OSError, match="of another version"):
        calls.read()


def test_who_may_not_attach_reads_from_the_helper(
    helper: Helper, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_native, "tracer_refusal", lambda *_, rights=True: "needs root" if rights else "")
    monkeypatch.setenv(PATH_VARIABLE, str(tmp_path / "absent"))
    assert NFS_CALLS.refusal("/proc", "/sys") == "needs root; or have root start `lunscope probe`"
    with pytest.raises(LunscopeError, match="needs root"):
        NFS_CALLS.open("/proc", "/sys")
    monkeypatch.setenv(PATH_VARIABLE, str(helper.path))
    assert NFS_CALLS.refusal("/proc", "/sys") == ""
    program = NFS_CALLS.open("/proc", "/sys")
    assert listed(program.read()) == ([], [], [])
    program.close()
