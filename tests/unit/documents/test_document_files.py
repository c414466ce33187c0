"""`report --html` and `--md`: what they write, and what they never write over."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from collectors.reports.documents.scale import binary_ticks, log_ticks, round_ticks, short_number, time_ticks
from collectors.reports.formats.registry import HTML_MARK as MARK
from tui.cli import run_cli

LOAD = str(Path(__file__).parents[2] / "recordings" / "load.luns")


def _report(*words: str) -> int:
    return run_cli(["report", "--from", LOAD, *words])


def test_both_files_are_written_and_stdout_is_empty(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page, text = tmp_path / "r.html", tmp_path / "r.md"
    assert _report("--html", str(page), "--md", str(text)) == 0
    assert capsys.readouterr().out == ""
    assert page.read_text().endswith("</html>\n")
    assert text.read_text().startswith(f"{MARK}\n# Storage report of lab\n")


def test_dash_is_standard_output(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert _report("--html", "-") == 0
    page = tmp_path / "r.html"
    printed = capsys.readouterr().out
    assert _report("--html", str(page)) == 0
    assert page.read_text() == printed
    assert not Path("-").exists()


def test_nothing_is_overwritten_unless_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    page = tmp_path / "r.html"
    assert _report("--html", str(page)) == 0
    page.write_text(f"{MARK} old")
    assert _report("--html", str(page)) == 2
    assert "exists; use another name or --overwrite" in capsys.readouterr().err
    assert page.read_text() == f"{MARK} old"
    assert _report("--html", str(page), "--overwrite") == 0
    assert page.read_text().endswith("</html>\n")
    assert [entry.name for entry in tmp_path.iterdir()] == ["r.html"]


@pytest.mark.parametrize("kind", ["text", "link", "dangling", "folder", "pipe"])
def test_what_is_no_report_is_never_replaced(tmp_path: Path, kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    path, other = tmp_path / "x", tmp_path / "report"
    other.write_text(MARK)
    match kind:
        case "text":
            path.write_text("precious")
        case "link":
            path.symlink_to(other)
        case "dangling":
            path.symlink_to(tmp_path / "absent")
        case "folder":
            path.mkdir()
        case _:
            os.mkfifo(path)
    before = path.lstat()
    assert _report("--html", str(path), "--overwrite") == 2
    assert "not a report of lunscope" in capsys.readouterr().err
    assert (path.lstat().st_ino, path.lstat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == ["report", "x"]


def test_source_is_never_replaced(tmp_path: Path) -> None:
    copy = tmp_path / "a.luns"
    copy.write_bytes(Path(LOAD).read_bytes())
    before = copy.read_bytes()
    assert run_cli(["report", "--from", str(copy), "--html", str(copy), "--overwrite"]) == 2
    assert copy.read_bytes() == before


def test_ticks_are_round_and_cover_the_values() -> None:
    assert round_ticks(87, 4) == (0, 25, 50, 75, 100)
    assert round_ticks(0, 4) == (0, 1)
    assert binary_ticks(3 << 20, 4) == (0, 1 << 20, 2 << 20, 3 << 20)
    assert log_ticks(1, 1000) == (1, 10, 100, 1000)
    assert len(log_ticks(1e-6, 1e6)) <= 6
    start_ns = 1_000_000_007 * 10**9
    assert {(start_ns / 1e9 + tick) % 10 for tick in time_ticks(40, start_ns, 5)} == {0.0}


def test_short_numbers() -> None:
    shown = [short_number(value) for value in (0, 0.25, 999, 1000, 22_500, 3e6, 1e9)]
    assert shown == ["0", "0.25", "999", "1k", "22.5k", "3M", "1G"]
    assert short_number(1000 << 10, "B/s") == "1000Ki"
    assert short_number(float("nan")) == "-"
