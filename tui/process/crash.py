"""Unexpected errors: one line on stderr, and a file with the details."""

from __future__ import annotations

import os
import platform
import sys
import threading
import time
import traceback
from pathlib import Path

from engine.config import state_folder
from engine.errors import shortage
from engine.text import safe_text, short_text

FILES_KEPT = 10
_MOST_BYTES = 256 << 10
_SUFFIX = ".txt"


def crash_folder() -> Path:
    """Name the folder of crash files."""
    return state_folder() / "crashes"


def crash_line(error: BaseException) -> str:
    """Write the details to a file that only its owner can read; returns the line to show.

    Where the limits of this process are the cause, they are named instead: that is no error of lunscope.
    """
    if words := shortage(error):
        return words
    what = short_text(" ".join(f"{type(error).__name__}: {error}".split()))
    try:
        path = _write(_details(error))
    except Exception as failure:  # the line must be printed in any case
        return f"unexpected error: {what} (details cannot be kept: {short_text(str(failure))})"
    return f"unexpected error: {what}; details in {path}: please report them"


def report_threads() -> None:
    """Report exceptions in threads and finalizers the same way: no traceback on the terminal."""

    def in_thread(args: threading.ExceptHookArgs) -> None:
        if args.exc_value is not None and not isinstance(args.exc_value, SystemExit):
            _show(args.exc_value)

    def unraisable(args: sys.UnraisableHookArgs) -> None:
        if args.exc_value is not None:
            _show(args.exc_value)

    threading.excepthook = in_thread
    sys.unraisablehook = unraisable


def _show(error: BaseException) -> None:
    if sys.stderr is not None:
        sys.stderr.write(f"lunscope: {safe_text(crash_line(error))}\n")
        sys.stderr.flush()


def _details(error: BaseException) -> bytes:
    from engine.version import version  # noqa: PLC0415 (reads the list of what is installed)

    parts = (
        f"lunscope {version()}, Python {platform.python_version()}, Linux {platform.release()}",
        f"{time.strftime('%Y-%m-%dT%H:%M:%S%z')} pid {os.getpid()} uid {os.geteuid()}",
        "arguments: " + " ".join(short_text(repr(word)) for word in sys.argv),
        "".join(traceback.format_exception(error)),
    )
    lines = (safe_text(line) for line in "\n".join(parts).splitlines())
    text = "".join(f"{line}\n" for line in lines).encode("utf-8", "backslashreplace")
    return text if len(text) <= _MOST_BYTES else text[: _MOST_BYTES // 2] + b"\n...\n" + text[-_MOST_BYTES // 2 :]


def _write(text: bytes) -> Path:
    folder = crash_folder()
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    _remove_oldest(folder)
    path = folder / f"{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}-{time.monotonic_ns() % 10**6:06}{_SUFFIX}"
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(text)
    return path


def _remove_oldest(folder: Path) -> None:
    """Make room for one more."""
    kept = sorted(folder.glob(f"*{_SUFFIX}"))
    for path in kept[: max(0, len(kept) - FILES_KEPT + 1)]:
        path.unlink(missing_ok=True)
