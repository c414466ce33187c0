"""Caches and settings below a load while a point was measured, as the trial keeps them, and findings read back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind, findings_document
from collectors.advice.of_state import findings_below
from collectors.documents.json_values import Values, number, parts, text_of, texts
from collectors.model import FrameTable
from collectors.reports.run_devices import RunDevices
from collectors.tables.cache.schema import DEVICE_KINDS, kind_of, subject_of_key
from engine.text import safe_text

_SHARES = ("hit_pct", "inflight_hit_pct", "miss_pct", "bypass_pct", "blocked_per_s", "dirty_pct", "used_pct")
_DIGITS = 6
_WORDS = {each.word: each for each in Confidence}


def state_document(devices: RunDevices) -> dict[str, object]:
    """Write the cache over the targets and the findings from settings; no keys where there is nothing to say."""
    cache = _cache_over(devices)
    advice = findings_document(findings_below(devices, None, ()))
    return ({} if cache is None else {"cache": cache}) | ({"advice": advice} if advice else {})


def _cache_over(devices: RunDevices) -> dict[str, object] | None:
    """Return the cache with the most lookups among those of the targets' devices, else the ARC."""
    table, below = devices.caches, devices.users.get("disks", {})
    if table is None:
        return None
    rows = [row for row, key in enumerate(table.rows.keys) if kind_of(key) in DEVICE_KINDS]
    own = [row for row in rows if subject_of_key(table.rows.keys[row]) in below]
    whole = [row for row, key in enumerate(table.rows.keys) if key == "arc|"]
    if not (own or whole):
        return None
    row = max(own or whole, key=lambda one: _or_zero(table.value("lookups_per_s", one)))
    return {"name": safe_text(table.rows.names[row]), **{name: _known(table, name, row) for name in _SHARES}}


def _or_zero(value: float) -> float:
    return 0.0 if math.isnan(value) else value


def _known(table: FrameTable, field_id: str, row: int) -> float | None:
    value = table.value(field_id, row)
    return round(value, _DIGITS) if math.isfinite(value) else None


def state_findings_of(document: Mapping[str, object] | None) -> Iterator[Finding]:
    """Read the findings that a trial kept; those of a kind that this version does not know are left out."""
    for found in parts(document or {}, "advice"):
        kind, confidence = text_of(found.get("kind")), _WORDS.get(text_of(found.get("confidence")))
        if kind in set(FindingKind) and confidence is not None:
            yield Finding(
                FindingKind(kind),
                confidence,
                safe_text(text_of(found.get("text"))),
                tuple(_evidence(found)),
                texts(found, "about"),
                command=safe_text(text_of(found["command"])) if isinstance(found.get("command"), str) else "",
            )


def _evidence(found: Values) -> Iterator[Evidence]:
    for each in parts(found, "evidence"):
        value = number(each, "value")
        if math.isfinite(value):
            unit = each.get("unit")
            yield Evidence(text_of(each.get("name")), value, unit if isinstance(unit, str) else "", "kernel")
