"""A source whose steps something else sees as well, whoever takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Event as StopFlag

from collectors.model import Source, Step
from collectors.sources.relay import RelayingSource


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
