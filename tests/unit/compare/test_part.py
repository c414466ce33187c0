"""What is typed as A or B, and which time of a recording it means."""

from __future__ import annotations

from pathlib import Path

import pytest

from collectors.compare.part import PartText, range_of
from collectors.session.reader import SessionReader
from engine.errors import UsageError
from tests.unit.compare.recordings import Epoch, record
from tests.unit.load_steps import SECOND_NS, WALL_NS

START_NS = WALL_NS + 1000 * SECOND_NS


def test_file_with_an_at_in_its_name_is_taken_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "me@epoch1"
    file.write_bytes(b"")
    assert PartText.parse(str(file)) == PartText(file)


@pytest.fixture(scope="module")
def recording(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return record(tmp_path_factory.mktemp("part") / "x.luns", Epoch(30), Epoch(20), Epoch(10))


def _span_s(recording: Path, part: str) -> tuple[float, float]:
    with SessionReader(recording) as reader:
        span = range_of(PartText.parse(f"{recording}{part}"), reader)
    return (span.start_ns - START_NS) / SECOND_NS, (span.end_ns - START_NS) / SECOND_NS


@pytest.mark.parametrize(
    ("part", "expected"),
    [
        ("", (0.0, 60.0)),
        ("@epoch0", (0.0, 30.0)),
        ("@epoch1", (30.0, 50.0)),
        ("@epoch2", (50.0, 60.0)),
        ("@epoch1..epoch2", (30.0, 50.0)),
        ("@queue depth 1 -> 2..", (30.0, 62.4)),
        ("@10..20.5s", (10.4, 20.9)),
        ("@+10..1m", (10.4, 60.4)),
        ("@load started..load stopped", (0.0, 60.0)),
    ],
)
def test_times_epochs_and_events_are_found(recording: Path, part: str, expected: tuple[float, float]) -> None:
    assert _span_s(recording, part) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("part", "says"),
    [
        ("@epoch3", "no epoch 3: its load has 0, 1, 2"),
        ("@20..10", "ends before it begins"),
        ("@queue depth..", "2 events have these words"),
        ("@cache on..", "no event has these words"),
    ],
)
def test_what_is_not_in_the_recording_is_named(recording: Path, part: str, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        _span_s(recording, part)
