"""What was below a load while one point was measured, devices and their state, as the JSON that its trial keeps.

Shorter than the `devices` of a run, as a sweep has thousands of points: only the figures that findings and tables use.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from collectors.advice.device_figures import FIELDS, figures_below
from collectors.advice.figures import DeviceFigures, FiguresBelow
from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind, findings_document
from collectors.advice.of_state import findings_below
from collectors.kernel.cpu_users import CpuUser
from collectors.model import Tier
from collectors.reports.documents.json_values import Values, number, part, parts, text_of, texts
from collectors.reports.run_devices import FIGURES, RunDevices, cpu_users_document
from collectors.tables.cache.schema import DEVICE_KINDS, kind_of, subject_of_key
from engine.strict_json import rounded
from engine.text import safe_text

MOST_ROWS = 64
"""Rows of each table; those with the most outstanding are kept."""
_DIGITS = 6
_TIERS = {tier.name.lower(): tier for tier in Tier}
_SHARES = ("hit_pct", "inflight_hit_pct", "miss_pct", "bypass_pct", "blocked_per_s", "dirty_pct", "used_pct")
_WORDS = {each.word: each for each in Confidence}


def point_document(devices: RunDevices | None) -> dict[str, object] | None:
    """Write the figures of a point; None if nothing was sampled."""
    if devices is None or not devices.elapsed_s > 0:
        return None
    found = figures_below(devices)
    tables = {"disks": found.disks, "paths": found.paths, "hbas": found.ports}
    return {
        "elapsed_s": round(devices.elapsed_s, _DIGITS),
        "samples": devices.samples,
        "tier": devices.topology.host.tier.name.lower(),
        **{name: [_row(name, one) for one in _most_loaded(rows)] for name, rows in tables.items()},
        "left_out": sum(max(len(rows) - MOST_ROWS, 0) for rows in tables.values()),
        "cpu_users": cpu_users_document(devices.cpu_users),
        **({} if devices.connections is None else {"connections": devices.connections}),
        **state_document(devices),
    }


def _most_loaded(rows: Sequence[DeviceFigures]) -> Sequence[DeviceFigures]:
    if len(rows) <= MOST_ROWS:
        return rows
    by_load = sorted(rows, key=lambda one: -_or_zero(one.value("in_flight")))
    kept = {one.key for one in by_load[:MOST_ROWS]}
    return [one for one in rows if one.key in kept]


def _or_zero(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _row(table: str, device: DeviceFigures) -> dict[str, object]:
    figures = {name: rounded(device.value(name)) for name in dict.fromkeys((*FIGURES, *FIELDS))}
    place: dict[str, object] = {"targets": list(device.targets)}
    match table:
        case "disks":
            place |= {"top": device.is_top, "lowest": device.is_lowest, "members": list(device.members)}
        case "paths":
            place |= {"lun": device.lun, "usable": device.is_usable, "transport": device.transport}
        case _:
            place |= {"transport": device.transport, "link_bytes_per_s": rounded(device.link_bytes_per_s)}
    tiers = {name: device.source(name) for name in FIGURES}
    return {"name": device.name, "key": device.key, **place, **figures, "tiers": tiers}


def point_figures(document: Mapping[str, object] | None) -> FiguresBelow | None:
    """Read what a trial kept; None if nothing was sampled. What is of another type is missing."""
    if document is None:
        return None
    return FiguresBelow(*(tuple(_devices(document, name)) for name in ("disks", "paths", "hbas")))


def cpu_users_of(document: Mapping[str, object] | None) -> tuple[CpuUser, ...]:
    """Read which other processes used the processors meanwhile."""
    users = ((each, number(each, "pid"), number(each, "share_pct")) for each in parts(document or {}, "cpu_users"))
    return tuple(
        CpuUser(safe_text(text_of(each.get("name"))), int(pid), share)
        for each, pid, share in users
        if math.isfinite(pid) and math.isfinite(share)
    )


def _devices(document: Values, table: str) -> Iterator[DeviceFigures]:
    for row in parts(document, table):
        figures = {name: value for name in FIELDS if math.isfinite(value := number(row, name))}
        tiers = {name: _TIERS.get(text_of(each), Tier.NONE) for name, each in part(row, "tiers").items()}
        yield DeviceFigures(
            name=safe_text(text_of(row.get("name"))),
            key=text_of(row.get("key")),
            targets=texts(row, "targets"),
            figures=figures,
            tiers=tiers,
            is_top=row.get("top") is True,
            is_lowest=row.get("lowest") is True,
            members=texts(row, "members"),
            lun=_text(row.get("lun")),
            is_usable=row.get("usable") is not False,
            transport=_text(row.get("transport")),
            link_bytes_per_s=number(row, "link_bytes_per_s"),
        )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


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
    return {"name": safe_text(table.rows.names[row]), **{name: rounded(table.value(name, row)) for name in _SHARES}}


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
