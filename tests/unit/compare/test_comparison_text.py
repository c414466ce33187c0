"""Lines of a comparison in 80 columns."""

from __future__ import annotations

from tui.headless.comparison_text import WIDTH, fitting


def test_a_line_gives_up_alignment_from_the_right_and_no_figure() -> None:
    figures = f"{'0.000':>10} {'12.00':>10} {'+12.00':>8} {'-99999.9 to +99999.9':>18}"
    line = f"{'Peak inflight~':<14} {'':<5} {figures}  equivalent"
    assert len(line) > WIDTH
    found = fitting(line)
    assert len(found) == WIDTH
    assert found.split() == line.split()


def test_a_line_that_fits_is_left_alone() -> None:
    assert fitting("Await  ms   1.000") == "Await  ms   1.000"


def test_a_line_without_padding_is_not_cut() -> None:
    assert fitting("x" * (WIDTH + 1)) == "x" * (WIDTH + 1)
