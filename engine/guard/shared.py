"""What loads that run at the same time have open together: targets of one load may be those of another.

The kernel grants an exclusive claim of a device to one open file. Loads that share a device therefore share that file's
claim: the first opens it with O_EXCL, and a duplicate of its descriptor with each of the others keeps the claim until
the last of them is closed.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct, field

from engine.errors import UsageError
from engine.guard.duplicates import refuse_duplicates
from engine.guard.finding import Found, find
from engine.guard.usage_snapshot import UsageSnapshot
from engine.job.spec import JobSpec
from engine.text import safe_text

_Identity = tuple[str, int, int] | tuple[str, str]


class MadeFiles:
    """Files with names that loads of this process made, one after the other: no data of anybody else's are in them.

    Each is kept open, so that its inode is no other file's.
    """

    def __init__(self) -> None:
        self._fds: dict[tuple[int, int], int] = {}

    def keep(self, fd: int) -> None:
        """Note a file that was just made."""
        status = os.fstat(fd)
        self._fds[status.st_dev, status.st_ino] = os.dup(fd)

    def __contains__(self, status: os.stat_result) -> bool:
        return (status.st_dev, status.st_ino) in self._fds

    def close(self) -> None:
        """Forget them; may be called twice."""
        while self._fds:
            os.close(self._fds.popitem()[1])


class SharedTargets(Struct):
    """Claims and files of several loads, from the first that is armed to the last; closed by its owner then."""

    made: MadeFiles | None = None
    """Files of these loads and of those before them."""

    held: set[int] = field(default_factory=set)
    """Numbers of the devices that any of them has claimed."""
    _files: set[tuple[int, int]] = field(default_factory=set)
    """Files that one of them made, or opened for writing after all checks, by device and inode."""
    _claims: dict[int, int] = field(default_factory=dict)

    def note_made(self, fd: int) -> None:
        """Note a file with a name that was made, for the loads that come after these as well."""
        if self.made is not None:
            self.made.keep(fd)

    def note_written(self, status: os.stat_result) -> None:
        """Note a file that was made, or opened for writing after all checks."""
        self._files.add((status.st_dev, status.st_ino))

    def writes(self, found: Found) -> bool:
        """Whether a file is no stranger's: another of the loads has it open for writing, or one before them made it."""
        made = self.made is not None and found.status in self.made
        return made or (found.status.st_dev, found.status.st_ino) in self._files

    def keep_claim(self, number: int, fd: int) -> None:
        """Note an open file that has claimed a device."""
        self._claims[number] = os.dup(fd)

    def claim_of(self, number: int) -> int | None:
        """Return a new descriptor of the open file that has claimed a device; None if none of the loads has."""
        fd = self._claims.get(number)
        return None if fd is None else os.dup(fd)

    def close(self) -> None:
        """Let go of what is kept here; the loads keep theirs."""
        claims, self._claims = self._claims, {}
        for fd in claims.values():
            os.close(fd)


def refuse_conflicts(jobs: Mapping[str, JobSpec]) -> None:
    """Check the targets of loads that are to run at the same time, by name of the load, against each other.

    Raises:
        UsageError: two names lead to the same bytes, or a load verifies what another one writes to.
        LunscopeError: a folder on the way may not be entered.
    """
    with ExitStack() as stack:
        users: dict[_Identity, list[str]] = defaultdict(list)
        targets: dict[_Identity, Found] = {}
        for name, job in jobs.items():
            for path in [path for target in job.targets for path in target.nodes]:
                found = find(path)
                if found is not None:
                    stack.callback(found.close)
                    targets.setdefault(_identity(found), found)
                users[_identity(found, path)].append(name)
        if len(targets) > 1 and len(jobs) > 1:
            refuse_duplicates(UsageSnapshot(), [[found] for found in _of_single_nodes(jobs, targets)])
        for identity, names in users.items():
            _refuse_verified(targets.get(identity), identity, {name: jobs[name] for name in names})


def _identity(found: Found | None, path: str = "") -> _Identity:
    if found is None:
        return "new", str(Path(path).resolve())
    if found.is_block:
        return "device", os.major(found.status.st_rdev), os.minor(found.status.st_rdev)
    return "file", found.status.st_dev, found.status.st_ino


def _of_single_nodes(jobs: Mapping[str, JobSpec], targets: Mapping[_Identity, Found]) -> Sequence[Found]:
    """Leave out the paths of LUNs, which are the same bytes on purpose and are compared when they are opened."""
    of_luns = {node for job in jobs.values() for target in job.targets if target.paths for node in target.nodes}
    return [found for found in targets.values() if found.path not in of_luns]


def _refuse_verified(found: Found | None, identity: _Identity, jobs: Mapping[str, JobSpec]) -> None:
    verifying = [name for name, job in jobs.items() if job.verify]
    writing = [name for name, job in jobs.items() if job.knobs.read_pct < 100]
    others = [name for name in writing if verifying and name != verifying[0]]
    if verifying and others:
        shown = safe_text(str(identity[1]) if found is None else found.path)
        raise UsageError(
            f"{shown}: [{safe_text(others[0])}] writes to it while [{safe_text(verifying[0])}] verifies its data: give "
            "each a target of its own, or run one after the other (stonewall)"
        )
