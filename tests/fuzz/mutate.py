"""Mutations of bytes and of JSON values, all from one source of chance."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import Any

_EDGES = (0, 7, 8, 16, 31, 32, 63, 64)
ODD_NUMBERS = (2, -1, 65535, *(2**bits for bits in _EDGES), *(2**bits - 1 for bits in _EDGES), -(2**63))
ODD_TEXT = (
    *("", "0", "-1", "9" * 25, "9" * 5000, "1e999", "nan", "inf", "\u0663", "\u00b2", "1_0", "0x1f", "true", "None"),
    *("\x1b[2J\x1b]0;x\x07", "\u202e", "\n", "\r", "\t", "\0", "a" * 5000, "../../..", "/", "%s%n", "\udcff"),
    *("[[[[", "[" * 5000, "{" * 500, "::", "8:16", "#", " ", "|", ",", "=", "~"),
)
ODD_BYTES = (
    *(text.encode("utf-8", "surrogateescape") for text in ODD_TEXT),
    *(b"\xff\xfe", b"\xc3", b"\x9b31m", b"\xf0\x9f"),
)
_ODD_CHARACTERS = "\0\t\n\x1b\"',:=[]{}\xdf\u0661\u202e"


def damaged(data: bytes, dice: random.Random) -> bytes:
    """Return bytes with one to four changes."""
    result = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 4))):
        dice.choice(_CHANGES)(result, dice)
    return bytes(result)


def _flip(data: bytearray, dice: random.Random) -> None:
    if data:
        data[dice.randrange(len(data))] ^= 1 << dice.randrange(8)


def _overwrite(data: bytearray, dice: random.Random) -> None:
    if data:
        start = dice.randrange(len(data))
        length = min(dice.choice((1, 2, 4, 8, 64, 512, 4096)), len(data) - start)
        fill = dice.choice((bytes(length), b"\xff" * length, dice.randbytes(length)))
        data[start : start + length] = fill


def _number(data: bytearray, dice: random.Random) -> None:
    """Put an odd number in the place of one, big-endian as SQLite has them, or little."""
    width = dice.choice((1, 2, 4, 8))
    if len(data) >= width:
        start = dice.randrange(len(data) - width + 1)
        value = dice.choice(ODD_NUMBERS) % (1 << 8 * width)
        data[start : start + width] = value.to_bytes(width, dice.choice(("big", "little")))


def _insert(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data) + 1)
    data[at:at] = dice.choice((*ODD_BYTES, dice.randbytes(dice.choice((1, 3, 50)))))


def _delete(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data) + 1)
    del data[at : at + dice.choice((1, 2, 5, 100, 5000))]


def _cut(data: bytearray, dice: random.Random) -> None:
    del data[dice.randrange(len(data) + 1) :]


def _repeat(data: bytearray, dice: random.Random) -> None:
    at = dice.randrange(len(data) + 1)
    part = bytes(data[at : at + dice.choice((1, 4, 16, 200))])
    data[at:at] = part * dice.choice((1, 2, 50))


def _move(data: bytearray, dice: random.Random) -> None:
    if len(data) > 2:
        length = min(dice.choice((1, 8, 100, 4096)), len(data) // 2)
        source, target = (dice.randrange(len(data) - length + 1) for _ in range(2))
        data[target : target + length] = bytes(data[source : source + length])


_CHANGES: Sequence[Callable[[bytearray, random.Random], None]] = (
    _flip,
    _flip,
    _overwrite,
    _number,
    _insert,
    _delete,
    _cut,
    _repeat,
    _move,
)


def text_damaged(text: str, words: Sequence[str], dice: random.Random) -> str:
    """Return text with one to six changes: of lines, words and characters."""
    for _ in range(dice.choice((1, 1, 2, 3, 6))):
        text = _text_change(text, words, dice)
    return text[:200_000]


def _text_change(text: str, words: Sequence[str], dice: random.Random) -> str:
    lines = text.split("\n")
    at = dice.randrange(len(lines))
    place = dice.randrange(len(text) + 1)
    word = dice.choice((*words, *ODD_TEXT))
    match dice.randrange(9):
        case 0:
            del lines[at]
        case 1:
            lines.insert(at, dice.choice(lines))
        case 2:
            lines[at] = word
        case 3:
            parts = lines[at].split(" ")
            parts[dice.randrange(len(parts))] = word
            lines[at] = " ".join(parts)
        case 4:
            return text[:place] + word + text[place:]
        case 5:
            return text[:place] + text[place + dice.choice((1, 3, 40)) :]
        case 6:
            return text[:place] + dice.choice(_ODD_CHARACTERS) + text[place + 1 :]
        case 7:
            lines.insert(at, f"{word} {dice.choice(words) if words else word}")
        case _:
            digits = [index for index, character in enumerate(text) if character.isdigit()]
            if digits:
                spot = dice.choice(digits)
                return text[:spot] + dice.choice((word, str(dice.choice(ODD_NUMBERS)))) + text[spot + 1 :]
    return "\n".join(lines)


def value_damaged(value: Any, dice: random.Random) -> Any:
    """Return a JSON value with one part exchanged, removed or multiplied."""
    if isinstance(value, dict) and value and dice.random() < 0.85:
        key = dice.choice(list(value))
        changed = dict(value)
        if dice.random() < 0.1:
            del changed[key]
        else:
            changed[key] = value_damaged(value[key], dice)
        return changed
    if isinstance(value, list) and value and dice.random() < 0.85:
        at = dice.randrange(len(value))
        match dice.randrange(8):
            case 0:
                return value[:at] + value[at + 1 :]
            case 1:
                return value * dice.choice((2, 50))
            case 2:
                return [*value, odd_value(dice)]
            case _:
                return [*value[:at], value_damaged(value[at], dice), *value[at + 1 :]]
    return odd_value(dice)


def odd_value(dice: random.Random) -> Any:
    """Return something that is rarely expected."""
    return dice.choice(
        (
            None,
            True,
            0.5,
            1e308,
            float("nan"),
            float("inf"),
            dice.choice(ODD_NUMBERS),
            dice.choice(ODD_NUMBERS),
            dice.choice(ODD_TEXT),
            dice.choice(ODD_TEXT),
            [],
            {},
            [1, "x", None],
            {"a": [{}]},
            ["\x1b[31m"] * 3,
        )
    )
