"""`lunscope watch`: show this host on the screen."""

from __future__ import annotations

from pathlib import Path

import click

from tui.headless.leaving import go_on_in_child
from tui.options.alerts import alert_options, alert_service
from tui.options.numbers import DECIMAL
from tui.options.reading import cost_option, root_options, tier_option
from tui.process.garbage import loading
from tui.process.standard_streams import require_terminal


@click.command(short_help="this host's disks on the screen, live")
@click.option("--interval", type=DECIMAL, default=1.0, show_default=True, metavar="S", help="Seconds between samples.")
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Record the session.")
@click.option("--overwrite", is_flag=True, help="Replace the file that --record names if it is a session.")
@tier_option
@cost_option
@click.option("--theme", metavar="NAME", help="Colours; the palette (Ctrl+P) lists them.")
@click.option("--no-mouse", is_flag=True, help="Leave the mouse to the terminal, which selects text with it.")
@alert_options
@root_options
def command(
    *,
    interval: float,
    record: Path | None,
    overwrite: bool,
    tier: str,
    theme: str | None,
    no_mouse: bool,
    alert: tuple[str, ...],
    alert_command: str | None,
    procfs: Path,
    sysfs: Path,
) -> int:
    """Watch this host's disks: queue time, service time, busy, which one is hot and why.

    A load runs only after it was started on its screen. Before that, of targets chosen there only labels are read (file
    systems, volumes), to say whether they may be written.

    Exits 0, 1 if the recording failed, or the last load found damage or ended in a stall, 130, 143 or 129 if SIGINT,
    SIGTERM or SIGHUP ended it.
    """
    require_terminal("lunscope report, or lunscope record -o FILE")
    go_on_in_child()
    with loading():
        # Not before the fork: a page that the child gets from its parent is copied as soon as one of them writes to it.
        from tui.commands.watched_on_screen import watch_host  # noqa: PLC0415
        from tui.options.watching import Watching  # noqa: PLC0415
    alerts = alert_service(alert, alert_command, on_screen=True)
    watching = Watching(interval, procfs, sysfs, record, overwrite, tier, alerts)
    return watch_host(watching, theme=theme, mouse=not no_mouse)
