"""What a preset measured, as text and as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from engine.sweep.document import Document, sweep_document
from engine.sweep.presets.plans import PresetPlan, preset_points
from engine.sweep.presets.table import StudyColumn, StudyRow, StudyTable
from engine.sweep.runner import SweepResult
from engine.version import version

SCHEMA = "lunscope.preset/1"


class PresetOutcome(Struct, frozen=True):
    """The results of the parts that began, in their order."""

    plan: PresetPlan
    results: tuple[SweepResult, ...]
    targets: tuple[str, ...]

    @property
    def is_complete(self) -> bool:
        """Whether every point was measured."""
        return len(self.results) == len(self.plan.parts) and all(result.is_complete for result in self.results)

    @property
    def tables(self) -> tuple[StudyTable, ...]:
        """The tables of the study, without those for which nothing was measured."""
        named = zip(self.plan.parts, self.results, strict=False)
        points = [point for (part, _), result in named for point in preset_points(part.name, result)]
        return tuple(table for table in self.plan.preset.tables(points) if table.rows) if points else ()


def outcome_lines(outcome: PresetOutcome) -> Iterator[str]:
    """Write the tables with the published rows beside, and what was published besides."""
    preset = outcome.plan.preset
    yield from (f"note: {line}" for result in outcome.results for line in result.troubles)
    for table in outcome.tables:
        yield f"[{table.title}]"
        yield from aligned_lines(table)
        yield ""
    if preset.published:
        yield f"published elsewhere, on other hardware ({preset.source}):"
        yield from (f"  {line}" for line in preset.published)
    if not outcome.is_complete:
        ended = next((result.ended for result in outcome.results if not result.is_complete), "stopped")
        measured = sum(len(curve.trials) for result in outcome.results for curve in result.curves)
        yield f"not complete: {ended}; {measured} measurements were made"


def aligned_lines(table: StudyTable) -> Iterator[str]:
    """Write one table with aligned columns, and the published rows beside."""
    head = tuple(column.title for column in table.columns)
    alone = [("",) * len(head) for _ in table.published_only]
    left = _aligned((head, *(_shown(table.columns, row) for row in table.rows), *alone))
    if not table.published:
        yield from (line.rstrip() for line in left)
        return
    beside = [row.published or ("-",) * len(table.published_columns) for row in table.rows]
    right = _aligned((table.published_columns, *beside, *table.published_only))
    yield f"{'':{len(left[0])}}  | published elsewhere"
    yield from (f"{mine}  | {theirs}".rstrip() for mine, theirs in zip(left, right, strict=True))


def _shown(columns: Sequence[StudyColumn], row: StudyRow) -> tuple[str, ...]:
    return tuple(column.shown(cell) for column, cell in zip(columns, row.cells, strict=True))


def _aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Align words to the left and numbers to the right."""
    columns = [_column(column) for column in zip(*rows, strict=True)]
    return ["  ".join(cells) for cells in zip(*columns, strict=True)]


def _column(cells: Sequence[str]) -> list[str]:
    width, is_words = max(map(len, cells)), any(" " in cell for cell in cells[1:])
    return [cell.ljust(width) if is_words else cell.rjust(width) for cell in cells]


def outcome_document(outcome: PresetOutcome) -> Document:
    """Everything a preset measured, ready for json.dumps; the parts are sweeps of schema lunscope.sweep/1."""
    preset = outcome.plan.preset
    named = zip(outcome.plan.parts, outcome.results, strict=False)
    return {
        "schema": SCHEMA,
        "version": version(),
        "preset": preset.name,
        "title": preset.title,
        "targets": list(outcome.targets),
        "complete": outcome.is_complete,
        "remarks": list(outcome.plan.remarks),
        "tables": [table_document(table) for table in outcome.tables],
        "published_elsewhere": {"source": preset.source, "facts": list(preset.published)},
        "parts": [{"name": part.name, "sweep": sweep_document(result, outcome.targets)} for (part, _), result in named],
    }


def table_document(table: StudyTable) -> Document:
    """One table, ready for json.dumps."""
    only = [dict(zip(table.published_columns, row, strict=True)) for row in table.published_only]
    rows = [_row_document(table, row) for row in table.rows]
    columns = [{"key": each.key, "title": each.title, "digits": each.digits} for each in table.columns]
    return {"title": table.title, "rows": rows, "published_elsewhere_only": only, "columns": columns}


def _row_document(table: StudyTable, row: StudyRow) -> Document:
    published = dict(zip(table.published_columns, row.published, strict=True)) if row.published else None
    return {
        **{column.key: cell for column, cell in zip(table.columns, row.cells, strict=True)},
        "published_elsewhere": published,
    }
