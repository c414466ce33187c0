"""Colours of all bundled themes at every depth: contrast, and whether they stay apart with any colour vision.

What colour says is also said by a mark, a pattern or a word; the last test names it for every pair that is compared.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations

import numpy as np
import pytest
from textual.color import Color
from textual.theme import Theme

from tests.colour_vision import DEFICIENCIES, DEPTHS, Rgb, at_depth, ciede2000, contrast, difference
from tui.text.glyphs import ASCII, UNICODE, Glyphs
from tui.theming import bundled_themes

RGB_THEMES = [theme for theme in bundled_themes() if not theme.ansi]
SAFE = {"lunscope-colourblind", "lunscope-contrast"}
"""Made for any colour vision."""
TEXTS = ("read", "write", "total", "queue", "service", "peak", "busy", "hot", "warm", "event", "exact", "sampled",
         "kernel", "muted", "match", "error", "warning", "success")  # fmt: skip
UNDER_THE_CURSOR = ("exact", "sampled", "kernel", "hot", "warm")
LEAST_CONTRAST, LEAST_MARK_CONTRAST, MUCH_CONTRAST = 4.5, 3.0, 7.0
"""WCAG 2.2: 1.4.3 (AA) for text, 1.4.11 for marks and axes, 1.4.6 (AAA)."""
LEAST_AT_256 = 2.5
"""Under the cursor of the other themes: the nearest of the 256 colours is lighter than the one that is wanted."""
LEAST_DIFFERENCE = 10.0
"""CIEDE2000. One is just noticeable side by side; ten are seen at a glance, in thin strokes too."""

SEVERITIES = [pair for pair in combinations(("hot", "warm", "exact", "sampled"), 2) if pair != ("exact", "sampled")]
STATES = [*combinations(("error", "warning", "success"), 2)]
CURVES = [("read", "write"), ("queue", "service"), ("read", "peak"), ("write", "peak"), ("service", "peak")]

PALETTES: dict[str, tuple[int, ...]] = {
    "xterm": (0x000000, 0xCD0000, 0x00CD00, 0xCDCD00, 0x0000EE, 0xCD00CD, 0x00CDCD, 0xE5E5E5,
              0x7F7F7F, 0xFF0000, 0x00FF00, 0xFFFF00, 0x5C5CFF, 0xFF00FF, 0x00FFFF, 0xFFFFFF),
    "linux": (0x000000, 0xAA0000, 0x00AA00, 0xAA5500, 0x0000AA, 0xAA00AA, 0x00AAAA, 0xAAAAAA,
              0x555555, 0xFF5555, 0x55FF55, 0xFFFF55, 0x5555FF, 0xFF55FF, 0x55FFFF, 0xFFFFFF),
}  # fmt: skip
"""The sixteen colours of terminals (xterm's charproc, drivers/tty/vt/vt.c), on black."""
ANSI_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")


def colour(theme: Theme, name: str) -> Rgb:
    parsed = Color.parse(theme.variables.get(name) or getattr(theme, name))
    return parsed.r, parsed.g, parsed.b


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.49, -0.001), (50, -2.49, 0.0011), 7.2195),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((22.7233, 20.0904, -46.694), (23.0331, 14.973, -42.5619), 2.0373),
        ((90.8027, -2.0831, 1.441), (91.1528, -1.6435, 0.0447), 1.4441),
    ],
)
def test_the_formula_of_differences(one: tuple[float, ...], other: tuple[float, ...], expected: float) -> None:
    """Pairs of the test data of Sharma, Wu and Dalal."""
    assert ciede2000(np.array(one), np.array(other)) == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize("depth", DEPTHS)
