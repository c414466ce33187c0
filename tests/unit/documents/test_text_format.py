"""Documents as plain text: what fits, what goes on below, and that nothing is lost."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.reports.documents.content import (
    NONE,
    Bullets,
    Charts,
    Document,
    DocumentTable,
    DrawnChart,
    DrawnCurve,
    Facts,
    Paragraph,
    Section,
)
from collectors.reports.formats.registry import formats
from collectors.reports.formats.text import WIDTH, block_lines, section_lines, text_lines
from tui.cli import run_cli

LOAD = str(Path(__file__).parents[2] / "recordings" / "load.luns")
WIDE = DocumentTable(
    "Wide",
    (("name", ""), *((f"figure {number}", "ms") for number in range(12)), ("", "")),
    tuple((f"disk {row}", *(f"{row},{number:03}.000" for number in range(12)), "a note of some words") for row in "12"),
    note="of both disks",
)


def lines_of(*sections: Section, width: int = WIDTH) -> list[str]:
    lines = list(section_lines(sections, width))
    assert max(map(len, lines), default=0) <= width
    return lines


def test_a_table_that_is_too_wide_goes_on_below_with_its_keys_and_loses_no_figure() -> None:
    lines = lines_of(Section("", (WIDE,)))
    assert sum(line.startswith("disk 1") for line in lines) > 1
    words = " ".join(lines).split()
    for row in WIDE.rows:
        assert all(words.count(figure) == 1 for figure in row[1:-1])
    assert lines[-1] == "(of both disks)"
    wide = lines_of(Section("", (WIDE,)), width=200)
    assert sum(line.startswith("disk 1") for line in wide) == 1


def test_titles_break_before_texts_do() -> None:
    table = DocumentTable("", (("", ""), ("mean latency", "ms"), ("", "")), (("a", "0.123", "x" * 60),))
    assert lines_of(Section("", (table,)))[0].strip() == "mean latency"
    narrow = DocumentTable("", (("", ""), ("mean latency", "ms"), ("", "")), (("a", "0.123", f"{'x ' * 33}y"),))
    lines = lines_of(Section("", (narrow,)))
    assert [line.strip() for line in lines[:3]] == ["mean", "latency", "ms"]
    assert lines[3].endswith("y"), "not wrapped where a broken title makes room"


def test_figures_stand_right_and_names_left() -> None:
    table = DocumentTable("", (("qd", ""), ("IOPS", "1/s")), (("1", "900"), ("16", "12,000")))
    assert lines_of(Section("", (table,))) == ["qd    IOPS", "       1/s", " 1     900", "16  12,000"]
    named = DocumentTable("", (("disk", ""), ("IOPS", "")), (("sda", "900"), ("nvme0n1", "-")))
    assert lines_of(Section("", (named,))) == ["disk     IOPS", "sda       900", "nvme0n1     -"]


def test_figures_of_a_section_stand_above_what_they_say() -> None:
    section = Section("Sweep", (Paragraph("knee: at 8", important=True), Bullets(("noisy",))), (Paragraph("points"),))
    assert lines_of(section) == ["[Sweep]", "points", "", "knee: at 8", "- noisy"]


def test_sections_without_contents_are_left_out() -> None:
    chart = Charts((DrawnChart("c", "ms", (DrawnCurve("a", (1.0,), (1.0,)),)),))
    assert lines_of(Section("Notes", (NONE,)), Section("Curves", (chart,)), Section("Empty", ())) == []


def test_words_are_wrapped_and_no_unit_leaves_its_figure() -> None:
    lines = lines_of(Section("", (Paragraph("x" * 77 + " 5 % of it"), Facts((("name", "v " * 60),)))))
    assert lines[0] == "x" * 77
    assert lines[1] == "5 % of it"
    assert lines[3].startswith("name  v v")
    assert lines[4].startswith("      v v")


def test_nothing_in_a_name_has_an_effect() -> None:
    bad = "a\x1b[31m\nb"
    table = DocumentTable(bad, ((bad, bad),), ((bad,),), note=bad)
    blocks = (Facts(((bad, bad),)), Bullets((bad,), ((bad,),)), Paragraph(bad), table)
    assert all(line.isprintable() for line in text_lines(Document(bad, bad, (Section(bad, blocks),))))


@pytest.mark.parametrize("cell", ["", "   ", "x" * 200, "1" * 30, "\x1b" * 40])
def test_odd_cells_are_shown_within_the_width(cell: str) -> None:
    for head in ((cell, ""), ("title", cell), ("", "")):
        table = DocumentTable("", (("disk", ""), head, ("IOPS", "1/s")), (("sda", cell, "900"), ("sdb", "", "1")))
        assert all(line.isprintable() for line in lines_of(Section("", (table,))))
    nothing = DocumentTable("", (("", ""),), (("",),))
    assert lines_of(Section("", (nothing,))) == []


def test_each_format_has_its_option_and_its_mark() -> None:
    assert {form.option for form in formats()} >= {"html", "md", "text"}
    document = Document("Title", "lead", (Section("s", (WIDE,)),))
    for form in formats():
        assert form.mark in "\n".join(form.lines(document))[:256]


def test_a_report_as_text_is_written_and_replaced(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "r.txt"
    words = ["report", "--from", LOAD, "--text", str(path)]
    assert run_cli(words) == 0
    text = path.read_text()
    assert max(map(len, text.splitlines())) <= WIDTH
    assert "[Averages]" in text
    assert run_cli([*words, "--overwrite"]) == 0
    path.write_text("precious")
    assert run_cli([*words, "--overwrite"]) == 2
    assert "not a report of lunscope" in capsys.readouterr().err
    assert path.read_text() == "precious"


@given(data=st.data())
def test_no_table_is_wider_than_a_terminal(data: st.DataObject) -> None:
    """Keys that leave no room beside them are not repeated."""
    words = st.text("abcd ", max_size=90)
    figures = st.sampled_from(["-", "12", "1,234,567.89", "-0.003"])
    texts, figured = data.draw(st.integers(1, 3)), data.draw(st.integers(0, 9))
    head = [(data.draw(words)[:30], data.draw(st.sampled_from(["", "ms"]))) for _ in range(texts + figured)]
    row = st.tuples(*[words] * texts, *[figures] * figured)
    table = DocumentTable("t", tuple(head), tuple(data.draw(st.lists(row, min_size=1, max_size=4))), texts)
    assert [line for line in block_lines(table) if len(line) > WIDTH] == []
