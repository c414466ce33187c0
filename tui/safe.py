"""Names from devices, processes and files as text that cannot disturb the terminal, in an exact number of cells."""

from __future__ import annotations

import functools
import unicodedata

from rich.cells import cell_len, set_cell_size

_REPLACEMENT = "?"
_UNSAFE_CATEGORIES = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp", "Mn", "Me"})
"""Controls, direction overrides, lone surrogates, unassigned code points, line breaks and marks that stack."""


@functools.lru_cache(maxsize=65_536)
def safe_text(text: str) -> str:
    """Replace everything in a name that is not one plain, visible character.

    Escape sequences would command the terminal, direction overrides reorder the line, stacked marks spill over it.
    """
    if text.isascii() and text.isprintable():
        return text
    composed = unicodedata.normalize("NFC", text)
    return "".join(_REPLACEMENT if unicodedata.category(char) in _UNSAFE_CATEGORIES else char for char in composed)


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """Safe text cut or padded on the right to exactly `width` cells; `ellipsis` (one cell) shows a cut."""
    text = safe_text(text)
    if text.isascii():
        if len(text) <= width:
            return text.ljust(width)
        return text[: width - 1] + ellipsis if width > 1 else text[:width]
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + ellipsis if width > 1 else set_cell_size(text, width)


def width_of(text: str) -> int:
    """Cells that a name takes once it is made safe."""
    text = safe_text(text)
    return len(text) if text.isascii() else cell_len(text)
