"""Parts of a session that can be compared, what is kept of a live host for them, and the work beside the screen."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from collectors.compare.comparison import CompareOptions
from collectors.compare.open_side import TABLES
from collectors.compare.part import WholeTime
from collectors.model import Step
from collectors.rates import derive
from engine.errors import UsageError
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.unit.compare.recordings import Epoch, record
from tests.unit.load_steps import SECOND_NS, Stretch, recorded_run
from tui.history.intervals import IntervalHistory
from tui.history.packed import IntervalPacker
from tui.screens.compare.actions import CompareChoice
from tui.screens.compare.compare_work import Compared, CompareRequest, CompareWork
from tui.screens.compare.comparison_rows import compare_rows, reason_text, side_text, summary_text
from tui.screens.compare.parts import FilePart, TimePart, default_parts, offered_parts, typed_part

PATIENCE_S = 60.0


def _steps(*epochs: tuple[int, int]) -> tuple[tuple[Step, ...], list[Event]]:
    run = recorded_run([Stretch(float(seconds), iops) for seconds, iops in epochs])
    events = [
        replace(event, data={**event.data, "job": "x"}) if "backend" in event.data else event for event in run.events
    ]
    return run.steps, events


def _whole(events: list[Event], *, start_s: float = 0.0, end_s: float = 1e6) -> WholeTime:
    first_ns = events[0].time_ns
    return WholeTime("here", first_ns + round(start_s * SECOND_NS), first_ns + round(end_s * SECOND_NS), events)


def _note(text: str, second: float, events: list[Event]) -> Event:
    return Event(EventKind.NOTE, text, events[0].time_ns + round(second * SECOND_NS), 0)


# ------------------------------------------------------------------------------------------------ parts


def test_parts_are_epochs_the_load_time_between_notes_and_everything() -> None:
    _, events = _steps((10, 100), (10, 200))
    events += [_note("a", 3, events), _note("b", 6, events)]
    events.sort(key=lambda event: event.time_ns)
    parts = {part.title: part for part in offered_parts(_whole(events, end_s=30), live=False)}
    assert list(parts) == [
        "epoch 1: queue depth 1 -> 2",
        "from note: b",
        "from note: a",
        "load",
        "epoch 0: as started",
        "all of it",
    ]
    ends = [part.end_ns for part in parts.values()]
    assert [None if end is None else (end - events[0].time_ns) // SECOND_NS for end in ends] == [20, 30, 6, 20, 10, 30]
    live = {part.title: part for part in offered_parts(_whole(events[:-1], end_s=15), live=True)}
    assert live["epoch 1: queue depth 1 -> 2"].end_ns is None
    assert live["epoch 0: as started"].end_ns is not None
    assert live["from note: b"].end_ns is None


def test_what_ended_before_the_first_kept_interval_is_not_offered() -> None:
    _, events = _steps((10, 100), (10, 200))
    titles = [part.title for part in offered_parts(_whole(events, start_s=12, end_s=20), live=True)]
    assert "epoch 0: as started" not in titles
    assert "epoch 1: queue depth 1 -> 2" in titles


def test_the_newest_two_epochs_are_compared_until_something_is_chosen() -> None:
    _, events = _steps((10, 100), (10, 200), (10, 300))
    offered = offered_parts(_whole(events, end_s=40), live=False)
    assert [part.title[:7] for part in default_parts(offered, SECOND_NS) or ()] == ["epoch 1", "epoch 2"]
    choice = CompareChoice()
    assert choice.parts(offered, SECOND_NS) == default_parts(offered, SECOND_NS)
    choice.a = offered_parts(_whole(events[:2], end_s=15), live=True)[0]
    chosen = choice.parts(offered, SECOND_NS)
    assert chosen is not None
    assert chosen[0].title == "epoch 1: queue depth 1 -> 2"
    assert isinstance(chosen[0], TimePart)
    assert chosen[0].end_ns is not None, "the epoch has ended meanwhile"


def test_epochs_between_turns_in_quick_succession_are_passed_over() -> None:
    _, events = _steps((10, 100), (1, 200), (1, 300), (10, 400))
    offered = offered_parts(_whole(events, end_s=22), live=True)
    chosen = default_parts(offered, 5 * SECOND_NS)
    assert [part.title[:7] for part in chosen or ()] == ["epoch 0", "epoch 3"]
    assert [part.title[:7] for part in default_parts(offered, SECOND_NS) or ()] == ["epoch 2", "epoch 3"]
    assert [part.title[:7] for part in default_parts(offered, 60 * SECOND_NS) or ()] == ["epoch 2", "epoch 3"]


def test_without_epochs_or_notes_there_is_nothing_to_compare() -> None:
    _, events = _steps((10, 100))
    assert default_parts(offered_parts(_whole(events, end_s=40), live=False), SECOND_NS) is None


def test_typed_ranges_are_those_of_the_command_line() -> None:
    _, events = _steps((10, 100), (10, 200))
    whole = _whole(events, end_s=40)
    part = typed_part(" 5..epoch1 ", whole)
    assert part.end_ns is not None
    assert (part.start_ns - whole.start_ns, part.end_ns - whole.start_ns) == (5 * SECOND_NS, 10 * SECOND_NS)
    for text in ("8..5", "nonsense", "8", "gone.."):
        with pytest.raises(UsageError):
            typed_part(text, whole)


def test_delta_and_order_go_round() -> None:
    choice = CompareChoice(options=CompareOptions(delta=0.03))
    deltas = []
    for _ in range(5):
        choice.next_delta()
        deltas.append(choice.options.delta)
    assert deltas == [0.05, 0.1, 0.2, 0.5, 0.01]


# ------------------------------------------------------------------------------------------------ what is kept


def test_intervals_are_kept_within_the_budget_and_the_oldest_dropped() -> None:
    steps, _ = _steps((60, 100))
    kept = IntervalHistory()
    for step in steps:
        kept.add(step, derive(step.previous, step.current))
    everything = list(kept.between(0, 1 << 62))
    assert len(everything) == len(steps) - 1
    assert kept.start_ns == steps[0].current.time_ns
    packer = IntervalPacker()
    size_bytes = sum(packer.pack(one.frame, one.histograms).size_bytes for one in everything)
    small = IntervalHistory(size_bytes // 2)
    for step in steps:
        small.add(step, derive(step.previous, step.current))
    assert 0 < len(list(small.between(0, 1 << 62))) < len(everything)
    assert small.start_ns > kept.start_ns


def test_only_intervals_within_a_range_count() -> None:
    steps, _ = _steps((20, 100))
    kept = IntervalHistory()
    for step in steps:
        kept.add(step, derive(step.previous, step.current))
    times = [step.current.time_ns for step in steps]
    found = list(kept.between(times[3] + 1, times[8]))
    assert [one.end_ns for one in found] == times[5:9]


# ------------------------------------------------------------------------------------------------ the work


class _Work:
    """The work, waited for."""

    def __init__(self, history: IntervalHistory) -> None:
        self._arrived = threading.Event()
        self.work = CompareWork(history, self._arrived.set)

    def result(self, request: CompareRequest) -> Compared:
        for _ in range(20):
            self._arrived.clear()
            found = self.work.of(request)
            if found is not None and found.request == request:
                return found
            assert self._arrived.wait(PATIENCE_S)
        raise AssertionError("no result of this request")


def _live(seconds: int) -> tuple[IntervalHistory, list[TimePart], int]:
    steps, events = _steps((120, 1000), (120, 2000))
    history, upto_ns = IntervalHistory(), events[0].time_ns + seconds * SECOND_NS
    past = [step for step in steps if step.current.time_ns <= upto_ns]
    for step in past:
        history.add(step, derive(step.previous, step.current))
    whole = WholeTime("here", history.start_ns, past[-1].current.time_ns, [e for e in events if e.time_ns <= upto_ns])
    return history, offered_parts(whole, live=True), whole.end_ns


@pytest.mark.slow
def test_a_live_epoch_is_compared_again_as_it_grows_and_then_decided() -> None:
    history, offered, now_ns = _live(140)
    parts = default_parts(offered, SECOND_NS)
    assert parts is not None
    work = _Work(history)
    first = work.result(CompareRequest(*parts, CompareOptions(), TABLES, now_ns, live=True))
    assert first.comparison is not None
    rows = {row.found.field.id: row for row in compare_rows(first.comparison, "object")}
    assert rows["iops"].found.verdict == "undecided"
    assert reason_text(rows["iops"].found, first) == "B needs about 81 s more"
    steps, _ = _steps((120, 1000), (120, 2000))
    for step in steps:
        if step.current.time_ns > now_ns:
            history.add(step, derive(step.previous, step.current))
    later_ns = now_ns + 95 * SECOND_NS
    second = work.result(CompareRequest(*parts, CompareOptions(), TABLES, later_ns, live=True))
    assert second.comparison is not None
    assert second.comparison.b.intervals == first.comparison.b.intervals + 95
    rows = {row.found.field.id: row for row in compare_rows(second.comparison, "verdict")}
    assert rows["iops"].found.verdict == "better"
    assert "intervals at any time" in summary_text(second)
    assert "114 x 1 s" in side_text("B", second.comparison.b, parts[1])
    work.work.close()


@pytest.mark.slow
def test_parts_that_share_time_and_empty_ones_are_refused() -> None:
    history, offered, now_ns = _live(200)
    everything, epoch = offered[-1], offered[0]
    work = _Work(history)
    found = work.result(CompareRequest(everything, epoch, CompareOptions(), TABLES, now_ns, live=True))
    assert "overlap in time" in found.problem
    nothing = TimePart("nothing", 1, 2, "typed")
    found = work.result(CompareRequest(nothing, epoch, CompareOptions(), TABLES, now_ns, live=True))
    assert "no whole interval" in found.problem
    work.work.close()


def test_what_has_no_partner_is_named(tmp_path: Path) -> None:
    history, offered, now_ns = _live(100)
    file = FilePart(str(record(tmp_path / "x.luns", Epoch(30))))
    work = _Work(history)
    found = work.result(CompareRequest(file, offered[0], CompareOptions(), TABLES, now_ns, live=True))
    assert found.comparison is not None
    assert found.comparison.only_a == found.comparison.only_b == ()
    other = replace(found.comparison, only_a=found.comparison.a.rows)
    assert "only in A: " in summary_text(replace(found, comparison=other))
    work.work.close()
