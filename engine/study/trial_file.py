"""The trials of a study on disk: a line of JSON each, synced once it is measured, and read to go on after a crash.

A plan is known there by all that makes trials of another plan useless for it.
"""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType, TracebackType
from typing import Any, Generic, Protocol, Self, TypeVar

from msgspec import NODEFAULT, Struct, structs

from engine.errors import LunscopeError, UsageError, unusable, words_of
from engine.strict_json import JsonError, load_json_object
from engine.study.decoded import decoded, encoded

_MOST_BYTES = 256 << 20
"""More than the trials of the largest study, with the devices under its targets."""
_MODE = 0o600
_HOST = "host"
"""Key of the lines with facts of the host; they have nothing else."""
CURVE = "curve"
"""Key of the index of a curve."""

Trial = TypeVar("Trial")
Line = dict[str, Any]


class TrialKind(Struct, Generic[Trial], frozen=True):
    """How the trials of one kind of study are kept."""

    schema: str
    read: Callable[[Any], Trial | None]
    """Reads a trial from its document; None where it is none."""
    write: Callable[[Trial], Line]
    key: str = "trial"
    """What a trial is called."""
    is_nested: bool = False
    """Whether a line has the trial under its name and nothing else, as of a study with one curve and no facts of the
    host; else its fields stand beside the index of their curve."""

    def line(self, curve: int, trial: Trial) -> Line:
        """Write the line of a trial."""
        return {self.key: self.write(trial)} if self.is_nested else {CURVE: curve, **self.write(trial)}

    def read_line(self, line: Line) -> tuple[int, Trial] | None:
        """Read the index of a curve and a trial of it; None where the line has none."""
        curve = 0 if self.is_nested else line.pop(CURVE, None)
        found = self.read(line.get(self.key) if self.is_nested else line)
        return (curve, found) if isinstance(curve, int) and curve >= 0 and found is not None else None


def trial_kind(schema: str, trial: type[Trial]) -> TrialKind[Trial]:
    """Keep trials that are written as their types say."""
    return TrialKind(schema, functools.partial(decoded, trial), encoded)


class KeptPlan(Protocol[Trial]):
    """The plan of a study whose trials are kept."""

    @property
    def trial_kind(self) -> TrialKind[Trial]:
        """How they are kept."""

    @property
    def known_by(self) -> tuple[object, ...]:
        """Whatever makes trials of another plan useless for this one."""

    @property
    def curve_count(self) -> int:
        """Number of curves."""


class TrialFile(Generic[Trial]):
    """Trials of one plan on disk; the owner appends, nobody else writes. A line that was cut off is dropped."""

    def __init__(self, path: Path, plan: KeptPlan[Trial], hosts: Sequence[str] = ()) -> None:
        """Keep the trials of a plan; those of other hosts of a fleet are of another study."""
        self.path, self._kind, self._curves = path, plan.trial_kind, plan.curve_count
        self._identities = identities(plan.known_by, hosts)
        self.done: list[tuple[int, Trial]] = []
        """Trials read from it, with the index of their curve."""
        self._host: object = None
        self._fd = -1

    def __enter__(self) -> Self:
        """Open or create it and read what is there.

        Raises:
            UsageError: it is of another study, of none, or a line is damaged.
            LunscopeError: it cannot be opened.
        """
        with ExitStack() as opened:
            try:
                flags = os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
                self._fd = os.open(self.path, flags, _MODE)
                opened.callback(os.close, self._fd)
                lines = self._lines()
            except OSError as error:
                raise unusable(f"{self.path}: {words_of(error)}", error) from None
            self.done, self._host = list(self._trials(lines)), _host_of(lines)
            opened.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._fd)

    def append(self, curve: int, trial: Trial) -> None:
        """Write one trial, and make sure that it is on the disk.

        Raises:
            LunscopeError: it cannot be written.
        """
        self._append(self._kind.line(curve, trial))

    def note_host(self, facts: Mapping[str, object]) -> None:
        """Write the facts of the host on which the next trials are measured, unless the file has them.

        Raises:
            LunscopeError: they cannot be written.
        """
        if not self._kind.is_nested and facts and facts != self._host:
            self._append({_HOST: facts})
            self._host = facts

    def _append(self, document: Mapping[str, object]) -> None:
        line = json.dumps(document, allow_nan=False).encode() + b"\n"
        try:
            if os.write(self._fd, line) != len(line):
                raise LunscopeError(f"{self.path}: the disk is full: the sweep can go on from here later")
            os.fdatasync(self._fd)
        except OSError as error:
            raise LunscopeError(f"{self.path}: {words_of(error)}") from None

    def _lines(self) -> list[bytes]:
        """Read the lines after the head, which is written where the file is new."""
        size = os.fstat(self._fd).st_size
        if size > _MOST_BYTES:
            raise UsageError(f"{self.path}: larger than any sweep: give another --trials")
        data = os.pread(self._fd, size, 0)
        if not data:
            self._append({"schema": self._kind.schema, "sweep": self._identities[0]})
            return []
        whole = data[: data.rfind(b"\n") + 1]
        head, *lines = whole.split(b"\n")[:-1] or [b""]
        found = _parsed(head)
        if found.get("schema") != self._kind.schema:
            raise UsageError(f"{self.path}: not a file of a sweep: give another --trials")
        if found.get("sweep") not in self._identities:
            raise UsageError(f"{self.path}: of a sweep with other axes or another job: give another --trials")
        if len(whole) < len(data):
            os.ftruncate(self._fd, len(whole))
        return lines

    def _trials(self, lines: Sequence[bytes]) -> Iterator[tuple[int, Trial]]:
        for number, found in _read(lines, self._kind):
            if found is None or found[0] >= self._curves:
                raise UsageError(f"{self.path}: line {number} is damaged: remove it, or give another --trials")
            yield found


