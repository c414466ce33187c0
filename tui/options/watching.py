"""Settings of a verb that samples this host, and its source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from collectors.model import Source
from collectors.sources.live import LiveSource
from collectors.sources.load import LoadCollector
from tui.options.reading import settings_with_options
from tui.process.standard_streams import say

if TYPE_CHECKING:
    from collectors.alerts.service import AlertService
    from collectors.sources.recorder import RecordingSource
    from engine.running.load import Loads


class Watching(Struct, frozen=True):
    """Sampling settings, and where to record."""

    interval_s: float
    procfs: Path
    sysfs: Path
    record: Path | None
    overwrite: bool
    tier: str = "auto"
    alerts: AlertService | None = None
    metrics_file: Path | None = None
    """File to which the metrics of the load are written."""


def recording_exit(recording: RecordingSource | None, code: int) -> int:
    """Report why a recording is incomplete, as an error; call it when the recording is closed."""
    if recording is None or not recording.trouble:
        return code
    say(recording.trouble)
    return code or 1


def open_source(
    watching: Watching,
    control: Loads,
    *,
    patience_s: float = 0.0,
    say: Callable[[str], None] = lambda _text: None,
) -> tuple[Source, RecordingSource | None]:
    """Open this host and the load of `control` as a source, with a recording if requested.

    The first sample waits up to `patience_s` for exact counters; `say` is told if it waits for long.

    Raises:
        LunscopeError: the kernel cannot be read, or the session file cannot be created.
    """
    load = LoadCollector(control)
    live = LiveSource(
        watching.interval_s,
        watching.procfs,
        watching.sysfs,
        watching.tier,
        [load],
        patience_s=patience_s,
        say=say,
        settings=settings_with_options(),
        alerts=watching.alerts,
    )
    if watching.record is None:
        return live, None
    from collectors.session.writer import SessionWriter  # noqa: PLC0415
    from collectors.sources.recorder import RecordingSource  # noqa: PLC0415 (watching without recording needs no database)

    try:
        first = live.counters_now()
        recording = RecordingSource(live, SessionWriter(watching.record, overwrite=watching.overwrite), first)
    except BaseException:
        live.close()
        raise
    return recording, recording
