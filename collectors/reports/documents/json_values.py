"""Values of a JSON document of unknown origin: of the type that is expected, or missing."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from engine.errors import UsageError, unusable, words_of
from engine.job.knobs import KNOBS
from engine.job.sizes import format_size
from engine.small_file import read_small
from engine.strict_json import MOST_BYTES, dump_json, load_json_object
from engine.text import safe_text

Values = Mapping[str, Any]


def read_document(path: Path) -> Values:
    """Read a file that holds one JSON object.

    Raises:
        LunscopeError: it cannot be read.
        UsageError: it holds something else, or is too large.
    """
    shown = safe_text(str(path))
    try:
        return load_json_object(read_small(path, MOST_BYTES))
    except OSError as error:
        raise unusable(f"{shown}: {words_of(error)}", error) from None
    except ValueError as error:
        raise UsageError(f"{shown}: no document of run --json or sweep --json ({error}): make it again") from None


def part(values: object, *keys: str) -> Values:
    """Return an object inside, empty if there is none."""
    for key in keys:
        values = values.get(key) if isinstance(values, dict) else None
    return values if isinstance(values, dict) else {}


def parts(values: Values, key: str) -> Sequence[Values]:
    """Return the objects of a list, none if there is no list."""
    found = values.get(key)
    return [each for each in found if isinstance(each, dict)] if isinstance(found, list) else []


def texts(values: Values, key: str) -> tuple[str, ...]:
    """Return a list of values as texts."""
    found = values.get(key)
    return tuple(text_of(each) for each in found) if isinstance(found, list) else ()


def text_of(value: object) -> str:
    """Write a value, a missing one as a dash."""
    if value is None:
        return "-"
    return value if isinstance(value, str) else dump_json(value)


def number(values: Values, key: str) -> float:
    """Return a number, NaN if there is none."""
    value = values.get(key)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return math.nan
    try:
        return float(value)
    except OverflowError:
        return math.nan


def knob_key(knob_id: str) -> str:
    """Return the key of a knob as options have it; that of an unknown one is its id."""
    knob = KNOBS.get(knob_id)
    return knob_id if knob is None else knob.key


def knob_text(value: object) -> str:
    """Write the value of a knob."""
    return _block_sizes(value) if isinstance(value, list) else text_of(value)


def _block_sizes(values: Sequence[object]) -> str:
    """Write a list of block sizes and their shares as --bs takes it."""
    blocks = [each for each in values if isinstance(each, dict)]
    sizes = [(number(each, "block_bytes"), number(each, "percent")) for each in blocks]
    if not sizes or len(sizes) != len(values) or not all(0 < size < 1 << 62 for size, _ in sizes):
        return text_of(values)
    if len(sizes) == 1:
        return format_size(int(sizes[0][0]))
    return ",".join(f"{format_size(int(size))}:{percent:g}" for size, percent in sizes)


def figure(value: float, decimals: int = 0) -> str:
    """Write a number with thousands marked, a missing one as a dash."""
    return f"{value:,.{decimals}f}" if math.isfinite(value) else "-"
