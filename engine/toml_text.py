"""TOML of unknown origin, read by the standard library within limits."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Any

from engine.small_file import read_small

_MOST_PARTS = 32
_LONG_KEY = re.compile(
    rf"""(?:^|[\[{{,])[ \t]*+(?:(?:[A-Za-z0-9_-]++|"[^"\n]*+"|'[^'\n]*+')[ \t]*+\.[ \t]*+){{{_MOST_PARTS}}}""",
    re.MULTILINE,
)
"""A key of more parts than any of ours: tomllib takes time with their square, hours for 1 MiB."""


def parse_toml_text(text: str) -> dict[str, Any]:
    """Read a document.

    Raises:
        ValueError: it is none, or beyond a limit; the message says where and why.
    """
    found = _LONG_KEY.search(text)
    if found is not None:
        line = text.count("\n", 0, found.start()) + 1
        raise ValueError(f"a key of more than {_MOST_PARTS} parts (at line {line})")
    try:
        return tomllib.loads(text)
    except RecursionError:
        raise ValueError("nested too deep") from None


def read_toml(path: Path) -> dict[str, Any]:
    """Read a small regular file, as the settings are.

    Raises:
        OSError: it cannot be read; FileNotFoundError where there is none.
        ValueError: it is something else, too large, or no TOML.
    """
    return parse_toml_text(read_small(path).decode("utf-8"))
