"""What runs beneath a disk, in words."""

from __future__ import annotations

import math
from collections.abc import Iterator

from collectors.model import Frame, FrameTable
from collectors.tables.background.schema import FILL, work_of
from engine.text import safe_text, three_digits


def work_sentences(frame: Frame, key: str) -> Iterator[str]:
    """Say what is under way on a disk that is an array, or on arrays that it is a member of."""
    table, device = frame.tables.get("background"), frame.topology.devices.get(key)
    if table is None or device is None:
        return
    for row, name in enumerate(table.rows.names):
        if work_of(name)[0] in {device.name, *device.holders}:
            yield f"beneath: {safe_text(name)}{_words(table, row, fills=work_of(name)[1] == FILL)}"


def _words(table: FrameTable, row: int, *, fills: bool) -> str:
    if table.value("waits", row) > 0:
        return " waits for another array with the same disks"
    known = (
        (table.value("done_pct", row), "{} % used" if fills else "{} % done"),
        (table.value("bytes_per_s", row) / 2**20, "{} MiB/s more" if fills else "{} MiB/s of each disk"),
        (table.value("left_min", row), "full in {} min" if fills else "{} min left"),
        (table.value("share_pct", row), "{} % of the bytes of its disks"),
    )
    return " " + ", ".join(words.format(three_digits(value)) for value, words in known if not math.isnan(value))
