"""The document of a recording says what `report` says, holds nothing foreign, and names what is wrong."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from collectors.model import Sample
from collectors.reports.documents.averages import DocumentOptions
from collectors.reports.documents.recording import recording_document
from collectors.reports.formats.html import html_lines
from collectors.reports.formats.md import markdown_lines
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from engine.replacing import replace
from tests.session_samples import SECOND_NS, Machine
from tests.unit import raw_samples as raw
from tests.unit.documents.hostile import HOSTILE, hostile_recording
from tests.unit.documents.parsed import Page
from tui.cli import run_cli

RECORDINGS = sorted(Path(__file__).parents[2].joinpath("recordings").glob("*.luns"))
TAGS = {
    *("html", "head", "meta", "title", "style", "body", "main", "header", "section", "h1", "h2", "h3", "p", "dl", "dt"),
    *("dd", "ul", "li", "div", "table", "thead", "tbody", "tr", "th", "td", "span", "figure", "figcaption", "b", "i"),
    *("small", "svg", "path", "text", "circle", "rect"),
}
ATTRIBUTES = {
    *(
        "lang",
        "charset",
        "http-equiv",
        "name",
        "content",
        "class",
        "tabindex",
        "role",
        "aria-label",
        "viewbox",
        "d",
        "x",
    ),
    *("y", "cx", "cy", "r", "width", "height", "text-anchor"),
}


def _html(path: Path, **options: object) -> str:
    with SessionReader(path) as reader:
        document = recording_document(reader, DocumentOptions(**options))  # type: ignore[arg-type]
        return "\n".join(html_lines(document))


def _markdown(path: Path) -> str:
    with SessionReader(path) as reader:
        return "\n".join(markdown_lines(recording_document(reader)))


def _printed(capsys: pytest.CaptureFixture[str], *words: str) -> list[list[str]]:
    assert run_cli(["report", *words]) == 0
    lines = capsys.readouterr().out.splitlines()
    averages = [line.removeprefix("Average: ").split() for line in lines if line.startswith("Average: ")]
    return [cells for cells in averages if len(cells) > 2 and re.fullmatch(r"[-0-9.]+[~:]?", cells[-1])]


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_figures_are_those_of_report(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    expected = _printed(capsys, "-d", "-L", "-H", "-t", "--from", str(path))
    expected += _printed(capsys, "-R", "-d", "--from", str(path))
    peaks = _printed(capsys, "-P", "-d", "-L", "-H", "--from", str(path))
    rows = [" ".join(row).split() for row in Page(_html(path, split=True)).rows]
    assert expected
    for cells in expected:
        assert cells in rows
    has_peaks = any(set(cells[-8:]) != {"-"} for cells in peaks)
    assert not has_peaks or all(cells in rows for cells in peaks if set(cells[-8:]) != {"-"})


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
def test_page_is_sound_and_needs_nothing_else(path: Path) -> None:
    text = _html(path)
    page = Page(text)
    assert page.tags <= TAGS
    assert page.attributes <= ATTRIBUTES
    assert not re.search(r"https?:|//|url\(|@import|<script|javascript:", text)
    assert "nan" not in re.findall(r'[ dxy]="([^"]*)"', text)
    assert not re.search(r'(?:d|x|y|cx|cy|width|height)="[^"]*(?:nan|inf)', text)


@pytest.fixture
def hostile(tmp_path: Path) -> Path:
    return hostile_recording(tmp_path)


def test_hostile_texts_are_shown_and_have_no_effect(hostile: Path) -> None:
    page = Page(_html(hostile))
    assert page.tags <= TAGS | {"title"}
    assert page.attributes <= ATTRIBUTES
    assert HOSTILE[0] in page.text
    assert HOSTILE[1] in page.text
    assert not [character for character in page.text if not character.isprintable() and character != "\n"]


def test_hostile_texts_in_markdown_have_no_effect(hostile: Path) -> None:
    text = _markdown(hostile)
    lines = [line for line in text.splitlines()[1:] if not line.startswith("    ")]
    assert not [line for line in lines if re.search(r"(?<!\\)[<>`*_~\[\]]", line.lstrip("*").rstrip("*"))]
    assert not [line for line in lines if "://" in line or "@" in line or "www." in line]
    tables = [list(rows) for is_table, rows in itertools.groupby(lines, lambda line: line.startswith("|")) if is_table]
    assert tables
    for rows in tables:
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) == 1, "a cell broke its row"
    headings = [line for line in lines if re.match(r" {0,3}#", line)]
    assert all(re.match(r"#{1,3} ", line) for line in headings)
    assert not [line for line in lines if re.match(r" {0,3}#* ?heading", line)]


def _recorded(path: Path, samples: list[Sample]) -> str:
    with SessionWriter(path) as writer:
        for sample in samples:
            writer.write(sample)
    return Page(_html(path)).text


def test_gaps_and_late_samples_are_named(tmp_path: Path) -> None:
    machine = Machine()
    samples = [machine.sample() for _ in range(8)]
    calm = _recorded(tmp_path / "calm.luns", samples)
    assert not re.search(r"\d gaps? in the recording|samples? late by", calm)
    samples[3] = replace(samples[3], late_ns=SECOND_NS * 3 // 4)
    slept = [replace(sample, time_ns=sample.time_ns + 60 * SECOND_NS) for sample in samples[5:]]
    disturbed = _recorded(tmp_path / "slept.luns", [*samples[:5], *slept])
    assert "1 sample late by more than half an interval, by up to 0.75 s" in disturbed
    assert "1 gap in the recording" in disturbed


def test_the_hottest_disk_says_how_many_could_not_be_judged(tmp_path: Path) -> None:
    """More busy time in a second than it has is none."""
    who = raw.rows("vda", "vdb")
    rows = [[{"reads": 90 * at, "busy_ms": busy_ms * at} for busy_ms in (900, 5_000)] for at in range(4)]
    samples = [raw.sample(at, disks=raw.disks(who, *row)) for at, row in enumerate(rows)]
    text = _recorded(tmp_path / "some.luns", samples)
    assert re.search(r"Hottest disk over the recording: vda: .*; busy time of 1 disk with I/O is not known", text)


@pytest.mark.slow
def test_series_stay_short_and_keep_their_peaks(tmp_path: Path) -> None:
    machine = Machine(disks=2, active=2)
    path = tmp_path / "long.luns"
    with SessionWriter(path) as writer:
        for _ in range(350):
            writer.write(machine.sample())
    with SessionReader(path) as reader:
        document = recording_document(reader)
    curves = [
        curve
        for section in document.sections
        for block in section.blocks
        for chart in getattr(block, "charts", ())
        for curve in chart.curves
    ]
    assert curves
    assert max(len(curve.x) for curve in curves) <= 245
    assert all(len(curve.x) == len(curve.y) for curve in curves)


def test_recording_without_io_says_so(tmp_path: Path) -> None:
    machine = Machine(disks=2, active=2)
    text = _recorded(tmp_path / "one.luns", [machine.sample()])
    assert "No interval was recorded" in text
    assert "No I/O was recorded" in text
