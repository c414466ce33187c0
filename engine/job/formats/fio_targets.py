"""What a fio job works on: filename, directory, nrfiles, and the names that fio makes (fio(1), Target file/device)."""

from __future__ import annotations

import re
import stat
from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from engine.job.formats.fio_sections import Given, Option
from engine.job.formats.fio_values import Units
from engine.job.spec import MAX_TARGETS, TargetSpec
from engine.job.target_text import LUN, SCRATCH
from engine.text import safe_text

_COLON = re.compile(r"(?<!\\):")
_KEYWORD = re.compile(r"\$(jobname|jobnum|filenum|clientuid)", re.IGNORECASE)


class Files(Struct, frozen=True):
    """Targets, and the folder for files that lunscope makes itself."""

    targets: tuple[TargetSpec, ...]
    shared: bool
    """Whether all clones of the job work on the same files."""
    folder: Path | None = None
    notes: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """Those of files that are not made here."""
        return tuple(target.path for target in self.targets if target.path is not None)


def take_files(given: Given, units: Units, jobs: int) -> Files:
    """Take the targets: those named, and those whose names fio makes of the section's name or of `filename_format`.

    Else every clone has files of its own, which are made and removed here.

    Raises:
        UsageError: names cannot be meant, or there are too many files.
    """
    filename, directory, files = given.take("filename"), given.take("directory"), given.take("nrfiles", "nr_files")
    form, section = given.take("filename_format"), given.section.name
    folder = None if directory is None else _only_one(directory)
    if filename is not None:
        # As in fio nrfiles and filename_format are without effect then.
        return Files(_targets(_names(filename), directory, folder), shared=True)
    each = 1 if files is None else units.integer(files, most=MAX_TARGETS)
    if not 1 <= each * jobs <= MAX_TARGETS:
        assert files is not None
        raise files.error(f"{each} files for each of {jobs} clones: 1 to {MAX_TARGETS} files in all are driven")
    if each == 1 and _is_special(section):
        return Files(_targets([section], directory, folder), shared=True)
    if form is not None and form.value:
        names = [[_formed(form.value, section, clone, file) for file in range(each)] for clone in range(jobs)]
        shared = all(of_clone == names[0] for of_clone in names)
        return Files(_targets(_different(form, names[:1] if shared else names), directory, folder), shared)
    note = _scratch_note(section, folder)
    return Files((TargetSpec(),) * (each * jobs), False, None if folder is None else Path(folder), (note,))


def _names(filename: Option) -> list[str]:
    names = [name.replace("\\:", ":") for name in _COLON.split(filename.text)]
    if not all(names) or len(names) > MAX_TARGETS:
        raise filename.error(f"{len(names)} names, or an empty one: give 1 to {MAX_TARGETS}, separated by colons")
    if "-" in names:
        raise filename.error("standard input and output are not driven")
    return names


def _different(form: Option, names: Sequence[Sequence[str]]) -> list[str]:
    found = [name for of_clone in names for name in of_clone]
    if len(set(found)) < len(found):
        raise form.error("makes one name for several files: add $jobnum or $filenum to it")
    return found


def _targets(names: Sequence[str], directory: Option | None, folder: str | None) -> tuple[TargetSpec, ...]:
    if directory is not None and any(name.startswith("/") for name in names):
        raise directory.error("does not go with a filename that begins with a slash: take it out")
    prefix = "" if folder is None else f"{folder}/"
    paths = (prefix + name for name in names)
    return tuple(TargetSpec(f"./{path}" if path == SCRATCH or path.startswith(LUN) else path) for path in paths)


def _is_special(name: str) -> bool:
    """Whether fio takes the name of a section for its target's: it exists and is no plain file (fio, init.c)."""
    try:
        return not stat.S_ISREG(Path(name).lstat().st_mode)
    except (OSError, ValueError):
        return False


def _formed(form: str, section: str, clone: int, file: int) -> str:
    values = {"jobname": section, "jobnum": str(clone), "filenum": str(file), "clientuid": ""}
    return _KEYWORD.sub(lambda match: values[match[1].lower()], form)


def _scratch_note(section: str, folder: str | None) -> str:
    where = "in lunscope's folder, not in the current one as with fio" if folder is None else f"in {folder}"
    theirs = Path(folder or ".", f"{section}.0.0")
    used = f"; fio would use {safe_text(str(theirs))}, which exists: name it with filename" if _exists(theirs) else ""
    return f"no filename: scratch files {where}, filled before and gone after the run{used}"


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):
        return False


def _only_one(directory: Option) -> str:
    if _COLON.search(directory.text):
        raise directory.error("several folders are not driven: name the files with filename")
    return directory.text.replace("\\:", ":")
