"""HTML reports in a real browser: drawn, without a horizontal overflow on a phone, in light and dark."""

from __future__ import annotations

import html
import re
import struct
import subprocess
import zlib
from pathlib import Path

import pytest

from tests import needs
from tests.unit.documents.hostile import hostile_recording
from tui.cli import run_cli

RECORDINGS = Path(__file__).parents[1] / "recordings"
GOLDEN = Path(__file__).parents[1] / "unit" / "golden" / "run.json"
SOURCES = {"load": RECORDINGS / "load.luns", "multipath": RECORDINGS / "multipath.luns", "run": GOLDEN}
BROWSER = ("chromium", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage")
PATIENCE_S = 120.0
LEAST_COLOURS = 8
"""Text, tables and curves have more; a blank page has one."""

FRAME = """<!DOCTYPE html><body style="margin:0"><iframe style="border:0" width="{width}" height="3000" srcdoc="{page}">
</iframe><pre id="sizes"></pre><script>
onload = () => {{
  const shown = document.querySelector("iframe").contentDocument;
  const wide = [...shown.querySelectorAll("main *")].filter(each => !each.closest(".scroll") &&
    each.getBoundingClientRect().right > {width} + 0.5).map(each => each.tagName);
  const size = shown.scrollingElement;
  document.getElementById("sizes").textContent = `${{size.scrollWidth}} of ${{size.clientWidth}}; wide: ${{wide}};`;
}}
</script>"""
"""A page of its own around the report, which has no script: the window of a headless browser is at least 500 wide."""

pytestmark = [needs.chromium, pytest.mark.slow]


@pytest.fixture(params=[*SOURCES, "hostile"])
def report(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    path = tmp_path / "report.html"
    source = SOURCES.get(request.param) or hostile_recording(tmp_path)
    assert run_cli(["report", "--from", str(source), "--html", str(path)]) == 0
    return path


def _browse(folder: Path, *words: str) -> str:
    profile = f"--user-data-dir={folder / 'profile'}"
    done = subprocess.run([*BROWSER, profile, *words], capture_output=True, text=True, timeout=PATIENCE_S, check=True)
    return done.stdout


@pytest.mark.parametrize("width", [360, 390, 1280])
def test_nothing_but_tables_is_wider_than_the_screen(report: Path, tmp_path: Path, width: int) -> None:
    frame = tmp_path / "frame.html"
    frame.write_text(FRAME.format(width=width, page=html.escape(report.read_text())))
    shown = _browse(tmp_path, "--dump-dom", "--virtual-time-budget=5000", f"file://{frame}")
    found = re.search(r'id="sizes">(\d+) of (\d+); wide: (.*?);<', shown)
    assert found, shown[-500:]
    assert int(found[1]) <= int(found[2])
    assert found[3] == ""


def test_it_is_drawn_in_light_and_dark(report: Path, tmp_path: Path) -> None:
    backs = []
    for scheme in (0, 1):
        picture = tmp_path / f"{scheme}.png"
        options = (f"--blink-settings=preferredColorScheme={scheme}", "--window-size=600,1200")
        _browse(tmp_path, *options, f"--screenshot={picture}", f"file://{report}")
        rows = _pixels(picture)
        assert len({pixel for row in rows for pixel in row}) >= LEAST_COLOURS
        backs.append(sum(rows[0][0]))
    dark, light = backs
    assert dark < 150
    assert light > 600


def _pixels(path: Path) -> list[list[tuple[int, ...]]]:
    """Every eighth row of a PNG with 8 bits per channel (RFC 2083)."""
    data = path.read_bytes()
    position, packed, width, channels = 8, b"", 0, 3
    while position < len(data):
        length, kind = struct.unpack(">I4s", data[position : position + 8])
        body = data[position + 8 : position + 8 + length]
        if kind == b"IHDR":
            width, channels = struct.unpack(">I", body[:4])[0], {2: 3, 6: 4}[body[9]]
        elif kind == b"IDAT":
            packed += body
        position += length + 12
    return _unfiltered(zlib.decompress(packed), width * channels, channels)


def _unfiltered(raw: bytes, stride: int, channels: int) -> list[list[tuple[int, ...]]]:
    before, rows = bytearray(stride), []
    for number, start in enumerate(range(0, len(raw), stride + 1)):
        kind, line = raw[start], bytearray(raw[start + 1 : start + 1 + stride])
        for at in range(stride):
            left = line[at - channels] if at >= channels else 0
            corner = before[at - channels] if at >= channels else 0
            line[at] = (line[at] + _predicted(kind, left, before[at], corner)) & 0xFF
        if number % 8 == 0:
            rows.append([tuple(line[at : at + 3]) for at in range(0, stride, channels)])
        before = line
    return rows


def _predicted(kind: int, left: int, up: int, corner: int) -> int:
    if kind < 3:
        return (0, left, up)[kind]
    if kind == 3:
        return (left + up) // 2
    estimate = left + up - corner
    return min((left, up, corner), key=lambda value: abs(estimate - value))
