"""What the devices under the targets of a run did, from the key `devices` of its document."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collectors.model import FrameTable, Rows, Tier
from collectors.registry import get_field, subject_of
from collectors.reports.documents.content import Block, DocumentTable, Paragraph
from collectors.reports.documents.json_values import Values, figure, number, part, parts, text_of, texts
from collectors.reports.page import LEGEND, figure_text, printed_unit
from collectors.reports.run_devices import FIGURES

_TABLES = ("disks", "paths", "hbas")
_TIERS = {tier.name.lower(): tier for tier in Tier}
_MARKED = ("queue_ms", "service_ms", "await_ms", "busy_pct")
"""Figures with a tier mark: that of all others never varies."""


def device_blocks(run: Values) -> Iterator[Block]:
    """Yield a table of disks, of paths and of HBA ports, in the columns of `report`, or why there is none."""
    devices = part(run, "devices")
    grids = list(_grids(devices))
    if grids:
        elapsed = figure(number(devices, "elapsed_s"), 1)
        yield Paragraph(f"Over {elapsed} s, with all I/O of this host on them; tier: {text_of(devices.get('tier'))}.")
        yield from grids
        yield Paragraph(LEGEND)
    elif "devices" in run:
        yield Paragraph("No disk that has counters." if devices else "Not sampled: the run was too short.")


def point_device_blocks(devices: Values, at: str, used: tuple[str, ...]) -> Iterator[Block]:
    """Yield the same of one point of a sweep, where its targets are: those beyond the stripe width do nothing."""
    grids = list(_grids(devices, used))
    if grids:
        yield Paragraph(f"Under the targets{at}, with all I/O of this host on them:")
        yield from grids
        yield Paragraph(LEGEND)


def _grids(devices: Values, used: tuple[str, ...] = ()) -> Iterator[DocumentTable]:
    disks = {row.get("name") for row in parts(devices, "disks")}
    for name in _TABLES:
        rows = [row for row in parts(devices, name) if _is_used(row, used)]
        # A disk that is its own only path would be there twice.
        rows = [row for row in rows if row.get("name") not in disks] if name == "paths" else rows
        if rows:
            yield _grid(name, rows)


def _is_used(row: Values, used: tuple[str, ...]) -> bool:
    above = texts(row, "targets")
    return not used or not above or bool(set(used).intersection(above))


def _grid(name: str, rows: Sequence[Values]) -> DocumentTable:
    subject, table = subject_of(name), _table(rows)
    fields = [get_field(name, field_id) for field_id in FIGURES]
    cells = tuple(
        (_name(row), *("".join(figure_text(table, field.id, field.unit, at)).rstrip() for field in fields), _above(row))
        for at, row in enumerate(rows)
    )
    head = ((subject.title, ""), *((field.title, printed_unit(field.unit)) for field in fields), ("", ""))
    return DocumentTable.of_first(subject.heading, head, cells)


def _table(rows: Sequence[Values]) -> FrameTable:
    """Rebuild the figures, so that they are written as everywhere."""
    numbers = tuple(map(str, range(len(rows))))
    columns = {name: np.array([number(row, name) for row in rows], np.float64) for name in FIGURES}
    tiers = {name: np.array([_tier(row, name) for row in rows], np.uint8) for name in _MARKED}
    return FrameTable(Rows(numbers, numbers), columns, tiers)


def _tier(row: Values, name: str) -> int:
    return _TIERS.get(text_of(part(row, "tiers").get(name)), Tier.NONE)


def _name(row: Values) -> str:
    name, label = text_of(row.get("name")), row.get("label")
    return f"{name} {label}" if isinstance(label, str) and label not in {"", name} else name


def _above(row: Values) -> str:
    targets = texts(row, "targets")
    return f"under {', '.join(targets[:4])}{', ...' if len(targets) > 4 else ''}" if targets else ""
