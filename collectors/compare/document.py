"""The JSON document of a comparison, schema lunscope.compare/1: a stable contract."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from collectors.compare.comparison import CompareOptions, Comparison, FieldComparison, RowComparison
from collectors.compare.side import Side, SideRow, Spread
from collectors.field import UNIT_FLOORS
from collectors.model import Tier
from collectors.session.time_format import iso_time
from engine.strict_json import rounded
from engine.text import safe_text
from engine.version import version

SCHEMA = "lunscope.compare/1"

Document: TypeAlias = dict[str, object]
"""A JSON object; every number in it is finite, and what is not known is null."""

_KEYS = {50.0: "p50", 90.0: "p90", 99.0: "p99", 99.9: "p99_9"}


def comparison_document(comparison: Comparison) -> Document:
    """Everything that was compared, ready for json.dumps."""
    options = comparison.options
    return {
        "schema": SCHEMA,
        "version": version(),
        "delta": options.delta,
        "floors": {unit.value: options.floors.get(unit, floor) for unit, floor in UNIT_FLOORS.items() if unit.value},
        "confidence": options.confidence,
        "a": _side(comparison.a),
        "b": _side(comparison.b),
        "verdicts": {verdict.value: count for verdict, count in comparison.verdicts.items()},
        "idle_rows": comparison.idle,
        "rows": [_row(row, options) for row in comparison.rows],
    }


def _side(side: Side) -> Document:
    return {
        "part": safe_text(side.text),
        "kind": side.kind,
        "start": None if side.start_ns is None else iso_time(side.start_ns),
        "end": None if side.end_ns is None else iso_time(side.end_ns),
        "chosen": side.words or None,
        "intervals": side.intervals,
        "interval_s": rounded(side.interval_s),
        "tier": _tier(side.tier),
        "growing": side.growing,
        "notice": safe_text(side.notice) or None,
    }


def _row(row: RowComparison, options: CompareOptions) -> Document:
    titles = [title for title in row.a.spreads if title in row.b.spreads]
    return {
        "table": row.a.table,
        "name": row.a.name,
        "name_b": row.b.name,
        "id": row.a.identity,
        "id_b": row.b.identity,
        "a": _steadiness(row.a),
        "b": _steadiness(row.b),
        "fields": [_field(field, options) for field in row.fields],
        "distributions": [
            {"of": title, "a": _spread(row.a.spreads[title]), "b": _spread(row.b.spreads[title])} for title in titles
        ],
    }


def _steadiness(row: SideRow) -> Document:
    return {"left_out_s": rounded(row.cut_s), "trend": row.trend.value}


def _field(found: FieldComparison, options: CompareOptions) -> Document:
    interval = found.interval
    low, high = (math.nan, math.nan) if interval is None else (interval.low, interval.high)
    return {
        "id": found.field.id,
        "better": found.field.improves.value,
        "a": rounded(found.a.mean),
        "b": rounded(found.b.mean),
        "tier_a": _tier(found.a.tier),
        "tier_b": _tier(found.b.tier),
        **_difference(found.difference, low, high),
        "relative": _difference(found.relative(found.difference), found.relative(low), found.relative(high)),
        "margin": rounded(options.margin(found.field, found.a.mean)),
        "verdict": found.verdict.value,
        "reason": found.reason or None,
    }


def _difference(difference: float, low: float, high: float) -> Mapping[str, float | None]:
    return {"difference": rounded(difference), "low": rounded(low), "high": rounded(high)}


def _spread(spread: Spread) -> Document:
    percentiles = {key: rounded(spread.percentiles.get(percent, math.nan)) for percent, key in _KEYS.items()}
    return {"ios": spread.ios, "latency_ms": {**percentiles, "max": rounded(spread.largest)}}


def _tier(tier: Tier) -> str | None:
    return tier.name.lower() if tier else None
