"""Checking a device or file after a verified load: read-only, by the data itself and by the journal."""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable

from msgspec import Struct

from engine._native import LoadTarget, VerifyPass
from engine.backend.outstanding import Waits
from engine.errors import LunscopeError, StoppedError, UsageError
from engine.guard import OpenTarget, open_targets
from engine.job.spec import BlockShare, JobSpec, Knobs, Mode, Permissions, TargetSpec
from engine.text import safe_text
from engine.verify.damage import Damage, damage_document
from engine.verify.journal import open_journal
from engine.verify.passing import PassResult, run_pass
from engine.verify.run_result import pass_document

SCHEMA = "lunscope.verify/1"
_BLOCK = BlockShare(4096)
_NO_JOURNAL = "no journal of its last verified load here: stale and lost blocks are not detected"
_OTHER_JOURNAL = (
    "the journal of this name is of a load of which nothing is here, so it was not used: "
    "the disk may have been replaced or rolled back as a whole"
)


class Checked(Struct, frozen=True):
    """What was found on one target."""

    size_bytes: int
    result: PassResult
    used_journal: bool
    notice: str
    """What a reader must know to judge it; empty if there is nothing."""

    @property
    def damage(self) -> tuple[Damage, ...]:
        """Damaged ranges, by offset."""
        return self.result.damage


def check_target(
    path: str,
    progress: Callable[[float], None],
    stop: threading.Event,
    *,
    use_journal: bool = True,
    begins: Callable[[VerifyPass, str], None] = lambda _pass, _name: None,
    waits: Waits | None = None,
) -> Checked:
    """Read a whole device or file and judge all that a verified load wrote there.

    Args:
        path: read around the page cache where that can be done.
        progress: called with the share done, 0 to 1.
        stop: set from any thread to end early.
        use_journal: whether to use what the last verified run on this name left.
        begins: called with every pass and the target's name, to poll what it waits for.
        waits: takes the other calls that may hang: open and close.

    Raises:
        StoppedError: `stop` was set.
        LunscopeError: it cannot be read, or nothing of a verified load is on it.
    """
    waits = waits or Waits()
    with waits.on(path, "open"):
        target = _open(path)
    try:
        journal = _open_journal(path, waits) if use_journal else None
        return _check(target, journal, functools.partial(_pass, target, progress, stop, begins))
    except OSError as error:
        raise LunscopeError(f"{safe_text(path)}: cannot be checked: {error.strerror}") from error
    finally:
        with waits.on(path, "close"):
            target.close()


def _open(path: str) -> OpenTarget:
    if not os.path.lexists(path):
        raise UsageError(f"{safe_text(path)}: no such file or device: lsblk lists the devices")

    def attempt(mode: Mode) -> OpenTarget:
        job = JobSpec((TargetSpec(path),), Knobs(blocks=(_BLOCK,), mode=mode))
        return open_targets(job, Permissions())[0]

    try:
        return attempt(Mode.DIRECT)
    except UsageError:
        # Some filesystems do no direct I/O; any other error is raised again.
        return attempt(Mode.BUFFERED)


def _open_journal(path: str, waits: Waits) -> int | None:
    with waits.on("the journal of its last load", "open"):
        return open_journal(path)


def _check(target: OpenTarget, journal: int | None, make_pass: Callable[[int | None], PassResult]) -> Checked:
    notice = _NO_JOURNAL if journal is None else ""
    try:
        result = make_pass(journal)
    finally:
        if journal is not None:
            os.close(journal)
    if journal is not None and not result.journal_bytes:
        journal, notice = None, _OTHER_JOURNAL
        result = make_pass(None)
    if not (result.good_bytes or result.damage):
        raise LunscopeError(f"{target.name}: nothing here was written by a load with --verify{_moved(result)}")
    return Checked(target.size_bytes, result, journal is not None, notice)


def _pass(
    target: OpenTarget,
    progress: Callable[[float], None],
    stop: threading.Event,
    begins: Callable[[VerifyPass, str], None],
    journal: int | None,
) -> PassResult:
    native = LoadTarget(target.fd, target.name, target.size_bytes, target.align_bytes, writable=False)
    target_pass = VerifyPass(native, journal)
    begins(target_pass, target.name)
    result = run_pass(target_pass, target.name, progress, stop)
    if result is None:
        raise StoppedError(f"{target.name}: stopped before all of it was checked")
    return result


def _moved(result: PassResult) -> str:
    return "" if not result.elsewhere_bytes else ", but for data of one on a file or partition stored here: check that"


def checked_document(checked: Checked) -> dict[str, object]:
    """Everything a check found, ready for json.dumps; schema lunscope.verify/1."""
    result = checked.result
    return {
        "schema": SCHEMA,
        "target": result.name,
        "size_bytes": checked.size_bytes,
        "run_ns": result.latest_run_ns,
        "used_journal": checked.used_journal,
        "notice": checked.notice,
        **pass_document(result),
        "damaged_ranges": len(result.damage),
        "damage": [damage_document(one) for one in result.damage],
    }
