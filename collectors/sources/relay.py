"""Sources over another one: what they say of themselves and what they can be asked are those of the other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event as StopFlag

from collectors.model import AdjustableSource, Source, Step, TagWaitWatcher


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


class ObservedSource(RelayingSource):
    """Passes on the steps of a source after `observe` has seen each; `end` is called once when it is closed."""

    def __init__(self, source: Source, observe: Callable[[Step], None], end: Callable[[], None]) -> None:
        super().__init__(source)
        self._observe = observe
        self._end: Callable[[], None] | None = end

    def steps(self, stop: StopFlag) -> Iterator[Step]:
        """Yield the steps of the underlying source."""
        for step in self._source.steps(stop):
            self._observe(step)
            yield step

    def close(self) -> None:
        """Close the other source; may be called twice."""
        end, self._end = self._end, None
        try:
            self._source.close()
        finally:
            if end is not None:
                end()
