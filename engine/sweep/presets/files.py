"""The files of a preset: one for each part, so that a preset that was ended, however, goes on from there."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self

from engine.study.trial_file import TrialFile
from engine.sweep.plan import SweepPlan
from engine.sweep.trial import Trial


class PresetFiles:
    """The first part is in the file that was named, each other one in a file beside it with the name of the part.

    The file of a part is made when the part begins. So the file of the last part says that the command before it was
    run to its end.
    """

    def __init__(self, parts: Sequence[SweepPlan], path: Path | None, hosts: Sequence[str] = ()) -> None:
        self._parts, self._path, self._hosts = parts, path, hosts
        self._open: dict[int, TrialFile[Trial]] = {}

    def __enter__(self) -> Self:
        """Open and check those that are there.

        Raises:
            LunscopeError: one is of something else, damaged, or cannot be read.
        """
        with ExitStack() as stack:
            self._stack = stack
            for part in range(len(self._parts)):
                if self.has_begun(part):
                    self.file(part)
            self._stack = stack.pop_all()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stack.close()

    def path(self, part: int) -> Path | None:
        """Path of the file of a part; None where nothing is kept."""
        if self._path is None or part == 0:
            return self._path
        return self._path.with_name(f"{self._path.name}.{self._parts[part].part or part + 1}")

    def has_begun(self, part: int) -> bool:
        """Whether the file of a part is there."""
        path = self.path(part)
        return path is not None and path.exists()

    @property
    def done(self) -> int:
        """Measurements in those that are open."""
        return sum(len(file.done) for file in self._open.values())

    def file(self, part: int) -> TrialFile[Trial] | None:
        """Return the open file of a part, made if it is not there; None where nothing is kept.

        Raises:
            LunscopeError: it cannot be opened, or is of something else.
        """
        path = self.path(part)
        if path is None:
            return None
        if part not in self._open:
            self._open[part] = self._stack.enter_context(TrialFile(path, self._parts[part], self._hosts))
        return self._open[part]
