"""Opening the targets of a job, all or none."""

from __future__ import annotations

import os
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from msgspec import Struct

from engine.backend.outstanding import Waits
from engine.config import DEFAULT_SCRATCH_BYTES, scratch_folder
from engine.errors import UsageError
from engine.guard import permission
from engine.guard.claiming import claim_block
from engine.guard.duplicates import path_facts, refuse_duplicates, refuse_strangers
from engine.guard.extent import MODE_FLAGS, align_bytes, direct_align_bytes, usable_bytes
from engine.guard.facts import block_facts, block_notices, file_facts, file_notices, filesystem_notice, made_facts
from engine.guard.finding import Found, find, refuse_strange_kinds, reopen
from engine.guard.given import refuse_other
from engine.guard.identity import Identity
from engine.guard.making import refuse_making
from engine.guard.own_writes import is_as_left, writes_to
from engine.guard.sampling import TargetSampling
from engine.guard.scratch import check_room, make_named, make_scratch, shown_folder
from engine.guard.shared import SharedTargets
from engine.guard.target import OpenTarget, TargetKind
from engine.guard.unseen import refuse_unseen, unseen_notices
from engine.guard.usage_snapshot import UsageSnapshot, scan_processes
from engine.hostfs import blockio
from engine.hostfs.sysblock import look_up, request_limit
from engine.job.sizes import human_size, round_up
from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.text import safe_text


class _Opener(Struct, frozen=True):
    """What opening the targets of one job needs."""

    job: JobSpec
    permissions: Permissions
    usage: UsageSnapshot
    shared: SharedTargets
    """What is claimed and made for this job, and for those that run at the same time."""

    @property
    def mode_flags(self) -> int:
        return MODE_FLAGS[self.job.knobs.mode]


def open_targets(
    job: JobSpec, permissions: Permissions, shared: SharedTargets | None = None, waits: Waits | None = None
) -> list[OpenTarget]:
    """Open all targets of a job, for reading unless writing is allowed; when one is refused none stays open or made.

    A target named exactly in `allow_write` is opened for writing after all checks, even if the job only reads yet: the
    share of reads may be turned down while it runs. Jobs that run at the same time may have targets in common, by
    `shared`. What takes long is named in `waits`.

    Raises:
        UsageError: a target does not exist, is no storage, comes twice, or its size does not fit the job.
        RefusedError: a target may not be written.
        LunscopeError: no permission, no space, or a device that does not answer.
    """
    with ExitStack() as found_ones, ExitStack() as opened_ones:
        if shared is None:
            shared = SharedTargets()
            found_ones.callback(shared.close)
        waits = waits or Waits()
        opener = _Opener(job, permissions, UsageSnapshot(), shared)
        with waits.on(_all_names(job), "open"):
            found = [_find_all(spec, job, permissions, found_ones) for spec in job.targets]
            refuse_duplicates(opener.usage, [nodes for nodes in found if nodes])
        _refuse_same_new_names(job, found)
        _check_scratch_room(job)
        if any(node.path in permissions.allow_write for nodes in found for node in nodes):
            scan_processes(opener.usage, waits)
        with waits.on(_all_names(job), "open"):
            targets = []
            for index, nodes in enumerate(found):
                target = _open_target(opener, index, nodes)
                opened_ones.callback(target.close)
                targets.append(target)
        with waits.on(_all_names(job), "sampling"):
            _refuse_data(opener, found, targets)
        opened_ones.pop_all()
        return targets


def _all_names(job: JobSpec) -> str:
    first, *others = (target.path or "scratch" for target in job.targets)
    return f"{first} and {len(others)} more" if others else first


def _find_all(spec: TargetSpec, job: JobSpec, permissions: Permissions, stack: ExitStack) -> list[Found]:
    """Find every path of a target; none for a file that is still to be made."""
    nodes = []
    for path in spec.nodes:
        found = find(path)
        if found is None:
            refuse_other(path, None, permissions)
            refuse_making(spec, path, job, permissions)
        else:
            stack.callback(found.close)
            nodes.append(found)
    return nodes


