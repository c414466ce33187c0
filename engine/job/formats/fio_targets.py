"""What a fio job works on: filename, directory and nrfiles (fio(1), Target file/device)."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_values import Units
from engine.job.spec import MAX_TARGETS, TargetSpec
from engine.job.target_text import LUN, SCRATCH

_COLON = re.compile(r"(?<!\\):")


class Files(Struct, frozen=True):
    """Targets, and the folder for files that lunscope makes itself."""

    targets: tuple[TargetSpec, ...]
    folder: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def shared(self) -> bool:
        """Whether all clones of the job work on the same files."""
        return self.targets[0].path is not None


def take_files(given: Given, units: Units, jobs: int) -> Files:
    """Take the targets; without filename every clone has files of its own, which are made and removed here.

    Raises:
        UsageError: names cannot be meant, or there are too many files.
    """
    filename, directory, files = given.take("filename"), given.take("directory"), given.take("nrfiles")
    if filename is not None:
        # As in fio nrfiles is without effect then.
        return Files(tuple(TargetSpec(name) for name in _names(filename, directory)))
    each = 1 if files is None else units.integer(files, most=MAX_TARGETS)
    if not 1 <= each * jobs <= MAX_TARGETS:
        assert files is not None
        raise files.error(f"{each} files for each of {jobs} clones: 1 to {MAX_TARGETS} files in all are driven")
    folder = None if directory is None else Path(_only_one(directory))
    where = f"in {directory.text}" if directory is not None else "in lunscope's folder"
    note = f"no filename: scratch files {where}, filled before and gone after the run"
    return Files((TargetSpec(),) * (each * jobs), folder, (note,))


def _names(filename: Option, directory: Option | None) -> list[str]:
    names = [name.replace("\\:", ":") for name in _COLON.split(filename.text)]
    if not all(names) or len(names) > MAX_TARGETS:
        raise filename.error(f"{len(names)} names, or an empty one: give 1 to {MAX_TARGETS}, separated by colons")
    if "-" in names:
        raise filename.error("standard input and output are not driven")
    if directory is None:
        return [f"./{name}" if name == SCRATCH or name.startswith(LUN) else name for name in names]
    if any(name.startswith("/") for name in names):
        raise directory.error("does not go with a filename that begins with a slash: take it out")
    return [f"{_only_one(directory)}/{name}" for name in names]


def _only_one(directory: Option) -> str:
    if _COLON.search(directory.text):
        raise directory.error("several folders are not driven: name the files with filename")
    return directory.text.replace("\\:", ":")
