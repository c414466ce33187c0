"""Turns of a load without a screen: every step is as long as it is to be, whatever the turn before it took."""

from __future__ import annotations

import itertools
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.model import Step
from engine.config import SCRATCH_ENV
from engine.job.knobs import Knobs
from engine.job.scenario import Turn
from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.results.result import RunResult
from engine.running.control import LoadControl
from tests.kernel.backends import BACKENDS, filled_file, knobs_of, make_engine, opened
from tui.headless.monitor import Monitor
from tui.headless.signals import EndingSignals
from tui.headless.watched_loads import HeadlessRun

STEP_S = 0.25
TURNS = tuple(Turn(number * STEP_S, (("queue_depth", 1 + number),)) for number in (1, 2))


class NoSource:
    """A host that is not watched."""

    interval_s = 1.0
    seekable = False

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        assert not stop.is_set()
        return iter(())

    def close(self) -> None:
        """Nothing is open."""


class SlowControl(LoadControl):
    """A load whose turns take longer than all that is left of it, as on a host where /proc is long."""

    def turn(self, knobs: Knobs) -> None:
        time.sleep(3 * STEP_S)
        super().turn(knobs)


def driven(control: LoadControl, job: JobSpec, turns: tuple[Turn, ...]) -> RunResult:
    run = HeadlessRun(control, Monitor(NoSource()), EndingSignals(), turns=turns)
    return run.drive(job, Permissions())


def job_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, **fields: object) -> JobSpec:
    monkeypatch.setenv(SCRATCH_ENV, str(tmp_path))
    return JobSpec((TargetSpec(),), size_bytes=1 << 20, **fields)  # type: ignore[arg-type]


def test_what_a_turn_takes_is_not_taken_from_the_steps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    result = driven(SlowControl(), job_of(tmp_path, monkeypatch, runtime_s=3 * STEP_S), TURNS)
    assert result.about.ended == "runtime"
    assert result.about.elapsed_s >= 3 * STEP_S + len(TURNS) * 3 * STEP_S
    assert [epoch.knobs.queue_depth for epoch in result.epochs] == [1, 2, 3]
    began_s = [epoch.start_s for epoch in result.epochs if epoch.start_s is not None]
    assert all(later - earlier >= STEP_S for earlier, later in itertools.pairwise(began_s))
    assert all(epoch.split.total.ios for epoch in result.epochs)


def test_turns_that_a_load_does_not_live_to_see_are_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    result = driven(SlowControl(), job_of(tmp_path, monkeypatch, loops=1, io_bytes=4096), (*TURNS, Turn(90.0, ())))
    assert result.about.ended == "size"
    assert result.completed_ios == 1
    (line,) = capsys.readouterr().err.splitlines()
    assert ", before 3 of its turns: the first was due after 0.25s" in line


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_end_is_put_off_and_set(tmp_path: Path, backend: str) -> None:
    path = filled_file(tmp_path / "data", 1 << 20)
    with opened(path, size_bytes=1 << 20) as targets:
        engine = make_engine(backend, targets, knobs_of(), runtime_s=0.05)
        engine.end_after(None)
        engine.start()
        time.sleep(0.15)
        assert engine.running
        with pytest.raises(ValueError, match="runtime_s"):
            make_engine("threads", targets, knobs_of()).end_after(-1.0)
        engine.end_after(0.2)
        until_s = time.monotonic() + 30
        while engine.running:
            assert time.monotonic() < until_s
            time.sleep(0.005)
        assert engine.stop()
        assert engine.fault == ""
