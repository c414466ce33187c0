"""Wrapped lines keep their indent and lose nothing."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from textual.content import Content

from tui.screens.help.hanging import wrapped
from tui.screens.help.sections import Hanging

WORDS = st.lists(st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20), max_size=30)


def test_text_goes_on_below_text() -> None:
    line = Hanging(Content.assemble(("  key   ", "bold"), "what it does, at some length"), 8)
    assert [part.plain for part in wrapped(line, 24)] == [
        "  key   what it does, at",
        "        some length",
    ]


@given(words=WORDS, width=st.integers(1, 60), indent=st.integers(0, 30))
def test_every_character_is_there_and_fits(words: list[str], width: int, indent: int) -> None:
    text = " ".join(words)
    line = Hanging(Content("h" * indent + text), indent)
    parts = [part.plain for part in wrapped(line, width)]
    assert "".join("".join(parts).split()) == "".join(("h" * indent + text).split())
    assert all(len(part) <= max(width, indent + 1) for part in parts)
