"""Totals of a recording since counters were cleared are read beside the screen, and only what is new."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator

import pytest

from collectors.model import Rows, Step, Table
from collectors.reports.totals.level import CountLevel, CountSubject, LevelTotals
from collectors.tables.block.schema import TRACE
from engine.errors import LunscopeError
from engine.replacing import replace
from tests.app.multipath import multipath_samples
from tests.app.sources import ListRecording, make_samples, table
from tests.app.stage import make_app, on_stage, rewind_to, screen_text, until
from tui.screens.paths.sheet import SheetView
from tui.screens.paths.sheet_data import BEING_READ, MOST_SAMPLES, TOO_LONG, RecordedTotals
from tui.transport import ReplayTransport

VDA = CountSubject(CountLevel.DISK, "vda@0", "vda")
NS = 10**9


class Recording(ListRecording):
    """Counts what is read between two moments; reading may be held up, and may fail."""

    def __init__(self, count: int) -> None:
        super().__init__(
            [
                replace(sample, tables={**sample.tables, TRACE.name: _trace(sample.tables["disk"].rows, tick)})
                for tick, sample in enumerate(make_samples(count=count))
            ]
        )
        self.read = 0
        self.may_read = threading.Event()
        self.may_read.set()
        self.error: LunscopeError | None = None

    def between(self, start_ns: int, end_ns: int) -> Iterator[Step]:
        for step in super().between(start_ns, end_ns):
            assert self.may_read.wait(30)
            if self.error is not None:
                raise self.error
            self.read += 1
            yield step


def _trace(rows: Rows, tick: int) -> Table:
    """The largest latency is that of sample 7: 107 ms."""
    return table(TRACE, rows, latency_max_ns=(100 + tick if tick <= 7 else 1) * 10**6)


def waited(ask: Callable[[], LevelTotals | str]) -> LevelTotals | str:
    deadline_s = time.monotonic() + 30
    while (found := ask()) == BEING_READ:
        assert time.monotonic() < deadline_s
    return found


@pytest.fixture
def recording() -> Recording:
    return Recording(60)


def test_a_screen_never_waits_for_a_long_reading(recording: Recording) -> None:
    changed = threading.Event()
    totals, times = RecordedTotals(ReplayTransport(recording), changed.set), [one.time_ns for one in recording.samples]
    recording.may_read.clear()
    began_s = time.monotonic()
    for _ in range(10):
        assert totals.of(VDA, times[2], times[50]) == BEING_READ
    assert time.monotonic() - began_s < 5
    assert not changed.is_set()
    recording.may_read.set()
    assert changed.wait(30)
    found = waited(lambda: totals.of(VDA, times[2], times[50]))
    assert isinstance(found, LevelTotals)
    assert found.max_latency_ns == 107 * 10**6
    assert found.elapsed_s == pytest.approx(48)
    disk = recording.samples[50].tables["disk"].column("reads") - recording.samples[2].tables["disk"].column("reads")
    assert found.reads == int(disk[0])


def test_the_next_moment_reads_what_came_since(recording: Recording) -> None:
    totals = RecordedTotals(ReplayTransport(recording), lambda: None)
    times = [one.time_ns for one in recording.samples]
    waited(lambda: totals.of(VDA, times[2], times[40]))
    recording.read = 0

    def between(first: int, last: int) -> LevelTotals | str:
        return waited(lambda: totals.of(VDA, times[first], times[last]))

    for number in (41, 42):
        found = between(2, number)
        assert isinstance(found, LevelTotals)
        assert found.max_latency_ns == 107 * 10**6
    assert recording.read <= 4
    # Back before the peak, and from another mark after it.
    early, late = between(2, 5), between(9, 40)
    assert isinstance(early, LevelTotals)
    assert isinstance(late, LevelTotals)
    assert (early.max_latency_ns, late.max_latency_ns) == (105 * 10**6, 10**6)


def test_what_is_no_longer_asked_for_is_given_up(recording: Recording) -> None:
    totals, times = RecordedTotals(ReplayTransport(recording), lambda: None), [one.time_ns for one in recording.samples]
    recording.may_read.clear()
    assert totals.of(VDA, times[2], times[50]) == BEING_READ
    totals.close()
    recording.may_read.set()
    for thread in threading.enumerate():
        if thread.name == "lunscope-totals":
            thread.join(30)
    assert recording.read <= 1


def test_what_cannot_be_read_is_said(recording: Recording) -> None:
    totals, times = RecordedTotals(ReplayTransport(recording), lambda: None), [one.time_ns for one in recording.samples]
    recording.error = LunscopeError("session: gone")
    assert waited(lambda: totals.of(VDA, times[2], times[50])) == "session: gone"


def test_a_very_long_time_has_totals_without_its_largest_latency(recording: Recording) -> None:
    far_ns = (MOST_SAMPLES + 10) * NS
    recording.samples[50:] = [replace(one, time_ns=one.time_ns + far_ns) for one in recording.samples[50:]]
    totals, times = RecordedTotals(ReplayTransport(recording), lambda: None), [one.time_ns for one in recording.samples]
    found = waited(lambda: totals.of(VDA, times[2], times[55]))
    assert isinstance(found, LevelTotals)
    assert (found.max_latency_ns, found.latency_reason) == (None, TOO_LONG)
    assert recording.read == 0


@pytest.mark.slow
async def test_a_sheet_of_a_replay_has_totals_at_the_moment_shown() -> None:
    source = ListRecording(multipath_samples(12))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await rewind_to(pilot, source, 4)
        await pilot.press("5", "G")
        await until(pilot, lambda: isinstance(app.screen, SheetView))
        await pilot.press("number_sign")
        await rewind_to(pilot, source, 10)
        await until(pilot, lambda: "6.0 s ago" in screen_text(pilot))
        assert "reads" in screen_text(pilot)
