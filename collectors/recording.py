"""A source that records what passes through it, shown or not."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event as StopFlag

from collectors.model import Source, Step
from collectors.session.writer import SessionWriter
from engine.errors import LunscopeError


class RecordingSource:
    """Writes every sample of another source before handing it on; owns that source and the writer.

    When the file cannot be written any more, `trouble` says why and the samples go on.
    """

    seekable = False

    def __init__(self, source: Source, writer: SessionWriter) -> None:
        self._source = source
        self._writer = writer
        self._trouble = ""

    @property
    def interval_s(self) -> float:
        """Nominal time between samples, in seconds."""
        return self._source.interval_s

    @property
    def path(self) -> str:
        """The session file."""
        return str(self._writer.path)

    @property
    def size_bytes(self) -> int:
        """What the recording takes on its disk now."""
        return self._writer.size_bytes

    @property
    def trouble(self) -> str:
        """Why nothing is written any more, in one line; empty while all is well."""
        return self._trouble

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        """Yield the steps of the other source, each one written."""
        for step in self._source.steps(stop):
            self._write(step)
            yield step

    def _write(self, step: Step) -> None:
        if self._trouble:
            return
        try:
            self._writer.write(step.current, gap=step.previous is None)
        except LunscopeError as error:
            self._trouble = str(error)

    def close(self) -> None:
        """Close the other source, then the file."""
        try:
            self._source.close()
        finally:
            self._writer.close()
