"""Work of a tick is done once, however many need its result."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collectors.model import Step
from collectors.rates import derive
from collectors.reports.report import ReportOptions, report_text
from collectors.session import decoder
from collectors.session.reader import SessionReader
from collectors.session.record import Record
from collectors.tables.block.derive import block_tables, disk_figures

RECORDINGS = sorted((Path(__file__).parents[1] / "recordings").glob("*.luns"))


@pytest.fixture
def counted(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any, str], list[object]]:
    """Count calls of a function where it is used, one entry a call."""

    def count(owner: Any, name: str) -> list[object]:
        calls: list[object] = []
        function = getattr(owner, name)

        def counting(*given: Any, **named: Any) -> Any:
            calls.append(given)
            return function(*given, **named)

        monkeypatch.setattr(owner, name, counting)
        return calls

    return count


def steps_of(recording: Path) -> list[Step]:
    with SessionReader(recording) as reader:
        steps = list(reader.steps(0, len(reader) - 1))
    assert len(steps) > 1
    return steps


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_disks_are_rated_once_a_frame(recording: Path, counted: Callable[[Any, str], list[object]]) -> None:
    steps, calls = steps_of(recording), counted(disk_figures, "hotness")
    for step in steps:
        derive(step.previous, step.current)
    assert len(calls) == len(steps)


@pytest.mark.parametrize("recording", RECORDINGS, ids=lambda path: path.stem)
def test_a_report_reduces_an_interval_once(recording: Path, counted: Callable[[Any, str], list[object]]) -> None:
    steps, calls = steps_of(recording), counted(block_tables, "disk_intervals")
    assert list(report_text(iter(steps), ReportOptions(tables=("disks", "paths"))))
    assert len(calls) == len(steps)


def test_a_record_is_parsed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[bytes] = []

    class CountedRecord(Record, frozen=True):
        @classmethod
        def from_bytes(cls, data: bytes) -> Record:
            parsed.append(data)
            return super().from_bytes(data)

    monkeypatch.setattr(decoder, "Record", CountedRecord)
    steps = steps_of(RECORDINGS[0])
    assert len(parsed) == len(steps)
