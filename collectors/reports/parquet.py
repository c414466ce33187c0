"""Export as Apache Parquet: a row per device and interval, a column per figure, one row group in memory at a time."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from collectors.field import Field
from collectors.model import Frame, FrameTable, Rows, Step, Tier, Topology
from collectors.rates import derive
from collectors.registry import fields_of, subject_of
from collectors.reports.export import EVENT_TABLE, HEAD, Selection, sample_range
from collectors.reports.slow_tables import SLOW_TABLES
from collectors.session.reader import SessionReader
from engine.errors import LunscopeError, UsageError, missing_extra, unusable
from engine.text import safe_text

if TYPE_CHECKING:
    import pyarrow

SCHEMA = "lunscope.parquet/1"
PARQUET = "parquet"
"""Name of the format for `--format`."""
_GROUP_ROWS = 1 << 14
"""Least rows of a row group but the last: some 8 MB at 60 figures, whatever the length of the recording."""
_TIER_CODES = len(Tier)
_TIER_NAMES = tuple(tier.name.lower() for tier in Tier)


def write_parquet(
    reader: SessionReader,
    output: Path,
    selection: Selection | None = None,
    start_ns: int | None = None,
    end_ns: int | None = None,
) -> None:
    """Write a new Parquet file; what exists is left alone, and a file that cannot be completed is removed.

    Raises:
        LunscopeError: pyarrow is not installed, the file exists or cannot be written.
        UsageError: unknown table or field, a table with other columns, or nothing was recorded in that time.
    """
    selection = selection or Selection()
    for table in (*SLOW_TABLES, EVENT_TABLE):
        if table in selection.tables:
            raise UsageError(f"table {table!r}: it is exported as csv or jsonl")
    selection = selection.checked()
    first, last = sample_range(reader, start_ns, end_ns)
    try:
        import pyarrow.parquet  # noqa: PLC0415 (an extra)
    except ImportError:
        raise missing_extra("--format parquet", "pyarrow", "parquet") from None
    shown = safe_text(str(output))
    try:
        descriptor = os.open(output, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o644)
    except FileExistsError:
        raise UsageError(f"{shown}: exists already: give another name, or remove it") from None
    except OSError as error:
        raise unusable(f"{shown}: cannot be written: {error.strerror}", error) from None
    try:
        with os.fdopen(descriptor, "wb") as file:
            schema = _schema(selection)
            with pyarrow.parquet.ParquetWriter(file, schema, compression="zstd") as writer:
                for group in _groups(reader.steps(first, last), selection, schema):
                    writer.write_table(group, row_group_size=group.num_rows)
    except BaseException as error:
        output.unlink(missing_ok=True)
        if isinstance(error, OSError):
            raise LunscopeError(f"{shown}: cannot be written: {os.strerror(error.errno or 0)}") from None
        raise


def _schema(selection: Selection) -> pyarrow.Schema:
    """Return the columns of the text formats, with unit, title, help and tier of each figure in its metadata."""
    import pyarrow as pa  # noqa: PLC0415 (an extra)

    names = pa.dictionary(pa.int32(), pa.string())
    types = (pa.timestamp("ns", "UTC"), pa.int64(), pa.float64(), names, names, names)
    known = {field.id: field for table in reversed(selection.tables) for field in fields_of(table)}
    return pa.schema(
        [
            *(pa.field(name, type_) for name, type_ in zip(HEAD, types, strict=True)),
            *(pa.field(id_, pa.float64(), metadata=_about(known[id_])) for id_ in selection.fields),
            pa.field("tiers", names, metadata={"help": "tiers that differ from the column's, as in field=tier"}),
        ],
        metadata={"schema": SCHEMA},
    )


def _about(field: Field) -> dict[str, str]:
    return {
        "unit": field.unit.value,
        "title": field.title,
        "help": field.help,
        "tier": field.tier.name.lower(),
        "source": field.source,
    }


def _groups(steps: Iterable[Step], selection: Selection, schema: pyarrow.Schema) -> Iterator[pyarrow.Table]:
    group = _Group(selection, schema)
    for step in steps:
        group.add(derive(step.previous, step.current))
        if group.rows >= _GROUP_ROWS:
            yield group.taken()
    if group.rows:
        yield group.taken()


class _Group:
    """Collects rows of frames until they are taken as one table."""

    def __init__(self, selection: Selection, schema: pyarrow.Schema) -> None:
        self._selection = selection
        self._schema = schema
        self._named: dict[str, tuple[Rows, Topology, list[str], list[str]]] = {}
        self._clear()

    def _clear(self) -> None:
        self.rows = 0
        self._times_ns: list[NDArray[np.int64]] = []
        self._intervals_s: list[NDArray[np.float64]] = []
        self._texts: dict[str, list[str]] = {"table": [], "name": [], "id": [], "tiers": []}
        self._figures: dict[str, list[NDArray[np.float64]]] = {id_: [] for id_ in self._selection.fields}

    def add(self, frame: Frame) -> None:
        """Add the rows of all selected tables."""
        for name in self._selection.tables:
            table = frame.tables.get(name)
            if table is not None and len(table.rows):
                self._add_table(frame, name, table)

    def _add_table(self, frame: Frame, name: str, table: FrameTable) -> None:
        count = len(table.rows)
        self.rows += count
        self._times_ns.append(np.full(count, frame.time_ns, np.int64))
        self._intervals_s.append(np.full(count, frame.elapsed_s))
        names, ids = self._names_of(frame, name, table.rows)
        for column, texts in (
            ("table", [name] * count),
            ("name", names),
            ("id", ids),
            ("tiers", _tiers(table, self._selection.fields)),
        ):
            self._texts[column] += texts
        missing = np.full(count, np.nan)
        for id_, values in self._figures.items():
            column_values = table.columns.get(id_)
            values.append(missing if column_values is None else column_values)

    def _names_of(self, frame: Frame, name: str, rows: Rows) -> tuple[list[str], list[str]]:
        """Names and identities; frames share what does not change."""
        found = self._named.get(name)
        if found is None or found[0] is not rows or found[1] is not frame.topology:
            identity = subject_of(name).identity
            ids = [identity(key, frame.topology) for key in rows.keys]
            found = self._named[name] = rows, frame.topology, list(map(safe_text, rows.names)), ids
        return found[2], found[3]

    def taken(self) -> pyarrow.Table:
        """All rows so far, and begin again."""
        import pyarrow as pa  # noqa: PLC0415 (an extra)

        times_ns = np.concatenate(self._times_ns)
        columns: dict[str, object] = {
            "time": times_ns,
            "time_ns": times_ns,
            "interval_s": np.concatenate(self._intervals_s),
            **{id_: np.concatenate(values) for id_, values in self._figures.items()},
        }
        arrays = [
            pa.array(self._texts[field.name], pa.string()).dictionary_encode()
            if field.name in self._texts
            else pa.array(columns[field.name], field.type, from_pandas=True)
            for field in self._schema
        ]
        self._clear()
        return pa.Table.from_arrays(arrays, schema=self._schema)


def _tiers(table: FrameTable, fields: Iterable[str]) -> list[str]:
    """As the text formats write them, such as "queue_ms=sampled busy_pct=kernel", for every row."""
    ids = tuple(id_ for id_ in fields if id_ in table.tiers)
    packed = np.zeros(len(table.rows), np.int64)
    for position, id_ in enumerate(ids):
        packed += table.tiers[id_].astype(np.int64) * _TIER_CODES**position
    distinct, which = np.unique(packed, return_inverse=True)
    texts = [_tier_text(ids, int(code)) for code in distinct]
    return [texts[position] for position in which]


def _tier_text(ids: tuple[str, ...], packed: int) -> str:
    codes = ((id_, packed // _TIER_CODES**position % _TIER_CODES) for position, id_ in enumerate(ids))
    return " ".join(f"{id_}={_TIER_NAMES[code]}" for id_, code in codes if code)
