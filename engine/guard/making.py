"""Which files a load may make: those that the operator names, and those in the scratch folder."""

from __future__ import annotations

from pathlib import Path

from engine.errors import RefusedError
from engine.guard.finding import no_such_target
from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.text import safe_text


def refuse_making(spec: TargetSpec, path: str, job: JobSpec, permissions: Permissions) -> None:
    """Refuse to make the file of a target that does not exist.

    A file acts by its mere existence in some places (/etc/nologin), so that a job file, or the controller of a fleet,
    is not enough to make one.

    Raises:
        UsageError: nothing asks for a file to be made there.
        RefusedError: nobody allowed it.
    """
    if spec.paths or job.size_bytes is None or _would_land_among_devices(path):
        raise no_such_target(path)
    if path in permissions.allow_write | permissions.typed or _is_inside(path, permissions.make_in):
        return
    shown = safe_text(path)
    raise RefusedError(
        f"{shown}: there is no such file, and a job file or fleet makes files in the scratch folder only: "
        f"add --allow-write {shown} to have it made, or name one that exists"
    )


def _is_inside(path: str, folder: Path | None) -> bool:
    return folder is not None and Path(path).resolve().is_relative_to(folder.resolve())


def _would_land_among_devices(path: str) -> bool:
    """Whether a new file would be made in /dev itself or beside links to devices: a mistyped device, not a file."""
    parent = Path(path).resolve().parent
    return parent.is_relative_to("/dev") and parent.exists() and parent.stat().st_dev == Path("/dev").stat().st_dev
