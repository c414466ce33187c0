"""Tables of a preset: figures of measured points, with the published ones beside."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from msgspec import Struct

from engine.job.knobs import Knobs
from engine.sweep.trial import Trial

Cell: TypeAlias = float | str | None
"""None is not known."""


class PresetPoint(Struct, frozen=True):
    """One measurement with the knobs it was made with."""

    part: str
    """Name of the part of the preset."""
    knobs: Knobs
    trial: Trial
    settings: tuple[tuple[str, Any], ...] = ()
    """What varied beside the knobs, by id."""
    curve: int = 0
    """Index of its curve in the plan of the part."""

    @property
    def case(self) -> tuple[Knobs, tuple[tuple[str, Any], ...]]:
        """All that is the same for points that are compared."""
        return self.knobs, self.settings

    def setting(self, name: str) -> float | None:
        """Return a number that varied beside the knobs; None if it did not."""
        value = dict(self.settings).get(name)
        return None if value is None else float(value)


class StudyColumn(Struct, frozen=True):
    """One column: key in JSON with its unit, head in text, decimals of its numbers."""

    key: str
    title: str
    digits: int = 0

    def shown(self, cell: Cell) -> str:
        """Write a cell."""
        if cell is None:
            return "-"
        return cell if isinstance(cell, str) else f"{cell:,.{self.digits}f}"


class StudyFigure(Struct, frozen=True):
    """A column and how its cells follow from a point."""

    column: StudyColumn
    of: Callable[[PresetPoint], Cell]


class StudyRow(Struct, frozen=True):
    """Measured cells, and what was published for the same case; empty where nothing was."""

    cells: tuple[Cell, ...]
    published: tuple[str, ...] = ()


class StudyTable(Struct, frozen=True):
    """One table; a row's cells are as many as the columns."""

    title: str
    columns: tuple[StudyColumn, ...]
    rows: tuple[StudyRow, ...]
    published_columns: tuple[str, ...] = ()
    published: tuple[tuple[str, ...], ...] = ()
    """All published rows, of cases that were measured here and others."""

    @property
    def published_only(self) -> tuple[tuple[str, ...], ...]:
        """Published rows of cases that were not measured here."""
        beside = {row.published for row in self.rows}
        return tuple(row for row in self.published if row not in beside)


Publish: TypeAlias = Callable[[tuple[Cell, ...]], tuple[str, ...]]
"""Finds the published cells by the leading cells of a row."""


def nothing_published(_cells: tuple[Cell, ...]) -> tuple[str, ...]:
    """Return no cells."""
    return ()


def list_table(title: str, figures: Sequence[StudyFigure], points: Sequence[PresetPoint]) -> StudyTable:
    """Make a row of each point."""
    rows = tuple(StudyRow(tuple(figure.of(point) for figure in figures)) for point in points)
    return StudyTable(title, tuple(figure.column for figure in figures), rows)


class Pivot(Struct, frozen=True):
    """A table with a row for each combination of `down`, and the values of `across` side by side."""

    title: str
    down: tuple[StudyFigure, ...]
    across: StudyFigure
    values: tuple[StudyFigure, ...]
    published_columns: tuple[str, ...] = ()
    publish: Publish = nothing_published
    published: tuple[tuple[str, ...], ...] = ()

    def table(self, points: Sequence[PresetPoint]) -> StudyTable:
        """Arrange points; the last of several for one cell counts."""
        heads = dict.fromkeys(self.across.of(point) for point in points)
        cells = {(self._row(point), self.across.of(point)): point for point in points}
        rows = []
        for row in dict.fromkeys(map(self._row, points)):
            at = [cells.get((row, head)) for head in heads]
            measured = [None if point is None else value.of(point) for point in at for value in self.values]
            rows.append(StudyRow((*row, *measured), self.publish(row)))
        columns = tuple(self._column(value.column, head) for head in heads for value in self.values)
        columns = (*(each.column for each in self.down), *columns)
        return StudyTable(self.title, columns, tuple(rows), self.published_columns, self.published)

    def _row(self, point: PresetPoint) -> tuple[Cell, ...]:
        return tuple(figure.of(point) for figure in self.down)

    def _column(self, value: StudyColumn, head: Cell) -> StudyColumn:
        across = self.across.column
        name = across.shown(head)
        title = f"{across.title} {name} {value.title}".strip()
        return StudyColumn(f"{value.key}_{across.key}_{name}", title, value.digits)
