"""What a verb that samples this host needs to know, and the source that comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from collectors.live import LiveSource
from collectors.load import LoadCollector
from collectors.model import Source
from collectors.recorder import RecordingSource
from collectors.session.writer import SessionWriter
from engine.control import LoadControl


@dataclass(frozen=True, slots=True)
class Watching:
    """How to sample, and where to record."""

    interval_s: float
    procfs: Path
    sysfs: Path
    record: Path | None
    overwrite: bool
    tier: str = "auto"


class Recording:
    """What screens and summaries say about the session file being written."""

    def __init__(self, source: RecordingSource) -> None:
        self._source = source

    @property
    def path(self) -> str:
        """Where it is."""
        return str(self._source.recording.path)

    @property
    def size_bytes(self) -> int:
        """How much is written."""
        return self._source.recording.size_bytes

    @property
    def trouble(self) -> str:
        """Why nothing is written any more, or not all was, in one line; empty while all is well."""
        state = self._source.recording
        return state.failure or (f"{state.path}: {state.left_out} samples left out" if state.left_out else "")


def open_source(watching: Watching, control: LoadControl) -> tuple[Source, Recording | None]:
    """Open this host as a source with the load of `control` beside it, through a recording if one is wanted.

    Raises:
        LunscopeError: the kernel cannot be read, or the session file not made.
    """
    load = LoadCollector(control)
    live = LiveSource(watching.interval_s, watching.procfs, watching.sysfs, watching.tier, [load])
    if watching.record is None:
        return live, None
    try:
        recording = RecordingSource(live, SessionWriter(watching.record, overwrite=watching.overwrite))
    except BaseException:
        live.close()
        raise
    return recording, Recording(recording)
