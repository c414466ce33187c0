"""Filesystems that are frozen: begin and end at the kernel's own times, whatever the interval of reading."""

from __future__ import annotations

import time

from collectors.sampling.programs import Freeze
from collectors.tables.background.freezes import ATTACHED_AT, FrozenFilesystems

SECOND_NS = 1_000_000_000


class Program:
    """What the kernel has noted, as a test sets it."""

    def __init__(self) -> None:
        self.now: list[Freeze] = []

    def read(self) -> list[Freeze]:
        return self.now

    def close(self) -> None:
        pass


def attached(program: Program) -> FrozenFilesystems:
    frozen = FrozenFilesystems(lambda: program)
    for _ in range(ATTACHED_AT):
        assert frozen.read() == ([], [])
    deadline_s = time.monotonic() + 60
    while frozen._attached.program is None:
        assert time.monotonic() < deadline_s
        time.sleep(0.005)
    return frozen


def test_a_freeze_lasts_from_its_begin_to_its_end() -> None:
    program = Program()
    frozen, began_ns = attached(program), time.monotonic_ns() - 20 * SECOND_NS
    program.now = [("sdb1", 8, 17, began_ns, 0)]
    works, events = frozen.read()
    assert [work.key for work in works] == ["sdb1 freeze"]
    assert 20_000 <= (works[0].lasts_ms or 0) < 60_000
    assert [(event.text, event.monotonic_ns) for event in events] == [("sdb1: freeze began", began_ns)]
    assert frozen.read()[1] == []
    program.now = [("sdb1", 8, 17, began_ns, began_ns + 20 * SECOND_NS)]
    works, events = frozen.read()
    assert works == []
    assert [event.text for event in events] == ["sdb1: freeze ended after 20.0 s"]
    assert events[0].monotonic_ns == began_ns + 20 * SECOND_NS
    assert frozen.read() == ([], [])
    frozen.close()


def test_one_between_two_readings_and_names_of_any_bytes_are_told() -> None:
    program = Program()
    frozen = attached(program)
    program.now = [("\x1b[2J", 0, 45, 7, 7 + SECOND_NS // 2)]
    works, events = frozen.read()
    assert works == []
    assert len(events) == 2
    assert all("\x1b" not in event.text for event in events)
    assert events[1].text.endswith("freeze ended after 0.5 s")
    frozen.close()
