"""The part of the sweep screen that shows a sweep: table, plot, map, targets, answer."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from textual import on
from textual.app import ComposeResult
from textual.containers import Vertical
from textual.strip import Strip

from collectors.field import Unit
from engine.sweep.knee import Answer
from engine.sweep.plan import SweepPlan
from engine.sweep.points import Point
from engine.sweep.target_share import TargetShare, hottest_target
from engine.text import safe_text
from tui.screens.sweep.answer import AnswerText
from tui.screens.sweep.answers import CurveAnswers
from tui.screens.sweep.body import AnswersChanged, SweepBody
from tui.screens.sweep.heat import SweepMap, map_grid
from tui.screens.sweep.point_grid import PointGrid
from tui.screens.sweep.rows import PointRow, SweepState, interval, optima, point_rows
from tui.screens.sweep.shown import ShownMeasurement
from tui.screens.sweep.study_words import StudyWords
from tui.screens.sweep.words import answer_text, curve_name, curve_words, hottest_text, point_text, verdict_text
from tui.text.format import MISSING_TEXT, format_quantity
from tui.text.glyphs import glyphs_of
from tui.text.safe import fit_name, width_of
from tui.widgets.chart.axes import tick_label
from tui.widgets.plots import AXIS_CELLS, Canvas, PlotAxis, line_below, plot_lines
from tui.widgets.spans import Spanned, Spans

_MOST_LINES = 14
"""Most lines of the map and of the lanes beside the others."""


class CurvesBody(SweepBody[SweepState]):
    """Draws a state; it keeps what was chosen: view, order. What it draws belongs to the curve under the cursor."""

    PLAN = SweepPlan
    VIEWS = ("table", "plot", "map", "targets", "answer")

    DEFAULT_CSS = """
    CurvesBody { layout: horizontal; }
    CurvesBody, CurvesBody Vertical { height: 1fr; }
    CurvesBody Spanned { height: 1fr; }
    CurvesBody Vertical { width: 1fr; }
    CurvesBody.-large #table { height: 2fr; }
    CurvesBody.-large #plot { height: 2fr; }
    CurvesBody.-large #sweep_right { margin: 0 0 0 1; }
    """

    def __init__(self) -> None:
        super().__init__("sweep_body")
        self._curve = 0
        self._answers = CurveAnswers(self._post_change)

    def _post_change(self) -> None:
        self.post_message(AnswersChanged())

    def answers(self, state: SweepState) -> tuple[Answer | None, ...]:
        """Return what is known of each curve; never blocks, and asks for what is missing."""
        return self._answers.of(state.plan, state.points)

    def compose(self) -> ComposeResult:
        """Table and answer on the left, drawings on the right."""
        with Vertical(id="sweep_left"):
            yield PointGrid[PointRow]("sweep_points", name_title="Point", id="table")
            yield AnswerText(id="answer")
        with Vertical(id="sweep_right"):
            yield SweepPlot(id="plot")
            yield SweepMap(id="map")
            yield TargetLanes(id="targets")

    def show(self, state: SweepState, shown: ShownMeasurement, *, is_large: bool) -> None:
        """Draw a sweep, with the tables of the preset that it is a part of."""
        answers = self.answers(state)
        rows = point_rows(state, answers)
        self.grid.show_points(rows)
        row = self.row
        self._curve = 0 if row is None else min(row.point.curve, len(answers) - 1)
        self.query_one(AnswerText).show(list(answer_text(state, answers, self._curve)), list(shown.tables(state)))
        self._draw_rows(state, answers[self._curve], rows)
        self._lay_out(state, is_large=is_large)

    def _draw_rows(self, state: SweepState, answer: Answer | None, rows: list[PointRow]) -> None:
        row = self.row
        at = None if row is None else row.point
        knob = "" if state.plan.load is None else state.plan.load.knob.key
        self.query_one(SweepPlot).show(rows, self._curve, answer, curve_name(state, self._curve), knob)
        self.query_one(SweepMap).show(map_grid(state.plan, rows, self._curve), rows, at)
        self.query_one(TargetLanes).show(row, "" if at is None else state.plan.point_name(at))

    def _lay_out(self, state: SweepState, *, is_large: bool) -> None:
        """Show all views that have something to show, or the chosen one where there is no room for all."""
        self.set_class(is_large, "-large")
        self._offered = tuple(view for view in self.VIEWS if _has(state, view))
        for view in self.VIEWS:
            widget = self.view_widget(view)
            widget.display = view in self._offered if is_large else view == self._view
            if not is_large:
                widget.styles.height = None  # What the style sheet says, in a large window again, too.
        if is_large:
            self._fit_to_plan(state)
        for side in ("#sweep_left", "#sweep_right"):
            column = self.query_one(side)
            column.display = any(child.display for child in column.children)

    def _fit_to_plan(self, state: SweepState) -> None:
        """Give map and lanes the lines they need, which depend on the axes only; the plot gets the rest."""
        targets = max((len(trial.targets) for trials in state.points.trials for trial in trials), default=0)
        for view, lines in (("map", len(state.plan.curves)), ("targets", targets + 1)):
            self.view_widget(view).styles.height = min(lines + 3, _MOST_LINES)

    def words(self, state: SweepState) -> StudyWords:
        """Say how far the sweep is."""
        return curve_words(state)

    def name_of(self, state: SweepState, point: Point) -> str:
        """Name a point by the values of its axes."""
        return state.plan.point_name(point)

    def texts(self, state: SweepState, width: int) -> tuple[str, str]:
        """Verdict of the curve under the cursor, and its point."""
        row = self.row
        verdict = verdict_text(state, self._curve, self.answers(state)[self._curve], width)
        return verdict, " " if row is None else point_text(state, row, width)

    @property
    def row(self) -> PointRow | None:
        """The point under the cursor."""
        row: PointRow | None = self.grid.row
        return row

    def chosen(self, state: SweepState) -> tuple[object, ...]:
        """Return view, point, and the answers that are known."""
        return self._view, self.row and self.row.point, self.answers(state)

    @on(SweepMap.PointMoved)
    def _moved_on_map(self, message: SweepMap.PointMoved) -> None:
        self.go_to(message.point)

    def go_to(self, point: Point) -> None:
        """Move the cursor to a point."""
        self.grid.move_to_key(f"{point.curve}:{point.load}")

    def next_figure(self, _state: SweepState) -> None:
        """Show the next figure on the map."""
        self.query_one(SweepMap).next_figure()

    def next_curve(self, state: SweepState) -> None:
        """Move to the first point of the next curve."""
        curve = (self._curve + 1) % len(state.plan.curves)
        self.go_to(Point(curve, state.plan.curves[curve].search.loads[0]))


def _has(state: SweepState, view: str) -> bool:
    """Whether a view has something to show: a map needs two axes, lanes several targets."""
    match view:
        case "map":
            return state.plan.load is not None and len(state.plan.axes) > 1
        case "targets":
            return any(trial.targets for trials in state.points.trials for trial in trials)
        case _:
            return True


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


_LEAST = (20, 5)
_MEASURED = "o"
_SAMPLES = 64

Floats = NDArray[np.float64]


class _PlottedCurve(Struct, frozen=True, eq=False):
    """Measured loads, ascending."""

    loads: Floats
    iops: Floats
    mean_ms: Floats
    p99_ms: Floats
    """NaN where there are too few I/Os."""

    @classmethod
    def of(cls, rows: Sequence[PointRow]) -> _PlottedCurve:
        known = sorted((row for row in rows if row.summary is not None and row.figure("iops")), key=lambda r: r.point)
        columns = [[row.figure(name) for row in known] for name in ("iops", "mean", "p99")]
        figures = [np.array([math.nan if each is None else each for each in column]) for column in columns]
        return cls(np.array([float(row.point.load) for row in known]), *figures)

    def at(self, loads: Floats) -> tuple[Floats, Floats]:
        """IOPS and mean latency between measured loads, in logarithms."""
        n = np.log(self.loads)
        iops, mean = (np.exp(np.interp(np.log(loads), n, np.log(each))) for each in (self.iops, self.mean_ms))
        return np.asarray(iops, np.float64), np.asarray(mean, np.float64)


class _SweepAxes(Struct, frozen=True):
    """Throughput runs linearly from 0, latency in logarithms."""

    iops: PlotAxis
    latency_ms: PlotAxis

    @classmethod
    def of(cls, curves: Sequence[_PlottedCurve]) -> _SweepAxes:
        iops = np.concatenate([curve.iops for curve in curves])
        latencies = np.concatenate([each for curve in curves for each in (curve.mean_ms, curve.p99_ms)])
        latencies = latencies[np.isfinite(latencies) & (latencies > 0)]
        low, high = float(latencies.min(initial=1.0)), float(latencies.max(initial=1e-6))
        latency_ms = PlotAxis(low / 1.3, max(high * 1.3, low * 2), is_log=True)
        return cls(PlotAxis(0.0, float(iops.max()) * 1.05), latency_ms)


class SweepPlot(Spanned, inherit_bindings=False):
    """Latency over throughput."""

    can_focus = False

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's name
        super().__init__(id=id)
        self._rows: Sequence[PointRow] = ()
        self._curve = 0
        self._answer: Answer | None = None
        self._name = self._knob = ""

    def show(self, rows: Sequence[PointRow], curve: int, answer: Answer | None, name: str, knob: str) -> None:
        """Take the rows of all curves, the one in front with its answer and name, and the key of its load."""
        self._rows, self._curve, self._answer, self._name, self._knob = rows, curve, answer, name, knob
        self.repaint()

    def draw_lines(self) -> list[Strip]:
        """Title, plot, axis of throughput."""
        by_curve: dict[int, list[PointRow]] = {}
        for row in self._rows:
            by_curve.setdefault(row.point.curve, []).append(row)
        measured = {index: _PlottedCurve.of(rows) for index, rows in by_curve.items()}
        curves = {index: curve for index, curve in measured.items() if len(curve.loads)}
        if not curves or self.area.width < _LEAST[0] or self.area.height < _LEAST[1]:
            return self.hint("throughput against latency: nothing was measured yet")
        axes = _SweepAxes.of(list(curves.values()))
        canvas = Canvas(self.area.height - 3, self.area.width - AXIS_CELLS - 1, glyphs_of(self))
        self._draw_curves(canvas, curves, axes)
        return self.filled(self.strip(line) for line in self._lines(canvas, axes))

    def _draw_curves(self, canvas: Canvas, curves: dict[int, _PlottedCurve], axes: _SweepAxes) -> None:
        x, y = axes.iops.at, axes.latency_ms.at
        for index, curve in curves.items():
            if index != self._curve:
                canvas.line(x(curve.iops), y(curve.mean_ms), "axis", every=2, plain=":")
        if self._curve not in curves:
            return
        curve = curves[self._curve]
        known = np.isfinite(curve.p99_ms)
        if known.sum() > 1:
            canvas.line(x(curve.iops[known]), y(curve.p99_ms[known]), "peak", every=3, plain=".")
        canvas.line(x(curve.iops), y(curve.mean_ms), "curve")
        self._draw_interval(canvas, curve, axes)
        for load, iops, mean in zip(curve.loads, x(curve.iops), y(curve.mean_ms), strict=True):
            canvas.mark(float(iops), float(mean), _MEASURED, "curve")
            canvas.label(float(iops), float(mean), f"{load:g}", "muted")
        for mark, optimum in optima(self._answer):
            canvas.mark(float(x(optimum.at.iops)), float(y(optimum.at.latency_ns / 1e6)), mark, "mark")

    def _draw_interval(self, canvas: Canvas, curve: _PlottedCurve, axes: _SweepAxes) -> None:
        """Draw the part of the curve in the interval brighter, in brackets."""
        low, high = interval(self._answer)
        if low > high or len(curve.loads) < 2:
            return
        iops, mean = curve.at(np.geomspace(low, max(high, low * 1.001), _SAMPLES))
        x, y = axes.iops.at(iops), axes.latency_ms.at(mean)
        canvas.line(x, y, "mark", plain="#")
        canvas.mark(float(x[-1]), float(y[-1]), "]", "mark")
        canvas.mark(float(x[0]), float(y[0]), "[", "mark")

    def _lines(self, canvas: Canvas, axes: _SweepAxes) -> Iterator[Spans]:
        title, legend = (
            " Latency (ms, log) over IOPS",
            f"  {_MEASURED} mean at each {self._knob or 'point'}  dotted p99",
        )
        legend += "  [ ] 95 % interval"
        of_curve = f" {self._name}".rstrip()
        fits = len(title) + len(of_curve) + len(legend) <= self.area.width
        yield [(title + (of_curve if fits else ""), "mark"), (legend, "text")]
        yield from plot_lines(self, canvas, axes.latency_ms, lambda value: tick_label(value, Unit.MILLISECONDS))
        yield [(line_below(axes.iops, canvas.cells, lambda value: tick_label(value, Unit.PER_SECOND)), "axis")]
