"""The live effect: what the last turn of a knob changed."""

from __future__ import annotations

import math

from textual.content import Content

from collectors.fields import Unit
from engine.text import safe_text
from tui.load.effect import Effect, change_pct
from tui.text.clock import SECOND_NS, span_text
from tui.text.format import format_quantity
from tui.widgets.line import TextLine


class EffectPanel(TextLine):
    """Before, now and change of IOPS and latencies."""

    DEFAULT_CSS = """
    EffectPanel { height: 5; width: 1fr; min-width: 30; }
    """

    def show(self, effect: Effect, now_ns: int) -> None:
        """Show what the last turn did."""
        self.put(Content("\n").join([_title(effect, now_ns), *_rows(effect)]))


def _title(effect: Effect, now_ns: int) -> Content:
    if effect.time_ns is None:
        return Content.assemble((f"{'':<8}{'before':>8}   {'now':>7}", "dim"))
    ago = span_text((now_ns - effect.time_ns) / SECOND_NS)
    return Content.assemble((safe_text(effect.text), "bold"), (f"  {ago} ago", "dim"))


def _rows(effect: Effect) -> list[Content]:
    before, after = effect.before, effect.after
    return [
        _row("IOPS", before.iops, after.iops, Unit.PER_SECOND, good=1),
        _row("mean ms", before.mean_ms, after.mean_ms, Unit.MILLISECONDS, good=-1),
        _row("p99 ms", before.p99_ms, after.p99_ms, Unit.MILLISECONDS, good=-1),
        _row("peak ms", before.max_ms, after.max_ms, Unit.MILLISECONDS, good=-1),
    ]


def _row(title: str, before: float, after: float, unit: Unit, good: int) -> Content:
    change = change_pct(before, after)
    text = f"{change:+.0f} %" if math.isfinite(change) else ""
    style = "" if not text or abs(change) < 5 else "bold $success" if change * good > 0 else "bold $warning"
    figures = f"{format_quantity(before, unit, 7):>8} → {format_quantity(after, unit, 7):>7}"
    return Content.assemble((f"{title:<8}", "dim"), figures, "  ", (f"{text:>7}", style))
