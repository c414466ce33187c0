"""The wall of cells: the mark that says how strong a cell is shows under the cursor too."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.model import Rows
from tests.app.shows import OneWidget
from tui.text.glyphs import UNICODE
from tui.widgets.wall import HOT, IDLE, Wall

NAMES = tuple(f"disk{number}" for number in range(12))


@pytest.mark.parametrize(("size", "cell"), [((96, 2), 16), ((36, 1), 3), ((24, 1), 2)])
async def test_the_cell_under_the_cursor_keeps_its_level(size: tuple[int, int], cell: int) -> None:
    wall = Wall()
    async with OneWidget(wall).run_test(size=size) as pilot:
        rows = Rows(NAMES, NAMES)
        strengths = np.full(len(NAMES), IDLE)
        strengths[1] = HOT
        wall.show(rows, NAMES, np.arange(len(NAMES)), strengths)
        await pilot.pause()
        wall.action_move(1, 0)
        await pilot.pause()
        left = sum(UNICODE.strengths[HOT] in segment.text for segment in wall.render_line(0))
        assert left == 1
        marks = [segment for segment in wall.render_line(0) if UNICODE.strengths[HOT] in segment.text]
        assert all(segment.style is not None and not segment.style.reverse for segment in marks)
        reversed_text = [one.text for one in wall.render_line(0) if one.style is not None and one.style.reverse]
        assert len(reversed_text) == 1
        text = "".join(segment.text for segment in wall.render_line(0))
        assert text.index(UNICODE.strengths[HOT]) == cell
        assert text.index(reversed_text[0]) < 2 * cell
