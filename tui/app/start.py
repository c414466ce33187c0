"""Start and end of the screens: environment, signals, and cleanup in every case."""

from __future__ import annotations

import functools
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import ModuleType
from typing import TYPE_CHECKING, cast

import click

from engine.replacing import replace
from engine.syscalls import return_freed_memory
from tui.app.closing import Closing
from tui.process.garbage import loading
from tui.process.prompt_thread import respond_promptly
from tui.process.standard_streams import say
from tui.terminal.abilities import settle_colours
from tui.terminal.end_watch import EndWatch
from tui.terminal.job_control import Stops
from tui.terminal.tty import TerminalUse, Tty, open_terminal


@contextmanager
def without_tls() -> Iterator[None]:
    """Hide `ssl` from what is imported meanwhile, as in a Python built without it; afterwards it can be imported.

    asyncio loads OpenSSL for connections that nothing here makes: 4 MB and 40 ms of the start. This has no effect where
    `ssl` or asyncio was imported before.
    """
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    is_hidden = not {"ssl", "asyncio"} & modules.keys()
    if is_hidden:
        modules["ssl"] = None
    try:
        yield
    finally:
        if is_hidden:
            del modules["ssl"]


with without_tls():
    import asyncio

if TYPE_CHECKING:
    from engine.events import Event
    from engine.running.control import LoadControl
    from tui.app.app import LunscopeApp
    from tui.app_input import AppInput

LAST_WORDS_S = 0.3
"""Longest wait for a slow terminal before messages are printed after the screens."""
SLOW_LINK_FPS = "15"


def start(
    given: AppInput,
    *,
    theme: str | None = None,
    mouse: bool = True,
    before_close: Callable[[], None] | None = None,
    keep_events: Callable[[Sequence[Event]], None] = lambda _events: None,
) -> int:
    """Show the screens until they are left; closes the load and the source, and returns the exit code.

    `before_close` ends what else goes on before the source is closed. Changes of tunables that are not kept are
    restored. `keep_events` takes the events of the screens when they are left. Everything the load made is removed
    before this returns.
    """
    _prepare_environment()
    return_freed_memory()
    respond_promptly()
    control = None if given.controller is None else given.controller.control
    closing = Closing(control, given.source, given.recording, before_close)
    try:
        with open_terminal() as tty, EndWatch(tty, closing.urgent_steps) as watch:
            try:
                app = _make_app(given, theme, mouse=mouse)
                closing.changes = lambda: app.app_state.tuning
                code = _run(app, tty, watch, control)
            finally:
                watch.left()
                closing.close()
                if not tty.takes_output(LAST_WORDS_S):
                    tty.silence_streams()
            for line in closing.restored:
                say(line)
            keep_events(app.app_state.events.all())
            has_results = bool(control is not None and control.result()) or bool(given.sweeps.groups)
            _print_summary(app, results_follow=has_results)
            return code or closing.code
    finally:
        closing.close()


def _print_summary(app: LunscopeApp, *, results_follow: bool) -> None:
    """Print what was seen to the terminal, in its characters; nothing into files and pipes."""
    watched = app.watched
    if watched is None or sys.stdout is None or not sys.stdout.isatty():
        return
    from tui.app.watched import summary_lines  # noqa: PLC0415 (as above)
    from tui.text.glyphs import UNICODE  # noqa: PLC0415 (loaded by now)
    from tui.text.plain import plain_text  # noqa: PLC0415 (as above)

    for line in summary_lines(watched, app.app_state.events.all(), app.app_state.recording):
        click.echo(line if app.glyphs is UNICODE else plain_text(line))
    if results_follow:
        click.echo()


def _make_app(given: AppInput, theme: str | None, *, mouse: bool) -> LunscopeApp:
    with loading():
        from tui.app.app import LunscopeApp  # noqa: PLC0415
        from tui.screen_registry import OVERVIEW  # noqa: PLC0415
        from tui.screens.shared.base import view_class  # noqa: PLC0415
        from tui.settings import load_settings  # noqa: PLC0415

        view_class(OVERVIEW)

    settings = replace(load_settings(), theme_option=theme, no_mouse=not mouse)
    return LunscopeApp(given, settings=settings)


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
