"""Terminals without UTF-8 get ASCII alone: from our screens, from the toolkit's widgets, from names of devices."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from textual.pilot import Pilot

from bench.scale_screen import drain_for
from engine.replacing import replace
from engine.running.control import LoadControl
from tests.app.latency_samples import with_latencies
from tests.app.multipath import multipath_samples
from tests.app.sources import ListRecording, ListSource, make_samples, renamed, with_load
from tests.app.stage import FROZEN, make_app, on_stage, play, rewind_to, screen_text
from tests.app.test_snapshots import JOB
from tests.kernel.forked_command import ForkedTerminal
from tui.text.plain import plain_text

pytestmark = pytest.mark.slow

PLAIN = replace(FROZEN, glyphs="ascii")
SIZES = ((60, 20), (200, 60))
NAMES = ("naïve-Ünit", "磁盘一号", "🔥disk")


def leaks(pilot: Pilot[None]) -> str:
    """What on the screen is not ASCII, with the line it is on."""
    lines = screen_text(pilot).splitlines()
    return "\n".join(line for line in lines if not line.isascii())


@pytest.mark.parametrize("size", SIZES)
async def test_screens_of_a_live_host(size: tuple[int, int]) -> None:
    samples = [renamed(sample, NAMES) for sample in with_load(make_samples(count=40))]
    control = LoadControl()
    app = make_app(source := ListSource(samples), control, JOB, settings=PLAIN)
    async with on_stage(app, size) as pilot:
        await play(pilot, source, 40)
        for keys in ("1", "slash", "x", "escape", "enter", "escape", "2", "plus", "e", "tab", "escape", "3", "4", "5"):
            await _press(pilot, keys)
        for keys in ("6", "x", "7", "right", "d", "escape", "question_mark", "pagedown", "escape", "space", "z"):
            await _press(pilot, keys)
        app.notify("größer — 10 µs", title="Notiz…", markup=False)
        await _press(pilot, "ctrl+p")
        await _press(pilot, *"the")
        await _press(pilot, "escape")
    control.close()


@pytest.mark.parametrize("size", SIZES)
async def test_screens_of_a_recording(size: tuple[int, int]) -> None:
    app = make_app(source := ListRecording(with_latencies(make_samples(count=60))), settings=PLAIN)
    async with on_stage(app, size) as pilot:
        await rewind_to(pilot, source, 50)
        for keys in ("4", "n", "m", "left", "p", "p", "c", "escape", "1", "tab", "left", "g", "1", "escape", "2"):
            await _press(pilot, keys)


async def test_screens_of_paths() -> None:
    app = make_app(source := ListSource(multipath_samples(10)), settings=PLAIN)
    async with on_stage(app) as pilot:
        await play(pilot, source, 10)
        for keys in ("5", "x", "d", "escape", "b", "d", "escape", "n", "6", "x", "x", "x", "d", "escape", "7"):
            await _press(pilot, keys)


async def test_other_terminals_keep_their_marks() -> None:
    app = make_app(source := ListSource([renamed(sample, NAMES) for sample in make_samples(count=5)]))
    async with on_stage(app) as pilot:
        await play(pilot, source, 5)
        assert "磁盘一号" in screen_text(pilot)
        assert "▶ LIVE" in screen_text(pilot)


async def _press(pilot: Pilot[None], *keys: str) -> None:
    await pilot.press(*keys)
    await pilot.pause()
    assert leaks(pilot) == "", f"after {keys}"


@given(st.text())
def test_what_stands_for_a_text_is_ascii_and_as_wide(text: str) -> None:
    assert plain_text(text).isascii()
    assert len(plain_text(text)) == cell_len(text)


@pytest.mark.parametrize(
    "environment",
    [
        {"LC_ALL": "C", "TERM": "xterm-256color"},
        {"LANG": "C.UTF-8", "TERM": "linux"},
        {"LC_ALL": "de_DE.ISO-8859-1", "TERM": "xterm"},
        {"LANG": "en_US.UTF-8", "TERM": "vt220"},
    ],
    ids=lambda environment: environment["TERM"],
)
def test_a_terminal_gets_no_byte_beyond_ascii(environment: dict[str, str], tmp_path: Path) -> None:
    sent = watched(environment, tmp_path, (*"1234567?", "\x1b", "\x10", "the"))
    assert b"lunscope" in sent
    beyond = [byte for byte in sent if byte > 127]
    assert not beyond, bytes(beyond[:60]).decode(errors="replace")


def watched(environment: dict[str, str], folder: Path, keys: Sequence[str]) -> bytes:
    """Run `lunscope watch` on a terminal of its own, press keys, and give back all it sent."""
    unset = dict.fromkeys((name for name in os.environ if name.startswith(("LC_", "LANG"))), "")
    environment = {**unset, "COLORTERM": "", "XDG_CONFIG_HOME": str(folder), **environment}
    terminal = ForkedTerminal(("watch", "--tier", "kernel"), 80, 24, environment=environment)
    try:
        assert terminal.drain(30, until=b"LIVE") is not None, bytes(terminal.output)
        for key in keys:
            terminal.press(key)
            drain_for(terminal, 0.4)
        return bytes(terminal.output)
    finally:
        terminal.close()
