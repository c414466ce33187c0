"""The table of the path screen from one frame: its columns, and figures, states and verdicts of groups and paths."""

from __future__ import annotations

from collections.abc import Sequence
from enum import StrEnum

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.field import Thresholds, Unit
from collectors.model import Frame, FrameTable, Tier
from collectors.paths.groups import GroupBy
from collectors.paths.rollup import ONLY_OF_PORTS, joined, roll_up
from collectors.paths.state import PathLevel
from collectors.registry import fields_of
from collectors.tables.block.path_verdict import PathJudgement, judge_paths, odd_words
from engine.replacing import replace
from engine.text import safe_text
from tui.history.gone_paths import GonePath, GoneThen
from tui.screens.paths.layout import DOWN, GONE, SICK, UNEVEN, PathLayout, path_layout, severities
from tui.text.columns import GridColumn, grid_columns, hot_rows, trend_column
from tui.text.format import format_integer

STATE, VERDICT = "state", "verdict"
"""Columns that are not in the field registry: their figures only sort and mark."""

MOST_NAMED = 3
"""Paths that are listed by name; more are counted."""

STATE_ROOM = 12
"""Width of a state's text."""


class Only(StrEnum):
    """Which paths are shown."""

    ALL = "all paths"
    NOT_ACTIVE = "not active"
    SICK = "sick or uneven"
    HOT = "hot"

    @property
    def empty_text(self) -> str:
        """Text shown if no path matches."""
        return "all paths active" if self is Only.NOT_ACTIVE else f"no path is {self}"


class PathTable(Struct, frozen=True, eq=False):
    """Figures, texts and counts of one frame in one grouping."""

    frame: Frame
    layout: PathLayout
    judged: PathJudgement | None
    table: FrameTable
    """Rows of the layout; `busy_pct` is the lower bound where only a range is known."""
    passes: NDArray[np.bool_] | None
    """Rows that match the filter, None for all."""
    gone: GoneThen

    def cell_text(self, field_id: str, row: int) -> str | None:
        """Text of a cell in a text column."""
        if field_id == STATE:
            return self.state_text(row)
        if field_id == VERDICT:
            return self.verdict_text(row)
        return self._busy_range(row) if field_id == "busy_pct" else None

    def verdict_words(self) -> dict[int, str]:
        """One word on each path that is not normal though it is not down, by row."""
        if self.judged is None:
            return {}
        sick, uneven = self.judged.sick_times, self.judged.uneven_times
        at = np.flatnonzero((~np.isnan(sick) | ~np.isnan(uneven)) & (self.layout.levels != PathLevel.DOWN))
        words = np.where(np.isinf(sick[at]), "stalled", np.where(np.isnan(sick[at]), "uneven", "sick"))
        return dict(zip((at + self.layout.group_count).tolist(), words.tolist(), strict=True))

    def path_row(self, row: int) -> int | None:
        """Row in the "paths" table; None for a group."""
        return row - self.layout.group_count if row >= self.layout.group_count else None

    def members(self, row: int) -> NDArray[np.intp]:
        """Rows in the "paths" table of the paths of a group."""
        return np.flatnonzero(self.layout.groups.group_of_row == row)

    def state_text(self, row: int) -> str:
        """State of a path, or how many of a group are not normal."""
        path = self.path_row(row)
        return self._group_state(row) if path is None else self._path_state(path)

    def verdict_text(self, row: int) -> str:
        """Verdict on a path, or on the slowest path of a group."""
        if self.judged is None:
            return ""
        path = self.path_row(row)
        if path is not None:
            return odd_words(self.frame, self.judged, path)
        odd = self.judged.odd
        odd = odd[self.layout.groups.group_of_row[odd] == row]
        odd = odd[np.argsort(-np.nan_to_num(self.judged.sick_times[odd]), kind="stable")]
        more = f" (and {len(odd) - 1} more)" if len(odd) > 1 else ""
        return odd_words(self.frame, self.judged, int(odd[0])) + more if len(odd) else self._down_text(row)

    def _down_text(self, row: int) -> str:
        """List the paths of a group that are down, at most MOST_NAMED by name."""
        members = self.members(row)
        down = members[self.layout.levels[members] == PathLevel.DOWN]
        named = [f"{self.path_name(path)} {self.layout.states[path].word}" for path in down[:MOST_NAMED].tolist()]
        more = f" and {len(down) - MOST_NAMED} more" if len(down) > MOST_NAMED else ""
        return ", ".join(named) + more

    def path_name(self, path: int) -> str:
        """Kernel name of a path, safe to print."""
        return safe_text(self.frame.tables["paths"].rows.names[path])

    def gone_of(self, row: int) -> tuple[GonePath, ...]:
        """Lost paths of a group that is a LUN; none for other groups."""
        groups = self.layout.groups
        return self.gone.of_lun(groups.of[row]) if groups.by is GroupBy.LUN and row < len(groups.of) else ()

    def _path_state(self, path: int) -> str:
        state = self.layout.states[path]
        if state.level is not PathLevel.DOWN and self.judged is not None:
            if np.isinf(self.judged.sick_times[path]):
                return "stalled"
            if not np.isnan(self.judged.sick_times[path]):
                return f"sick {self.judged.sick_times[path]:.1f}x"
            if not np.isnan(self.judged.uneven_times[path]):
                return f"uneven {self.judged.uneven_times[path]:.1f}x"
        return _SHORT.get(state.word, state.word) or "-"

    def _group_state(self, row: int) -> str:
        members = self.members(row)
        levels = self.layout.levels[members]
        down, count = int((levels == PathLevel.DOWN).sum()), len(members)
        gone = len(self.gone_of(row))
        if gone:
            return _some(gone, count + gone, "gone")
        if down:
            return _some(down, count, "down")
        sick = 0 if self.judged is None else int((~np.isnan(self.judged.sick_times[members])).sum())
        if sick:
            return _some(sick, count, "sick")
        marginal = int((levels == PathLevel.MARGINAL).sum())
        if marginal:
            return _some(marginal, count, "marg")
        standby = int((levels == PathLevel.STANDBY).sum())
        if standby:
            return _some(count - standby, count, "act")
        second = int((levels == PathLevel.SECONDARY).sum())
        return _preferred(count - second, second) if second else f"{count} active"

    def _busy_range(self, row: int) -> str | None:
        low, high = (self.table.value(field_id, row) for field_id in ("busy_low_pct", "busy_high_pct"))
        if row >= self.layout.group_count or np.isnan(low) or not np.isnan(self._known_busy(row)):
            return None
        return f"{low:.0f}-{high:.0f}"

    def _known_busy(self, row: int) -> float:
        return self.table.value(_EXACT_BUSY, row)


