"""The screens over a load whose device stops answering: it is named everywhere, and leaving does not hang."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from bench.terminal import Terminal
from collectors.session.reader import SessionReader
from engine.job.spec import Backend, JobSpec, Knobs, Permissions, TargetSpec
from engine.running.control import LoadState
from tests import needs
from tests.app.stage import SIZES, is_leaving, said, screen_text, until
from tests.app.test_load_screen import GENTLE_IOPS, LoadStage, load_stage
from tests.app.test_terminal_cells import Watched
from tests.kernel.stalling import StallingDisk, stalling_disk
from tests.kernel.test_stall import wait_for_writes
from tests.unit.documents.printed import unwrapped

pytestmark = [pytest.mark.slow, needs.root, needs.loop, needs.mkfs_ext4, needs.fsfreeze]

BACKENDS = [pytest.param("uring", marks=needs.io_uring), "threads"]
KEYS_OF = {"threads": "1345672", "uring": "12"}
"""Keys of the screens on which a wait is looked for: they read the same by each backend."""
DEPTH = 4
NAMED_S = 2.0
MACHINE_S = 8.0
"""What a machine with much other work may add: more than what is due after a second is late by."""
LEFT_S = 8.0
LEAVE_SCREEN = b"\x1b[?1049l"
PATIENCE_S = 30.0


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[StallingDisk]:
    for name in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "LUNSCOPE_SCRATCH_DIR", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    with stalling_disk(tmp_path) as disk:
        yield disk


# --------------------------------------------------------------------------------------------- within a process


@asynccontextmanager
async def stalled_stage(disk: StallingDisk, backend: str = "threads") -> AsyncIterator[LoadStage]:
    """Run the app over a load on the disk, on the Load screen, and freeze the disk."""
    knobs = Knobs(queue_depth=DEPTH, read_pct=0, rate_iops=GENTLE_IOPS)
    job = JobSpec((TargetSpec(disk.device),), knobs, backend=Backend(backend))
    permissions = Permissions(frozenset({disk.device}), destroy_data=True)
    async with load_stage(job, SIZES[0], permissions, autostart=True) as stage:
        try:
            await stage.shows("Type its name")
            await stage.press(*disk.device)
            await stage.pilot.press("enter")
            await until(stage.pilot, lambda: stage.control.status.state is LoadState.RUNNING)
            await stage.press("2")
            wait_for_writes(disk)
            disk.freeze()
            yield stage
        finally:
            disk.thaw()


async def notified(stage: LoadStage, text: str) -> None:
    await until(stage.pilot, lambda: said(stage.app, text))


async def quit_with_the_word(stage: LoadStage) -> None:
    await stage.press("q")
    await stage.shows("Type quit to stop it")
    await stage.press(*"quit")
    await stage.pilot.press("enter")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.waits
async def test_what_does_not_come_back_is_named_on_every_screen(disk: StallingDisk, backend: str) -> None:
    async with stalled_stage(disk, backend) as stage:
        frozen_s = time.monotonic()
        line = f"waiting for {DEPTH} I/Os on {disk.device}, oldest for "
        await stage.shows(line)
        assert time.monotonic() - frozen_s < NAMED_S + MACHINE_S
        first = screen_text(stage.pilot).partition(line)[2].split(" s")[0]
        await until(stage.pilot, lambda: (age := age_after(stage, line)) is not None and age > float(first) + 1.0)
        for size in SIZES:
            await stage.pilot.resize_terminal(*size)
            await stage.shows(line)
            for key in KEYS_OF[backend]:
                await stage.press(key)
                await stage.shows(f"{DEPTH} I/Os waiting ")
        disk.thaw()
        await until(stage.pilot, lambda: line not in (text := screen_text(stage.pilot)) and "waiting" not in text)
        assert stage.control.status.state is LoadState.RUNNING


def age_after(stage: LoadStage, line: str) -> float | None:
    rest = screen_text(stage.pilot).partition(line)[2]
    return float(rest.split(" s")[0]) if rest else None


@pytest.mark.parametrize("backend", BACKENDS)
async def test_quitting_waits_and_quitting_again_gives_up(disk: StallingDisk, backend: str) -> None:
    async with stalled_stage(disk, backend) as stage:
        await stage.shows(f"{DEPTH} I/Os waiting ")
        await quit_with_the_word(stage)
        await notified(stage, "quit again to give up")
        await stage.shows("load stopping")
        time.sleep(1.0)
        assert not is_leaving(stage.app), "the first waits for what is outstanding"
        asked_s = time.monotonic()
        await stage.pilot.press("q")
        await until(stage.pilot, lambda: is_leaving(stage.app))
        assert time.monotonic() - asked_s < LEFT_S
        assert disk.frozen
        assert [(left.target, left.ios) for left in stage.control.outstanding] == [(disk.device, DEPTH)]
        result = stage.control.result()
        assert result is not None
        assert result.ended_in_stall


async def test_quitting_leaves_when_the_device_answers(disk: StallingDisk) -> None:
    async with stalled_stage(disk) as stage:
        await stage.shows(f"{DEPTH} I/Os waiting ")
        await quit_with_the_word(stage)
        await notified(stage, "quit again to give up")
        disk.thaw()
        await until(stage.pilot, lambda: is_leaving(stage.app))
        assert stage.control.outstanding == ()
        result = stage.control.result()
        assert result is not None
        assert result.outstanding == ()


# ------------------------------------------------------------------------------------------------- on a terminal


@pytest.fixture
def terminals(disk: StallingDisk) -> Iterator[list[Terminal]]:
    """Terminals that were opened: whatever the test does, the disk is thawed and they end."""
    opened: list[Terminal] = []
    yield opened
    disk.thaw()
    for terminal in opened:
        if terminal.alive():
            os.kill(terminal.pid, signal.SIGKILL)
        terminal.close(5)


@pytest.fixture
def start(disk: StallingDisk, terminals: list[Terminal]) -> Callable[..., Terminal]:
    """Start the screens over a load on the disk and freeze it."""

    def start(*options: str) -> Terminal:
        load = ("run", "--target", disk.device, "--allow-write", disk.device, "--destroy-data", "--rw", "randwrite")
        command = (sys.executable, "-m", "tui", *load, "--qd", str(DEPTH), "--interval", "0.2", *options)
        terminal = Terminal(command, 120, 40)
        terminals.append(terminal)
        assert terminal.drain(PATIENCE_S, until=b"Type its name"), terminal.output.decode(errors="replace")
        terminal.press(f"{disk.device}\r")
        assert terminal.drain(PATIENCE_S, until=b"RUNNING"), terminal.output.decode(errors="replace")
        wait_for_writes(disk)
        disk.freeze()
        return terminal

    return start


def watching(disk: StallingDisk, terminals: list[Terminal], monkeypatch: pytest.MonkeyPatch) -> Terminal:
    """Start a load from the screens of `watch`, whose scratch files cannot be filled."""
    folder = disk.mount / "scratch"
    folder.mkdir()
    monkeypatch.setenv("LUNSCOPE_SCRATCH_DIR", str(folder))
    terminal = Terminal((sys.executable, "-m", "tui", "watch", "--interval", "0.2"), 120, 40)
    terminals.append(terminal)
    assert terminal.drain(PATIENCE_S, until=b"LIVE"), terminal.output.decode(errors="replace")
    disk.freeze()
    terminal.press("2")
    terminal.drain(1.0)
    terminal.press("s")
    assert terminal.drain(PATIENCE_S, until=b"waiting for open of scratch"), terminal.output.decode(errors="replace")
    return terminal


def named(terminal: Terminal, disk: StallingDisk) -> Terminal:
    """Wait until the stall is on the screen."""
    frozen_s = time.monotonic()
    line = f"waiting for {DEPTH} I/Os on {disk.device}, oldest for "
    # Not in the bytes that were sent: of another line of waiting only the characters that differ are written over.
    Watched(terminal, 120, 40).until(lambda text: line in text)
    assert time.monotonic() - frozen_s < NAMED_S + MACHINE_S
    return terminal


def left(terminal: Terminal, disk: StallingDisk, timeout_s: float = LEFT_S) -> tuple[int, str]:
    """Wait for the end, before the disk answers; returns the exit code and what was printed."""
    began_s = time.monotonic()
    while terminal.alive():
        assert time.monotonic() - began_s < timeout_s, terminal.output[-3000:].decode(errors="replace")
        terminal.drain(0.05)
    terminal.drain(0.5)
    assert disk.frozen
    return terminal.close(), terminal.output.decode(errors="replace")


@pytest.mark.parametrize("engine", BACKENDS)
def test_two_quits_on_a_terminal_end_with_the_summary(
    disk: StallingDisk, start: Callable[..., Terminal], engine: str, tmp_path: Path
) -> None:
    session = tmp_path / "a.luns"
    terminal = named(start("--engine", engine, "--record", str(session)), disk)
    terminal.press("q")
    assert terminal.drain(PATIENCE_S, until=b"Type quit to stop it")
    terminal.press("quit\r")
    assert terminal.drain(PATIENCE_S, until=b"again to give up"), terminal.output[-4000:]
    terminal.drain(1.5)
    assert terminal.alive(), "the first waits for what is outstanding"
    terminal.output.clear()
    terminal.press("q")
    code, text = left(terminal, disk)
    assert code == 1
    assert f"outstanding: {DEPTH} I/Os on {disk.device} never came back: given up after " in unwrapped(text)
    assert "Traceback" not in text
    with SessionReader(session) as reader:
        assert reader.complete
        assert any("given up after" in event.text for event in reader.events())


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_second_signal_ends_the_screens_with_the_summary(
    disk: StallingDisk, start: Callable[..., Terminal], number: signal.Signals
) -> None:
    terminal = named(start("--engine", "threads"), disk)
    terminal.output.clear()
    os.kill(terminal.pid, number)
    assert terminal.drain(PATIENCE_S, until=b"(Ctrl-C gives up)"), terminal.output.decode(errors="replace")
    assert terminal.alive(), "the first waits for what is outstanding"
    os.kill(terminal.pid, number)
    code, text = left(terminal, disk)
    assert code == 128 + number
    assert f"outstanding: {DEPTH} I/Os on {disk.device} never came back: given up after " in unwrapped(text)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
def test_a_load_started_from_watch_does_not_hold_the_terminal_up(
    disk: StallingDisk, terminals: list[Terminal], monkeypatch: pytest.MonkeyPatch, number: signal.Signals
) -> None:
    terminal = watching(disk, terminals, monkeypatch)
    terminal.output.clear()
    os.kill(terminal.pid, number)
    assert terminal.drain(PATIENCE_S, until=b"(Ctrl-C gives up)"), terminal.output.decode(errors="replace")
    assert LEAVE_SCREEN in terminal.output, "the terminal is given back before the wait"
    os.kill(terminal.pid, number)
    code, text = left(terminal, disk)
    assert code == 128 + number
    assert "never came back" in unwrapped(text)


def test_two_quits_leave_watch(disk: StallingDisk, terminals: list[Terminal], monkeypatch: pytest.MonkeyPatch) -> None:
    terminal = watching(disk, terminals, monkeypatch)
    terminal.press("q")
    terminal.drain(1.5)
    assert terminal.alive(), "the first waits for what is outstanding"
    terminal.press("q")
    code, text = left(terminal, disk)
    assert code == 1
    assert LEAVE_SCREEN in terminal.output
    assert "never came back" in unwrapped(text)


def test_the_limit_ends_the_screens_too(disk: StallingDisk, start: Callable[..., Terminal]) -> None:
    terminal = named(start("--engine", "threads", "--give-up", "2s"), disk)
    os.kill(terminal.pid, signal.SIGTERM)
    code, text = left(terminal, disk, 2.0 + LEFT_S)
    assert code == 128 + signal.SIGTERM
    assert "never came back: given up after " in unwrapped(text)


def test_a_closed_terminal_is_left_though_the_device_does_not_answer(
    disk: StallingDisk, start: Callable[..., Terminal], tmp_path: Path
) -> None:
    session = tmp_path / "a.luns"
    terminal = named(start("--engine", "threads", "--record", str(session)), disk)
    terminal.hang_up()
    assert terminal.gone_after_s(LEFT_S) is not None
    assert disk.frozen
    assert terminal.close() == 128 + signal.SIGHUP
    with SessionReader(session) as reader:
        assert reader.complete


async def test_the_timer_that_names_waits_bears_an_app_without_screens(disk: StallingDisk) -> None:
    async with stalled_stage(disk, "threads") as stage:
        await stage.shows(f"{DEPTH} I/Os waiting ")
        stack, kept = stage.app._screen_stack, stage.app.screen_stack
        stack.clear()
        stage.app.quitting.name_waits()
        stack.extend(kept)
        disk.thaw()
