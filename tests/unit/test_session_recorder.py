"""Recording beside watching: everything shown is in the file, and a failing file never stops the watching."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.model import Sample, Source, Step
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.sources.recorder import RecordingSource
from engine.errors import LunscopeError
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.session_samples import Machine, assert_same, note


def _started() -> Event:
    return Event(EventKind.LOAD, "load started", 5, 5)


class Samples:
    """A source that hands out what it was given."""

    seekable = False
    interval_s = 0.25

    def __init__(self, samples: list[Sample], gaps: frozenset[int] = frozenset()) -> None:
        self._samples = samples
        self._gaps = gaps
        self.closed = 0

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        previous = None
        if stop.is_set():
            return
        for index, sample in enumerate(self._samples):
            yield Step(None if index in self._gaps else previous, sample)
            previous = sample

    def close(self) -> None:
        self.closed += 1


def _samples(count: int) -> list[Sample]:
    machine = Machine()
    return [machine.sample() for _ in range(count)]


def test_every_sample_is_in_the_file_before_it_is_shown(tmp_path: Path) -> None:
    samples = _samples(70)
    below = Samples(samples, gaps=frozenset({5}))
    source: Source = RecordingSource(below, SessionWriter(tmp_path / "a.lun"))
    for index, step in enumerate(source.steps(StopFlag())):
        assert step.current is samples[index]
        if index in {0, 1, 42}:
            with SessionReader(tmp_path / "a.lun") as reader:
                assert_same(reader.sample_at(index), samples[index])
    source.close()
    source.close()
    assert below.closed == 2
    with SessionReader(tmp_path / "a.lun") as reader:
        assert len(reader) == 70
        assert reader.interval_s == 0.25
        assert [i for i, step in enumerate(reader.steps(0, 69)) if step.previous is None] == [0, 5]


def test_a_file_that_fails_is_reported_once_and_watching_goes_on(tmp_path: Path) -> None:
    path, samples = tmp_path / "a.lun", _samples(10)
    source = RecordingSource(Samples(samples), SessionWriter(path))
    seen = []
    for index, step in enumerate(source.steps(StopFlag())):
        seen.append(step)
        if index == 3:
            path.rename(tmp_path / "moved.lun")
    events = [(index, event) for index, step in enumerate(seen) for event in step.current.events]
    assert [(index, event.kind) for index, event in events] == [(4, EventKind.MONITOR)]
    assert "recording stopped: " in events[0][1].text
    assert str(path) in events[0][1].text
    assert len(seen) == 10
    assert (source.ticks, source.left_out, source.waiting) == (4, 0, 0)
    assert "removed" in source.trouble
    assert source.path == str(path)
    source.close()


class _SlowWriter(SessionWriter):
    """A disk that takes nothing until it is let go."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.go = threading.Event()

    def write(self, sample: Sample, *, gap: bool = False) -> None:
        self.go.wait()
        super().write(sample, gap=gap)


def test_a_disk_that_takes_nothing_does_not_stop_the_screen_and_the_hole_is_reported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("collectors.sources.recorder._PATIENCE_S", 0.001)
    monkeypatch.setattr("collectors.sources.recorder._MOST_WAITING", 4)
    machine = Machine()
    samples = [machine.sample(note(f"n{index}")) for index in range(12)]
    writer = _SlowWriter(tmp_path / "a.lun")
    source = RecordingSource(Samples(samples), writer)
    steps = source.steps(StopFlag())
    for _ in range(10):
        next(steps)
    assert source.left_out >= 5
    assert source.waiting == 4
    writer.go.set()
    while source.waiting:
        threading.Event().wait(0.001)
    assert len(list(steps)) == 2
    source.close()
    assert source.trouble.endswith(f"a.lun: {source.left_out} samples left out")
    with SessionReader(tmp_path / "a.lun") as reader:
        kept = list(reader.steps(0, len(reader)))
        assert len(kept) + source.left_out == 12
        assert kept[-2].previous is None
        events = [event for event in kept[-2].current.events if event.kind is EventKind.MONITOR]
        assert [event.text.split(":")[0] for event in events] == [f"{source.left_out} samples not recorded"]
        assert [event.text for event in reader.events() if event.kind is EventKind.NOTE] == [f"n{i}" for i in range(12)]


def test_notes_go_in_without_a_sample(tmp_path: Path) -> None:
    source = RecordingSource(Samples(_samples(2)), SessionWriter(tmp_path / "a.lun"))
    steps = source.steps(StopFlag())
    next(steps)
    source.add_event(note("here"))
    next(steps)
    source.close()
    with SessionReader(tmp_path / "a.lun") as reader:
        second = reader.sample_at(1)
        assert second is not None
        assert second.events == (note("here"),)


def test_closing_ends_the_recording_even_when_nothing_came(tmp_path: Path) -> None:
    source = RecordingSource(Samples([]), SessionWriter(tmp_path / "a.lun"))
    source.close()
    with pytest.raises(LunscopeError, match="no samples"):
        SessionReader(tmp_path / "a.lun")


def test_whatever_ends_the_writer_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = RecordingSource(Samples(_samples(5)), writer := SessionWriter(tmp_path / "a.lun"))

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("no version")

    monkeypatch.setattr(writer, "write", fail)
    seen = list(source.steps(StopFlag()))
    source.close()
    assert len(seen) == 5
    assert "RuntimeError: no version" in source.trouble
    assert any("recording stopped" in event.text for step in seen for event in step.current.events)


@pytest.mark.parametrize("in_sample_first", [True, False])
def test_an_event_that_comes_twice_is_recorded_once(tmp_path: Path, *, in_sample_first: bool) -> None:
    first, second, third = _samples(3)
    samples = [first, replace(second, events=(_started(),)), third]
    source = RecordingSource(Samples(samples), SessionWriter(tmp_path / "a.lun"))
    steps = source.steps(StopFlag())
    for _ in range(2 if in_sample_first else 1):
        next(steps)
    source.add_event(_started())
    for _ in steps:
        pass
    source.close()
    with SessionReader(tmp_path / "a.lun") as reader:
        assert [event for event in reader.events() if event.kind is EventKind.LOAD] == [_started()]
        assert len(reader) == 3
