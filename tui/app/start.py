"""Start and end of the screens: environment, signals, and cleanup in every case."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click
from msgspec import Struct

from engine.replacing import replace
from engine.syscalls import return_freed_memory
from tui.app.closing import Closing
from tui.process.garbage import loading
from tui.process.prompt_thread import respond_promptly
from tui.process.without_tls import without_tls
from tui.terminal.abilities import settle_colours
from tui.terminal.end_watch import EndWatch
from tui.terminal.job_control import Stops
from tui.terminal.tty import TerminalUse, Tty, open_terminal

with without_tls():
    import asyncio

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService
    from collectors.fleet.fleet_source import HostOrFleet
    from collectors.model import Source
    from collectors.sources.recorder import RecordingSource
    from engine.events import Event
    from engine.job.spec import JobSpec, Permissions
    from engine.running.control import LoadControl
    from tui.app.app import LunscopeApp
    from tui.app.watched import Watched
    from tui.compare_asked import CompareAsked
    from tui.load.fleet_load_controller import FleetLoadController
    from tui.load.load_controller import LoadController
    from tui.sweep.series import SweepSeries

LAST_WORDS_S = 0.3
"""Longest wait for a slow terminal before messages are printed after the screens."""
SLOW_LINK_FPS = "15"


def start_live(
    source: Source,
    *,
    control: LoadControl | None = None,
    job: JobSpec | None = None,
    permissions: Permissions | None = None,
    recording: RecordingSource | None = None,
    autostart: bool = False,
    theme: str | None = None,
    sweeps: SweepSeries | None = None,
    controller: LoadController | None = None,
    compared: CompareAsked | None = None,
    alerts: AlertService | None = None,
    mouse: bool = True,
    is_summed_up: bool = False,
    fleet: HostOrFleet | None = None,
    fleet_load: FleetLoadController | None = None,
    before_close: Callable[[], None] | None = None,
    first_screen: str | None = None,
    tune_root: Path | None = None,
    keep_events: Callable[[Sequence[Event]], None] = lambda _events: None,
) -> int:
    """Show a live host, with a load if `control` is given; closes both and returns the exit code.

    With `is_summed_up` what was seen is printed on a terminal at the end, in some lines. With `autostart` the job is
    armed and started at once; `sweeps` with something to measure begin on their screen, with the `controller` they
    came with, and what is measured from there is added to them. `before_close` ends what else goes on before the source
    is closed; `first_screen` is the id of the tab to begin with. Tunables below `tune_root` may be changed; what is not
    kept is restored. `keep_events` takes the events of the screens when they are left. Everything the load made is
    removed before this returns.
    """
    _prepare_environment()
    return_freed_memory()
    respond_promptly()
    watched = _sums() if is_summed_up else None
    closing = Closing(control, source, recording, before_close)
    try:
        with open_terminal() as tty, EndWatch(tty, closing.urgent_steps) as watch:
            try:
                app = _make_app(
                    source,
                    control,
                    job,
                    permissions,
                    recording,
                    shown=_Shown(sweeps, compared, theme, alerts, mouse, watched, fleet, fleet_load, first_screen),
                    controller=controller,
                    autostart=autostart,
                    tune_root=tune_root,
                )
                closing.changes = lambda: app.app_state.tuning
                code = _run(app, tty, watch, control)
            finally:
                watch.left()
                closing.close()
                if not tty.takes_output(LAST_WORDS_S):
                    tty.silence_streams()
            for line in closing.restored:
                click.echo(f"lunscope: {line}", err=True)
            keep_events(app.app_state.events.all())
            has_results = bool(control is not None and control.result()) or bool(sweeps and sweeps.groups)
            _print_summary(app, watched, recording, results_follow=has_results)
            return code or closing.code
    finally:
        closing.close()


def start_replay(
    source: Source, *, theme: str | None = None, compared: CompareAsked | None = None, mouse: bool = True
) -> int:
    """Show a recording, or a comparison with it; closes it and returns the exit code."""
    return start_live(source, theme=theme, compared=compared, mouse=mouse)


def _sums() -> Watched:
    from tui.app.watched import Watched  # noqa: PLC0415 (what has no screens does without rich)

    return Watched()


def _print_summary(
    app: LunscopeApp, watched: Watched | None, recording: RecordingSource | None, *, results_follow: bool
) -> None:
    """Print what was seen to the terminal, in its characters; nothing into files and pipes."""
    if watched is None or sys.stdout is None or not sys.stdout.isatty():
        return
    from tui.app.watched import summary_lines  # noqa: PLC0415 (as above)
    from tui.text.glyphs import UNICODE  # noqa: PLC0415 (loaded by now)
    from tui.theme.themed_app import plain_text  # noqa: PLC0415 (as above)

    for line in summary_lines(watched, app.app_state.events.all(), recording):
        click.echo(line if app.glyphs is UNICODE else plain_text(line))
    if results_follow:
        click.echo()


class _Shown(Struct, frozen=True):
    """What the screens begin with."""

    sweeps: SweepSeries | None
    compared: CompareAsked | None
    theme: str | None
    alerts: AlertService | None
    mouse: bool
    watched: Watched | None
    fleet: HostOrFleet | None
    fleet_load: FleetLoadController | None
    first_screen: str | None


def _make_app(
    source: Source,
    control: LoadControl | None,
    job: JobSpec | None,
    permissions: Permissions | None,
    recording: RecordingSource | None,
    *,
    shown: _Shown,
    controller: LoadController | None,
    autostart: bool,
    tune_root: Path | None,
) -> LunscopeApp:
    with loading():
        from engine.job.spec import JobSpec, Permissions  # noqa: PLC0415
        from tui.app.app import LunscopeApp  # noqa: PLC0415
        from tui.load.load_controller import LoadController  # noqa: PLC0415
        from tui.load.recent_targets import RecentTargets, recent_file  # noqa: PLC0415
        from tui.screen_registry import OVERVIEW  # noqa: PLC0415
        from tui.screens.shared.base import view_class  # noqa: PLC0415
        from tui.theme.settings import load_settings  # noqa: PLC0415

        view_class(OVERVIEW)

    settings = load_settings()
    if shown.theme is not None:
        settings = replace(settings, theme_option=shown.theme)
    if not shown.mouse:
        settings = replace(settings, no_mouse=True)
    if controller is None and control is not None:
        recent = RecentTargets(recent_file())
        controller = LoadController(control, job or JobSpec(), permissions or Permissions(), recent=recent)
    return LunscopeApp(
        source,
        controller,
        recording=recording,
        settings=settings,
        autostart=autostart,
        sweeps=shown.sweeps,
        compared=shown.compared,
        alerts=shown.alerts,
        watched=shown.watched,
        fleet=shown.fleet,
        fleet_load=shown.fleet_load,
        first_screen=shown.first_screen,
        tune_root=tune_root,
    )


def _prepare_environment() -> None:
    """Lower the frame rate for slow links, and correct the colours; textual reads this when it is imported."""
    settle_colours(os.environ)
    if os.environ.get("SSH_CONNECTION"):
        os.environ.setdefault("TEXTUAL_FPS", SLOW_LINK_FPS)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")


def _run(app: LunscopeApp, tty: Tty, watch: EndWatch, control: LoadControl | None) -> int:

    stops = Stops(control)
    app.terminal = TerminalUse(tty, watch.lose_terminal, lambda: watch.is_ending, stops.before, stops.after)
    asyncio.run(_run_under(app, watch))
    if app.failure is not None and watch.code is None:
        raise app.failure
    return app.return_code or 0 if watch.code is None else watch.code


async def _run_under(app: LunscopeApp, watch: EndWatch) -> None:
    """Run the app; signals and hangups end it as the quit key does, so that the terminal is restored."""
    loop = asyncio.get_running_loop()

    def leave(code: int) -> None:
        with suppress(RuntimeError):  # The loop is closed: the app has been left already.
            loop.call_soon_threadsafe(functools.partial(app.exit, return_code=code))

    watch.run_under(leave)
    await app.run_async(mouse=app.wants_mouse)
