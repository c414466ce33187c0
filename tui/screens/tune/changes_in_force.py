"""Changes of tunables in force with their time left, and what the newest ones did."""

from __future__ import annotations

import time

from textual import on
from textual.content import Content

from engine.text import safe_text
from engine.tune.held import HeldChange
from tui.app_state import AppState
from tui.screens.tune.effects import TuneEffectFound, TuneEffects, effect_line, shown_changes
from tui.widgets.line import TextLine

_MOST_CHANGES = 3


class ChangesInForce(TextLine):
    """The newest changes; `refresh_changes` follows them."""

    DEFAULT_CSS = """
    ChangesInForce { height: 4; text-wrap: wrap; }
    """

    def __init__(self, app_state: AppState) -> None:
        super().__init__(" ")
        self._state = app_state
        self._effects = TuneEffects(app_state, self)

    @property
    def has_ended(self) -> bool:
        """Whether the time of a change is over, so that the values must be read again."""
        return any(_seconds_left(one) == 0 for one in self._held)

    @on(TuneEffectFound)
    def refresh_changes(self) -> None:
        """Show what is in force now."""
        self.put(Content("\n").join(self._lines()))

    @property
    def _held(self) -> tuple[HeldChange, ...]:
        return () if self._state.tuning is None else tuple(self._state.tuning.in_force)

    def _lines(self) -> list[Content]:
        held = self._held
        lines = [_held_line(one) for one in held[: -_MOST_CHANGES - 1 : -1]]
        if len(held) > _MOST_CHANGES:
            lines.append(Content.styled(f"and {len(held) - _MOST_CHANGES} more in force", "dim"))
        frame = self._state.frame
        if frame is not None:
            newest = shown_changes(self._state.events.all(), frame.time_ns, 1 if held else 2)
            for event, effect in zip(newest, self._effects.of(newest, frame.time_ns), strict=True):
                if not held:
                    lines.append(Content(safe_text(event.text)))
                lines.append(Content.assemble(("before/after: ", "dim"), effect_line(effect)))
        return lines or [Content.styled("no change in force", "dim")]


def _held_line(held: HeldChange) -> Content:
    left_s = _seconds_left(held)
    when = "until lunscope ends" if left_s is None else f"{left_s} s left"
    text = "; ".join(held.record.summary)
    return Content.assemble((f"{held.record.number} ", "bold"), safe_text(text), (f"  {when}", "$accent"))


def _seconds_left(held: HeldChange) -> int | None:
    until_ns = held.record.until_ns
    return None if until_ns is None else max(int((until_ns - time.time_ns()) / 1e9), 0)
