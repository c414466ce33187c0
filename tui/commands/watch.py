"""`lunscope watch`: show this host on the screen."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from engine.running.control import LoadControl
from tui.headless.after_screens import sum_up
from tui.headless.leaving import go_on_in_child
from tui.options.alerts import alert_options, alert_service
from tui.options.numbers import DECIMAL
from tui.options.reading import root_options
from tui.options.tiers import tier_option
from tui.options.watching import Watching, open_source
from tui.start import require_terminal, start_live

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService
    from collectors.model import Source
    from collectors.sources.recorder import RecordingSource


@click.command(short_help="this host's disks on the screen, live")
@click.option("--interval", type=DECIMAL, default=1.0, show_default=True, metavar="S", help="Seconds between samples.")
@click.option("--record", type=click.Path(dir_okay=False, path_type=Path), metavar="FILE", help="Record the session.")
@click.option("--overwrite", is_flag=True, help="Replace the file that --record names if it is a session.")
@tier_option
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
    alerts = alert_service(alert, alert_command, on_screen=True)
    go_on_in_child()
    control = LoadControl()
    source, recording = open_source(Watching(interval, procfs, sysfs, record, overwrite, tier, alerts), control)
    return _on_screen(source, control, recording, theme, alerts, mouse=not no_mouse, sysfs=sysfs)


def _on_screen(
    source: Source,
    control: LoadControl,
    recording: RecordingSource | None,
    theme: str | None,
    alerts: AlertService | None,
    *,
    mouse: bool,
    sysfs: Path,
) -> int:
    from tui.sweep.series import SweepSeries  # noqa: PLC0415 (the screen only)
    from tui.watched import Watched  # noqa: PLC0415 (as above)

    sweeps = SweepSeries()
    code = start_live(
        source,
        control=control,
        recording=recording,
        theme=theme,
        sweeps=sweeps,
        alerts=alerts,
        mouse=mouse,
        watched=Watched(),
        tune_root=sysfs,
    )
    return sum_up(control, recording, code, sweeps)
