"""Samples this host for `lunscope metrics` until a signal."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

import click

from collectors.metrics.collection import MetricsCollection
from collectors.model import Source, Step
from engine.errors import LunscopeError, UsageError, words_of
from engine.text import safe_text
from tui.headless.metrics_file import replace_textfile
from tui.headless.metrics_server import ListenAddress, serving
from tui.headless.monitor import READING_S, Monitor
from tui.headless.signals import stop_on_signal
from tui.process.standard_streams import say

_CHECK_S = 0.2


def require_few_series(collection: MetricsCollection, most: int) -> None:
    """Make sure that there are not more series than wanted.

    Raises:
        UsageError: there are.
    """
    series = collection.series
    if series > most:
        raise UsageError(
            f"{series:,} time series, more than {most:,}: choose fewer with --level, or allow them with "
            f"--max-series {series}"
        )


class TextfileWriter:
    """Writes every sample; reports a failure once, and keeps trying."""

    def __init__(self, path: Path, text: Callable[[], bytes], report: Callable[[str], None] = say) -> None:
        self._path = path
        self._text = text
        self._report = report
        self._failed = ""
        self._written = False

    def write(self) -> None:
        """Replace the file.

        Raises:
            LunscopeError: the first time it cannot be written.
        """
        try:
            replace_textfile(self._path, self._text())
        except OSError as error:
            words = f"{safe_text(str(self._path))}: {words_of(error)}"
            if not self._written:
                raise LunscopeError(words) from None
            if words != self._failed:
                self._report(f"{words}: the last complete one stays")
            self._failed = words
        else:
            self._written, self._failed = True, ""


def write_textfile(source: Source, collection: MetricsCollection, path: Path, *, most_series: int, once: bool) -> None:
    """Write the file after every sample, until a signal or after the first.

    Raises:
        UsageError: there are more series than wanted.
        LunscopeError: the file cannot be written.
    """
    writer, stop = TextfileWriter(path, collection.text), threading.Event()
    with stop_on_signal(stop):
        for position, step in enumerate(source.steps(stop)):
            collection.add(step)
            if not position:
                require_few_series(collection, most_series)
            writer.write()
            if once:
                return


def serve(
    open_source: Callable[[], Source], collection: MetricsCollection, address: ListenAddress, *, most_series: int
) -> None:
    """Answer scrapes, each with a new sample, until a signal.

    Raises:
        UsageError: there are more series than wanted.
        LunscopeError: the address cannot be used, or sampling failed.
    """
    stop, sampled = threading.Event(), threading.Event()

    def observe(step: Step) -> None:
        collection.add(step)
        sampled.set()

    monitor = Monitor(open_source(), observe)

    def text() -> bytes:
        monitor.sample_now(READING_S)
        return collection.text()

    try:
        with stop_on_signal(stop):
            monitor.start()
            while not sampled.wait(_CHECK_S) and not stop.is_set() and monitor.failure is None:
                pass
            _require_sampling(monitor)
            require_few_series(collection, most_series)
            with serving(address, text) as used:
                click.echo(
                    f"lunscope: listening on {used}{'' if used.local else ', which other hosts can reach'}", err=True
                )
                while not stop.wait(_CHECK_S):
                    _require_sampling(monitor)
    finally:
        monitor.close()


def _require_sampling(monitor: Monitor) -> None:
    if monitor.failure is not None:
        raise LunscopeError(f"sampling ended: {words_of(monitor.failure)}")
