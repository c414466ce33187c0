"""Terminals without UTF-8 get ASCII alone: from our screens, from the toolkit's widgets, from names of devices."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.app.sources import ListSource, make_samples, renamed
from tests.app.stage import make_app, on_stage, play, screen_text
from tui.text.plain import plain_text

pytestmark = pytest.mark.slow

NAMES = ("naïve-Ünit", "磁盘一号", "🔥disk")


async def test_other_terminals_keep_their_marks() -> None:
    app = make_app(source := ListSource([renamed(sample, NAMES) for sample in make_samples(count=5)]))
    async with on_stage(app) as pilot:
        await play(pilot, source, 5)
        assert "磁盘一号" in screen_text(pilot)
        assert "▶ LIVE" in screen_text(pilot)


@given(st.text())
def test_what_stands_for_a_text_is_ascii_and_as_wide(text: str) -> None:
    assert plain_text(text).isascii()
    assert len(plain_text(text)) == cell_len(text)