@pytest.mark.parametrize("theme", RGB_THEMES, ids=lambda theme: theme.name)
def test_text_contrasts_with_its_background(theme: Theme, depth: str) -> None:
    """Sixteen colours are the terminal's own: the theme that is taken there has only these, and is tested below."""
    least = LEAST_MARK_CONTRAST if depth == "16" else LEAST_CONTRAST
    if theme.name == "lunscope-contrast" and depth != "16":
        least = MUCH_CONTRAST
    background, cursor = (at_depth(colour(theme, name), depth) for name in ("background", "cursor"))
    for name in TEXTS:
        assert contrast(at_depth(colour(theme, name), depth), background) >= least, name
    assert contrast(at_depth(colour(theme, "axis"), depth), background) >= LEAST_MARK_CONTRAST
    if depth != "16":
        least = LEAST_MARK_CONTRAST if depth == "truecolor" or theme.name in SAFE else LEAST_AT_256
        for name in UNDER_THE_CURSOR:
            assert contrast(at_depth(colour(theme, name), depth), cursor) >= least, name


@pytest.mark.parametrize("deficiency", DEFICIENCIES)
@pytest.mark.parametrize("depth", ["truecolor", "256"])
@pytest.mark.parametrize("theme", RGB_THEMES, ids=lambda theme: theme.name)
def test_colours_stay_apart(theme: Theme, depth: str, deficiency: str) -> None:
    """Severities in every theme; in those for any colour vision also states and the curves of one chart."""
    pairs = [*SEVERITIES, *STATES, *CURVES] if theme.name in SAFE else SEVERITIES
    for pair in pairs:
        one, other = (at_depth(colour(theme, name), depth) for name in pair)
        assert difference(one, other, deficiency) >= LEAST_DIFFERENCE, pair


@pytest.mark.parametrize("palette", PALETTES)
def test_the_theme_of_sixteen_colours_is_legible_on_black(palette: str) -> None:
    """With the terminals' own palettes; bright black is for lines behind the curves only."""
    (theme,) = [theme for theme in bundled_themes() if theme.ansi]
    names = {name: theme.variables.get(name) or getattr(theme, name) for name in (*TEXTS, "axis", "primary", "accent")}
    for name, value in names.items():
        word = value.removeprefix("ansi_")
        if word == "default":
            continue
        number = ANSI_NAMES.index(word.removeprefix("bright_")) + 8 * word.startswith("bright_")
        assert contrast(_rgb(PALETTES[palette][number]), (0, 0, 0)) >= LEAST_MARK_CONTRAST, (name, value)


def _rgb(number: int) -> Rgb:
    return number >> 16, number >> 8 & 255, number & 255


MARKS: dict[tuple[str, str], Callable[[Glyphs], tuple[str, str]]] = {
    ("hot", "warm"): lambda glyphs: (glyphs.hot, glyphs.warm),
    ("hot", "exact"): lambda glyphs: (glyphs.hot, " "),
    ("hot", "sampled"): lambda glyphs: (glyphs.hot, " "),
    ("warm", "exact"): lambda glyphs: (glyphs.warm, " "),
    ("warm", "sampled"): lambda glyphs: (glyphs.warm, " "),
    ("sampled", "exact"): lambda glyphs: (glyphs.tier_marks[2], glyphs.tier_marks[3]),
    ("kernel", "sampled"): lambda glyphs: (glyphs.tier_marks[1], glyphs.tier_marks[2]),
}


@pytest.mark.parametrize("glyphs", [UNICODE, ASCII], ids=["unicode", "ascii"])
def test_what_colour_shows_is_shown_by_marks_too(glyphs: Glyphs) -> None:
    assert set(SEVERITIES) <= MARKS.keys()
    for pair, marks in MARKS.items():
        one, other = marks(glyphs)
        assert one != other, pair
    for different in (glyphs.curve_samples, glyphs.stages.values(), glyphs.verdicts.values(), glyphs.strengths,
                      glyphs.event_marks.values(), glyphs.heat_lines):  # fmt: skip
        assert len(set(different)) == len(list(different)), different
    assert len(set(glyphs.heat)) >= 5
