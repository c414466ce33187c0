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
from engine.guard.finding import Found, StorageKey, find, storage_key
from engine.guard.usage_snapshot import UsageSnapshot
from engine.job.spec import JobSpec
from engine.text import safe_text

_Identity = StorageKey | str
"""A device or file, or the path of one that is still to be made."""


class SharedTargets(Struct):
    """Claims and files of several loads, from the first that is armed to the last; closed by its owner then."""

    held: set[int] = field(default_factory=set)
    """Numbers of the devices that any of them has claimed."""
    _files: set[StorageKey] = field(default_factory=set)
    """Files that one of them made, or opened for writing after all checks."""
    _claims: dict[int, int] = field(default_factory=dict)

    def note_written(self, status: os.stat_result) -> None:
        """Note a file that was made, or opened for writing after all checks."""
        self._files.add(storage_key(status))

    def writes(self, found: Found) -> bool:
        """Whether a file is no stranger's, as another of the loads has it open for writing."""
        return storage_key(found.status) in self._files

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
    """Check the targets of loads that will run at the same time, by name of the load, against each other.

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
                    targets.setdefault(storage_key(found.status), found)
                users[_identity(found, path)].append(name)
        if len(targets) > 1 and len(jobs) > 1:
            refuse_duplicates(UsageSnapshot(), [[found] for found in _of_single_nodes(jobs, targets)])
        for identity, names in users.items():
            _refuse_verified(
                targets[identity].path if identity in targets else str(identity), {name: jobs[name] for name in names}
            )


def _identity(found: Found | None, path: str) -> _Identity:
    return str(Path(path).resolve()) if found is None else storage_key(found.status)


def _of_single_nodes(jobs: Mapping[str, JobSpec], targets: Mapping[_Identity, Found]) -> Sequence[Found]:
    """Leave out the paths of LUNs, which are the same bytes on purpose and are compared when they are opened."""
    of_luns = {node for job in jobs.values() for target in job.targets if target.paths for node in target.nodes}
    return [found for found in targets.values() if found.path not in of_luns]


def _refuse_verified(path: str, jobs: Mapping[str, JobSpec]) -> None:
    verifying = [name for name, job in jobs.items() if job.verify]
    writing = [name for name, job in jobs.items() if job.knobs.read_pct < 100]
    others = [name for name in writing if verifying and name != verifying[0]]
    if verifying and others:
        raise UsageError(
            f"{safe_text(path)}: [{safe_text(others[0])}] writes to it while [{safe_text(verifying[0])}] verifies its "
            "data: give each a target of its own, or run one after the other (stonewall)"
        )
