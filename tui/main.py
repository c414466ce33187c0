"""Entry point: checks that the native core is there, then hands over to the command line."""

from __future__ import annotations

import gc
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tui.loading import loading

YOUNG_OBJECTS = 20_000
"""New objects per collection of the youngest generation: a screen creates and drops many without cycles."""
COLLECTIONS_UNTIL_OLDER = 3
"""After so many collections of the youngest generation the next one is collected too, and so on (gc.set_threshold).

Dialogs and screens are garbage in cycles that survives the first collection; with Python's ten it piles up for minutes.
"""


def main() -> None:
    """Run lunscope; a missing native core is one line and exit 1, not a traceback."""
    with _quiet_interrupts():
        _start_lightly()
        with loading():
            _check_core()
            from tui.cli import run_cli  # noqa: PLC0415
    sys.exit(run_cli())


@contextmanager
def _quiet_interrupts() -> Iterator[None]:
    """Give SIGINT its default action during imports: the process ends without a traceback."""
    before = signal.getsignal(signal.SIGINT)
    if before is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGINT, before)


def _start_lightly() -> None:
    """Avoid needless cost: frequent garbage collection, and numpy's threads for linear algebra."""
    gc.set_threshold(YOUNG_OBJECTS, COLLECTIONS_UNTIL_OLDER, COLLECTIONS_UNTIL_OLDER)
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _check_core() -> None:
    try:
        import engine  # noqa: F401, PLC0415
    except ImportError as missing:
        sys.exit(str(missing))
