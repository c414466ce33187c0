"""Which lines of a widget must be sent to the terminal again."""

from __future__ import annotations

from textual.geometry import Region
from textual.strip import Strip


def replace_changed(drawn: list[Strip], fresh: list[Strip], width: int) -> list[Region]:
    """Update changed lines in `drawn` and return their regions, adjacent ones merged.

    Unchanged lines keep their strips, and with them Textual's caches.
    """
    regions: list[Region] = []
    for y, (before, after) in enumerate(zip(drawn, fresh, strict=True)):
        if before == after:
            continue
        drawn[y] = after
        if regions and regions[-1].bottom == y:
            regions[-1] = Region(0, regions[-1].y, width, regions[-1].height + 1)
        else:
            regions.append(Region(0, y, width, 1))
    return regions
