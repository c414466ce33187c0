"""JSON of unknown origin: within limits, without what is no JSON; and the only writer of figures that may be missing.

The decoder of the standard library takes NaN and Infinity, makes infinity of 1e999, takes a key twice and fails with
another error at some thousand levels. Text that holds lone surrogates (names that are not UTF-8) stays readable, which
rules out msgspec's decoder.
"""

from __future__ import annotations

import functools
import json
import math
from typing import Any, NoReturn

from engine.text import MOST_DIGITS

MOST_BYTES = 64 << 20
MOST_LEVELS = 64
"""Deepest nesting; no document of ours has a third of it."""

_OTHER_BYTES = bytes(set(range(256)) - set(b'"[]{}'))
_ONE_KIND = bytes.maketrans(b"{}", b"[]")
_ZEROS = bytes.maketrans(b"123456789E", b"000000000e")
_LONG_NUMBERS = (b"e000", b"e+000", b"0" * (MOST_DIGITS + 1))
"""Shapes, with all digits as 0, of a number that may be beyond every float, or of a whole one that is too long."""


class JsonError(ValueError):
    """Bytes that are no such JSON; the message says why in a few words."""


def load_json(data: bytes | str, *, most_bytes: int = MOST_BYTES, not_finite_is_missing: bool = False) -> Any:  # noqa: ANN401 (as json.loads)
    """Read a value: at most 64 levels deep, every key once, numbers finite and of at most 40 digits.

    Args:
        data: the whole text, as UTF-8 where it is bytes.
        most_bytes: the longest text.
        not_finite_is_missing: NaN and infinities, which earlier versions wrote, are read as None.

    Raises:
        JsonError: it is none, or beyond a limit.
    """
    raw = data.encode("utf-8", "surrogatepass") if isinstance(data, str) else data
    if len(raw) > most_bytes:
        raise JsonError(f"larger than {most_bytes} bytes")
    if raw.count(b"[") + raw.count(b"{") > MOST_LEVELS and _is_deep(raw):
        raise JsonError(f"nested more than {MOST_LEVELS} deep")
    zeros = raw.translate(_ZEROS)
    checks_numbers = any(part in zeros for part in _LONG_NUMBERS)
    try:
        return _decoder(not_finite_is_missing, checks_numbers).decode(raw.decode("utf-8", "surrogatepass"))
    except JsonError:
        raise
    except (ValueError, RecursionError):
        raise JsonError("not JSON") from None


@functools.cache
def _decoder(not_finite_is_missing: bool, checks_numbers: bool) -> json.JSONDecoder:
    return json.JSONDecoder(
        object_pairs_hook=_once,
        parse_constant=_missing if not_finite_is_missing else _refuse,
        parse_float=_float if checks_numbers else None,
        parse_int=_whole if checks_numbers else None,
    )


def load_json_object(
    data: bytes | str, *, most_bytes: int = MOST_BYTES, not_finite_is_missing: bool = False
) -> dict[str, Any]:
    """Read an object, as `load_json` does.

    Raises:
        JsonError: it is none.
    """
    value = load_json(data, most_bytes=most_bytes, not_finite_is_missing=not_finite_is_missing)
    if not isinstance(value, dict):
        raise JsonError("not a JSON object")
    return value


def dump_json(value: object, *, compact: bool = False) -> str:
    """Write a value as ASCII; numbers that are not finite are missing, so null."""
    separators = (",", ":") if compact else None
    try:
        return json.dumps(value, allow_nan=False, separators=separators)
    except ValueError:
        return json.dumps(_finite(value), allow_nan=False, separators=separators)


def rounded(value: float | None, digits: int = 6) -> float | None:
    """Round a figure for a document; what is not known is null."""
    return None if value is None or not math.isfinite(value) else round(value, digits)


def _finite(value: object) -> object:
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    return [_finite(item) for item in value] if isinstance(value, list | tuple) else value


def _is_deep(raw: bytes) -> bool:
    """Whether brackets nest too deep: without strings, the innermost ones are taken out, level by level."""
    if b"\\" in raw:
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    left = b"".join(raw.translate(_ONE_KIND, _OTHER_BYTES).split(b'"')[::2])
    for _ in range(MOST_LEVELS):
        if b"[]" not in left:
            return False
        left = left.replace(b"[]", b"")
    return bool(left)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise JsonError("a key twice in one object")
    return found


def _missing(_name: str) -> None:
    return None


def _refuse(name: str) -> NoReturn:
    raise JsonError(f"{name} is no number of JSON")


def _float(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise JsonError("a number beyond every float")
    return value


def _whole(text: str) -> int:
    if len(text) > MOST_DIGITS + 1:
        raise JsonError(f"a number of more than {MOST_DIGITS} digits")
    return int(text)
