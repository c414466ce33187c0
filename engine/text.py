"""Names from outside are data: what is said about them must not steer a terminal."""

from __future__ import annotations


def printable(text: str) -> str:
    """Return the text with everything but printable characters spelled out as escapes."""
    return "".join(letter if letter.isprintable() else ascii(letter)[1:-1] for letter in text)
