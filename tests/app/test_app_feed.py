"""Between source and screen: nothing piles up, nothing crashes, nothing is laid out anew per frame."""

from __future__ import annotations

import re
import threading
import time
from itertools import pairwise
from pathlib import Path

import pytest
from textual.message import Message
from textual.screen import Screen

import tui
from collectors.model import Step
from collectors.rates import derive
from engine.events import Event, EventKind
from tests.app.sources import ListSource, make_samples
from tests.app.stage import SIZES, make_app, on_stage, play, screen_text, until
from tui.history.charts import MOST_EVENTS, EventHistory, History
from tui.history.feed import Feed, FeedEnded, FrameArrived
from tui.screens.help.screen import HelpScreen
from tui.transport import LiveTransport, transport_of

PACKAGE = Path(tui.__file__).parent


def run_feed(source: ListSource) -> tuple[list[Message], History, EventHistory]:
    """Everything a feed posts until its source ends."""
    posted: list[Message] = []
    ended = threading.Event()
    history, events = History(), EventHistory()

    def post(message: Message) -> None:
        posted.append(message)
        if isinstance(message, FeedEnded):
            ended.set()

    feed = Feed(source, transport_of(source), history, events, post)
    feed.start()
    assert ended.wait(10)
    assert feed.close()
    return posted, history, events


def test_feed_posts_every_frame_then_the_end() -> None:
    samples = make_samples(count=6)
    source = ListSource(samples)
    source.advance(7)
    posted, history, events = run_feed(source)
    frames = [message.frame for message in posted if isinstance(message, FrameArrived)]
    assert [frame.time_ns for frame in frames] == [sample.time_ns for sample in samples]
    assert isinstance(posted[-1], FeedEnded)
    assert posted[-1].reason == ""
    past = history.series("disks", "sdc@2")
    assert past is not None
    assert len(past) == 6
    assert [event.text for event in events.all()] == ["note 5"]


@pytest.mark.parametrize(
    ("source", "reason"),
    [
        (ListSource(make_samples(count=2), failure="/proc/diskstats: gone"), "/proc/diskstats: gone"),
        (ListSource(make_samples(count=2), crash=ZeroDivisionError("oops")), "ZeroDivisionError: oops"),
    ],
)
def test_feed_tells_why_a_source_failed(source: ListSource, reason: str) -> None:
    source.advance(3)
    posted, _history, _events = run_feed(source)
    assert isinstance(posted[-1], FeedEnded)
    assert posted[-1].reason == reason


def test_feed_stops_at_once() -> None:
    source = ListSource(make_samples(count=2))
    feed = Feed(source, LiveTransport(), History(), EventHistory(), lambda _message: None)
    feed.start()
    started = time.monotonic()
    assert feed.close()
    assert time.monotonic() - started < 1


def test_a_waiting_frame_gives_way_to_a_newer_one() -> None:
    first, second = (derive(None, sample) for sample in make_samples(count=2))
    assert FrameArrived(first).can_replace(FrameArrived(second))
    assert not FrameArrived(first).can_replace(FeedEnded(""))


def test_a_live_gap_does_not_wipe_the_past() -> None:
    samples = list(make_samples(count=6))
    source = ListSource(samples)
    history = History()
    feed = Feed(source, LiveTransport(), history, EventHistory(), lambda _message: None)
    for before, now in [*pairwise(samples[:3]), (None, samples[4]), *pairwise(samples[4:])]:
        feed._take(Step(before, now))
    past = history.series("disks", "vda@0")
    assert past is not None
    assert len(past) == 4


def test_events_are_kept_once_in_order_and_bounded() -> None:
    log = EventHistory()
    late, early = Event(EventKind.NOTE, "late", 20, 0), Event(EventKind.NOTE, "early", 10, 0)
    log.add([late])
    version = log.version
    log.add([late])
    assert log.version == version
    log.add([early])
    assert [event.text for event in log.all()] == ["early", "late"]
    log.add(Event(EventKind.NOTE, "many", 100 + number, 0) for number in range(MOST_EVENTS))
    assert len(log.all()) == MOST_EVENTS
    assert log.all()[0].text == "many"


async def test_a_failing_source_is_reported_and_the_screen_lives() -> None:
    source = ListSource(make_samples(count=3), failure="/proc/diskstats: [bold]gone[/bold]")
    app = make_app(source)
    async with on_stage(app) as pilot:
        await play(pilot, source, 3)
        source.advance()
        await until(pilot, lambda: app.app_state.ended)
        await pilot.pause()
        assert "STOPPED /proc/diskstats: [bold]gone[/bold]" in screen_text(pilot)
        await pilot.press("question_mark")
        assert isinstance(app.screen, HelpScreen)


@pytest.mark.slow
async def test_the_screen_shows_the_newest_frame_after_a_burst() -> None:
    source = ListSource(make_samples(count=150))
    app = make_app(source)
    async with on_stage(app) as pilot:
        await play(pilot, source, 150)
        past = app.app_state.history.series("disks", "sdc@2")
        assert past is not None
        assert len(past) == 150
        assert "00:02:29" in screen_text(pilot)


@pytest.mark.slow
async def test_frames_cause_no_layout(monkeypatch: pytest.MonkeyPatch) -> None:
    layouts: list[object] = []
    original = Screen._refresh_layout

    def counted(screen: Screen[object], *arguments: object, **named: object) -> None:
        layouts.append(arguments)
        original(screen, *arguments, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(Screen, "_refresh_layout", counted)
    source = ListSource(make_samples(count=40, events=False))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 5)
        assert layouts, "they are counted"
        for size in SIZES:
            await pilot.resize_terminal(*size)
            for key in ("1", "2", "3"):
                await pilot.press(key)
                await pilot.pause()
                layouts.clear()
                for _ in range(5):
                    await play(pilot, source, 1)
                assert layouts == [], (size, key)


async def test_a_tiny_terminal_still_shows_the_hottest_disk() -> None:
    source = ListSource(make_samples(count=12))
    async with on_stage(make_app(source), (20, 5)) as pilot:
        await play(pilot, source, 6)
        assert "sdc" in screen_text(pilot)


@pytest.mark.slow
async def test_no_disks_at_all() -> None:
    source = ListSource(make_samples(names=(), count=6))
    async with on_stage(make_app(source)) as pilot:
        await play(pilot, source, 6)
        await pilot.press("enter", "c", "c", "3", "2", "1")
        await pilot.pause()
        assert "LIVE" in screen_text(pilot)


def modules_with(pattern: str) -> set[str]:
    return {
        str(path.relative_to(PACKAGE))
        for path in PACKAGE.rglob("*.py")
        if re.search(pattern, path.read_text(encoding="utf-8"))
    }


def test_only_the_transport_asks_whether_a_source_is_seekable() -> None:
    assert modules_with(r"source\.seekable") == {"transport.py"}


def test_screens_know_nothing_of_replay() -> None:
    found = modules_with(r"collectors\.replay|ReplaySource")
    assert {path for path in found if not path.startswith("commands/")} <= {"start.py"}
