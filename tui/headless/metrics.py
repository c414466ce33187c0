"""Samples this host for `lunscope metrics` until a signal.

The file for node_exporter's textfile collector is always complete: written beside it, then renamed.
"""

from __future__ import annotations

import contextlib
import fcntl
import glob
import os
import re
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import click

from collectors.metrics.collection import MetricsCollection
from collectors.model import Source, Step
from engine.errors import LunscopeError, RefusedError, UsageError, unusable, words_of
from engine.text import safe_text
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


MARK = b"# Written by lunscope metrics.\n"
SUFFIX = ".prom"
"""node_exporter reads no other files."""
_LEFTOVER = re.compile(r"\.[0-9]{1,10}\.new", re.ASCII)
MODE = 0o644
"""node_exporter runs as another user."""


def require_textfile(path: Path, option: str = "--textfile") -> None:
    """Make sure before sampling begins that the file may be replaced.

    Raises:
        UsageError: its name does not end as node_exporter wants it, or its folder does not exist.
        RefusedError: another program wrote it.
        LunscopeError: it cannot be read.
    """
    shown = safe_text(str(path))
    if path.suffix != SUFFIX:
        raise UsageError(f"{option} {shown}: node_exporter reads only names that end in {SUFFIX}")
    if not path.parent.is_dir():
        raise UsageError(f"{option} {shown}: {safe_text(str(path.parent))} is not a folder: create it")
    try:
        if not stat.S_ISREG(path.lstat().st_mode) or not _is_ours(path):
            raise RefusedError(f"{shown}: not written by lunscope metrics, so it is not replaced: use another name")
    except FileNotFoundError:
        pass
    except OSError as error:
        raise unusable(f"{shown}: {words_of(error)}", error) from None
    _remove_leftovers(path)


def _remove_leftovers(path: Path) -> None:
    """Remove what a lunscope that was killed while it wrote has left: nobody holds the lock of such a file."""
    for found in path.parent.glob(f".{glob.escape(path.name)}.*.new"):
        if not _LEFTOVER.fullmatch(found.name.removeprefix(f".{path.name}")):
            continue
        with contextlib.suppress(OSError):
            descriptor = os.open(found, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
            with os.fdopen(descriptor, "rb") as file:
                head = file.read(len(MARK))
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if stat.S_ISREG(os.fstat(descriptor).st_mode) and MARK.startswith(head):
                    found.unlink()


def _is_ours(path: Path) -> bool:
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        return file.read(len(MARK)) == MARK


def replace_textfile(path: Path, text: bytes) -> None:
    """Replace the file atomically; readers see the former or the new one.

    Raises:
        OSError: it cannot be written; the former one stays.
    """
    new = path.with_name(f".{path.name}.{os.getpid()}.new")
    new.unlink(missing_ok=True)
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, MODE)
    try:
        with os.fdopen(descriptor, "wb") as file:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            os.fchmod(file.fileno(), MODE)
            file.write(MARK)
            file.write(text)
        new.replace(path)
    finally:
        new.unlink(missing_ok=True)
