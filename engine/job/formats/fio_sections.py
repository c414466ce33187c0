"""Lines and sections of a fio job file, with the options that are in force in each (fio(1), JOB FILE FORMAT)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from engine.errors import UsageError
from engine.job.formats.fio_arithmetic import filled_in
from engine.job.formats.text_file import SourceLocation, read_text
from engine.text import safe_text

_MOST_FILES = 64
_MOST_LINES = 100_000
_COMMENT = re.compile(r"[;#].*")
_INCLUDE = re.compile(r"include\s+(.+)")
_VARIABLE = re.compile(r"\$\{([^}]*)\}")


class Line(Struct, frozen=True):
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


_GLOBAL = "global"
_MOST_SECTIONS = 1024
_MOST_OPTIONS = 1000


class Option(Struct, frozen=True):
    """One option as it was given; None is one without a value."""

    name: str
    value: str | None
    location: SourceLocation

    def error(self, what: str) -> UsageError:
        """Build the error for this option."""
        return self.location.error(self.name, what)

    @property
    def text(self) -> str:
        """The value.

        Raises:
            UsageError: it has none.
        """
        if not self.value:
            raise self.error("needs a value")
        return self.value


class FioSection(Struct, frozen=True):
    """One job: its name, and its options with those of every [global] above it."""

    name: str
    location: SourceLocation
    options: tuple[Option, ...]
    """Options in the order of the file; the last of one name counts."""


def sections_of(lines: Iterable[Line], path: str) -> tuple[FioSection, ...]:
    """Cut lines into sections.

    Raises:
        UsageError: an option stands before any section, a name is missing, or there is no job in the file.
    """
    shared: list[Option] = []
    found: list[tuple[str, SourceLocation, list[Option]]] = []
    current: list[Option] | None = None
    for line in lines:
        if line.text.startswith("["):
            name = _section_name(line)
            current = shared if name == _GLOBAL else list(shared)
            if name != _GLOBAL:
                found.append((name, line.location, current))
            if len(found) > _MOST_SECTIONS:
                raise line.location.error(name, f"more than {_MOST_SECTIONS} sections: not a job file")
        elif current is None:
            raise line.location.error(_option(line).name, "stands before any [section]: put it below [global]")
        else:
            current.append(_option(line))
            if len(current) > _MOST_OPTIONS:
                raise line.location.error(current[-1].name, f"more than {_MOST_OPTIONS} options: not a job file")
    if not found:
        raise UsageError(f"{safe_text(path)}: no job in it: a fio job file has a [section] for each")
    return tuple(FioSection(name, location, tuple(options)) for name, location, options in found)


def _section_name(line: Line) -> str:
    name, bracket, rest = line.text[1:].partition("]")
    if not bracket or not name.strip() or rest.strip():
        raise line.location.error(line.text[:40], "write a section as [name]")
    return name.strip()


def _option(line: Line) -> Option:
    name, equals, value = line.text.partition("=")
    if value[:1].isspace():
        raise line.location.error(name.strip(), "a blank after the = is a part of the value for fio: take it out")
    return Option(name.strip().lower(), filled_in(value.strip()) if equals else None, line.location)


class Given:
    """Options of one section that were not read yet: what is left in the end is unknown."""

    def __init__(self, section: FioSection) -> None:
        self.section = section
        self._left = {option.name: option for option in section.options}

    def take(self, *names: str) -> Option | None:
        """Take an option by any of its names, the one given last; None if it was not given."""
        taken = [self._left.pop(name) for name in names if name in self._left]
        order = list(self.section.options)
        return max(taken, key=order.index, default=None)

    def seen(self, *names: str) -> Option | None:
        """Return an option for its place in the file, whether it was taken or not."""
        given = [option for option in self.section.options if option.name in names]
        return given[-1] if given else None

    def left(self) -> tuple[Option, ...]:
        """Options that were not taken, in the order of the file."""
        return tuple(self._left.values())
