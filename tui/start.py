"""Starting and leaving the screens: environment, signals, and everything closed whatever happened."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from engine.errors import UsageError
from tui.loading import loading

if TYPE_CHECKING:
    from collectors.model import Source
    from engine.job.spec import JobSpec, Permissions
    from engine.running.control import LoadControl
    from tui.app import LunscopeApp
    from tui.scope import Recording

LEAVING_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SLOW_LINK_FPS = "15"


def require_terminal(instead: str) -> None:
    """Insist on a terminal at both ends.

    Raises:
        UsageError: input or output is a pipe or a file; the text names what works there.
    """
    if not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise UsageError(f"no terminal here: use {instead}")


def start_live(
    source: Source,
    *,
    control: LoadControl | None = None,
    job: JobSpec | None = None,
    permissions: Permissions | None = None,
    recording: Recording | None = None,
    autostart: bool = False,
    theme: str | None = None,
) -> int:
    """Show a live host, with a load to drive where `control` is given; closes both and returns the exit code.

    With `autostart` the job is armed and started at once. Everything the load made is removed before this returns.
    """
    _prepare_environment()
    try:
        with _terminating():
            app = _make_app(source, control, job, permissions, recording, autostart=autostart, theme=theme)
            return _run(app)
    finally:
        _close(control, source)


def start_replay(source: Source, *, theme: str | None = None) -> int:
    """Show a recording; closes it and returns the exit code."""
    return start_live(source, theme=theme)


def _make_app(
    source: Source,
    control: LoadControl | None,
    job: JobSpec | None,
    permissions: Permissions | None,
    recording: Recording | None,
    *,
    autostart: bool,
    theme: str | None,
) -> LunscopeApp:
    from dataclasses import replace  # noqa: PLC0415 - with textual, whose constants read the environment set above

    with loading():
        from engine.job.spec import JobSpec, Permissions  # noqa: PLC0415
        from tui.app import LunscopeApp  # noqa: PLC0415
        from tui.load.desk import LoadDesk  # noqa: PLC0415
        from tui.looks.settings import load_settings  # noqa: PLC0415

    settings = load_settings()
    if theme is not None:
        settings = replace(settings, theme=theme)
    desk = LoadDesk(control, job or JobSpec(), permissions or Permissions()) if control is not None else None
    return LunscopeApp(source, desk, recording=recording, settings=settings, autostart=autostart)


def _prepare_environment() -> None:
    """Spare slow links; textual reads this when it is imported."""
    if os.environ.get("SSH_CONNECTION"):
        os.environ.setdefault("TEXTUAL_FPS", SLOW_LINK_FPS)
    os.environ.setdefault("TEXTUAL_ANIMATIONS", "none")
    os.environ.setdefault("TEXTUAL_SMOOTH_SCROLL", "0")


def _run(app: LunscopeApp) -> int:
    caught = asyncio.run(_run_with_signals(app))
    if caught is not None:
        return 128 + caught
    return app.return_code or 0


async def _run_with_signals(app: LunscopeApp) -> int | None:
    """Run the app; a signal ends it the way the quit key does, so that the terminal is given back."""
    loop = asyncio.get_running_loop()
    caught: list[int] = []

    def leave(number: int) -> None:
        caught.append(number)
        app.exit(return_code=128 + number)

    for number in LEAVING_SIGNALS:
        loop.add_signal_handler(number, leave, number)
    try:
        await app.run_async()
    finally:
        for number in LEAVING_SIGNALS:
            loop.remove_signal_handler(number)
    return caught[0] if caught else None


@contextmanager
def _terminating() -> Iterator[None]:
    """Let a signal outside the loop unwind like an exception instead of killing what would not be cleaned up."""

    def unwind(number: int, _frame: object) -> None:
        raise SystemExit(128 + number)

    before = {number: signal.signal(number, unwind) for number in LEAVING_SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def _close(control: LoadControl | None, source: Source) -> None:
    """Stop the load, then close the source and its recording, each even if the other fails."""
    closers: list[Callable[[], None]] = [source.close]
    if control is not None:
        closers.insert(0, control.close)
    failures = []
    for close in closers:
        try:
            close()
        except Exception as error:
            failures.append(error)
    if failures:
        raise failures[0]
