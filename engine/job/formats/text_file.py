"""Reading small text files of unchecked content."""

from __future__ import annotations

import stat
from pathlib import Path

from engine.errors import LunscopeError, UsageError
from engine.job.sizes import human_size
from engine.text import safe_text

MAX_FILE_BYTES = 1024 * 1024


def read_text(path: str | Path, what: str = "job file") -> str:
    """Read a whole file or pipe of at most 1 MiB; `what` names it in errors.

    Raises:
        LunscopeError: it cannot be read.
        UsageError: it is a device, too large, or not text in UTF-8.
    """
    shown = safe_text(str(path))
    try:
        mode = Path(path).stat().st_mode
        if stat.S_ISBLK(mode) or stat.S_ISCHR(mode):
            raise UsageError(f"{shown}: not a {what}: it is a device: give it with --target")
        with Path(path).open("rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
        text = data.decode("utf-8")
    except OSError as error:
        raise LunscopeError(f"{shown}: cannot read the {what}: {error.strerror}") from None
    except ValueError:
        raise UsageError(f"{shown}: not a {what}: it is not text in UTF-8") from None
    if len(data) > MAX_FILE_BYTES:
        raise UsageError(f"{shown}: not a {what}: it is larger than {human_size(MAX_FILE_BYTES)}")
    return text