class FoundTrials(Struct, Generic[Trial], frozen=True):
    """What the file of any study of a kind holds."""

    trials: list[tuple[int, Trial]]
    """Trials with the index of their curve."""
    host: Mapping[str, Any] | None
    """Facts of the host on which the last ones were measured."""


def read_trials(path: Path, kind: TrialKind[Trial]) -> FoundTrials[Trial]:
    """Read the file of any study of a kind; lines that are damaged or cut off are left out.

    Raises:
        LunscopeError: it cannot be read.
    """
    try:
        with path.open("rb") as file:
            lines = file.read(_MOST_BYTES).split(b"\n")[1:]
    except OSError as error:
        raise unusable(f"{path}: {words_of(error)}", error) from None
    return FoundTrials([found for _, found in _read(lines, kind) if found is not None], _host_of(lines))


def _read(lines: Sequence[bytes], kind: TrialKind[Trial]) -> Iterator[tuple[int, tuple[int, Trial] | None]]:
    """Yield the number of each line after the head, which is 1, with its curve and its trial; None where damaged."""
    for number, line in enumerate(lines, start=2):
        document = _parsed(line)
        if document.keys() != {_HOST}:
            yield number, kind.read_line(document)


def _host_of(lines: Sequence[bytes]) -> Mapping[str, Any] | None:
    """Return the last facts of a host among the lines after the head; None without any."""
    documents = (_parsed(line) for line in lines if line.startswith(b'{"host"'))
    found = [document[_HOST] for document in documents if isinstance(document.get(_HOST), dict)]
    return found[-1] if found else None


def _parsed(line: bytes) -> Line:
    """Read one line; empty where it is no JSON object."""
    try:
        return load_json_object(line)
    except JsonError:
        return {}


_FIRST_FIELDS: Mapping[str, int] = MappingProxyType({"JobSpec": 32, "Knobs": 13, "FleetKnobs": 14})
"""How many fields these classes had while files were known by all of them; later ones stand behind."""


def identities(values: Sequence[object], hosts: Sequence[str]) -> tuple[str, str]:
    """Return what files of a plan are known by, and what earlier versions wrote there.

    Fields that are as by default do not count, so that files outlast fields that come later. A default that changes
    changes what was measured: its field needs another name then.
    """
    found = []
    for is_now in (True, False):
        words = (each if isinstance(each, str) else _told(each, is_now=is_now) for each in values)
        known = _hash(*words)
        found.append(_hash(known, *hosts) if hosts else known)
    return found[0], found[1]


def _hash(*words: str) -> str:
    return hashlib.sha256("\0".join(words).encode()).hexdigest()[:16]


def _told(value: object, *, is_now: bool) -> str:
    """Write a value as its `repr`, without fields that are as by default; earlier versions kept them."""
    if isinstance(value, tuple | list):
        items = ", ".join(_told(each, is_now=is_now) for each in value)
        if isinstance(value, list):
            return f"[{items}]"
        return f"({items},)" if len(value) == 1 else f"({items})"
    if not isinstance(value, Struct) and not dataclasses.is_dataclass(value):
        return repr(value)
    name = type(value).__name__
    kept = 0 if is_now else _FIRST_FIELDS.get(name, 1 << 10)
    fields = (
        f"{field}={_told(getattr(value, field), is_now=is_now)}"
        for position, (field, default) in enumerate(_fields(value))
        if position < kept or getattr(value, field) != default
    )
    return f"{name}({', '.join(fields)})"


def _fields(value: object) -> Iterator[tuple[str, object]]:
    """Yield the fields of a value with their defaults."""
    if isinstance(value, Struct):
        for field in structs.fields(value):
            has_factory = field.default_factory is not NODEFAULT
            yield field.name, field.default_factory() if has_factory else field.default
    elif dataclasses.is_dataclass(value):
        for each in dataclasses.fields(value):
            make = each.default_factory
            yield each.name, each.default if make is dataclasses.MISSING else make()
