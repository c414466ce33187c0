"""The lines of a fio job file: comments, includes and variables resolved (fio(1), JOB FILE FORMAT)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from engine.errors import UsageError
from engine.job.formats.source_location import SourceLocation
from engine.job.formats.text_file import read_text
from engine.text import safe_text

_MOST_FILES = 64
_MOST_LINES = 100_000
_COMMENT = re.compile(r"[;#].*")
_INCLUDE = re.compile(r"include\s+(.+)")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


@dataclass(frozen=True, slots=True)
class Line:
    """One line that says something."""

    text: str
    location: SourceLocation


def fio_lines(path: str | Path, environment: Mapping[str, str] = os.environ) -> Iterator[Line]:
    """Yield the lines of a job file and of all files it includes, without comments and blanks.

    As in fio everything from `;` or `#` on is comment, anywhere in a line, and `${NAME}` is an environment variable.

    Raises:
        LunscopeError: a file cannot be read.
        UsageError: files include each other, there are too many of them, or an environment variable is not set.
    """
    for number, line in enumerate(_Reader(environment).lines(Path(path), (), None)):
        if number >= _MOST_LINES:
            raise UsageError(f"{line.location}: more than {_MOST_LINES} lines with all includes: not a job file")
        yield line


class _Reader:
    """Counts the files it opened, which a file of includes alone could make without end."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._environment = environment
        self._files = 0

    def lines(self, path: Path, above: tuple[Path, ...], asked_from: SourceLocation | None) -> Iterator[Line]:
        real = Path(os.path.realpath(path))
        self._files += 1
        if asked_from is not None and (real in above or self._files > _MOST_FILES):
            what = "includes itself" if real in above else f"is one file more than the {_MOST_FILES} that are read"
            raise asked_from.error("include", f"{safe_text(str(path))} {what}")
        for number, raw in enumerate(read_text(path).splitlines(), 1):
            text = _COMMENT.sub("", raw).strip()
            location = SourceLocation(str(path), number)
            included = _INCLUDE.fullmatch(text)
            if included:
                yield from self.lines(_included(included[1], path), (*above, real), location)
            elif text:
                yield Line(_filled_in(text, location, self._environment), location)


def _included(name: str, including: Path) -> Path:
    """Find an included file as fio does: from the current folder, else beside the file that includes it."""
    return Path(name) if Path(name).exists() else including.parent / name


def _filled_in(text: str, location: SourceLocation, environment: Mapping[str, str]) -> str:
    def value(match: re.Match[str]) -> str:
        if match[1] not in environment:
            raise location.error(f"${{{match[1]}}}", "no such environment variable: set it, or write the value")
        return environment[match[1]]

    return _VARIABLE.sub(value, text)
