"""Entry point: checks that the native core is there, then hands over to the command line."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tui.process.garbage import collect_rarely, loading


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
    collect_rarely()
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def _check_core() -> None:
    try:
        import engine  # noqa: F401, PLC0415
    except ImportError as missing:
        sys.exit(str(missing))