def _refuse_same_new_names(job: JobSpec, found: list[list[Found]]) -> None:
    seen: dict[Path, str] = {}
    for spec, one in zip(job.targets, found, strict=True):
        if spec.path is None or one:
            continue
        real = Path(spec.path).resolve()
        if real in seen:
            first, second = safe_text(seen[real]), safe_text(spec.path)
            raise UsageError(f"{first} and {second} are the same file: give each target once, under one name")
        seen[real] = spec.path


def _made_bytes(job: JobSpec) -> int:
    """Size of a file lunscope makes: as requested, else the default rounded up to whole blocks, after the offset."""
    if job.size_bytes is not None:
        return job.offset_bytes + job.size_bytes
    return job.offset_bytes + round_up(DEFAULT_SCRATCH_BYTES, max(job.knobs.block_sizes))


def _check_scratch_room(job: JobSpec) -> None:
    count = sum(spec.path is None for spec in job.targets)
    if count:
        check_room(scratch_folder(), count * _made_bytes(job))


def _open_target(opener: _Opener, index: int, nodes: list[Found]) -> OpenTarget:
    spec = opener.job.targets[index]
    if spec.path is None:
        return _open_scratch(opener, index)
    if not nodes:
        return _make_file(opener, spec.path)
    if not spec.paths:
        return _open_found(opener, nodes[0])
    return _open_lun(opener, nodes)


def _open_lun(opener: _Opener, nodes: list[Found]) -> OpenTarget:
    """Open all paths of a LUN under the same rules; writing needs the permission for each of them."""
    refuse_strangers(opener.usage, nodes)
    with ExitStack() as stack:
        opened = []
        for node in nodes:
            target = _open_found(opener, node)
            stack.callback(target.close)
            facts = path_facts(opener.usage, node)
            target.cell, target.outstanding = facts.cell, facts.outstanding
            opened.append(target)
        first, *others = opened
        if len({target.writable for target in opened}) > 1:
            unnamed = next(target for target in opened if not target.writable)
            permission.refuse_unpermitted(unnamed.name, opener.permissions)
        first.others = tuple(others)
        first.name = f"{first.name} ({len(opened)} paths)" if others else first.name
        first.notices = tuple(dict.fromkeys(notice for target in opened for notice in target.notices))
        first.align_bytes = max(target.align_bytes for target in opened)
        first.direct_align_bytes = max(target.direct_align_bytes for target in opened)
        first.size_bytes = min(target.size_bytes for target in opened)
        stack.pop_all()
        return first


def _open_found(opener: _Opener, found: Found) -> OpenTarget:
    path = found.path
    refuse_strange_kinds(found, opener.usage.filesystems)
    writable = path in opener.permissions.allow_write
    if writable and not opener.shared.writes(found):
        refuse_other(path, found.status, opener.permissions)
    if opener.job.knobs.read_pct < 100 and not writable:
        permission.refuse_unpermitted(path, opener.permissions)
    return (
        _open_block(opener, found, writable=writable)
        if found.is_block
        else _open_file(opener, found, writable=writable)
    )


def _open_scratch(opener: _Opener, index: int) -> OpenTarget:
    folder, size = scratch_folder(), _made_bytes(opener.job)
    fd = make_scratch(folder, size, opener.mode_flags)
    name = f"scratch {index + 1} ({human_size(size)} in {shown_folder(folder)})"
    return _made_target(opener, fd, name, None, TargetKind.SCRATCH)


def _make_file(opener: _Opener, path: str) -> OpenTarget:
    usable_bytes(path, _made_bytes(opener.job), 1, opener.job)
    fd = make_named(Path(path), _made_bytes(opener.job), opener.mode_flags)
    return _made_target(opener, fd, path, path, TargetKind.FILE)


def _made_target(opener: _Opener, fd: int, name: str, path: str | None, kind: TargetKind) -> OpenTarget:
    opener.shared.note_written(os.fstat(fd))
    target = OpenTarget(
        name=name,
        path=path,
        fd=fd,
        kind=kind,
        size_bytes=0,
        align_bytes=1,
        writable=True,
        notices=(),
        nr_requests=None,
        identity=Identity.of(fd, 0),
        needs_fill=True,
        is_unused=True,
        is_own=path is not None,
    )
    try:
        target.align_bytes = align_bytes(fd, name, opener.job.knobs.mode)
        target.direct_align_bytes = direct_align_bytes(fd)
        target.size_bytes = usable_bytes(name, os.fstat(fd).st_size, target.align_bytes, opener.job)
        target.notices = tuple(filesystem_notice(opener.usage, fd))
        target.facts = made_facts(opener.usage.roots.sysfs, fd)
    except BaseException:
        target.close()
        raise
    return target


