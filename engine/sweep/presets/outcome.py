"""What a preset measured, as JSON."""

from __future__ import annotations

from msgspec import Struct

from engine.replacing import replace
from engine.sweep.document import Document, sweep_document
from engine.sweep.presets.plans import PresetPlan, preset_points
from engine.sweep.presets.table import PresetPoint, StudyRow, StudyTable
from engine.sweep.runner import SweepResult
from engine.sweep.tuned_axis import PREFIX
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
        """The tables of the study, of each value of tunables that vary, without those of which nothing was measured."""
        named = zip(self.plan.parts, self.results, strict=False)
        points = [point for (part, _), result in named for point in preset_points(part.name, result)]
        return tuple(
            _titled(table, tuned)
            for tuned in dict.fromkeys(map(self._tuned, points))
            for table in self.plan.preset.tables([point for point in points if self._tuned(point) == tuned])
            if table.rows
        )

    def _tuned(self, point: PresetPoint) -> str:
        """Write the values of tunables that vary beside the axes of the study; empty where none do, or as factors."""
        if self.plan.preset.rounds:
            return ""
        named = (each for each in point.settings if each[0].startswith(PREFIX))
        return " ".join(f"{name}={value}" for name, value in named if name not in self.plan.preset.tunables)


def _titled(table: StudyTable, tuned: str) -> StudyTable:
    """Name the tunables of a table that has the points with these values."""
    return replace(table, title=f"{tuned}: {table.title}") if tuned else table


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
