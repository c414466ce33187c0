"""Files that the screens keep, replaced as a whole: two processes at once leave what one of them wrote."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path


def replace_file(file: Path, text: str) -> None:
    """Write a line of text in place of what the file holds; its folder is made.

    Raises:
        OSError: it cannot be written; what it held is still there.
    """
    file.parent.mkdir(parents=True, exist_ok=True)
    descriptor, name = tempfile.mkstemp(dir=file.parent, prefix=f".{file.name}.")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as new:
            new.write(f"{text}\n")
        Path(name).replace(file)
    except OSError:
        Path(name).unlink(missing_ok=True)
        raise
