"""What is read of a recording when its cursor moves, and that the histories are right wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pytest

from collectors.latency.history import LatencyHistory
from collectors.latency.subjects import LatencySubject
from collectors.model import Frame, Sample, Step
from engine.replacing import replace
from tests.app.latency_samples import LOAD_ROWS, with_latencies
from tests.app.sources import ListRecording, make_samples
from tui.history import recorded_past
from tui.history.charts import History
from tui.history.recorded_past import REFILLS, RecordedPast
from tui.transport import ReplayTransport

DISK = "sdc@2"
ALL = sum(REFILLS)


class Recording(ListRecording):
    """Counts the steps that are read of it."""

    read = 0

    def window(self, end_ns: int, count: int) -> Iterator[Step]:
        return self._counted(super().window(end_ns, count))

    def between(self, start_ns: int, end_ns: int) -> Iterator[Step]:
        return self._counted(super().between(start_ns, end_ns))

    def _counted(self, steps: Iterator[Step]) -> Iterator[Step]:
        for step in steps:
            self.read += 1
            yield step


class Shown:
    """A recording as a feed shows it, moment by moment."""

    def __init__(self, samples: Sequence[Sample], history: History | None = None) -> None:
        self.source = Recording(samples)
        self.history = history or History()
        self.past = RecordedPast(self.history, ReplayTransport(self.source))

    def at(self, number: int, patience: int = 1 << 30) -> Frame:
        """Show a sample; something else is asked for after so many steps were read."""
        self.source.read = 0
        step = self.source._step(number)
        first = self.past.frame_of(step)
        frames = [first, *self.past.fill(step, first, lambda: self.source.read > patience)]
        assert {frame.time_ns for frame in frames} == {step.current.time_ns}
        return frames[-1]

    def known_at(self, number: int, key: str = DISK) -> int:
        """Number of values that a chart shows at a sample."""
        series = self.history.series("disks", key, self.source.samples[number].time_ns)
        if series is None:
            return 0
        assert (np.diff(series.times_ns) > 0).all()
        return len(series)


@pytest.fixture(scope="module")
def long_ago() -> tuple[Sample, ...]:
    return make_samples(count=1500)


@pytest.mark.slow
def test_moving_within_what_is_held_reads_nothing(long_ago: tuple[Sample, ...]) -> None:
    shown = Shown(long_ago[:150])
    shown.at(149)
    assert shown.source.read == 60 + 150
    for number in (148, 139, 3, 0, 4, 140, 149):
        frame = shown.at(number)
        assert shown.source.read == 0
        assert shown.known_at(number) == number + 1
        alone = Shown(long_ago[:150]).at(number)
        np.testing.assert_array_equal(frame.usual_ms["disks"], alone.usual_ms["disks"])


@pytest.mark.slow
def test_beyond_the_newest_only_what_is_missing_is_read(long_ago: tuple[Sample, ...]) -> None:
    shown = Shown(long_ago[:150])
    shown.at(50)
    frame = shown.at(120)
    assert 70 <= shown.source.read <= 71
    assert shown.known_at(120) == 121
    np.testing.assert_array_equal(frame.usual_ms["disks"], Shown(long_ago[:150]).at(120).usual_ms["disks"])


@pytest.mark.slow
def test_playing_on_adds_each_step_once_also_after_going_back(long_ago: tuple[Sample, ...]) -> None:
    shown = Shown(long_ago[:150])
    shown.at(20)
    for number in (21, 22, 10, *range(11, 30)):
        shown.at(number)
        assert shown.source.read == 0
        assert shown.known_at(number) == number + 1
    with_all = Shown(long_ago[:150])
    np.testing.assert_array_equal(shown.at(29).usual_ms["disks"], with_all.at(29).usual_ms["disks"])


@pytest.mark.slow
def test_far_back_and_far_ahead_the_past_is_read_anew(
    long_ago: tuple[Sample, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """With a sixth of the steps; all of them are read where another seek ends the reading."""
    refills = (10, 100)
    monkeypatch.setattr(recorded_past, "REFILLS", refills)
    monkeypatch.setattr(recorded_past, "_MOST_ADDED", 50)
    shown = Shown(long_ago[:250])
    shown.at(240)
    assert shown.source.read == sum(refills)
    shown.at(198)
    assert shown.source.read == 0
    for number in (180, 120, 240):
        shown.at(number)
        assert shown.source.read == sum(refills)
        assert shown.known_at(number) == refills[-1]
    # The start of the recording is held: all of it is known.
    shown.at(50)
    assert shown.source.read == refills[0] + 51
    shown.at(5)
    assert shown.source.read == 0
    assert shown.known_at(5) == 6


@pytest.mark.slow
def test_another_seek_ends_the_reading_at_once(long_ago: tuple[Sample, ...]) -> None:
    shown = Shown(long_ago)
    shown.at(1400, patience=10)
    assert shown.source.read == 11
    shown.at(1390, patience=70)
    assert shown.source.read == 71
    # A few steps are held, and no moment is content with them.
    assert shown.known_at(1390) == REFILLS[0]
    shown.at(1389)
    assert shown.source.read == ALL
    assert shown.known_at(1389) == REFILLS[-1]


@pytest.mark.slow
def test_a_row_that_vanished_has_its_past_where_it_was_there() -> None:
    with_three, with_two = make_samples(count=120), make_samples(("vda", "vdb"), count=120)
    shown = Shown([*with_three[:60], *with_two[60:]])
    shown.at(119)
    assert shown.known_at(119) == 0
    shown.at(50)
    assert shown.source.read > 0
    assert shown.known_at(50) == 51


@pytest.mark.slow
def test_a_wall_clock_that_was_set_back_makes_no_stale_chart(long_ago: tuple[Sample, ...]) -> None:
    back_ns = 40 * 10**9
    late = [replace(sample, time_ns=sample.time_ns - back_ns) for sample in long_ago[60:120]]
    shown = Shown(long_ago[:60])
    shown.at(59)
    shown.source.samples = [*long_ago[:60], *late]  # a recording that grows
    for number in range(60, 120):
        frame = shown.at(number)
        series = shown.history.series("disks", DISK, frame.time_ns)
        assert series is not None
        assert series.times_ns[-1] == frame.time_ns
        disks = frame.tables["disks"]
        iops = disks.value("iops", disks.rows.positions[DISK])
        assert series.values["iops"][-1] == pytest.approx(iops, rel=1e-6)


@pytest.mark.slow
def test_a_subject_whose_past_was_dropped_is_read_again() -> None:
    history = History()
    history._latencies = LatencyHistory(budget_bytes=30_000)
    shown = Shown(with_latencies(make_samples(count=60)), history)
    history.latencies.follow(LatencySubject("all", "load", frozenset()))
    shown.at(59)
    whole = len(history.latencies.ticks() or ())
    assert not history.latencies.follow(LatencySubject("one", "load", frozenset({LOAD_ROWS.keys[0]})))
    assert len(history.latencies.ticks() or ()) < whole
    shown.at(59)
    assert shown.source.read > 0
    assert len(history.latencies.ticks() or ()) == whole == 59
    shown.at(59)
    assert shown.source.read == 0


@pytest.mark.slow
def test_figures_beyond_the_budget_are_read_where_they_are_asked_for(long_ago: tuple[Sample, ...]) -> None:
    fields = len(History().filling().rings["disks"]._fields)
    shown = Shown(long_ago[:200], History(budget_bytes=40 * 3 * fields * 4))
    shown.at(199)
    assert shown.known_at(199) == 40
    shown.at(185)
    assert shown.source.read == 0
    assert shown.known_at(185) == 26
    shown.at(170)
    assert shown.source.read > 0
    assert shown.known_at(170) == 40
