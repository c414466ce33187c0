"""The version of the program."""

from __future__ import annotations

import functools
from importlib import metadata

UNKNOWN = "unknown"


@functools.cache
def version() -> str:
    """Version as installed; `unknown` where it runs from a checkout that is not."""
    try:
        return metadata.version("lunscope")
    except (metadata.PackageNotFoundError, OSError, KeyError):
        return UNKNOWN
