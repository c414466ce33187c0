"""Intervals in little memory: one array for all their figures, one description for those that are alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from collectors.model import Frame, FrameTable, Histograms, HistogramScale, Rows

Number = TypeVar("Number", bound=np.generic)

_ALIGNMENT = 8
_CELLS = (("count", np.uint64), ("row", np.uint32), ("bucket", np.uint16), ("series_index", np.uint8))
"""Arrays of histograms; their lengths differ from one interval to the next."""
_ROW_BYTES = 256
"""Of the key and the name of a row."""
_OVERHEAD_BYTES = 600
"""Of an interval beside its figures."""


class PackedColumns(Mapping[str, NDArray[Number]], Generic[Number]):
    """Columns of equal length in one array of shape (fields, rows)."""

    __slots__ = ("_positions", "_values")

    def __init__(self, positions: Mapping[str, int], values: NDArray[Number]) -> None:
        self._positions = positions
        self._values = values

    def __getitem__(self, field_id: str) -> NDArray[Number]:
        column: NDArray[Number] = self._values[self._positions[field_id]]
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


@dataclass(frozen=True, slots=True, eq=False)
class _TableLayout:
    """Rows and fields of a table."""

    rows: Rows
    columns: Mapping[str, int]
    tiers: Mapping[str, int]

    def is_of(self, table: FrameTable) -> bool:
        return (
            _are_alike(self.rows, table.rows)
            and self.columns.keys() == table.columns.keys()
            and self.tiers.keys() == table.tiers.keys()
        )


@dataclass(frozen=True, slots=True, eq=False)
class _HistogramLayout:
    """What does not change from one interval's histograms to the next."""

    scale: HistogramScale
    rows: Rows
    series: tuple[str, ...]

    def is_of(self, histograms: Histograms) -> bool:
        is_alike = (self.scale, self.series) == (histograms.scale, histograms.series)
        return is_alike and _are_alike(self.rows, histograms.rows)


@dataclass(frozen=True, slots=True, eq=False)
class _Layout:
    """Where the figures of an interval lie in its array: tables in order, usual latencies, histograms."""

    tables: Mapping[str, _TableLayout]
    table_starts: Mapping[str, int]
    usual: Mapping[str, tuple[int, int]]
    """Start and length by table."""
    histograms: Mapping[str, _HistogramLayout]
    histograms_start: int


class _Tables(Mapping[str, FrameTable]):
    """Tables of a packed interval, made when they are asked for."""

    __slots__ = ("_layout", "_packed")

    def __init__(self, layout: _Layout, packed: NDArray[np.uint8]) -> None:
        self._layout, self._packed = layout, packed

    def __getitem__(self, name: str) -> FrameTable:
        table, start = self._layout.tables[name], self._layout.table_starts[name]
        columns, tiers = _parts(self._packed, start, table)
        return FrameTable(table.rows, PackedColumns(table.columns, columns), PackedColumns(table.tiers, tiers))

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.tables)

    def __len__(self) -> int:
        return len(self._layout.tables)


@dataclass(frozen=True, slots=True, eq=False)
class PackedInterval:
    """A frame without its figures, and these with the histograms of the interval as one array of bytes."""

    bare: Frame
    layout: _Layout
    cells: tuple[int, ...]
    """Of each of the histograms."""
    packed: NDArray[np.uint8]
    new_rows: int
    """Rows that the interval before does not share."""

    @property
    def size_bytes(self) -> int:
        """Memory that the interval takes."""
        return self.packed.nbytes + _OVERHEAD_BYTES + _ROW_BYTES * self.new_rows

    @property
    def frame(self) -> Frame:
        """The frame with its figures."""
        usual = {
            name: self.packed[start : start + length * 8].view(np.float64)
            for name, (start, length) in self.layout.usual.items()
        }
        return replace(self.bare, tables=self.tables, usual_ms=usual)

    @property
    def tables(self) -> Mapping[str, FrameTable]:
        """The tables with their figures."""
        return _Tables(self.layout, self.packed)

    @property
    def histograms(self) -> Mapping[str, Histograms]:
        """The latencies of the interval, by source."""
        found, start = {}, self.layout.histograms_start
        for (name, layout), count in zip(self.layout.histograms.items(), self.cells, strict=True):
            arrays: dict[str, Any] = {}
            for part, dtype in _CELLS:
                arrays[part] = _at(self.packed, start, count, dtype)
                start += _padded(arrays[part].nbytes)
            found[name] = Histograms(layout.scale, layout.rows, layout.series, **arrays)
        return found


