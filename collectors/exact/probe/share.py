"""A program beside those on block I/O, run once for all readers of the probe helper."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar, Generic, Protocol, TypeVar

from collectors.exact.probe.message import Message


class _Closable(Protocol):
    def close(self) -> None: ...


Program = TypeVar("Program", bound=_Closable)
Untaken = TypeVar("Untaken")


class ProgramShare(ABC, Generic[Program, Untaken]):
    """Attaches for the first reader and detaches after the last one; keeps what each has not taken yet."""

    WHAT: ClassVar[str]
    """What the program times."""

    def __init__(self, open_program: Callable[[], Program] | None) -> None:
        """Nothing is attached yet; `open_program` raises OSError where it cannot, None never attaches."""
        self._open = open_program
        self._program: Program | None = None
        self._untaken: dict[object, Untaken] = {}

    @abstractmethod
    def answer(self, reader: object) -> Message:
        """Return a reading with what this reader has not taken.

        Raises:
            OSError: the kernel refuses.
            ValueError: nothing may be attached.
        """

    @abstractmethod
    def kept_cells(self, reader: object) -> int:
        """Count the histogram cells that a reader has not taken."""

    def leave(self, reader: object) -> None:
        """Remove a reader, whether it has read anything or not."""
        if self._untaken.pop(reader, None) is not None and not self._untaken:
            self.close()

    def close(self) -> None:
        """Detach; may be called twice."""
        program, self._program = self._program, None
        self._untaken = {}
        if program is not None:
            program.close()

    def _attached(self) -> Program:
        if self._program is None:
            if self._open is None:
                raise ValueError(f"this probe helper times no {self.WHAT}")
            self._program = self._open()
        return self._program
