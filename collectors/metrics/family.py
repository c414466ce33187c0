"""Metric families and their values: what a family is made of is declared once, in the module of its subject."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from enum import StrEnum
from functools import lru_cache

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.model import MISSING, Rows, Table
from engine.text import safe_text

Positions = NDArray[np.intp]


class FamilyKind(StrEnum):
    """Type of a family, as the line `# TYPE` has it."""

    COUNTER = "counter"
    GAUGE = "gauge"
    HISTOGRAM = "histogram"


class Family(Struct, frozen=True):
    """Name, type and help of one metric family."""

    name: str
    """Base unit at its end (`_seconds`, `_bytes`), then `_total` if it is a counter."""
    kind: FamilyKind
    help: str
    """Help; for names of node_exporter it is theirs word by word, as a server shows one help per name."""
    label_names: tuple[str, ...] = ()

    @property
    def of_node_exporter(self) -> bool:
        """Whether node_exporter has the same name with the same meaning."""
        return self.name.startswith("node_")


class MetricPart(Struct, frozen=True):
    """Values of one raw column in a family that has several, such as one per operation."""

    column: str
    labels: str = ""
    """Labels of the part, rendered: `operation="read"`."""


class ColumnFamily(Struct, frozen=True):
    """A family whose values are raw columns, each value multiplied by `times` and divided by `per`."""

    family: Family
    parts: tuple[MetricPart, ...]
    times: int = 1
    per: int = 1
    below: int | None = None
    """Values from this one on are wrong; kernels print some negative in-flight counts as unsigned."""


class Values(Struct, frozen=True):
    """Values of some label sets; all of them are known."""

    labels: Sequence[str]
    """Rendered, without braces."""
    values: Sequence[int | float]
    more: str = ""
    """Labels that all of them have besides."""


class MetricHistogram(Struct, frozen=True, eq=False):
    """Classic histograms of one family: one row per label set."""

    labels: Sequence[str]
    borders_s: Sequence[str]
    """Upper borders (`le`), rendered; +Inf is not among them."""
    counts: NDArray[np.uint64]
    """I/Os in each bucket and above the last border, shape (rows, borders + 1); not cumulative."""
    sums_s: NDArray[np.float64]


class MetricPoint(Struct, frozen=True):
    """A family with all of its values; yielded at most once per exposition."""

    family: Family
    values: tuple[Values, ...] = ()
    distributions: tuple[MetricHistogram, ...] = ()

    @property
    def series(self) -> int:
        """Number of time series."""
        simple = sum(len(part.values) for part in self.values)
        return simple + sum(len(part.labels) * (len(part.borders_s) + 3) for part in self.distributions)


def counter(name: str, help_: str, *label_names: str) -> Family:
    """Declare a counter."""
    return Family(name, FamilyKind.COUNTER, help_, label_names)


def gauge(name: str, help_: str, *label_names: str) -> Family:
    """Declare a gauge."""
    return Family(name, FamilyKind.GAUGE, help_, label_names)


def label(name: str, value: str) -> str:
    r"""Render one label: backslash, quote and line break escaped, other control characters made visible."""
    escaped = safe_text(value).replace("\\", r"\\").replace('"', r"\"")
    return f'{name}="{escaped}"'


def labels(**values: str) -> str:
    """Render several labels."""
    return ",".join(label(name, value) for name, value in values.items())


@lru_cache(maxsize=16)
def name_labels(rows: Rows, name: str) -> tuple[str, ...]:
    """Render the names of all rows as one label."""
    return tuple(label(name, row_name) for row_name in rows.names)


def first_of_each(rendered: Sequence[str]) -> Positions:
    """Positions of label sets that no earlier one equals: two equal series would spoil a whole scrape."""
    seen: dict[str, int] = {}
    for position, text in enumerate(rendered):
        seen.setdefault(text, position)
    return np.fromiter(seen.values(), np.intp, len(seen))


def of_columns(
    families: Sequence[ColumnFamily], table: Table | None, rendered: Sequence[str], at: Positions | None = None
) -> Iterator[MetricPoint]:
    """Measure families from raw columns; missing values are left out, and families without any value.

    Args:
        families: to measure, in order.
        table: raw table; None yields nothing.
        rendered: labels of each row of the table, or of each of `at`.
        at: rows to take, all without it.
    """
    if table is None:
        return
    raw = table.values if at is None else table.values[at]
    known_columns = {column.id: position for position, column in enumerate(table.schema.columns)}
    for one in families:
        parts = tuple(
            part
            for wanted in one.parts
            if wanted.column in known_columns
            for part in _values(one, raw[:, known_columns[wanted.column]], rendered, wanted.labels)
        )
        if parts:
            yield MetricPoint(one.family, parts)


def _values(one: ColumnFamily, raw: NDArray[np.uint64], rendered: Sequence[str], more: str) -> tuple[Values, ...]:
    known = raw != MISSING if one.below is None else raw < one.below
    if not known.all():
        at = np.flatnonzero(known)
        raw, rendered = raw[at], [rendered[position] for position in at.tolist()]
    if not len(raw):
        return ()
    scaled = raw * np.uint64(one.times)
    return (Values(rendered, scaled.tolist() if one.per == 1 else (scaled / one.per).tolist(), more),)
