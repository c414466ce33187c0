"""When Python's garbage collector runs: not during imports, and while nobody types where that is possible."""

from __future__ import annotations

import gc
import time
from collections.abc import Iterator
from contextlib import contextmanager

YOUNG_OBJECTS = 20_000
"""New objects per collection of the youngest generation: a screen creates and drops many without cycles."""
COLLECTIONS_UNTIL_OLDER = 3
"""Collections of the youngest generation after which the next one is collected too, and so on (gc.set_threshold).

Dialogs and drawn lines are garbage in cycles that survives the first collection; with Python's ten it piles up for
minutes.
"""
MOST_UNTIL_FULL = 8
"""The same for all objects while screens are shown: some 500,000 new objects, or 60 MB."""
IDLE_S = 0.3
"""Time without a key after which a pause of a tenth of a second is not felt."""


@contextmanager
def loading() -> Iterator[None]:
    """Disable the garbage collector during imports, and freeze what they created (gc.freeze).

    Those objects stay alive: scanning them again and again costs a tenth of the start.
    """
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()


def collect_rarely() -> None:
    """Raise Python's thresholds, which suit smaller programs."""
    gc.set_threshold(YOUNG_OBJECTS, COLLECTIONS_UNTIL_OLDER, COLLECTIONS_UNTIL_OLDER)


class IdleCollection:
    """Full collections between keys: one takes as long as several frames."""

    def __init__(self) -> None:
        self._typed_s = time.monotonic()

    def begin(self) -> None:
        """Postpone the full collections that Python would start by itself."""
        gc.set_threshold(YOUNG_OBJECTS, COLLECTIONS_UNTIL_OLDER, MOST_UNTIL_FULL)

    def typed(self) -> None:
        """Note a key or a click."""
        self._typed_s = time.monotonic()

    def collect_if_idle(self) -> bool:
        """Collect all generations and free their memory, if it is due and nobody is typing; returns whether it did."""
        is_due = gc.get_count()[2] >= COLLECTIONS_UNTIL_OLDER
        if not is_due or time.monotonic() - self._typed_s < IDLE_S:
            return False
        from engine.syscalls import trim_heap  # noqa: PLC0415 (this module is imported before the core is checked)

        gc.collect()
        trim_heap()
        return True
