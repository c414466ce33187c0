"""Turns of the knobs: one owner, one check, and nobody waits for a load that does not answer."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

from engine.errors import RefusedError, UsageError
from engine.job.spec import JobSpec, Knobs
from engine.running.knob_turns import KnobState, KnobTurns
from engine.running.status import LoadState, LoadStatus, StatusStore

PATIENCE_S = 60


class SlowDriver:
    """Takes knobs as a driver does, when the test lets it."""

    message = ""
    badges = ()

    def __init__(self, state: KnobState) -> None:
        self.state = state
        self.begun = threading.Semaphore(0)
        self.may_go_on = threading.Semaphore(0)
        self.refuses = False
        self.turns: list[Knobs] = []

    def check_depth(self, _knobs: Knobs) -> None:
        """Room for every depth."""

    def turn(self, knobs: Knobs) -> int:
        self.begun.release()
        assert self.may_go_on.acquire(timeout=PATIENCE_S)
        if self.refuses:
            raise RefusedError("somebody uses it")
        self.turns.append(knobs)
        self.state.put(knobs, len(self.turns))
        return len(self.turns)

    def turned_ns(self, epoch: int) -> int:
        return epoch


class Stage:
    """A running load whose driver is slow."""

    def __init__(self) -> None:
        self.state = KnobState(Knobs())
        self.board = StatusStore()
        self.board.reset(LoadStatus(LoadState.RUNNING, JobSpec()))
        self.driver = SlowDriver(self.state)
        self.turns = KnobTurns(self.state, self.board, self.driver)  # type: ignore[arg-type]
        self.answers: list[str] = []
        self._answered = threading.Semaphore(0)
        with self.state.turning:
            self.state.begin()

    def request(self, knobs: Knobs) -> None:
        self.turns.request(knobs, self.answer)

    def answer(self, error: str) -> None:
        self.answers.append(error)
        self._answered.release()

    def wait(self) -> None:
        assert self._answered.acquire(timeout=PATIENCE_S)


@pytest.fixture
def stage() -> Iterator[Stage]:
    stage = Stage()
    yield stage
    stage.driver.may_go_on.release(100)


def test_what_was_asked_for_is_known_at_once_and_in_force_when_it_was_taken(stage: Stage) -> None:
    stage.request(Knobs(queue_depth=2))
    assert stage.driver.begun.acquire(timeout=PATIENCE_S)
    assert (stage.state.asked.queue_depth, stage.state.knobs.queue_depth) == (2, 1)
    stage.driver.may_go_on.release()
    stage.wait()
    assert (stage.state.asked, stage.state.now.epoch) == (Knobs(queue_depth=2), 1)
    (event,) = stage.board.take_events()
    assert (event.text, event.monotonic_ns) == ("queue depth 1 -> 2", 1)


def test_of_what_is_asked_for_during_a_turn_the_last_is_taken(stage: Stage) -> None:
    stage.request(Knobs(queue_depth=2))
    assert stage.driver.begun.acquire(timeout=PATIENCE_S)
    for depth in (3, 4, 6):
        stage.request(Knobs(queue_depth=depth))
    assert stage.state.asked.queue_depth == 6
    stage.driver.may_go_on.release(2)
    stage.wait()
    stage.wait()
    assert [knobs.queue_depth for knobs in stage.driver.turns] == [2, 6]
    assert [event.text for event in stage.board.take_events()] == ["queue depth 1 -> 2", "queue depth 2 -> 6"]


def test_a_refused_turn_takes_the_steps_from_it_with_it(stage: Stage) -> None:
    stage.driver.refuses = True
    stage.request(Knobs(read_pct=90))
    assert stage.driver.begun.acquire(timeout=PATIENCE_S)
    stage.request(Knobs(read_pct=90, queue_depth=2))
    stage.driver.may_go_on.release()
    stage.wait()
    assert stage.answers == ["somebody uses it"]
    assert (stage.state.asked, stage.state.knobs) == (Knobs(), Knobs())
    stage.driver.refuses = False
    stage.driver.may_go_on.release()
    stage.request(Knobs(queue_depth=2))
    stage.wait()
    assert stage.driver.turns == [Knobs(queue_depth=2)]


def test_what_cannot_be_meant_is_refused_before_the_load_is_asked(stage: Stage) -> None:
    with pytest.raises(UsageError, match="--qd: 5000 is out of range: 1 to 4096 per target"):
        stage.request(Knobs(queue_depth=5000))
    assert stage.state.asked == Knobs()
    assert not stage.driver.begun.acquire(blocking=False)


def test_a_turn_is_checked_once(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[JobSpec] = []
    monkeypatch.setattr("engine.running.knob_turns.validate", checked.append)
    stage.driver.may_go_on.release(2)
    stage.request(Knobs(queue_depth=2))
    stage.wait()
    stage.turns.turn(Knobs(queue_depth=3))
    assert [job.knobs.queue_depth for job in checked] == [2, 3]
    assert stage.driver.turns == [Knobs(queue_depth=2), Knobs(queue_depth=3)]


def test_the_knobs_of_a_running_load_are_turned_only(stage: Stage) -> None:
    with pytest.raises(UsageError, match="the load runs"):
        stage.state.prepare(Knobs(queue_depth=2))
    with stage.state.turning:
        with pytest.raises(UsageError, match="starting or ending"):
            stage.state.prepare(Knobs(queue_depth=2))
        stage.state.end()
    stage.state.prepare(Knobs(queue_depth=2))
    assert stage.state.asked.queue_depth == 2


def test_without_room_for_a_thread_the_next_request_tries_again(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_room(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_room)
        with pytest.raises(RuntimeError, match="new thread"):
            stage.request(Knobs(queue_depth=2))
    stage.driver.may_go_on.release()
    stage.request(Knobs(queue_depth=3))
    stage.wait()
    assert stage.state.knobs.queue_depth == 3
