"""Search in the lines of help."""

from __future__ import annotations

from collections.abc import Sequence


def find_lines(lines: Sequence[str], words: str) -> list[int]:
    """Find the lines that contain each of the words, whatever their case."""
    wanted = words.casefold().split()
    if not wanted:
        return []
    return [number for number, line in enumerate(lines) if all(word in line.casefold() for word in wanted)]


def next_match(found: Sequence[int], present: int, direction: int) -> int | None:
    """Return the next match after a line, or before it if `direction` is negative; from the end on from the start."""
    if not found:
        return None
    if direction > 0:
        return next((line for line in found if line > present), found[0])
    return next((line for line in reversed(found) if line < present), found[-1])
