"""Names are data: whatever they hold, they take the cells they are given and command nothing."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.safe import cell_text, fit, width_of

hostile = st.text(
    st.characters() | st.sampled_from("\x1b[]\u202e\u0301\u200d日\U0001f469\ud800\x9b\u2028"), max_size=30
)


@given(hostile, st.integers(0, 24))
def test_fit_takes_exactly_the_cells_asked_and_holds_nothing_unsafe(name: str, width: int) -> None:
    text = fit(name, width)
    assert cell_len(text) == width
    assert not {unicodedata.category(char) for char in text} & {"Cc", "Cf", "Cs", "Zl", "Zp", "Mn", "Me"}
    text.encode()


@given(hostile)
def test_width_is_that_of_the_cell_text(name: str) -> None:
    assert width_of(name) == cell_len(cell_text(name))


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("sda", "sda"),
        ("\x1b[31mred", r"\x1b[31mred"),
        ("[bold]x[/]", "[bold]x[/]"),
        ("a\u202eb", r"a\u202eb"),
        ("cafe\u0301", "caf\u00e9"),
        ("\ud800", r"\ud800"),
        ("x\u0301\u0302", "x??"),
        ("日本", "日本"),
    ],
)
def test_shows_what_is_plain_and_replaces_the_rest(name: str, shown: str) -> None:
    assert cell_text(name) == shown


def test_cut_at_cell_boundaries_and_marked() -> None:
    assert fit("日本語", 4) == "日 …"
    assert fit("abcdef", 4) == "abc…"
    assert fit("abcdef", 4, "~") == "abc~"
    assert fit("ab", 4) == "ab  "
