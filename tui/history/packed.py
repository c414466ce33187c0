"""Intervals in little memory: their figures compressed as one array, one description for those that are alike."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Generic, TypeVar

import numpy as np
from msgspec import Struct
from numpy.typing import DTypeLike, NDArray

from collectors.latency.history import PackedCells, pack_cells
from collectors.model import Frame, FrameTable, Histograms, Rows
from engine import _native
from engine.replacing import replace

Number = TypeVar("Number", bound=np.generic)

_ALIGNMENT = 8
_FIGURE = np.dtype(np.float32)
"""Type of kept figures: seven digits; screens show five at most."""
_ROW_BYTES = 256
"""What the key and the name of a row take."""
_OVERHEAD_BYTES = 600
"""What an interval takes beside its figures."""


class PackedColumns(Mapping[str, NDArray[Number]], Generic[Number]):
    """Columns of equal length in one array of shape (fields, rows), given as numbers of the type of the frame."""

    __slots__ = ("_positions", "_type", "_values")

    def __init__(self, positions: Mapping[str, int], values: NDArray[Any], number: type[Number]) -> None:
        self._positions = positions
        self._values = values
        self._type = number

    def __getitem__(self, field_id: str) -> NDArray[Number]:
        column: NDArray[Number] = self._values[self._positions[field_id]].astype(self._type, copy=False)
        column.flags.writeable = False
        return column

    def __iter__(self) -> Iterator[str]:
        return iter(self._positions)

    def __len__(self) -> int:
        return len(self._positions)


class _TableLayout(Struct, frozen=True, eq=False):
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


class _Layout(Struct, frozen=True, eq=False):
    """Where the figures of an interval lie in its array: tables in order, then usual latencies."""

    tables: Mapping[str, _TableLayout]
    table_starts: Mapping[str, int]
    usual: Mapping[str, tuple[int, int]]
    """Start and length by table."""
    size: int


class _Tables(Mapping[str, FrameTable]):
    """Tables of a packed interval, made when they are asked for."""

    __slots__ = ("_layout", "_packed")

    def __init__(self, layout: _Layout, packed: NDArray[np.uint8]) -> None:
        self._layout, self._packed = layout, packed

    def __getitem__(self, name: str) -> FrameTable:
        table, start = self._layout.tables[name], self._layout.table_starts[name]
        columns, tiers = _parts(self._packed, start, table)
        return FrameTable(
            table.rows,
            PackedColumns(table.columns, columns, np.float64),
            PackedColumns(table.tiers, tiers, np.uint8),
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self._layout.tables)

    def __len__(self) -> int:
        return len(self._layout.tables)


class PackedInterval(Struct, frozen=True, eq=False):
    """A frame without its figures, these as one compressed array, and the histograms of the interval."""

    bare: Frame
    layout: _Layout
    cells: Mapping[str, PackedCells]
    data: bytes
    new_rows: int
    """Rows that the interval before does not share."""

    @property
    def size_bytes(self) -> int:
        """Memory that the interval takes."""
        cells_bytes = sum(cells.size_bytes for cells in self.cells.values())
        return len(self.data) + cells_bytes + _OVERHEAD_BYTES + _ROW_BYTES * self.new_rows

    @property
    def frame(self) -> Frame:
        """The frame with its figures."""
        figures = self._figures()
        usual = {
            name: _at(figures, start, length, _FIGURE).astype(np.float64)
            for name, (start, length) in self.layout.usual.items()
        }
        return replace(self.bare, tables=_Tables(self.layout, figures), usual_ms=usual)

    @property
    def tables(self) -> Mapping[str, FrameTable]:
        """The tables with their figures."""
        return _Tables(self.layout, self._figures())

    def _figures(self) -> NDArray[np.uint8]:
        return np.frombuffer(_native.decompress(self.data, self.layout.size), np.uint8)

    @property
    def histograms(self) -> Mapping[str, Histograms]:
        """The latencies of the interval, by source."""
        return {name: cells.histograms for name, cells in self.cells.items()}


class IntervalPacker:
    """Packs intervals that follow each other; those with the same rows and fields share their layout."""

    def __init__(self) -> None:
        self._layout = _Layout({}, {}, {}, 0)

    def pack(self, frame: Frame, histograms: Mapping[str, Histograms]) -> PackedInterval:
        """Copy all figures into one array."""
        before, layout = self._layout, self._layout_of(frame)
        self._layout = layout
        packed = np.zeros(layout.size, np.uint8)
        _fill(packed, layout, frame)
        data = _native.compress(packed.tobytes())
        known = {id(table.rows) for table in before.tables.values()}
        new_rows = sum(len(table.rows) for table in layout.tables.values() if id(table.rows) not in known)
        cells = {name: pack_cells(one) for name, one in histograms.items()}
        return PackedInterval(replace(frame, tables={}, usual_ms={}), layout, cells, data, new_rows)

    def _layout_of(self, frame: Frame) -> _Layout:
        last = self._layout
        tables = {name: self._table_layout(name, table) for name, table in frame.tables.items()}
        lengths = {name: len(values) for name, values in frame.usual_ms.items()}
        known = {name: length for name, (_, length) in last.usual.items()}
        return last if _are_same(tables, last.tables) and lengths == known else _laid_out(tables, lengths)

    def _table_layout(self, name: str, table: FrameTable) -> _TableLayout:
        last = self._layout.tables.get(name)
        if last is not None and last.is_of(table):
            return last
        # Rows of processes change with each interval, the fields do not.
        columns = _positions(table.columns, None if last is None else last.columns)
        tiers = _positions(table.tiers, None if last is None else last.tiers)
        return _TableLayout(table.rows, columns, tiers)


def _positions(fields: Mapping[str, object], last: Mapping[str, int] | None) -> Mapping[str, int]:
    """Map fields to their positions; give the last mapping again if the fields are the same."""
    if last is not None and last.keys() == fields.keys():
        return last
    return {field_id: position for position, field_id in enumerate(fields)}


def _laid_out(tables: Mapping[str, _TableLayout], usual: Mapping[str, int]) -> _Layout:
    starts, usual_starts, end = {}, {}, 0
    for name, table in tables.items():
        starts[name] = end
        end += _padded(len(table.rows) * (_FIGURE.itemsize * len(table.columns) + len(table.tiers)))
    for name, length in usual.items():
        usual_starts[name] = (end, length)
        end += _padded(_FIGURE.itemsize * length)
    return _Layout(tables, starts, usual_starts, end)


def _fill(packed: NDArray[np.uint8], layout: _Layout, frame: Frame) -> None:
    for name, table in frame.tables.items():
        columns, tiers = _parts(packed, layout.table_starts[name], layout.tables[name])
        for field_id, position in layout.tables[name].columns.items():
            columns[position] = table.columns[field_id]
        for field_id, position in layout.tables[name].tiers.items():
            tiers[position] = table.tiers[field_id]
    for name, (start, length) in layout.usual.items():
        _at(packed, start, length, _FIGURE)[:] = frame.usual_ms[name]


def _parts(packed: NDArray[np.uint8], start: int, table: _TableLayout) -> tuple[NDArray[np.float32], NDArray[np.uint8]]:
    """Columns and tiers of a table, each of shape (fields, rows)."""
    rows, fields, tiers = len(table.rows), len(table.columns), len(table.tiers)
    columns = _at(packed, start, fields * rows, _FIGURE).reshape(fields, rows)
    return columns, _at(packed, start + columns.nbytes, tiers * rows, np.uint8).reshape(tiers, rows)


def _at(packed: NDArray[np.uint8], start: int, count: int, dtype: DTypeLike) -> NDArray[Any]:
    """Part of the array as numbers."""
    kind = np.dtype(dtype)
    return packed[start : start + count * kind.itemsize].view(kind)


def _padded(size: int) -> int:
    return size + -size % _ALIGNMENT


def _are_alike(some: Rows, others: Rows) -> bool:
    """Whether rows have the same keys and names: each frame has a new table of one row."""
    return some is others or (some.keys == others.keys and some.names == others.names)


def _are_same(some: Mapping[str, object], others: Mapping[str, object]) -> bool:
    return some.keys() == others.keys() and all(_is_each(some.values(), others.values()))


def _is_each(some: Iterable[object], others: Iterable[object]) -> Iterator[bool]:
    return (one is other for one, other in zip(some, others, strict=True))
