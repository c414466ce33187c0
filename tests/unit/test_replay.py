"""Replay: the pace of the recording, and every way to move in it."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Event as StopFlag

import pytest

from collectors.model import Sample, SeekableSource, Step
from collectors.session import database
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.sources.replay import ReplaySource
from engine.errors import UsageError
from engine.replacing import replace
from tests.session_samples import SECOND_NS, Machine, assert_same, note


class HandClock:
    """Time passes only while somebody waits for it."""

    def __init__(self) -> None:
        self.time_s = 100.0
        self.idle: Callable[[], None] = lambda: None

    def now_s(self) -> float:
        return self.time_s

    def wait(self, changed: threading.Condition, timeout_s: float) -> None:
        assert changed._is_owned()  # type: ignore[attr-defined]
        self.time_s += max(timeout_s, 1e-6)
        self.idle()


class Player:
    """A replay with a clock in hand; `play` gives (index, seconds since the step before)."""

    def __init__(self, path: Path, speed: float = 1.0) -> None:
        self.clock = HandClock()
        self.source = ReplaySource(path, speed, clock=self.clock)
        self.stop = StopFlag()
        self._steps = self.source.steps(self.stop)
        with SessionReader(path) as reader:
            self._indexes = {step.current.time_ns: index for index, step in enumerate(reader.steps(0, len(reader)))}

    def next(self) -> Step:
        return next(self._steps)

    def play(self, count: int) -> Iterator[tuple[int, float]]:
        for _ in range(count):
            before = self.clock.time_s
            index = self._indexes[self.next().current.time_ns]
            yield index, self.clock.time_s - before

    def index(self) -> int:
        return self._indexes[self.next().current.time_ns]

    def rest(self) -> list[int]:
        """Play on until nothing comes for an hour."""
        until_s = self.clock.time_s + 3600

        def idle() -> None:
            if self.clock.time_s > until_s:
                self.stop.set()

        self.clock.idle = idle
        return [self._indexes[step.current.time_ns] for step in self._steps]


def assert_played(player: Player, expected: list[tuple[int, float]]) -> None:
    """The next samples by index, and the seconds waited for each."""
    played = list(player.play(len(expected)))
    assert [index for index, _ in played] == [index for index, _ in expected]
    assert [waited_s for _, waited_s in played] == pytest.approx([wait_s for _, wait_s in expected], abs=0.01)


def _record(path: Path, count: int = 200, interval_ns: int = SECOND_NS, hole: tuple[int, int] = (0, 0)) -> Path:
    machine = Machine(interval_ns=interval_ns)
    with SessionWriter(path) as writer:
        for index in range(count):
            sample = machine.sample(*([note(f"e{index}")] if index % 40 == 3 else []))
            late_ns = hole[1] if hole[1] and index >= hole[0] else 0
            writer.write(
                replace(sample, time_ns=sample.time_ns + late_ns, monotonic_ns=sample.monotonic_ns + late_ns),
                gap=bool(late_ns) and index == hole[0],
            )
    return path


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return _record(tmp_path / "a.lun")


def test_it_is_a_seekable_source(path: Path) -> None:
    source: SeekableSource = ReplaySource(path)
    assert source.seekable
    assert source.interval_s == pytest.approx(1)
    assert source.position_ns == source.start_ns < source.end_ns
    assert (source.paused, source.speed, source.notice) == (False, 1.0, "")
    assert [event.text for event in source.events()] == ["e3", "e43", "e83", "e123", "e163"]
    source.close()
    source.close()


def test_a_source_that_was_closed_before_it_began_has_no_steps(path: Path) -> None:
    source = ReplaySource(path)
    source.close()
    assert list(source.steps(StopFlag())) == []


def test_its_file_is_checked_once_before_the_first_step(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checked: list[int] = []

    def check(_connection: sqlite3.Connection, size_bytes: int) -> str:
        checked.append(size_bytes)
        return ""

    monkeypatch.setattr(database, "structure_damage", check)
    source = ReplaySource(path)
    assert checked == []
    next(source.steps(StopFlag()))
    assert checked == [path.stat().st_size]
    assert (source.notice, len(checked)) == ("", 1)
    source.close()


@pytest.mark.parametrize("speed", [0.1, 1.0, 10.0])
def test_samples_keep_their_distance_divided_by_the_speed(path: Path, speed: float) -> None:
    player = Player(path, speed)
    first, *rest = player.play(6)
    assert first == (0, 0.0)
    assert [index for index, _ in rest] == [1, 2, 3, 4, 5]
    expected = pytest.approx(max(0.05, 1 / speed), abs=0.002)
    assert all(waited == expected for _, waited in rest) or speed == 0.1
    assert sum(waited for _, waited in rest) == pytest.approx(5 / speed, rel=0.01)


def test_fast_replay_passes_samples_over_and_keeps_the_pace(path: Path) -> None:
    player = Player(path, 1000)
    played = list(player.play(4))
    assert [index for index, _ in played] == [0, 50, 100, 150]
    assert all(waited <= 0.051 for _, waited in played)
    assert player.rest() == [199]


def test_a_slow_screen_makes_it_skip_not_lag(path: Path) -> None:
    player = Player(path)
    assert player.index() == 0
    player.clock.time_s += 7.5
    assert player.index() == 7
    assert_played(player, [(8, 0.5)])


def test_every_step_has_its_predecessor_of_the_file(path: Path) -> None:
    with SessionReader(path) as reader:
        player = Player(path, 1000)
        for index in (0, 50, 100):
            step = player.next()
            assert_same(step.current, _sample(reader, index))
            if index:
                assert step.previous is not None
                assert_same(step.previous, _sample(reader, index - 1))
        player.source.seek(step.current.time_ns - 80 * SECOND_NS)
        step = player.next()
        assert step.previous is not None
        assert step.current.monotonic_ns - step.previous.monotonic_ns == SECOND_NS


def _sample(reader: SessionReader, index: int) -> Sample:
    sample = reader.sample_at(index)
    assert sample is not None
    return sample


def test_pause_step_and_seek(path: Path) -> None:
    player = Player(path)
    source = player.source
    assert player.index() == 0
    source.step(3)
    assert source.paused
    assert player.index() == 3
    source.step(-1)
    source.step(-1)
    assert player.index() == 1
    source.step(-5)
    assert player.index() == 0
    source.seek(source.end_ns)
    assert player.index() == 199
    assert source.position_ns == source.end_ns
    source.step(1)
    assert player.index() == 199
    source.seek(source.start_ns + 100 * SECOND_NS + SECOND_NS // 2)
    assert player.index() == 100
    source.seek(0)
    assert player.index() == 0
    source.pause(False)
    assert_played(player, [(1, 1.0), (2, 1.0)])


def test_while_paused_nothing_comes(path: Path) -> None:
    player = Player(path)
    assert player.index() == 0
    player.source.pause(True)
    assert player.rest() == []


def test_a_change_of_speed_holds_from_the_next_sample(path: Path) -> None:
    player = Player(path)
    list(player.play(2))
    player.source.set_speed(4)
    assert_played(player, [(2, 0.25), (3, 0.25)])
    for wrong in (0.0, 0.01, 1001, -1, float("nan")):
        with pytest.raises(UsageError, match="speed"):
            player.source.set_speed(wrong)
    assert player.source.speed == 4


def test_the_end_pauses_and_stays(path: Path) -> None:
    player = Player(path)
    player.source.seek(player.source.end_ns - 2 * SECOND_NS)
    first = player.index()
    assert player.rest() == list(range(first + 1, 200))
    assert player.source.paused


def test_a_gap_is_not_waited_out_and_breaks_the_chain(tmp_path: Path) -> None:
    player = Player(_record(tmp_path / "gap.lun", 20, hole=(10, 3600 * SECOND_NS)))
    player.source.seek(player.source.start_ns + 9 * SECOND_NS + SECOND_NS // 2)
    assert player.index() == 9
    before_s = player.clock.time_s
    step = player.next()
    assert step.previous is None
    assert player.clock.time_s - before_s == pytest.approx(2.0, abs=0.01)
    assert player.next().previous is not None


def test_long_intervals_are_kept(tmp_path: Path) -> None:
    player = Player(_record(tmp_path / "slow.lun", 5, interval_ns=30 * SECOND_NS))
    assert [round(waited, 1) for _, waited in player.play(3)] == [0.0, 30.0, 30.0]


def test_a_window_is_what_straight_decoding_gives(path: Path) -> None:
    source = ReplaySource(path)
    with SessionReader(path) as reader:
        straight = list(reader.steps(0, 199))
    for last, count in ((150, 100), (5, 100), (199, 1), (0, 5), (150, 0)):
        window = list(source.window(straight[last].current.time_ns, count))
        expected = straight[max(0, last - count + 1) : last + 1] if count else []
        assert len(window) == len(expected)
        for step, other in zip(window, expected, strict=True):
            assert_same(step.current, other.current)
            assert (step.previous is None) == (other.previous is None)


@pytest.mark.slow
def test_damaged_samples_are_passed_over(tmp_path: Path) -> None:
    path = _record(tmp_path / "a.lun")
    connection = sqlite3.connect(path)
    connection.execute("DELETE FROM ticks WHERE tick = 50")
    connection.commit()
    connection.close()
    player = Player(path)
    assert player.rest() == list(range(190))
    assert "10 ticks unreadable" in player.source.notice
    player = Player(path)
    assert player.index() == 0
    player.source.seek(player.source.start_ns + 56 * SECOND_NS)
    assert player.index() == 49
    player.source.step(1)
    assert player.index() == 50


def test_a_growing_file_is_followed(tmp_path: Path) -> None:
    machine, path = Machine(), tmp_path / "live.lun"
    start_ns = time.time_ns()
    with SessionWriter(path) as writer:
        for index in range(3):
            writer.write(replace(machine.sample(), time_ns=start_ns + index))
        clock = HandClock()
        source = ReplaySource(path, 1000, clock=clock)
        steps = source.steps(StopFlag())
        assert next(steps).current.time_ns == start_ns
        assert next(steps).current.time_ns == start_ns + 2
        grown = replace(machine.sample(), time_ns=start_ns + 10)

        def grow() -> None:
            if writer.ticks == 3:
                writer.write(grown)

        clock.idle = grow
        assert_same(next(steps).current, grown)
        assert source.end_ns == start_ns + 10
        assert not source.paused


def test_calls_from_another_thread_wake_a_waiting_feed(path: Path) -> None:
    source, stop = ReplaySource(path), StopFlag()
    source.pause(True)
    seen: list[int] = []
    arrived = threading.Event()

    def feed() -> None:
        for step in source.steps(stop):
            seen.append(step.current.time_ns)
            arrived.set()

    thread = threading.Thread(target=feed)
    thread.start()
    moves: list[Callable[[], object]] = [
        lambda: source.seek(source.end_ns),
        lambda: source.step(-3),
        lambda: source.seek(0),
    ]
    for move in moves:
        assert arrived.wait(10)
        arrived.clear()
        move()
    assert arrived.wait(10)
    source.close()
    thread.join(10)
    assert not thread.is_alive()
    assert len(seen) == 4
