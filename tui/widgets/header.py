"""The first lines of every screen, host, tier, cost of the monitor and tabs, and the last one, its keys."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache
from typing import Literal

from textual.content import Content
from textual.message import Message

from collectors.field import Unit
from collectors.model import Frame, Tier
from collectors.session.time_format import clock_text
from engine.text import safe_text, three_digits
from tui.action import Action
from tui.alert_state import RaisedAlerts
from tui.app_input import Recording
from tui.app_state import AppState
from tui.keys import ANYWHERE_ACTIONS, is_usable
from tui.screen_registry import TABS, ScreenEntry
from tui.text.format import format_quantity
from tui.text.glyphs import glyphs_of
from tui.widgets.line import TextLine

MOVES = frozenset({"session.step_forward", "session.goto", "latency.seek"})
AT_END = frozenset({"session.last"})
"""Actions that a live host has on the key line only while it is paused; a recording has those of MOVES."""


_HELP = "view.help"


class KeyLine(TextLine):
    """As many actions of the registry as fit, those of the screen first, and help always; each can be clicked."""

    DEFAULT_CSS = """
    KeyLine { background: $panel; color: $foreground; }
    """

    def show(
        self, screen: ScreenEntry, app_state: AppState, key_text: Callable[[str], str], idle: frozenset[str]
    ) -> None:
        """Show the keys of a screen, without those of idle actions."""
        width = self.size.width or self.app.size.width
        content = Content(" ")
        shown = [action for action in footer_actions(screen, app_state) if action.id not in idle]
        entries = [(action, _key_entry(action, key_text(action.id))) for action in shown]
        # Help is what leads to the keys that do not fit.
        kept = sum(entry.cell_length for action, entry in entries if action.id == _HELP)
        for action, entry in entries:
            kept -= entry.cell_length if action.id == _HELP else 0
            if content.cell_length + entry.cell_length + kept <= width + 2:
                content += entry.stylize(f"@click={action.namespace}.{action.call}")
            elif not kept:
                break
        self.put(content.rstrip())


def _key_entry(action: Action, key: str) -> Content:
    return Content.assemble((key, "bold $accent"), f" {action.short}  ")


def footer_actions(screen: ScreenEntry, app_state: AppState) -> list[Action]:
    """Actions of the key line: the screen's own first, then those of every screen."""
    replay, load = app_state.transport.seekable, app_state.drives(screen)
    hidden = AT_END if replay else frozenset() if app_state.is_rewound else MOVES | AT_END
    actions = (*screen.keyed, *ANYWHERE_ACTIONS)
    usable = (action for action in actions if action.short and is_usable(action, replay=replay, load=load))
    return [action for action in usable if action.id not in hidden]


LATE_SHARE = 0.2
"""Share of the interval by which a tick may be late before it is coloured."""
COSTLY_PCT = 5.0


class HeaderLine(TextLine):
    """Host, clock, interval, tier, the monitor's cost and lateness, and whether it is recorded."""

    DEFAULT_CSS = """
    HeaderLine { background: $panel; color: $foreground; }
    """

    def show(self, frame: Frame | None, app_state: AppState) -> None:
        """Show the frame's own data."""
        width = self.size.width or self.app.size.width
        if frame is None:
            self.put(" lunscope  waiting for the first sample")
            return
        left = [(" lunscope ", "bold"), (safe_text(frame.topology.host.hostname) or "this host", "bold $accent")]
        parts = [
            (clock_text(frame.time_ns), ""),
            _interval(frame, app_state),
            (_tier_text(frame.topology.host.tier), ""),
            _cost(frame),
            _programs_cost(frame, glyphs_of(self).tier_marks[Tier.SAMPLED]),
            _lateness(frame, app_state),
        ]
        content = Content.assemble(*left)
        mark = _alert_mark(frame, app_state, glyphs_of(self).hot, width) + _recording_mark(app_state.recording)
        for part in parts:
            addition = Content.assemble("  ", part)
            if part[0] and content.cell_length + addition.cell_length + mark.cell_length + 1 <= width:
                content += addition
        gap = width - content.cell_length - mark.cell_length - 1
        self.put(content + Content(" " * max(1, gap)) + mark)


def _alert_mark(frame: Frame, app_state: AppState, glyph: str, width: int) -> Content:
    """Show the number of raised alerts, and the worst one where it fits."""
    raised = RaisedAlerts() if app_state.alerts is None else app_state.alerts.raised(frame)
    if not raised.count:
        return Content("")
    text = f"{glyph} {raised.count:,} alert{'' if raised.count == 1 else 's'}"
    if raised.alerts:
        worst = raised.alerts[0]
        longer = f"{text}: {worst.rule} {worst.name}"
        text = longer if len(longer) <= width // 3 else text
    return Content.assemble((text, "bold $error"), "  ")