class IntervalPacker:
    """Packs intervals that follow each other; those with the same rows and fields share their layout."""

    def __init__(self) -> None:
        self._layout = _Layout({}, {}, {}, {}, 0)

    def pack(self, frame: Frame, histograms: Mapping[str, Histograms]) -> PackedInterval:
        """Copy all figures into one array."""
        before, layout = self._layout, self._layout_of(frame, histograms)
        self._layout = layout
        cells = tuple(len(one.row) for one in histograms.values())
        size = layout.histograms_start + sum(
            _padded(count * np.dtype(dtype).itemsize) for count in cells for _, dtype in _CELLS
        )
        packed = np.zeros(size, np.uint8)
        _fill(packed, layout, frame, histograms)
        packed.flags.writeable = False
        known = {id(table.rows) for table in before.tables.values()}
        new_rows = sum(len(table.rows) for table in layout.tables.values() if id(table.rows) not in known)
        return PackedInterval(replace(frame, tables={}, usual_ms={}), layout, cells, packed, new_rows)

    def _layout_of(self, frame: Frame, histograms: Mapping[str, Histograms]) -> _Layout:
        last = self._layout
        tables = {name: self._table_layout(name, table) for name, table in frame.tables.items()}
        cells = {name: self._histogram_layout(name, one) for name, one in histograms.items()}
        lengths = {name: len(values) for name, values in frame.usual_ms.items()}
        is_same = (
            _are_same(tables, last.tables)
            and _are_same(cells, last.histograms)
            and lengths == {name: length for name, (_, length) in last.usual.items()}
        )
        return last if is_same else _laid_out(tables, lengths, cells)

    def _table_layout(self, name: str, table: FrameTable) -> _TableLayout:
        last = self._layout.tables.get(name)
        if last is not None and last.is_of(table):
            return last
        columns, tiers = ({field_id: at for at, field_id in enumerate(part)} for part in (table.columns, table.tiers))
        return _TableLayout(table.rows, columns, tiers)

    def _histogram_layout(self, name: str, histograms: Histograms) -> _HistogramLayout:
        last = self._layout.histograms.get(name)
        if last is not None and last.is_of(histograms):
            return last
        return _HistogramLayout(histograms.scale, histograms.rows, histograms.series)


def _laid_out(
    tables: Mapping[str, _TableLayout], usual: Mapping[str, int], histograms: Mapping[str, _HistogramLayout]
) -> _Layout:
    starts, usual_starts, end = {}, {}, 0
    for name, table in tables.items():
        starts[name] = end
        end += _padded(len(table.rows) * (8 * len(table.columns) + len(table.tiers)))
    for name, length in usual.items():
        usual_starts[name] = (end, length)
        end += 8 * length
    return _Layout(tables, starts, usual_starts, histograms, end)


def _fill(packed: NDArray[np.uint8], layout: _Layout, frame: Frame, histograms: Mapping[str, Histograms]) -> None:
    for name, table in frame.tables.items():
        columns, tiers = _parts(packed, layout.table_starts[name], layout.tables[name])
        for positions, source, values in (
            (layout.tables[name].columns, table.columns, columns),
            (layout.tables[name].tiers, table.tiers, tiers),
        ):
            for field_id, position in positions.items():
                values[position] = source[field_id]
    for name, (start, length) in layout.usual.items():
        _at(packed, start, length, np.float64)[:] = frame.usual_ms[name]
    start = layout.histograms_start
    for one in histograms.values():
        for part, dtype in _CELLS:
            array = getattr(one, part)
            _at(packed, start, len(array), dtype)[:] = array
            start += _padded(array.nbytes)


def _parts(packed: NDArray[np.uint8], start: int, table: _TableLayout) -> tuple[NDArray[np.float64], NDArray[np.uint8]]:
    """Columns and tiers of a table, each of shape (fields, rows)."""
    rows, fields, tiers = len(table.rows), len(table.columns), len(table.tiers)
    columns = _at(packed, start, fields * rows, np.float64).reshape(fields, rows)
    return columns, _at(packed, start + columns.nbytes, tiers * rows, np.uint8).reshape(tiers, rows)


def _at(packed: NDArray[np.uint8], start: int, count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Part of the array as numbers."""
    kind = np.dtype(dtype)
    return packed[start : start + count * kind.itemsize].view(kind)


def _padded(size: int) -> int:
    return size + -size % _ALIGNMENT


def _are_alike(some: Rows, others: Rows) -> bool:
    """Whether rows have the same keys and names: tables of one row are made anew for each frame."""
    return some is others or (some.keys == others.keys and some.names == others.names)


def _are_same(some: Mapping[str, object], others: Mapping[str, object]) -> bool:
    return some.keys() == others.keys() and all(_is_each(some.values(), others.values()))


def _is_each(some: Iterable[object], others: Iterable[object]) -> Iterator[bool]:
    return (one is other for one, other in zip(some, others, strict=True))
