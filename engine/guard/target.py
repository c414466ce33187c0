"""An open target of the load: its descriptor, and what was found when it was opened."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from msgspec import Struct, field

from engine.backend.outstanding import Waits
from engine.errors import RefusedError
from engine.guard.facts import TargetFacts
from engine.guard.identity import Identity, is_gone, refuse_changed, refuse_other_disk, refuse_replaced
from engine.guard.own_writes import State, note_left, writes_to
from engine.guard.permission import refuse_claimed_elsewhere, refuse_used
from engine.guard.usage_snapshot import UsageSnapshot, scan_processes


class TargetKind(StrEnum):
    """Kind of a target; only scratch files are removed after the run."""

    SCRATCH = "scratch"
    FILE = "file"
    BLOCK = "block"


class OpenTarget(Struct, eq=False):
    """One target by its descriptor; nothing reaches it by name again."""

    name: str
    """What people read: path, or "scratch 1 (256 MiB in ~/.cache/lunscope)"."""
    path: str | None
    fd: int
    """-1 once closed."""
    kind: TargetKind
    size_bytes: int
    """Bytes from the start the load may use: a multiple of `align_bytes`."""
    align_bytes: int
    """Alignment of offsets, lengths and buffers the mode needs; 1 through the page cache."""
    writable: bool
    """The descriptor is open for writing, because writing is allowed."""
    notices: tuple[str, ...]
    nr_requests: int | None
    """Requests the queue of the whole disk takes; None for files."""
    identity: Identity
    needs_fill: bool = False
    """Made by lunscope and not filled yet: reading it would measure nothing."""
    is_unused: bool = False
    """Made by lunscope, and no load has begun on it yet: the file goes with the descriptor, whatever its name."""
    writes_before: State | None = None
    """What the kernel had counted of writes to a device before it was looked at; None once a load has begun."""
    is_own: bool = False
    """Everything that is on it since it was opened for writing is of this process: it was blank then, or made."""
    facts: TargetFacts = field(default_factory=TargetFacts)
    """What was found that makes its figures less than they seem."""
    direct_align_bytes: int = 1
    """Alignment of offsets, lengths and buffers that direct I/O needs, whatever the mode now; 1 if it is refused."""
    cell: int | None = None
    """NUMA node of its adapter, where it is a path of a LUN and has one."""
    outstanding: int = 0
    """What it had in flight when it was opened, where it is a path of a LUN."""
    held: set[int] = field(default_factory=set)
    """Numbers of the devices that are claimed for the job, this one among them; shared by all of its targets."""
    claim_fd: int | None = None
    """The open file with the exclusive claim, where a load that runs at the same time opened it."""
    others: tuple[OpenTarget, ...] = ()
    """Further paths to the same LUN, each opened and checked like this one."""

    @property
    def nodes(self) -> tuple[OpenTarget, ...]:
        """All paths, this one first."""
        return (self, *self.others)

    @property
    def device_number(self) -> tuple[int, int]:
        """Major and minor of the block device, or of the device that stores the file."""
        number = self.identity.rdev or self.identity.device
        return os.major(number), os.minor(number)

    def recheck(self, usage: UsageSnapshot | None = None) -> None:
        """Make sure that what was found at opening still holds; to be called right before the first write.

        Args:
            usage: one fresh snapshot of the host, to be shared by the targets of a job; by default an own one.

        Raises:
            RefusedError: in use or written meanwhile, replaced, shrunk, removed, or another hard link or hole appeared.
        """
        refuse_changed(self.fd, self.name, self.identity)
        if self.path is not None:
            refuse_replaced(self.path, self.identity)
        self._refuse_written()
        if self.writable and self.kind is not TargetKind.SCRATCH:
            usage = usage or UsageSnapshot()
            refuse_used(usage, self.name, self.fd)
            refuse_claimed_elsewhere(usage, self.name, self.fd, self.held)
        for other in self.others:
            other.recheck(usage)

    def _refuse_written(self) -> None:
        if self.writes_before is None:
            return
        # What another process wrote through the page cache is counted once it is written back, at its last close else.
        with suppress(OSError):
            os.fsync(self.fd)
        if writes_to(os.fstat(self.fd)) != self.writes_before:
            raise RefusedError(
                f"{self.name}: something has written to it since it was opened: check it, then start again"
            )

    def refuse_new_use(self, usage: UsageSnapshot) -> None:
        """Check that nothing else has begun to use it since; to be called periodically while it is written.

        A path that is gone or shrank is no reason to stop: its I/Os fail or take another path, and do no harm.

        Raises:
            RefusedError: it is in use, or another disk replaced it.
        """
        for node in self.nodes:
            if node.writable and node.kind is not TargetKind.SCRATCH and not is_gone(node.identity):
                refuse_other_disk(node.name, node.identity)
                refuse_used(usage, node.name, node.fd)

    def begin(self) -> None:
        """Note that a load begins: what is on it from now on is of the load."""
        for node in self.nodes:
            node.is_unused, node.writes_before = False, None

    def mark_filled(self) -> None:
        """Note that every byte was written; from now on holes are refused."""
        self.needs_fill = False
        self.identity = Identity.of(self.fd, self.size_bytes)

    def close(self) -> None:
        """Close the descriptor; a scratch file is removed by that, a new file on which no load began is removed."""
        for other in self.others:
            other.close()
        if self.fd < 0:
            return
        if self.is_unused and self.path is not None:
            _remove_if_same(Path(self.path), self.fd)
        status = os.fstat(self.fd)
        os.close(self.fd)
        self.fd = -1
        if self.claim_fd is not None:
            os.close(self.claim_fd)
            self.claim_fd = None
        if self.is_own:
            note_left(status)


def _remove_if_same(path: Path, fd: int) -> None:
    try:
        if os.path.samestat(path.lstat(), os.fstat(fd)):
            path.unlink()
    except OSError:
        return


def recheck_targets(targets: Sequence[OpenTarget], waits: Waits) -> None:
    """Recheck all targets of a job with one snapshot of the host.

    Raises:
        RefusedError: as OpenTarget.recheck.
    """
    usage = UsageSnapshot()
    if any(target.writable and target.kind is not TargetKind.SCRATCH for target in targets):
        scan_processes(usage, waits)
    for target in targets:
        with waits.on(target.name, "check"):
            target.recheck(usage)