def _open_file(opener: _Opener, found: Found, *, writable: bool) -> OpenTarget:
    if writable:
        permission.refuse_used(opener.usage, found.path, found.fd)
        if not opener.shared.writes(found):
            permission.refuse_file(found, opener.permissions)
    fd = reopen(found, (os.O_RDWR if writable else os.O_RDONLY) | opener.mode_flags)
    try:
        align = align_bytes(fd, found.path, opener.job.knobs.mode)
        size = usable_bytes(found.path, os.fstat(fd).st_size, align, opener.job)
        if writable:
            opener.shared.note_written(found.status)
        return OpenTarget(
            name=found.path,
            path=found.path,
            fd=fd,
            kind=TargetKind.FILE,
            size_bytes=size,
            align_bytes=align,
            writable=writable,
            notices=(*file_notices(opener.usage, fd), *(unseen_notices(opener.usage, found) if writable else ())),
            facts=file_facts(opener.usage.roots.sysfs, fd, size, opener.job),
            nr_requests=None,
            identity=Identity.of(fd, size),
            is_own=writable and (is_as_left(found.status) or not opener.permissions.destroy_data),
            direct_align_bytes=direct_align_bytes(fd),
        )
    except BaseException:
        os.close(fd)
        raise


def _open_block(opener: _Opener, found: Found, *, writable: bool) -> OpenTarget:
    claim = None
    writes_before = None
    if writable:
        writes_before = None if opener.permissions.destroy_data else writes_to(found.status)
        fd, claim = claim_block(opener.usage, opener.shared, found, opener.mode_flags)
    else:
        fd = reopen(found, os.O_RDONLY | opener.mode_flags)
    try:
        align = align_bytes(fd, found.path, opener.job.knobs.mode)
        capacity = blockio.size_bytes(fd)
        size = usable_bytes(found.path, capacity, align, opener.job)
        device = look_up(opener.usage.roots.sysfs, found.status.st_rdev)
        return OpenTarget(
            name=found.path,
            path=found.path,
            fd=fd,
            kind=TargetKind.BLOCK,
            size_bytes=size,
            align_bytes=align,
            writable=writable,
            notices=(
                *block_notices(opener.usage, device, opener.job),
                *(unseen_notices(opener.usage, found) if writable else ()),
            ),
            facts=block_facts(device, fd, size, opener.job),
            nr_requests=request_limit(device) if device else None,
            identity=Identity.of(fd, size),
            writes_before=writes_before,
            direct_align_bytes=direct_align_bytes(fd),
            held=opener.shared.held,
            claim_fd=claim,
        )
    except BaseException:
        _close_both(fd, claim)
        raise


def _refuse_data(opener: _Opener, found: list[list[Found]], targets: list[OpenTarget]) -> None:
    """Look at all devices that the load writes, which are claimed by now, and refuse those that may hold data."""
    both = zip(found, targets, strict=True)
    pairs = [pair for each, target in both for pair in zip(each, target.nodes, strict=False)]
    written = [(one, node) for one, node in pairs if one.is_block and node.writable]
    destroys = opener.permissions.destroy_data
    sampling = TargetSampling(
        {} if destroys else {one.status.st_rdev: (one, blockio.size_bytes(node.fd)) for one, node in written}
    )
    try:
        for one, node in written:
            see = partial(sampling.of, one.status.st_rdev)
            permission.refuse_device(opener.usage, one, node.fd, opener.permissions, see)
            refuse_unseen(opener.usage, safe_text(one.path), one.status.st_rdev, opener.permissions)
            # Only now: what is closed as our own may be written again.
            node.is_own = is_as_left(one.status) or not destroys
    finally:
        sampling.close()


def _close_both(fd: int, claim: int | None) -> None:
    for each in (fd, claim):
        if each is not None and each >= 0:
            os.close(each)
