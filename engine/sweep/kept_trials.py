"""Trials on disk, of a sweep or of a search for a rate: a line of JSON each, written once it is measured."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from msgspec import Struct

from engine.sweep.line_file import KeptLines, parsed

LARGEST = 1e30
"""More than any figure of a trial."""
_HOST = "host"
"""Key of the lines with facts of the host; they have nothing else."""


class AnyTrial(Protocol):
    """A dataclass whose fields are its keys in JSON."""

    __dataclass_fields__: ClassVar[dict[str, Any]]


Trial = TypeVar("Trial", bound=AnyTrial)
Read = Callable[[Mapping[str, Any]], Trial | None]
"""Reads a trial back from its object; None where it is none."""


class TrialKind(Struct, Generic[Trial], frozen=True):
    """How the trials of one kind of plan are kept."""

    schema: str
    read: Read[Trial]


class KeptTrials(KeptLines, Generic[Trial]):
    """Trials of one plan in its file; the owner appends, nobody else writes."""

    def __init__(self, path: Path, kind: TrialKind[Trial], identity: str, curves: int) -> None:
        super().__init__(path, kind.schema, identity)
        self.done: list[tuple[int, Trial]] = []
        """Trials read from it, with the index of their curve."""
        self._kind, self._curves = kind, curves
        self._host: object = None

    def read(self) -> None:
        """Read the trials.

        Raises:
            UsageError: a line is damaged.
        """
        self.done = list(self._trials())

    def append(self, curve: int, trial: Trial) -> None:
        """Write one trial, and make sure that it is on the disk.

        Raises:
            LunscopeError: it cannot be written.
        """
        self._file.append({"curve": curve, **asdict(trial)})

    def note_host(self, facts: Mapping[str, object]) -> None:
        """Write the facts of the host on which the next trials are measured, unless the file has them.

        Raises:
            LunscopeError: they cannot be written.
        """
        if facts and facts != self._host:
            self._file.append({_HOST: facts})
            self._host = facts

    def _trials(self) -> Iterator[tuple[int, Trial]]:
        self._host = host_of(self._file.lines)
        for number, curve, trial in parsed_trials(self._file.lines, self._kind.read):
            if trial is None or not 0 <= curve < self._curves:
                raise self._file.damaged(number)
            yield curve, trial


def parsed_trials(lines: Sequence[bytes], read: Read[Trial]) -> Iterator[tuple[int, int, Trial | None]]:
    """Yield the number of each line after the head, from 1, with its curve and its trial; None where it is damaged."""
    for number, line in enumerate(lines, start=1):
        document = parsed(line)
        if document.keys() == {_HOST}:
            continue
        curve = document.pop("curve", None)
        yield (number, curve, read(document)) if isinstance(curve, int) else (number, -1, None)


def host_of(lines: Sequence[bytes]) -> Mapping[str, Any] | None:
    """Return the last facts of a host among the lines after the head; None without any."""
    documents = (parsed(line) for line in lines if line.startswith(b'{"host"'))
    found = [document[_HOST] for document in documents if isinstance(document.get(_HOST), dict)]
    return found[-1] if found else None


def are_numbers(values: Sequence[object]) -> bool:
    """Whether all of them are numbers that a trial can have."""
    return all(isinstance(value, int | float) and 0 <= value < LARGEST for value in values)


def plain_object(value: object) -> Mapping[str, Any] | None:
    """Return what was stored as an object of JSON with finite numbers; None if it is none.

    Raises:
        ValueError: it is something else.
    """
    if value is not None and not isinstance(value, dict):
        raise ValueError("not an object")
    json.dumps(value, allow_nan=False)
    return value
