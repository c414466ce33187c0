"""The live effect: what the last turn of a knob changed."""

from __future__ import annotations

import math

from textual.content import Content

from collectors.field import Unit
from engine.text import safe_text
from tui.load.effect import Effect, change_pct, has_enough_ios
from tui.text.format import SECOND_NS, format_quantity, span_text
from tui.widgets.line import TextLine

PERCENTILE_TIMES = 10
"""A change of a percentile needs ten I/Os beyond it on each side: this many times those of the percentile."""
NOTABLE_PCT = 5.0


class EffectPanel(TextLine):
    """IOPS and latencies before and after, their change, and the length of both windows."""

    DEFAULT_CSS = """
    EffectPanel { height: 1fr; width: 1fr; min-width: 35; }
    """

    def show(self, effect: Effect, now_ns: int) -> None:
        """Show what the last turn did; `now_ns` is CLOCK_MONOTONIC."""
        self.put(Content("\n").join([_title(effect, now_ns), _windows(effect), *_rows(effect)]))


def _title(effect: Effect, now_ns: int) -> Content:
    if effect.turned_ns is None:
        return Content.assemble(("effect of the next knob turn", "dim"))
    since = span_text((now_ns - effect.turned_ns) / SECOND_NS)
    ended = ", ended" if effect.ended else ""
    return Content.assemble((safe_text(effect.text), "bold"), (f"  {since} ago{ended}", "dim"))


def _windows(effect: Effect) -> Content:
    before_s, after_s = effect.before.length_s, effect.after.length_s
    if effect.turned_ns is None:
        return Content.assemble((f"{'':<19}{_length(after_s, 'now'):>14}", "dim"))
    lengths = f"{_length(before_s, 'before'):>16} | {_length(after_s, 'after'):<12}"
    return Content.assemble((lengths, "dim"), _pending(effect))


def _length(seconds: float, side: str) -> str:
    """Text such as "12 s before"; a window without intervals has no length."""
    digits = 0 if seconds >= 10 or abs(seconds - round(seconds)) < 0.05 else 1
    return f"{seconds:.{digits}f} s {side}" if seconds else f"{side}: none yet"


def _pending(effect: Effect) -> tuple[str, str]:
    """Say why no changes are shown yet."""
    if effect.ended or effect.is_long_enough:
        return "", ""
    return (" measuring" if effect.before.length_s else ""), "dim"


def _rows(effect: Effect) -> list[Content]:
    enough = effect.is_long_enough and has_enough_ios(effect)
    ranked = effect.is_long_enough and has_enough_ios(effect, PERCENTILE_TIMES)
    before, after = effect.before, effect.after
    return [
        _row("IOPS", before.iops, after.iops, Unit.PER_SECOND, good=1 if enough else 0),
        _row("mean ms", before.mean_ms, after.mean_ms, Unit.MILLISECONDS, good=-1 if enough else 0),
        _row("p99 ms", before.p99_ms, after.p99_ms, Unit.MILLISECONDS, good=-1 if ranked else 0),
        _row("peak ms", before.max_ms, after.max_ms, Unit.MILLISECONDS, good=0, grey=not enough),
    ]


def _row(title: str, before: float, after: float, unit: Unit, *, good: int, grey: bool | None = None) -> Content:
    """One figure; `good` is 1 where larger is better, -1 where smaller is, 0 where the change is not rated."""
    change = change_pct(before, after) if good else math.nan
    text = (f"{change:+.0f} %" if abs(change) >= 0.5 else "0 %") if math.isfinite(change) else ""
    style = "" if not text or abs(change) < NOTABLE_PCT else "bold $success" if change * good > 0 else "bold $warning"
    faint = "dim" if (not good if grey is None else grey) else ""
    figures = f"{format_quantity(before, unit, 7):>8} ->{format_quantity(after, unit, 7):>8}"
    return Content.assemble((f"{title:<8}", "dim"), (figures, faint), "  ", (f"{text:>7}", style))