def _interval(frame: Frame, app_state: AppState) -> tuple[str, str]:
    seconds = frame.elapsed_s if math.isfinite(frame.elapsed_s) else app_state.interval_s
    is_live = not app_state.transport.seekable
    # While the first sample at a new interval is due, the frame still has the length of the one before.
    wanted = app_state.interval_s if is_live and app_state.interval_changed else seconds
    other = f" -> {wanted:g} s" if abs(wanted - seconds) > LATE_SHARE * wanted else ""
    return f"{three_digits(seconds)} s{other}", ""


def _tier_text(tier: Tier) -> str:
    return "" if tier is Tier.NONE else f"tier {tier.name.lower()}"


def _cost(frame: Frame) -> tuple[str, str]:
    if not math.isfinite(frame.cost_pct):
        return "", ""
    return (
        f"cost {format_quantity(frame.cost_pct, Unit.PERCENT, 4)} %",
        "$warning" if frame.cost_pct > COSTLY_PCT else "",
    )


def _programs_cost(frame: Frame, estimated: str) -> tuple[str, str]:
    """Write what exact time costs in the kernel; an estimate has the mark of one."""
    cost = frame.looking
    if cost is None or not cost.ios > 0:
        return "", ""
    mark = "" if cost.is_measured else estimated
    share = format_quantity(cost.programs_pct, Unit.PERCENT, 4)
    return f"kernel {share}{mark} %, {cost.ns_per_io:.0f}{mark} ns/IO", (
        "$warning" if cost.programs_pct > COSTLY_PCT else ""
    )


def _lateness(frame: Frame, app_state: AppState) -> tuple[str, str]:
    late = frame.late_s > LATE_SHARE * app_state.interval_s
    return f"late {format_quantity(frame.late_s * 1e3, Unit.MILLISECONDS, 5)} ms", "bold $warning" if late else ""


def _recording_mark(recording: Recording | None) -> Content:
    if recording is None:
        return Content("")
    if recording.trouble:
        return Content.assemble(("NOT RECORDING", "bold $error"))
    size = format_quantity(float(recording.size_bytes), Unit.BYTES, 5)
    return Content.assemble(("● REC", "bold $error"), f" {size}")


class Tabs(TextLine):
    """The screens by their keys; the current one is bracketed, for terminals without colour."""

    DEFAULT_CSS = """
    Tabs { background: $panel; color: $text-muted; }
    """

    def show(self, screen: ScreenEntry, key_text: Callable[[str], str], note: str, style: str = "") -> None:
        """Show which screen this is, and at the right the status; the tabs make room for it."""
        width = self.size.width or self.app.size.width
        keys = tuple(key_text(tab.opener.id) for tab in TABS)
        beside = len(note) + 1 if note else 0
        forms = (_tab_line(screen.id, keys, form) for form in _FORMS)
        content = next(
            (tabs for tabs in forms if tabs.cell_length + beside <= width), _tab_line(screen.id, keys, "keys")
        )
        room = width - content.cell_length - 1
        if note and room > 3:
            shown = Content.assemble((note if len(note) <= room else note[: room - 1] + "…", style))
            content += Content(" " * (room - shown.cell_length)) + shown
        self.put(content)


_Form = Literal["wide", "tight", "short", "keys"]
_FORMS: tuple[_Form, ...] = ("wide", "tight", "short", "keys")


@lru_cache(maxsize=64)
def _tab_line(screen_id: str, keys: tuple[str, ...], form: _Form) -> Content:
    """All tabs with their keys; "short" has short names, "keys" omits the names of all but the current one."""
    content = Content(" ")
    pad = " " if form == "wide" else ""
    for tab, key in zip(TABS, keys, strict=True):
        title = tab.short if form == "short" else tab.title
        if tab.id == screen_id:
            content += Content.assemble((f"[{key} {title}]", "bold $foreground"))
        else:
            name = key if form == "keys" else f"{key} {title}"
            content += Content(f"{pad}{name}{pad}").stylize(f"@click={tab.opener.namespace}.{tab.opener.call}")
        content += Content(" ")
    return content


class HintLine(TextLine):
    """Keys of help, filter and palette; Esc or a click hides it for good."""

    DEFAULT_CSS = """
    HintLine { background: $boost; color: $foreground; }
    """

    class Dismissed(Message):
        """The line was clicked."""

    def __init__(self, key_text: Callable[[str], str]) -> None:
        super().__init__(classes="extra")
        self._key_text = key_text

    def on_click(self) -> None:
        """Hide it for good."""
        self.post_message(self.Dismissed())

    def show(self) -> None:
        """Show the keys in force."""
        pairs = ((self._key_text("view.help"), "help"), ("/", "filter"), ("^p", "all commands"))
        parts: list[str | tuple[str, str]] = [" "]
        for key, words in (*pairs, ("Esc", "hide this hint")):
            parts += [(key, "bold $accent"), f" {words}  "]
        self.put(Content.assemble(*parts))
