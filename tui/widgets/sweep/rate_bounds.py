"""The bounds of each limit on one axis of rates, as they narrow."""

from __future__ import annotations

import math
from typing import TypeAlias

from textual.strip import Strip

from engine.rate_search.answer import RateAnswer, RateVerdict
from engine.rate_search.grid import RateGrid
from tui.sweep.rate_rows import CurveFigures
from tui.text.glyphs import glyphs_of
from tui.widgets.spans import Spanned, Spans

_Bounds: TypeAlias = tuple[float | None, float | None]
_TEXT = 37
"""Cells of the bounds as figures."""
_LEAST_BAR = 8
_SCALE = "I/Os per second, log"


class RateBounds(Spanned, inherit_bindings=False):
    """A line for each limit: what keeps it, what exceeds it, and what is open between."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._figures: CurveFigures | None = None
        self._front = 0
        self._goal = 0.05

    def show(self, figures: CurveFigures, front: int, goal: float) -> None:
        """Take the figures of a combination, the limit in front, and the distance of the bounds that is enough."""
        self._figures, self._front, self._goal = figures, front, goal
        self.repaint()

    def on_resize(self) -> None:
        """Draw in the new size."""
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, a line for each limit."""
        figures = self._figures
        if figures is None or figures.grid is None:
            return self.hint("bounds: the maximum of the load is measured first; no rate above it is tried")
        name = max(len(answer.limit.text) for answer in figures.answers.limits)
        bar = max(self.area.width - name - _TEXT - 4, _LEAST_BAR)
        low, high = figures.grid.rate(figures.grid.last), figures.grid.highest
        ends = f"{low:,.0f}", f"{high:,.0f}"
        scale = ends[0] + _SCALE.center(max(bar - len(ends[0]) - len(ends[1]), 0)) + ends[1]
        fits = len(scale) <= bar and f" {_SCALE} " in scale
        head = (
            f" {'limit':<{name}} {(scale if fits else f'{ends[0]} .. {ends[1]}/s'[:bar]):<{bar}}  bounds in I/Os per s"
        )
        lines: list[Spans] = [[(head.ljust(self.area.width), "head")]]
        for number, answer in enumerate(figures.answers.limits):
            style = "mark" if number == self._front else "text"
            is_open = answer.lower is None or answer.upper is None
            passing = figures.passing[number] if is_open and figures.passing else (None, None)
            line = [(f" {answer.limit.text:<{name}} ", style), *self._bar(answer, passing, figures.grid, bar)]
            lines.append([*line, (f"  {self._words(answer, passing)}", style)])
        return self.filled(map(self.strip, lines))

    def _bar(self, answer: RateAnswer, passing: _Bounds, grid: RateGrid, width: int) -> Spans:
        """Draw rates that keep it, open ones, and those that exceed it."""
        glyphs = glyphs_of(self)
        low = passing[0] if answer.lower is None else answer.lower.rate
        high = passing[1] if answer.upper is None else answer.upper.rate
        lower = 0 if low is None else self._cell(low, grid, width) + 1
        upper = width if high is None else self._cell(high, grid, width)
        if lower and high is not None:
            # Bounds in one cell are distinguished by their figures.
            lower = min(lower, max(upper, 1))
        upper = max(upper, lower)
        return [
            (glyphs.strengths[-1] * lower, "muted" if answer.lower is None else "curve"),
            ("?" * (upper - lower), "muted"),
            ("x" * (width - upper), "muted" if answer.upper is None else "failed"),
        ]

    def _cell(self, rate: float, grid: RateGrid, width: int) -> int:
        low, high = math.log(grid.rate(grid.last)), math.log(grid.highest)
        share = (math.log(max(rate, 1e-9)) - low) / (high - low) if high > low else 1.0
        return min(max(round(share * (width - 1)), 0), width - 1)

    def _words(self, answer: RateAnswer, passing: _Bounds) -> str:
        lower, upper = answer.lower, answer.upper
        if answer.verdict is RateVerdict.ALL_KEEP and lower is not None:
            return f"{lower.rate:,.0f} keep it: the highest tried"
        if answer.verdict is RateVerdict.NONE_KEEPS and upper is not None:
            return f"even {upper.rate:,.0f} exceed it"
        if lower is None or upper is None:
            low = passing[0] if lower is None else lower.rate
            high = passing[1] if upper is None else upper.rate
            ends = " .. ".join("?" if each is None else f"{each:,.0f}" for each in (low, high))
            return "no bounds yet" if low is None and high is None else f"about {ends} so far"
        width = upper.rate / lower.rate - 1
        share = f"{100 * width:.1f}" if width < 0.995 else f"{100 * width:.0f}"
        return f"{lower.rate:,.0f} .. {upper.rate:,.0f} {share} % (<= {100 * self._goal:g} %)"
