"""The end of a load is in the recording, although its terminal is gone and little time is left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as StopFlag
from typing import Any

import pytest

from collectors.model import Step
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.sources.load import LoadCollector
from collectors.sources.recorder import RecordingSource
from engine.events import EventKind
from engine.job.spec import JobSpec, Permissions
from engine.running.control import LoadControl
from engine.running.driver import LoadDriver
from tests.session_samples import Machine
from tui.app.closing import Closing

_PATIENCE_S = 0.05


class OneSample:
    """A source of one sample."""

    seekable = False
    interval_s = 1.0

    def steps(self, _stop: StopFlag) -> Iterator[Step]:
        yield Step(None, Machine().sample())

    def close(self) -> None:
        pass


@pytest.fixture
def recording(tmp_path: Path) -> RecordingSource:
    source = RecordingSource(OneSample(), SessionWriter(tmp_path / "a.luns"))
    for _ in source.steps(StopFlag()):
        pass
    return source


def _start(control: LoadControl) -> None:
    control.arm(JobSpec(size_bytes=1 << 20), Permissions())
    control.start()


def _close_hastily(closing: Closing, before_the_rest: Callable[[], None] = lambda: None) -> None:
    """As it is done when the terminal is gone: the load does not hold up the rest."""
    load, *rest = (threading.Thread(target=close, daemon=True) for close in closing.urgent_steps)
    load.start()
    load.join(_PATIENCE_S)
    before_the_rest()
    for thread in rest:
        thread.start()
        thread.join()


def _ends(recording: RecordingSource) -> list[str]:
    with SessionReader(Path(recording.path)) as reader:
        texts = [event.text for event in reader.events() if event.kind is EventKind.LOAD]
    return [text for text in texts if not text.startswith("load started")]


def test_an_end_that_the_collector_took_for_a_sample_that_never_came(
    control: LoadControl, recording: RecordingSource
) -> None:
    collector = LoadCollector(control)
    _start(control)
    collector.read()
    control.stop()
    collector.read()
    _close_hastily(Closing(control, recording, recording, None))
    (end,) = _ends(recording)
    assert end.startswith("load stopped")


@pytest.fixture
def stuck(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Ends of loads wait for this."""
    go_on, stop = threading.Event(), LoadDriver.stop

    def stop_later(driver: LoadDriver, *arguments: Any) -> bool:
        go_on.wait()
        return stop(driver, *arguments)

    monkeypatch.setattr(LoadDriver, "stop", stop_later)
    return go_on


def test_a_load_that_takes_a_moment_more_to_end(
    control: LoadControl, recording: RecordingSource, stuck: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tui.app.closing.HASTY_S", 60.0)
    _start(control)
    _close_hastily(Closing(control, recording, recording, None), stuck.set)
    (end,) = _ends(recording)
    assert end.startswith("load stopped")


def test_a_load_that_does_not_end_is_named(
    control: LoadControl, recording: RecordingSource, stuck: threading.Event
) -> None:
    _start(control)
    _close_hastily(Closing(control, recording, recording, None))
    assert _ends(recording) == ["the load had not ended when the recording was"]
    stuck.set()
    assert control.wait(60.0)
