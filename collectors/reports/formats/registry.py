"""The formats that a document can have, one for each module of this folder."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from msgspec import Struct

from collectors.reports.documents.content import Document

HTML_MARK = "<!-- lunscope report -->"
"""Mark in the first lines of a file that may hold comments of HTML."""


class Format(Struct, frozen=True):
    """A way to write a document."""

    option: str
    """Option of `report` that names the file, without dashes."""
    help: str
    mark: str
    """What the first lines of each file hold, so that only such files are overwritten."""
    lines: Callable[[Document], Iterator[str]]
    """Yields the lines of the file, without line ends."""


@cache
def formats() -> tuple[Format, ...]:
    """Find the format of each module beside this one, by name."""
    package = __name__.rpartition(".")[0]
    names = sorted(found.name for found in pkgutil.iter_modules([str(Path(__file__).parent)]))
    modules = (importlib.import_module(f"{package}.{name}") for name in names)
    return tuple(module.FORMAT for module in modules if hasattr(module, "FORMAT"))
