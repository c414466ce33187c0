"""The operator's choice about waits for tags reaches the tracer, also through a recording."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from threading import Event as StopFlag

from collectors.model import Step
from collectors.session.writer import SessionWriter
from collectors.sources.recorder import RecordingSource
from tui.app.sampling_choices import TagWaitChoice


class DeafSource:
    seekable = False
    interval_s = 1.0

    def steps(self, _stop: StopFlag) -> Iterator[Step]:
        return iter(())

    def close(self) -> None:
        pass


class HearingSource(DeafSource):
    def __init__(self) -> None:
        self.heard: list[bool | None] = []

    def watch_tag_wait(self, on: bool | None) -> None:
        self.heard.append(on)


def test_the_choice_goes_round() -> None:
    source = HearingSource()
    choice = TagWaitChoice(source)
    words = [choice.turn() for _ in range(3)]
    assert source.heard == [True, False, None]
    assert words[1] == "tag wait tracing off"


def test_a_recording_hands_it_on(tmp_path: Path) -> None:
    source = HearingSource()
    recording = RecordingSource(source, SessionWriter(tmp_path / "s.luns"))
    TagWaitChoice(recording).turn()
    recording.close()
    assert source.heard == [True]


def test_a_source_that_cannot_says_so() -> None:
    assert TagWaitChoice(DeafSource()).turn() == "this source cannot trace tag waits"
