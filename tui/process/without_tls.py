"""Imports without OpenSSL, which asyncio loads for connections that nothing here makes: 4 MB and 40 ms of the start."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import cast


@contextmanager
def without_tls() -> Iterator[None]:
    """Hide `ssl` from what is imported meanwhile, as in a Python built without it; afterwards it can be imported.

    Has no effect where `ssl` or asyncio was imported before.
    """
    modules = cast("dict[str, ModuleType | None]", sys.modules)
    is_hidden = not {"ssl", "asyncio"} & modules.keys()
    if is_hidden:
        modules["ssl"] = None
    try:
        yield
    finally:
        if is_hidden:
            del modules["ssl"]
