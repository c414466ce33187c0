"""Text form of sizes, shares, block-size mixes and durations; what is written is read as the same value.

Sizes count in 1024: `k`, `m`, `g`, `t`, `p`, also as `KiB`, `kb`, `K`; `4k` is 4096 everywhere in lunscope.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from decimal import Decimal

from msgspec import Struct

from engine.errors import UsageError
from engine.replacing import replace
from engine.text import decimal_number

ROUNDING_PERCENT = 1e-6
MIX_TOLERANCE_PERCENT = 0.5
"""Difference of shares to 100 that is tolerated: three times 33.3 is meant as thirds."""


def adds_up(shares_pct: Sequence[float]) -> bool:
    """Whether shares are meant as a whole; not if one is no number."""
    return abs(sum(shares_pct) - 100) <= MIX_TOLERANCE_PERCENT


def scaled_to_100(shares_pct: Sequence[float]) -> tuple[float, ...]:
    """Scale shares that add up to about 100; those that do exactly stay as they are."""
    total = sum(shares_pct)
    if abs(total - 100) < ROUNDING_PERCENT:
        return tuple(shares_pct)
    return tuple(share * 100 / total for share in shares_pct)


_UNITS = "kmgtp"
_SIZE = re.compile(r"([0-9]{1,40}(?:\.[0-9]{1,40})?)\s*(?:([kmgtp])(?:i?b)?|b)?", re.IGNORECASE | re.ASCII)
_DURATION = re.compile(r"([0-9]{1,400}(?:\.[0-9]{1,400})?)\s*(us|ms|s|m|h|d)?", re.ASCII)
_SECONDS = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_MAX_BYTES = 2**63 - 1


class BlockShare(Struct, frozen=True):
    """One block size of a mix and its share of the I/Os."""

    block_bytes: int
    percent: float = 100.0


def parse_size(text: str) -> int:
    """Read a size: `4096`, `4k`, `1.5g`, `64 KiB`.

    Raises:
        UsageError: it is none, or no whole number of bytes.
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{text!r} is not a size: write it like 4k, 64KiB or 1.5g")
    unit = 1 << 10 * (_UNITS.index(match[2].lower()) + 1) if match[2] else 1
    whole, _, fraction = match[1].partition(".")
    tenths: int = 10 ** len(fraction)
    scaled = int(whole) * unit + int(fraction or 0) * unit // tenths
    if int(fraction or 0) * unit % tenths:
        raise UsageError(f"{text!r} is not a whole number of bytes: write it without the fraction")
    if scaled > _MAX_BYTES:
        raise UsageError(f"{text!r} is larger than any device: write at most 8191p")
    return scaled


def format_size(size_bytes: int) -> str:
    """Write a size so that `parse_size` reads the same number: `4k`, `1g`, `4097`."""
    for exponent in range(len(_UNITS), 0, -1):
        unit = 1024**exponent
        if size_bytes and size_bytes % unit == 0:
            return f"{size_bytes // unit}{_UNITS[exponent - 1]}"
    return str(size_bytes)


def round_up(size_bytes: int, unit_bytes: int) -> int:
    """Round up to a multiple of a unit."""
    return -(-size_bytes // unit_bytes) * unit_bytes


def human_size(size_bytes: int) -> str:
    """Write a size for reading only: `256 MiB`, `931.5 GiB`."""
    exponent = min(max(size_bytes, 1).bit_length() - 1, 50) // 10
    if exponent == 0:
        return f"{size_bytes} bytes"
    return f"{round(size_bytes / 1024**exponent, 1):g} {_UNITS[exponent - 1].upper()}iB"


def parse_blocks(text: str) -> tuple[BlockShare, ...]:
    """Read a block size, `8k`, or a mix with shares that add up to 100 within half a percent, `4k:60,16k:40`.

    Raises:
        UsageError: it is neither, a size comes twice, or the shares add up to something else.
    """
    parts = [part.strip() for part in text.split(",")]
    if len(parts) == 1 and ":" not in text:
        return (BlockShare(parse_size(text)),)
    shares = tuple(_parse_share(part, text) for part in parts)
    percents = [share.percent for share in shares]
    if not adds_up(percents):
        raise UsageError(f"{text!r}: the shares add up to {sum(percents):g} %, not 100: write them like 4k:60,16k:40")
    if len({share.block_bytes for share in shares}) < len(shares):
        raise UsageError(f"{text!r}: a block size comes twice: give each once")
    scaled = zip(shares, scaled_to_100(percents), strict=True)
    return tuple(replace(share, percent=percent) for share, percent in scaled)


def _parse_share(part: str, text: str) -> BlockShare:
    size, colon, percent = part.partition(":")
    share = decimal_number(percent.strip().removesuffix("%"))
    if not colon or share is None or not 0 < share <= 100:
        raise UsageError(f"{text!r}: {part!r} needs a share above 0 and up to 100: write a mix like 4k:60,16k:40")
    return BlockShare(parse_size(size), share)


def format_blocks(blocks: tuple[BlockShare, ...]) -> str:
    """Write block sizes so that `parse_blocks` reads the same: `8k`, `4k:60,16k:40`."""
    if len(blocks) == 1 and blocks[0].percent == 100:
        return format_size(blocks[0].block_bytes)
    return ",".join(f"{format_size(share.block_bytes)}:{format_number(share.percent)}" for share in blocks)


def format_number(value: float) -> str:
    """Write a number in the shortest way that reads back as the same: `60`, `33.3`, also `inf`."""
    if not math.isfinite(value):
        return str(value)
    exact = Decimal(repr(float(value)))
    return str(int(value)) if value == int(value) else f"{exact:f}"


def parse_duration(text: str) -> float:
    """Read a duration in seconds: `30s`, `500ms`, `5m`, `2h`, `1d`; a bare number is seconds.

    Raises:
        UsageError: it is none.
    """
    match = _DURATION.fullmatch(text.strip().lower())
    if not match:
        raise UsageError(f"{text!r} is not a duration: write it like 500ms, 30s, 5m, 2h or 1d")
    return float(match[1]) * _SECONDS[match[2] or "s"]


def format_duration(duration_s: float) -> str:
    """Write a duration so that `parse_duration` reads the same number: `30s`, `5m`, `1.25s`."""
    for unit in ("d", "h", "m"):
        if duration_s and duration_s % _SECONDS[unit] == 0:
            return f"{int(duration_s // _SECONDS[unit])}{unit}"
    return f"{format_number(duration_s)}s"
