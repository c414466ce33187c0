"""Lines with fixed colours pass the filter as they are; all others become what Textual makes of them."""

from __future__ import annotations

import pytest
from rich.segment import Segment
from rich.style import Style
from rich.terminal_theme import DIMMED_MONOKAI
from textual.color import Color
from textual.filter import ANSIToTruecolor

from tests.app.sources import ListSource, make_samples
from tests.app.stage import make_app
from tui.textual_internals.true_colours import TrueColours

FIXED = ["", "bold", "dim", "#ff8000", "#ff8000 on #102030", "bold underline on #102030", "dim on #102030"]
OTHER = ["red", "on blue", "#ff8000 on blue", "dim #ff8000", "color(200)", "default", "bright_red on #102030"]
GROUND = Color(1, 2, 3)


@pytest.mark.parametrize("text", FIXED)
def test_a_line_of_fixed_colours_stays_the_same(text: str) -> None:
    line = [Segment("a", Style.parse(text)), Segment("b"), Segment("c", Style.parse("#010203"))]
    assert TrueColours(DIMMED_MONOKAI).apply(line, GROUND) is line
    assert ANSIToTruecolor(DIMMED_MONOKAI).apply(line, GROUND) == line


@pytest.mark.parametrize("text", OTHER)
def test_one_other_colour_in_a_line_is_replaced_as_textual_does(text: str) -> None:
    line = [Segment("a", Style.parse("#010203")), Segment("b", Style.parse(text)), Segment("c")]
    found = TrueColours(DIMMED_MONOKAI).apply(line, GROUND)
    assert found == ANSIToTruecolor(DIMMED_MONOKAI).apply(line, GROUND)
    assert found != line


def test_the_app_uses_it_with_any_terminal_theme() -> None:
    app = make_app(ListSource(make_samples(count=1)))
    assert [type(each) for each in app._filters] == [TrueColours]
    app._refresh_truecolor_filter(DIMMED_MONOKAI)
    assert [type(each) for each in app._filters] == [TrueColours]
