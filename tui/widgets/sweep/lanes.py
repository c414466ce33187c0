"""One line for each target of a point: its share of the I/Os, its latency, and what the slowest one costs."""

from __future__ import annotations

from collections.abc import Sequence

from textual.strip import Strip

from collectors.field import Unit
from engine.sweep.target_share import TargetShare, hottest_target
from engine.text import safe_text
from tui.sweep.rows import PointRow
from tui.sweep.words import hottest_text
from tui.text.format import MISSING_TEXT, format_quantity
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit_name, width_of
from tui.widgets.spans import Spanned, Spans

_FIGURES = 44
"""Cells of the figures of a lane."""
_NAME = (8, 24)


class TargetLanes(Spanned, inherit_bindings=False):
    """The targets of the point under the cursor."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._row: PointRow | None = None
        self._name = ""

    def show(self, row: PointRow | None, name: str) -> None:
        """Take the point under the cursor, with its name."""
        self._row, self._name = row, name
        self.repaint()

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, what the hottest costs, a lane for each target."""
        row = self._row
        shares = () if row is None or row.summary is None else row.summary.trials[-1].targets
        if row is None or not shares:
            return self.hint(f"{self._name}: no figures by target: one target only, or not measured yet".lstrip(": "))
        width = min(max(_NAME[0], *(width_of(share.name) for share in shares)), _NAME[1])
        bar = max((self.area.width - width - _FIGURES - 3) // 2, 4)
        head = f" {'':{width + 1}} {'share of I/Os':<{bar + 5}} {'IOPS':>5}   {'mean ms':<{bar}} {'':>7} {'p99':>6}"
        lines: list[Spans] = [
            [(f" Targets at {self._name}", "mark")],
            [(f" {hottest_text(row)}", "text")],
            [(head.ljust(self.area.width), "head")],
        ]
        lines += [self._lane(share, shares, width, bar) for share in shares]
        return self.filled(map(self.strip, lines))

    def _lane(self, share: TargetShare, shares: Sequence[TargetShare], width: int, bar: int) -> Spans:
        glyphs, hottest = glyphs_of(self), hottest_target(shares)
        is_hottest = hottest is not None and share is hottest.target
        name = fit_name(safe_text(share.name), width, glyphs.ellipsis)
        of_ios = share.ios / max(sum(each.ios for each in shares), 1)
        of_latency = share.latency_ns / max(*(each.latency_ns for each in shares), 1.0)
        p99 = MISSING_TEXT if share.p99_ns is None else format_quantity(share.p99_ns / 1e6, Unit.MILLISECONDS, 6)
        cost = f"  costs {hottest.cost_pct:.0f} %" if hottest is not None and is_hottest else ""
        return [
            (f"{glyphs.hot if is_hottest else ' '}{name} ", "failed" if is_hottest else "text"),
            (self._bar(of_ios, bar), "curve"),
            (f" {100 * of_ios:3.0f} % {format_quantity(share.iops, Unit.PER_SECOND, 5):>5}  ", "text"),
            (self._bar(of_latency, bar), "peak" if is_hottest else "curve"),
            (f" {format_quantity(share.latency_ns / 1e6, Unit.MILLISECONDS, 7):>7} {p99:>6}", "text"),
            (cost, "failed"),
        ]

    def _bar(self, share: float, width: int) -> str:
        return (glyphs_of(self).strengths[-1] * max(round(share * width), 1 if share else 0)).ljust(width)
