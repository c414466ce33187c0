"""A source over another one: what it says of itself and what it can be asked are those of the other."""

from __future__ import annotations

from collectors.model import AdjustableSource, Source, TagWaitWatcher


class RelayingSource:
    """Passes requests on to the underlying source; what happens to its steps is up to the subclass."""

    def __init__(self, source: Source) -> None:
        self._source = source

    @property
    def seekable(self) -> bool:
        """Whether the underlying source is."""
        return self._source.seekable

    @property
    def interval_s(self) -> float:
        """Nominal time between samples, in seconds."""
        return self._source.interval_s

    def watch_tag_wait(self, on: bool | None) -> None:
        """Make the underlying source time waits for free tags, if it can."""
        if isinstance(self._source, TagWaitWatcher):
            self._source.watch_tag_wait(on)

    def set_interval(self, interval_s: float) -> None:
        """Change the interval of the underlying source, if it can."""
        if isinstance(self._source, AdjustableSource):
            self._source.set_interval(interval_s)
