"""`lunscope watch`: this host on the screen."""

from __future__ import annotations

from pathlib import Path

import click

from engine.control import LoadControl
from tui.roots import root_options
from tui.start import require_terminal, start_live
from tui.watching import Watching, open_source


@click.command(short_help="this host's disks on the screen, live")
@click.option("--interval", "interval_s", type=float, default=1.0, show_default=True, metavar="S", help="Seconds.")
@click.option("--record", "record", type=click.Path(dir_okay=False, path_type=Path), help="Record what is read.")
@click.option("--overwrite", is_flag=True, help="Replace an existing recording.")
@click.option(
    "--tier",
    type=click.Choice(["auto", "exact", "sampled", "kernel"]),
    default="auto",
    show_default=True,
    help="How figures are obtained.",
)
@click.option("--theme", help="A theme of lunscope's, of Textual's, or of your own.")
@root_options
def command(
    *, interval_s: float, record: Path | None, tier: str, theme: str | None, procfs: Path, sysfs: Path, overwrite: bool
) -> int:
    """Show this host's disks live: queue time, service time, busy, the hot ones and why."""
    require_terminal("lunscope report, or lunscope record -o FILE")
    control = LoadControl()
    source, recording = open_source(Watching(interval_s, procfs, sysfs, record, overwrite, tier), control)
    return start_live(source, control=control, recording=recording, theme=theme)
