"""The document of `run --json`, or one epoch of it, as one side of a comparison: totals without intervals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from collectors.compare.measures import compared_fields
from collectors.compare.part import PartText
from collectors.compare.side import Figure, Side, SideRow, Spread
from collectors.model import Tier
from collectors.registry import subject_of
from engine.errors import UsageError, unusable, words_of
from engine.results.result_document import SCHEMA
from engine.small_file import FileKindError, read_head, read_small
from engine.strict_json import MOST_BYTES, load_json_object
from engine.text import safe_text

_TOTAL = "load_total"
_LATENCIES = {50.0: "p50", 90.0: "p90", 99.0: "p99", 99.9: "p99_9"}
_FIELDS = {"await_ms": "mean", "p50_ms": "p50", "p99_ms": "p99", "p999_ms": "p99_9", "max_ms": "avg_peak"}


def is_document(path: Path) -> bool:
    """Whether a file begins like JSON; a recording does not.

    Raises:
        LunscopeError: it cannot be read.
    """
    try:
        return read_head(path, 64).lstrip().startswith(b"{")
    except FileKindError as error:
        raise UsageError(f"{safe_text(str(path))}: {error}: give a recording or what --json printed") from None
    except OSError as error:
        raise unusable(f"{safe_text(str(path))}: {words_of(error)}", error) from None


def run_side(text: str, part: PartText) -> Side:
    """Read the result of a run.

    Raises:
        UsageError: it is another document, or has no such epoch.
    """
    name = safe_text(str(part.path))
    document = _document(part.path)
    if not str(document.get("schema", "")).startswith(SCHEMA.rpartition("/")[0] + "/"):
        raise UsageError(f"{name}: neither a recording nor the document of run --json: give one of these")
    if part.start or part.end or part.point:
        raise UsageError(f"{name}: the result of a run has no such part: give epochN, or its recording")
    try:
        measured = _epoch(document, part.epoch, name) if part.epoch else document
        return Side(text, "run", tuple(_rows(measured)), words="" if part.epoch else "all epochs", tier=Tier.EXACT)
    except (TypeError, ValueError, AttributeError, KeyError, OverflowError):
        raise UsageError(f"{name}: a damaged document of run --json: make it again") from None


def _document(path: Path) -> Mapping[str, Any]:
    try:
        return load_json_object(read_small(path, MOST_BYTES))
    except OSError as error:
        raise unusable(f"{safe_text(str(path))}: {words_of(error)}", error) from None
    except ValueError as error:
        raise UsageError(
            f"{safe_text(str(path))}: neither a recording nor the document of run --json ({error}): give one of these"
        ) from None


def _epoch(document: Mapping[str, Any], part: str, name: str) -> Mapping[str, Any]:
    number = int(part.removeprefix("epoch"))
    for epoch in document["epochs"]:
        if epoch["index"] == number:
            found: Mapping[str, Any] = epoch
            return found
    raise UsageError(f"{name}: no epoch {number}: it has {len(document['epochs'])}")


def _rows(measured: Mapping[str, Any]) -> Iterator[SideRow]:
    yield _row(_TOTAL, "load", "all targets", measured)
    for target in measured.get("targets", ()):
        if isinstance(target, dict):
            yield _row("load", str(target["name"]), safe_text(str(target["name"])), target)


def _row(table: str, key: str, name: str, measured: Mapping[str, Any]) -> SideRow:
    known = dict(_figures(measured))
    figures = {
        field.id: Figure(known[field.id], tier=Tier.EXACT)
        for field in compared_fields(subject_of(table))
        if field.id in known
    }
    latency = measured["total"]["latency_us"]
    values = {percent: _ms(latency.get(key)) for percent, key in _LATENCIES.items()}
    spread = Spread(
        {percent: value for percent, value in values.items() if not math.isnan(value)},
        _ms(latency.get("max")),
        int(measured["total"]["ios"]),
    )
    return SideRow(table, key, name, key, figures, spreads={"latency": spread} if spread.ios else {})


def _figures(measured: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    for kind, ios, amount, latency in (
        ("total", "iops", "bytes_per_s", ""),
        ("read", "reads_per_s", "read_bytes_per_s", "read_await_ms"),
        ("write", "writes_per_s", "write_bytes_per_s", "write_await_ms"),
    ):
        block = measured[kind]
        yield ios, _number(block["iops"])
        yield amount, _number(block["bytes_per_s"])
        if latency:
            yield latency, _ms(block["latency_us"]["mean"])
    for field_id, key in _FIELDS.items():
        yield field_id, _ms(measured["total"]["latency_us"].get(key))


def _ms(value_us: object) -> float:
    return _number(value_us) / 1000


def _number(value: object) -> float:
    return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
