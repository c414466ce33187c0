"""The app over synthetic samples, and how tests wait for it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from textual.app import App
from textual.pilot import Pilot
from textual.widget import Widget

from engine.guard.answers import GuardAnswer
from engine.job.spec import JobSpec, Permissions
from engine.job.target_text import format_target
from engine.running.control import LoadControl
from tests.app.sources import ListRecording, ListSource
from tests.app.still_sessions import group_of
from tui.app.app import LunscopeApp
from tui.app_input import AppInput
from tui.history.recorded_past import REFILLS
from tui.load.load_controller import LoadController
from tui.screens.load.confirm_write import ConfirmWrite
from tui.settings import Settings
from tui.sweep.series import SweepSeries
from tui.sweep.session import StudySession
from tui.textual_internals.screens import shown_lines
from tui.theming import DEFAULT_THEME

SIZES = ((80, 24), (200, 60))
FROZEN = Settings(theme=DEFAULT_THEME, glyphs="unicode", theme_folder=Path("/nonexistent"))
"""Settings that do not depend on whose machine the tests run on."""
PATIENCE_S = 60.0
LONGEST_PAUSE_S = 0.1


class FreeGuard:
    """Answers that every target is free, whatever the host has of that name."""

    def answers(self, job: JobSpec, permissions: Permissions) -> tuple[GuardAnswer, ...]:  # noqa: ARG002 - as Guard
        blank = "holds nothing but zeros in all 300 sampled blocks of 64 KiB"
        return tuple(
            GuardAnswer(format_target(target), 1 << 30, holds=blank, is_own=target.path is None)
            for target in job.targets
        )

    def uses(self) -> Callable[[str], str]:
        return lambda name: "is mounted on / (ext4)" if name == "vda" else ""


def make_app(
    source: ListSource,
    control: LoadControl | None = None,
    job: JobSpec | None = None,
    settings: Settings = FROZEN,
    sweep: StudySession | None = None,
) -> LunscopeApp:
    controller = None if sweep is None else sweep.controller
    if controller is None and control is not None:
        controller = LoadController(control, job or JobSpec(), Permissions(), guard=FreeGuard())
    sweeps = SweepSeries() if sweep is None else SweepSeries(group_of(sweep))
    return LunscopeApp(AppInput(source, controller, sweeps=sweeps), settings=settings)


@asynccontextmanager
async def on_stage(app: LunscopeApp, size: tuple[int, int] = SIZES[0]) -> AsyncIterator[Pilot[None]]:
    """Run the app and wait for its first layout."""
    async with app.run_test(size=size) as pilot:
        await pilot.pause()
        yield pilot


async def until(pilot: Pilot[None], condition: Callable[[], object]) -> None:
    """Wait until something is so."""
    deadline, pause_s = time.monotonic() + PATIENCE_S, 0.005
    while not condition():
        assert time.monotonic() < deadline, "it never came to that:\n" + screen_text(pilot)
        await pilot.pause()
        await asyncio.sleep(pause_s)
        # To look costs as much as a frame.
        pause_s = min(2 * pause_s, LONGEST_PAUSE_S)


async def play(pilot: Pilot[None], source: ListSource, count: int) -> None:
    """Let samples out and wait until the last of them arrived."""
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    source.advance(count)
    position = source.released - 1
    await until(pilot, lambda: app.app_state.latest_ns == source.samples[position].time_ns)
    await pilot.pause()


async def skip(pilot: Pilot[None], source: ListSource, count: int) -> None:
    """Let samples out as `play` does, and have only the frame of the last one drawn, as in a lite view."""
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    is_due, last_ns = app._is_due, source.samples[source.released + count - 1].time_ns

    def is_last() -> bool:
        return is_due() and app.app_state.latest_ns == last_ns

    app._is_due = is_last  # type: ignore[method-assign]
    await play(pilot, source, count)
    del app._is_due


async def rewind_to(pilot: Pilot[None], source: ListRecording, position: int) -> None:
    """Put a recording's cursor on a sample and wait until it is shown."""
    source.seek(source.samples[position].time_ns)
    await until(pilot, lambda: shown_position(pilot, source) == position)


async def past_read(pilot: Pilot[None], position: int) -> None:
    """Wait until the charts have all that a recording holds up to the sample at its cursor; a few steps come first."""
    await until(pilot, lambda: _steps_held(pilot) > min(position, REFILLS[-1] - 1))
    await pilot.pause()


def _steps_held(pilot: Pilot[None]) -> int:
    """Steps of the recording that the charts can show up to the cursor."""
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    state = app.app_state
    assert state.frame
    series = state.history.series("disks", state.frame.tables["disks"].rows.keys[0], state.frame.time_ns)
    return 0 if series is None else len(series)


async def peaks_read(pilot: Pilot[None]) -> None:
    """Wait for the peaks on the timeline of a recording, which a thread reads."""
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    await until(pilot, lambda: app._shown_share == 1)


def shown_position(pilot: Pilot[None], source: ListSource) -> int:
    """Number of the sample on the screen, -1 before the first."""
    app = pilot.app
    assert isinstance(app, LunscopeApp)
    times = [sample.time_ns for sample in source.samples]
    return times.index(app.app_state.frame.time_ns) if app.app_state.frame else -1


def screen_text(pilot: Pilot[None]) -> str:
    """Everything on the screen as text."""
    return "\n".join("".join(segment.text for segment in line) for line in shown_lines(pilot.app))


def notices(app: App[Any]) -> list[str]:
    """What the notices say that have not expired."""
    return [notice.message for notice in app._notifications]


def said(app: App[Any], words: str) -> bool:
    """Whether a notice has these words."""
    return any(words in notice for notice in notices(app))


def is_leaving(app: App[Any]) -> bool:
    """Whether the app has been told to exit."""
    return app._exit


def layouts(*widgets: Widget) -> list[int]:
    """How often each of them was laid out."""
    return [widget._layout_updates for widget in widgets]


def drawn_again(widget: Widget) -> set[int]:
    """Lines of a widget that are to be painted; they are asked for once."""
    return {y for region in widget._exchange_repaint_regions() for y in region.line_range}


async def type_name(pilot: Pilot[Any], name: str) -> None:
    """Type the name of a target that is to be written, once the dialog shows what is on it."""

    def is_asked() -> bool:
        dialog = pilot.app.screen
        return isinstance(dialog, ConfirmWrite) and dialog.is_ready

    await until(pilot, is_asked)
    await pilot.press(*name, "enter")
