"""Names are data: whatever they hold, they take the cells they are given and command nothing."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from collectors.model import Device, Topology
from tui.text.safe import cell_text, fit, fit_name, labels_with_badges, width_of

hostile = st.text(
    st.characters() | st.sampled_from("\x1b[]\u202e\u0301\u200d日\U0001f469\ud800\x9b\u2028"), max_size=30
)


@pytest.mark.parametrize("cut", [fit, fit_name])
@given(name=hostile, width=st.integers(0, 24))
def test_fit_takes_exactly_the_cells_asked_and_holds_nothing_unsafe(
    cut: Callable[[str, int], str], name: str, width: int
) -> None:
    text = cut(name, width)
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


def test_names_are_cut_in_the_middle() -> None:
    assert fit_name("host0 fc -> 0x50060160c7201a11", 21) == "host0 fc -> 0…7201a11"
    assert fit_name("host0 fc -> 0x50060160c7201a12", 21) == "host0 fc -> 0…7201a12"
    assert fit_name("abcdef", 6) == "abcdef"
    assert fit_name("日本語日本語", 9) == "日本語…語"
    assert fit_name("abcdef", 5) == "abcd…"


def test_disks_that_the_kernel_does_not_count_have_a_badge() -> None:
    devices = [
        Device("a", "sda", "disk", 8, 0, friendly_name="data", iostats=False),
        Device("b", "sdb", "disk", 8, 16, iostats=False),
        Device("c", "sdc", "disk", 8, 32, iostats=True),
    ]
    labels = labels_with_badges(Topology({each.key: each for each in devices}))
    assert labels == {"a": "sda data [iostats off]", "b": "sdb [iostats off]"}
