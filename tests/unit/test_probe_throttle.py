"""Waits for limits of control groups through the probe helper: shared by readers, and lost with it."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from collectors.exact.probe.client import HelperThrottle, HelperTracer, connect_throttle
from collectors.exact.probe.hub import Hub
from collectors.exact.probe.message import PATH_VARIABLE, VERSION, Message
from collectors.exact.probe.share import MOST_CELLS, ThrottleShare
from collectors.exact.tracer_supervisor import THROTTLE
from collectors.model import Rows, Table
from collectors.sampling.programs import ThrottleProgram, Waits
from collectors.tables.cgroup.schema import CGROUP
from collectors.tables.cgroup.throttle import ThrottleWaits
from engine import _native
from engine.errors import LunscopeError
from tests.unit.hand_tracer import HandTracer
from tests.unit.probe_server import HandThrottle, Helper, wait_for

WAIT, MORE = [77, 8, 0, 150, 9_000_000], [78, 8, 16, 1, 5]


@pytest.fixture
def waits(helper: Helper) -> Iterator[HelperThrottle]:
    waits = connect_throttle(helper.path)
    yield waits
    waits.close()


def listed(found: Waits) -> tuple[list[list[int]], list[list[int]]]:
    return found[0].tolist(), found[1].tolist()


def test_every_reader_has_all_waits_and_its_own_histograms(helper: Helper, waits: HelperThrottle) -> None:
    assert listed(waits.read()) == ([], [])
    program = helper.throttles[0]
    program.rows, program.cells = [WAIT], [[0, 60, 150]]
    other = connect_throttle(helper.path)
    assert listed(other.read()) == ([WAIT], [[0, 60, 150]])
    program.rows, program.cells = [WAIT, MORE], [[1, 3, 1]]
    assert listed(other.read()) == ([WAIT, MORE], [[1, 3, 1]])
    assert listed(waits.read()) == ([WAIT, MORE], [[0, 60, 150], [1, 3, 1]])
    assert waits.losses() == (3, 4)
    other.close()
    assert len(helper.throttles) == 1


def test_programs_are_attached_while_anybody_reads_waits(helper: Helper, reader: HelperTracer) -> None:
    reader.read()
    assert helper.throttles == []
    for number in range(2):
        waits = connect_throttle(helper.path)
        waits.read()
        waits.close()
        wait_for(lambda number=number: helper.throttles[number].closed)  # type: ignore[misc]
    reader.read()
    assert [program.closed for program in helper.throttles] == [True, True]


def test_a_reader_of_waits_keeps_no_block_counters(helper: Helper, waits: HelperThrottle, reader: HelperTracer) -> None:
    waits.read()
    row = helper.tracer.add("sda", 8, 0, reads=1)
    helper.tracer.finish(row, 2, 7, 1)
    reader.read()
    hub = helper.server._hub
    assert [len(one.backlog._cells) for one in hub._readers if not one.traces] == [0]
    assert [one.traces for one in hub._readers].count(False) == 1


def test_an_older_helper_and_an_older_reader_go_on_working(helper: Helper, reader: HelperTracer) -> None:
    # Messages are as before but for one request more, so that the version stays.
    assert VERSION == 2
    assert reader.read().shape[0] == 0
    hub = Hub(HandTracer)
    entered = hub.enter()
    with pytest.raises(ValueError, match="this probe helper times no waits"):
        hub.answer(entered, Message({"verb": "throttle"}))
    assert hub.answer(entered, Message({"verb": "turn"})).head["rows"] == 0


def test_what_the_kernel_refuses_reaches_the_reader(helper: Helper) -> None:
    helper.throttle_refusal = "no fentry here"
    waits = connect_throttle(helper.path)
    with pytest.raises(OSError, match=r"the probe helper: .*no fentry here"):
        waits.read()
    helper.throttle_refusal = ""
    assert listed(waits.read()) == ([], [])


@pytest.mark.parametrize(
    "answer",
    [
        {"waits": np.zeros((1, 4), np.uint64), "cells": np.zeros((0, 3), np.uint64)},
        {"waits": np.zeros((1, 5), np.uint64), "cells": np.zeros((1, 2), np.uint64)},
        {"waits": np.zeros((1, 5), np.uint64), "cells": np.full((1, 3), 1, np.uint64)},
        {"waits": np.zeros((1, 5), np.uint64)},
        {"waits": np.zeros(5, np.uint64), "cells": np.zeros((0, 3), np.uint64)},
    ],
)
def test_an_answer_of_another_shape_is_refused(
    waits: HelperThrottle,
    monkeypatch: pytest.MonkeyPatch,
    answer: dict[str, np.ndarray[tuple[int, ...], np.dtype[np.uint64]]],
) -> None:
    monkeypatch.setattr("collectors.exact.probe.client.receive", lambda *_: Message({"losses": [0, 0]}, answer))
    with pytest.raises(OSError, match="of another version"):
        waits.read()


@pytest.mark.slow
def test_cells_of_a_reader_that_is_behind_are_merged() -> None:
    program = HandThrottle()
    share = ThrottleShare(lambda: program)
    share.answer("behind")
    program.rows = [WAIT]
    for _ in range(3):
        program.cells = [[0, number, 2] for number in range(MOST_CELLS // 2 + 1)]
        share.answer("other")
    assert share.kept_cells("behind") <= MOST_CELLS
    cells = share.answer("behind").arrays["cells"]
    assert (len(cells), set(cells[:, 2].tolist())) == (MOST_CELLS // 2 + 1, {6})


def table() -> Table:
    return Table(CGROUP, Rows((), ()), np.empty((0, len(CGROUP.columns)), np.uint64))


def added(waits: ThrottleWaits) -> bool:
    return waits.add(table(), tuple)[1] is not None


def test_waits_go_on_when_the_helper_runs_again(helper: Helper) -> None:
    opened: list[ThrottleProgram] = []
    served = [helper]

    def open_() -> ThrottleProgram:
        opened.append(connect_throttle(served[-1].path))
        return opened[-1]

    waits = ThrottleWaits(open_, adds_up=False, first_pause_s=0.01)
    waits.start()
    wait_for(lambda: added(waits))
    helper.end()
    wait_for(lambda: not added(waits) and "probe helper" in waits.refusal)
    served.append(Helper(helper.path))
    wait_for(lambda: added(waits))
    assert waits.refusal == ""
    waits.close()
    served[-1].end()


def test_who_may_not_attach_reads_from_the_helper(helper: Helper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_native, "tracer_refusal", lambda *_, rights=True: "needs root" if rights else "")
    monkeypatch.setenv(PATH_VARIABLE, f"{helper.path}.absent")
    assert THROTTLE.refusal("/proc", "/sys") == "needs root; or have root start `lunscope probe`"
    with pytest.raises(LunscopeError, match="needs root"):
        THROTTLE.open("/proc", "/sys")
    monkeypatch.setenv(PATH_VARIABLE, str(helper.path))
    assert THROTTLE.refusal("/proc", "/sys") == ""
    program = THROTTLE.open("/proc", "/sys")
    assert listed(program.read()) == ([], [])
    program.close()
    helper.throttle_refusal = "no fentry here"
    wait_for(lambda: all(one.closed for one in helper.throttles))
    assert "no fentry here" in THROTTLE.refusal("/proc", "/sys")


def test_closing_does_not_wait_for_programs_that_are_attached() -> None:
    waits = ThrottleWaits(HandThrottle, adds_up=False)
    waits.start()
    wait_for(lambda: added(waits))
    waits.close()
    waits.close()
    assert not added(waits)
