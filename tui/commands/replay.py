"""`lunscope replay`: show a recording on the same screens."""

from __future__ import annotations

from pathlib import Path

import click

from collectors.session.time_format import parse_when
from tui.headless.leaving import go_on_in_child
from tui.options.numbers import DECIMAL
from tui.process.garbage import loading
from tui.process.standard_streams import require_terminal


@click.command(short_help="show a recording on the same screens")
@click.argument("file", type=click.Path(path_type=Path))
@click.option(
    "--speed",
    type=DECIMAL,
    default=1.0,
    show_default=True,
    metavar="N",
    help="Recorded seconds per second, 0.1 to 1000.",
)
@click.option("--at", metavar="TIME", help="Begin at 14:30, 2026-05-01T14:30:05, or +90s after the start.")
@click.option("--theme", metavar="NAME", help="Colours; the palette (Ctrl+P) lists them.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, which selects text with it.")
def command(file: Path, speed: float, at: str | None, theme: str | None, no_mouse: bool) -> int:
    """Show a recording on the live screens; pause, step, seek, faster, slower: ? lists the keys."""
    require_terminal("lunscope export FILE, or lunscope report --from FILE")
    go_on_in_child()
    with loading():  # after the fork, as in tui.commands.watch
        from collectors.sources.replay import ReplaySource  # noqa: PLC0415
        from tui.app.start import start  # noqa: PLC0415
        from tui.app_input import AppInput  # noqa: PLC0415
    source = ReplaySource(file, speed)
    try:
        if at is not None:
            source.seek(parse_when(at, source.start_ns, source.end_ns))
    except BaseException:
        source.close()
        raise
    return start(AppInput(source), theme=theme, mouse=not no_mouse)
