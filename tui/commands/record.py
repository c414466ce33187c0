"""`lunscope record`: record this host to a session file, without a screen."""

from __future__ import annotations

import threading
from pathlib import Path

import click

from collectors.session.writer import SessionWriter
from collectors.sources.live import WHOLE_TOPOLOGY_S, LiveSource
from collectors.sources.recorder import RecordingSource
from engine.errors import LunscopeError
from engine.job.sizes import format_size, parse_duration
from engine.text import safe_text
from tui.headless.signals import stop_on_signal
from tui.options.alerts import alert_options, alert_service
from tui.options.numbers import DECIMAL
from tui.options.reading import PATIENCE_S, cost_option, reading_settings, root_options, tier_option
from tui.process.standard_streams import say


@click.command(short_help="record this host to a session file, without a screen")
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path), metavar="FILE")
@click.option("--interval", type=DECIMAL, default=1.0, show_default=True, metavar="S", help="Seconds between samples.")
@click.option("--duration", metavar="TIME", help="Duration: seconds, or 90s, 10m, 8h; default: until interrupted.")
@click.option("--overwrite", is_flag=True, help="Replace FILE if it is a session.")
@tier_option
@cost_option
@alert_options
@root_options
def command(
    *,
    output: Path,
    interval: float,
    duration: str | None,
    overwrite: bool,
    tier: str,
    alert: tuple[str, ...],
    alert_command: str | None,
    procfs: Path,
    sysfs: Path,
) -> None:
    """Record every sample of this host until interrupted, or for a time.

    SIGINT, SIGTERM and SIGHUP end it with a complete file. A file truncated by a crash can be replayed too.
    """
    duration_s = None if duration is None else parse_duration(duration)
    alerts = alert_service(alert, alert_command)
    stop = threading.Event()
    live = LiveSource(
        interval,
        procfs,
        sysfs,
        tier,
        first_topology_s=WHOLE_TOPOLOGY_S,
        sample_at_once=True,
        patience_s=PATIENCE_S,
        say=say,
        settings=reading_settings(),
        alerts=alerts,
    )
    try:
        source = RecordingSource(live, SessionWriter(output, overwrite=overwrite))
    except BaseException:
        live.close()
        raise
    try:
        with stop_on_signal(stop):
            _record(source, stop, duration_s)
    finally:
        source.close()
    if source.trouble:
        raise LunscopeError(source.trouble)
    click.echo(f"{safe_text(str(output))}: {source.ticks:,} samples, {format_size(output.stat().st_size)}", err=True)


def _record(source: RecordingSource, stop: threading.Event, duration_s: float | None) -> None:
    """Read samples until the time is over.

    Raises:
        LunscopeError: writing the file failed.
    """
    first_ns: int | None = None
    for step in source.steps(stop):
        if source.trouble:
            raise LunscopeError(source.trouble)
        if step.previous is None:
            first_ns = step.current.monotonic_ns
        if duration_s is not None and first_ns is not None and step.current.monotonic_ns - first_ns >= duration_s * 1e9:
            return