_SHORT = {"non-optimized": "non-opt"}
"""State texts that are wider than the column, and their short forms."""


def _preferred(first: int, second: int) -> str:
    """Count optimized and non-optimized paths: "3 opt 1 non"."""
    text = f"{first} opt {second} non" if first else f"{second} non-opt"
    return text if len(text) <= STATE_ROOM else f"{first:,}+{second:,}"


def _some(number: int, count: int, word: str) -> str:
    """Format a count of a total; without the total if it does not fit."""
    text = f"{number} of {count} {word}"
    return text if len(text) <= STATE_ROOM else f"{number:,} {word}"


_EXACT_BUSY = "busy_union_pct"
"""Busy time, missing where only its range is known."""


_NONE_GONE = GoneThen()


def path_table(
    frame: Frame, by: GroupBy, only: Only, fields: Sequence[str], gone: GoneThen = _NONE_GONE
) -> PathTable | None:
    """Build the path table of a frame; None without paths.

    Args:
        frame: any.
        by: grouping of the paths.
        only: which paths are shown.
        fields: additional columns.
        gone: paths that vanished.
    """
    paths = frame.tables.get("paths")
    if paths is None:
        return None
    layout = path_layout(paths.rows, frame.topology, by)
    judged = judge_paths(frame)
    wanted = dict.fromkeys((*fields, "iops", "busy_pct", "busy_low_pct", "busy_high_pct"))
    table = joined(layout.rows, roll_up(frame, layout.groups, wanted), paths, tuple(wanted))
    busy = table.columns["busy_pct"]
    state = severities(layout, judged, gone)
    columns = {**table.columns, STATE: state, VERDICT: state, _EXACT_BUSY: busy}
    columns["busy_pct"] = np.where(np.isnan(busy), table.columns["busy_low_pct"], busy)
    table = FrameTable(layout.rows, columns, table.tiers)
    return PathTable(frame, layout, judged, table, _passes(only, layout, table, state), gone)


def _passes(only: Only, layout: PathLayout, table: FrameTable, state: NDArray[np.float64]) -> NDArray[np.bool_] | None:
    if only is Only.ALL:
        return None
    if only is Only.NOT_ACTIVE:
        chosen = np.concatenate((np.zeros(layout.group_count, np.intp), layout.levels)) >= PathLevel.STANDBY
    elif only is Only.SICK:
        chosen = (state >= UNEVEN) & (state < DOWN)
    else:
        chosen = hot_rows(table, (*fields_of("paths"), *fields_of("hbas")))
    passes: NDArray[np.bool_] = chosen & ~layout.branch
    if only is Only.NOT_ACTIVE:
        passes |= state == GONE
    return passes


FIRST_COLUMNS = ("iops", "await_ms", "queue_ms", "service_ms", "busy_pct")
"""Most important columns; with the state they fit into 80 cells."""
NEXT_COLUMNS = ("lun_share_pct", "in_flight", "limit_pct", "bytes_per_s")
STATE_WIDTH, VERDICT_WIDTH, RANGE_WIDTH = STATE_ROOM + 1, 64, 6


def path_columns() -> tuple[GridColumn, ...]:
    """State, the most important figures, the verdict, then all other fields of paths and ports."""
    chosen = (*FIRST_COLUMNS, *NEXT_COLUMNS)
    rest = tuple(field.id for field in fields_of("paths") if field.id not in chosen)
    figures = {column.field_id: column for column in grid_columns("paths", (*chosen, *rest))}
    figures["busy_pct"] = replace(figures["busy_pct"], width=RANGE_WIDTH, as_text=True)
    shown_otherwise = {"busy_low_pct", "busy_high_pct", "paths"}
    of_ports = tuple(field_id for field_id in ONLY_OF_PORTS if field_id not in shown_otherwise)
    return (
        state_column(),
        *(figures[field_id] for field_id in chosen),
        _text_column(VERDICT, "Verdict", VERDICT_WIDTH),
        trend_column("paths"),
        *(figures[field_id] for field_id in rest),
        *grid_columns("hbas", of_ports),
    )


def state_column() -> GridColumn:
    """Make the column of states as text, marked if they are bad."""
    return _text_column(STATE, "State", STATE_WIDTH, Thresholds(UNEVEN, SICK))


def _text_column(field_id: str, title: str, width: int, marks: Thresholds | None = None) -> GridColumn:
    return GridColumn(
        field_id, title, width, lambda value: format_integer(value, width), Unit.COUNT, Tier.NONE, "left", marks, True
    )
