"""The bar of a session's time."""

from __future__ import annotations

from textual import on

from engine.events import Event, EventKind
from tests.app.shows import OneWidget, text_of
from tests.app.stage import drawn_again
from tui.text.glyphs import ASCII
from tui.widgets.timeline import Stretch, Timeline

SECOND = 1_000_000_000
START = 1_699_999_980 * SECOND
END = START + 600 * SECOND


class Heard(OneWidget):
    """Remembers where the operator pointed."""

    @on(Timeline.Seek)
    def remember(self, message: Timeline.Seek) -> None:
        self.heard.append(message.time_ns)


def _event(seconds: int, text: str) -> Event:
    return Event(EventKind.KNOB, text, START + seconds * SECOND, 0)


async def test_bar_shows_position_and_events_and_words_say_them() -> None:
    timeline = Timeline()
    async with OneWidget(timeline).run_test(size=(80, 2)) as pilot:
        timeline.show(START, END, START + 300 * SECOND, [_event(150, "qd 32"), _event(450, "later")])
        await pilot.pause()
        bar, words = text_of(timeline)
        assert bar.startswith("22:13:00 ├━")
        assert bar.endswith("─┤ 22:23:00")
        assert bar.index("◆") < bar.index("●") < bar.rindex("◆")
        assert len(bar) == 80
        assert words.strip() == "2023-11-14 22:18:00  0:05:00 of 0:10:00  ◆ qd 32"


async def test_peaks_are_marked_below_events() -> None:
    timeline = Timeline()
    async with OneWidget(timeline).run_test(size=(80, 2)) as pilot:
        peaks = [START + 150 * SECOND, START + 450 * SECOND]
        timeline.show(START, END, START + 300 * SECOND, [_event(450, "qd 32")], peaks)
        await pilot.pause()
        bar = text_of(timeline)[0]
        assert bar.count("▴") == 1
        assert bar.index("▴") < bar.index("●") < bar.index("◆")


async def test_click_and_drag_seek() -> None:
    timeline = Timeline()
    app = Heard(timeline)
    async with app.run_test(size=(80, 2)) as pilot:
        timeline.show(START, END, START)
        await pilot.pause()
        await pilot.click(timeline, offset=(10, 0))
        assert app.heard == [START]
        await pilot.mouse_down(timeline, offset=(40, 0))
        await pilot.hover(timeline, offset=(69, 0))
        await pilot.mouse_up(timeline, offset=(69, 0))
        await pilot.hover(timeline, offset=(20, 0))
        assert app.heard[-1] == END
        assert app.heard[1] == START + 600 * SECOND * 30 // 59


async def test_narrow_and_ascii() -> None:
    timeline = Timeline()
    async with OneWidget(timeline, glyphs=ASCII).run_test(size=(20, 2)) as pilot:
        timeline.show(START, END, END, [_event(300, "x")])
        await pilot.pause()
        assert text_of(timeline)[0] == "[" + "=" * 8 + "K" + "=" * 8 + "O]"


async def test_unchanged_times_send_nothing() -> None:
    timeline = Timeline()
    async with OneWidget(timeline).run_test(size=(80, 2)) as pilot:
        timeline.show(START, END, START)
        await pilot.pause()
        drawn_again(timeline)
        timeline.show(START, END, START)
        assert not drawn_again(timeline)
        timeline.show(START, END, START + SECOND)
        assert drawn_again(timeline) == {1}


def test_an_empty_stretch_has_one_place() -> None:
    stretch = Stretch(START, START, START)
    assert stretch.cell_of(START, 50) == 0
    assert stretch.time_at(49, 50) == START
