"""Text that comes from devices, processes, mounts and files, made safe to print."""

from __future__ import annotations

import unicodedata

MOST_SHOWN = 1000
"""Characters of a message that are shown: more than any path has, less than a screen."""


def safe_text(text: str) -> str:
    r"""Make everything that is not plain printable text visible instead of effective.

    Control characters, escapes, direction and zero-width marks, private and unassigned characters become `\x1b`,
    `\u202e` and the like; bytes that were not UTF-8 (surrogate escapes) become `\xff`; odd spaces become spaces. The
    result has no line breaks. Markup characters are left: who prints with a markup language must pass text apart.
    """
    if text.isprintable():
        return text
    return "".join(character if character.isprintable() else _visible(character) for character in text)


def short_text(text: str, most: int = MOST_SHOWN) -> str:
    """Shorten text of any length to its beginning and its end, so that an error stays a line that can be read."""
    if len(text) <= most:
        return text
    head = most * 2 // 3
    return f"{text[:head]} ... ({len(text) - most} characters left out) ... {text[head - most :]}"


def _visible(character: str) -> str:
    code = ord(character)
    if unicodedata.category(character) == "Zs":
        return " "
    if 0xDC80 <= code <= 0xDCFF:
        code -= 0xDC00
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"
