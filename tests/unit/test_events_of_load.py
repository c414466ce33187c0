"""What happened on the host while a load ran: on the Load screen and in the summary after the screens."""

from __future__ import annotations

from typing import cast

import pytest

from engine.events import Event, EventKind
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.unit.test_result import two_epochs
from tui.headless.after_screens import sum_up
from tui.load.state_text import happened_text, message_line
from tui.sweep.series import SweepSeries

SECOND_NS = 1_000_000_000


def event(at_s: float, kind: EventKind, text: str, **data: str) -> Event:
    return Event(kind, text, round(at_s * SECOND_NS), round(at_s * SECOND_NS), data)


def lost(at_s: float, path: str) -> Event:
    return event(at_s, EventKind.HOTPLUG, f"path {path} lost", path=path, port="host0", now="standby", change="lost")


START = event(10, EventKind.LOAD, "load started", job="")
END = event(20, EventKind.LOAD, "load ended", ended="runtime")
NOTE = event(12, EventKind.NOTE, "cable pulled")


@pytest.mark.parametrize(
    ("events", "now_s", "text"),
    [
        ([lost(9, "sda")], 15, ""),
        ([lost(9, "sda"), START], 15, ""),
        ([START, NOTE, lost(13, "sda"), lost(14, "sdb\x1b")], 15,
         "while it ran: host0: 2 paths lost: standby (sda, sdb\\x1b); 1 more before it"),
        ([START, NOTE, lost(13, "sda")], 12.5, "while it ran: cable pulled"),
        ([START, NOTE, END, lost(21, "sda")], 30, "while it ran: cable pulled"),
    ],
    ids=["no load", "before it", "grouped", "rewound", "after it"],
)  # fmt: skip
def test_the_load_screen_says_what_happened_by_cause(events: list[Event], now_s: float, text: str) -> None:
    assert happened_text(events, round(now_s * SECOND_NS)) == text
    assert message_line(None, "", text).plain.strip() == text
    assert message_line(None, "refused", text).plain == "refused"


class EndedLoad:
    """A load that has ended without outstanding I/Os."""

    outstanding = ()

    def result(self) -> object:
        result = two_epochs()
        return replace(result, about=replace(result.about, started_ns=10 * SECOND_NS, elapsed_s=5.0))


def test_the_summary_after_the_screens_has_them_too(capsys: pytest.CaptureFixture[str]) -> None:
    alert = event(14.5, EventKind.ALERT, "alert slow raised: vda await_ms 30 ms", change="raised")
    events = [lost(9, "sdz"), NOTE, lost(13, "sda"), lost(14, "sdb"), alert, lost(19, "sdy")]
    sum_up(cast(LoadControl, EndedLoad()), None, 0, SweepSeries(), events)
    _, below = capsys.readouterr().out.split("[Events on the host]\n")
    rows = [line.split(maxsplit=1)[1] for line in below.splitlines()[1:4]]
    assert [" ".join(row.split()) for row in rows] == [
        "note cable pulled 1",
        "hotplug host0: 2 paths lost: standby (sda, sdb) 2",
        "alert alert slow raised: vda await_ms 30 ms 1",
    ]
