"""The Compare screen: epochs, marks, typed ranges and files, live and in a replay."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from textual.pilot import Pilot

from collectors.compare.comparison import CompareOptions
from collectors.compare.open_side import TABLES
from engine.events import Event, EventKind
from engine.replacing import replace
from tests.app.compare_samples import FASTER, QUIET, epochs
from tests.app.sources import ListRecording, ListSource, make_samples
from tests.app.stage import (
    FROZEN,
    SIZES,
    make_app,
    on_stage,
    peaks_read,
    play,
    rewind_to,
    said,
    screen_text,
    skip,
    until,
)
from tests.app.taken import SnapCompare, assert_pictured, assert_pictures
from tests.unit.compare.recordings import Epoch, record
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.compare_asked import CompareAsked
from tui.screens.compare.screen import CompareScreen

pytestmark = pytest.mark.slow

SMALL, LARGE = SIZES
SECONDS = 120
FEW_SECONDS = 20


class FakeRecording:
    """A recording that keeps its events."""

    path, size_bytes, trouble = "x.luns", 0, ""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def add_event(self, event: Event) -> None:
        self.events.append(event)

    def finish(self) -> None:
        pass


def shown(source: ListSource, *keys: str, samples: int = 2 * SECONDS) -> Callable[[Pilot[None]], Awaitable[None]]:
    async def run(pilot: Pilot[None]) -> None:
        if isinstance(source, ListRecording):
            await rewind_to(pilot, source, samples - 1)
            await peaks_read(pilot)
        else:
            await skip(pilot, source, samples)
        await pilot.press("C")
        await compared(pilot)
        await pilot.press(*keys)
        await compared(pilot)
        await pilot.pause()

    return run


async def compared(pilot: Pilot[None]) -> None:
    """Wait until the newest comparison was computed and drawn."""

    def is_done() -> bool:
        screen = pilot.app.screen
        if not isinstance(screen, CompareScreen):
            return True
        request = screen._request()
        if request is None:
            return "Nothing to compare yet" in screen_text(pilot)
        result = screen._work.of(request)
        return result is not None and result.request == request and bool(screen._shown) and screen._shown[0] is result

    await until(pilot, is_done)


# ------------------------------------------------------------------------------------------------ pictures


@pytest.mark.parametrize("is_live", [True, False], ids=["live", "replay"])
async def test_two_epochs(is_live: bool, snap_compare: SnapCompare) -> None:
    samples = epochs(QUIET, FASTER, seconds=SECONDS)
    source = ListSource(samples) if is_live else ListRecording(samples)
    await assert_pictures(make_app(source), SIZES, shown(source, "down", "down"), snap_compare)


async def test_views_of_a_small_window(snap_compare: SnapCompare) -> None:
    """The table, the curves, and all by verdict."""
    source = ListRecording(epochs(QUIET, FASTER, seconds=SECONDS))
    async with on_stage(make_app(source), SMALL) as pilot:
        await shown(source)(pilot)
        for keys in ("v", "v", "vo"):
            await pilot.press(*keys)
            await compared(pilot)
            await assert_pictured(pilot, (SMALL,), snap_compare)


def test_small_window_in_ascii(snap_compare: SnapCompare) -> None:
    source = ListRecording(epochs(QUIET, FASTER, seconds=SECONDS))
    app = make_app(source, settings=replace(FROZEN, theme="lunscope-ansi", glyphs="ascii"))
    assert snap_compare(app, terminal_size=SMALL, run_before=shown(source))


# ------------------------------------------------------------------------------------------------ live


async def test_live_epochs_are_undecided_with_the_time_it_takes_then_decided() -> None:
    source = ListSource(epochs(QUIET, FASTER, seconds=SECONDS))
    async with on_stage(make_app(source)) as pilot:
        await shown(source, samples=SECONDS + 30)(pilot)
        assert "undecided: B needs about" in screen_text(pilot)
        await skip(pilot, source, 90)
        await compared(pilot)
        await until(pilot, lambda: "better" in screen_text(pilot) and "worse" in screen_text(pilot))
        assert "intervals at any time" in " ".join(screen_text(pilot).split())


async def test_without_a_turn_or_a_mark_it_says_how_to_get_two_parts() -> None:
    source = ListSource(make_samples(count=20, events=False))
    async with on_stage(make_app(source)) as pilot:
        await shown(source, samples=8)(pilot)
        assert "turn a knob of the load, or mark moments (m)" in screen_text(pilot)


async def test_parts_between_marks_are_compared() -> None:
    source = ListSource(make_samples(count=80, events=False))
    recording = FakeRecording()
    app = LunscopeApp(AppInput(source, recording=recording), settings=FROZEN)
    async with on_stage(app) as pilot:
        await shown(source, samples=4)(pilot)
        for _ in range(2):
            await pilot.press("m")
            await pilot.pause()
        assert [event.text for event in recording.events] == ["mark 1", "mark 2"]
        await until(pilot, lambda: "A from note: mark 1" in screen_text(pilot))
        assert "B from note: mark 2" in screen_text(pilot)


async def test_a_typed_range_and_one_that_is_not_known() -> None:
    source = ListRecording(epochs(QUIET, FASTER, seconds=SECONDS))
    async with on_stage(make_app(source)) as pilot:
        await shown(source)(pilot)
        await pilot.press("a", *"you type", "enter")
        await pilot.press(*"10..70", "enter")
        await compared(pilot)
        assert "A 10..70, 00:00:10-00:01:10" in screen_text(pilot)
        assert "B epoch 1: queue depth 1 -> 2" in screen_text(pilot)
        await pilot.press("b", *"you type", "enter")
        await pilot.press(*"nonsense..", "enter")
        await until(pilot, lambda: said(pilot.app, "no event has these words"))
        assert "B epoch 1" in screen_text(pilot)


async def test_overlapping_parts_are_refused() -> None:
    source = ListRecording(epochs(QUIET, FASTER, seconds=FEW_SECONDS))
    async with on_stage(make_app(source)) as pilot:
        await shown(source, "a", *"all of it", "enter", samples=2 * FEW_SECONDS)(pilot)
        assert "A and B overlap in time" in screen_text(pilot)


async def test_a_note_is_an_event_of_the_recording_at_the_moment_the_key_was_pressed() -> None:
    source = ListSource(make_samples(count=20, events=False))
    recording = FakeRecording()
    app = LunscopeApp(AppInput(source, recording=recording), settings=FROZEN)
    async with on_stage(app) as pilot:
        await play(pilot, source, 5)
        await pilot.press("space")
        frame = app.app_state.frame
        assert frame is not None
        await pilot.press("A")
        await pilot.press(*"cable out", "enter")
        await pilot.pause()
        (event,) = recording.events
        assert (event.kind, event.text, event.time_ns) == (EventKind.NOTE, "cable out", frame.time_ns)
        assert event in app.app_state.events.all()
        await pilot.press("A", "escape")
        await pilot.press("A", "enter")
        assert len(recording.events) == 1


# ------------------------------------------------------------------------------------------------ files


@pytest.fixture
def recordings(tmp_path: Path) -> tuple[str, str]:
    return (
        str(record(tmp_path / "before.luns", Epoch(60))),
        str(record(tmp_path / "after.luns", Epoch(60, 2600, 1_200_000), seed=2)),
    )


async def test_files_of_the_command_line_are_compared(recordings: tuple[str, str]) -> None:
    source = ListRecording(make_samples(count=20))
    asked = CompareAsked(recordings, CompareOptions(delta=0.1), TABLES)
    app = LunscopeApp(AppInput(source, compared=asked), settings=FROZEN)
    async with on_stage(app, LARGE) as pilot:
        assert isinstance(app.screen, CompareScreen)
        await compared(pilot)
        text = screen_text(pilot)
        assert "before.luns" in text
        assert "after.luns" in text
        assert "delta 10 % of A" in text
        assert "better" in text
        assert "Share of I/Os by latency" not in text
        await pilot.press("down", "down")
        await until(pilot, lambda: "Share of I/Os by latency" in screen_text(pilot))


async def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    source = ListRecording(make_samples(count=20))
    files = str(tmp_path / "gone"), str(tmp_path / "gone too")
    app = LunscopeApp(AppInput(source, compared=CompareAsked(files, CompareOptions(), TABLES)), settings=FROZEN)
    async with on_stage(app) as pilot:
        await until(pilot, lambda: "No such file" in " ".join(screen_text(pilot).split()))
