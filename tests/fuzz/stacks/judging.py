"""Asks the guard for the target of a plan, writes all of it if that is allowed, and says whether that was right."""

from __future__ import annotations

import hashlib
import mmap
import os
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from msgspec import Struct

from engine.errors import LunscopeError
from engine.guard import OpenTarget, open_targets
from engine.guard.claim_check import ClaimCheck
from engine.job.spec import JobSpec, Knobs, Mode, Permissions, TargetSpec
from tests.fuzz import kernel_storage as kernel
from tests.fuzz.stacks.building import MIB, Ground, View, make_layer
from tests.fuzz.stacks.plan import (
    Answer,
    Bytes,
    Made,
    Name,
    Plan,
    Use,
    answer_of,
    bytes_of,
    chain,
    is_file,
)
from tests.fuzz.stacks.users import UserProcess
from tests.kernel.forked_command import lunscope

_MADE_BYTES = MIB
_PATIENCE_S = 10.0
_UNSEEN = "whether anything else writes to it cannot be found out"


class Outcome(Struct, frozen=True):
    """What came of one plan."""

    refusal: str = ""
    """Empty: it was written."""
    wrong: str = ""
    """Empty: that was right."""


def judge(plan: Plan, folder: Path, image: bytes) -> Outcome:
    """Make the stack of a plan in a folder, use it, try to write its target, and take all of it apart again.

    Raises:
        OSError: the kernel does not make it.
    """
    with ExitStack() as undo:
        ground = Ground(folder, plan)
        views = _build(plan, ground, undo, image)
        path = _named(plan, ground, views)
        used = bytes_of(plan, plan.user.at) if plan.user else None
        meant = bytes_of(plan, plan.target)
        _store_all(views)
        before = [_digest(ground, plan, views, each) for each in (used, meant)]
        write = _by_command if plan.command and not _is_swap(plan) else _by_guard
        refusal = _once_others_are_seen(lambda: write(plan, path))
        _store_all(views)
        after = [_digest(ground, plan, views, each) for each in (used, meant)]
        return Outcome(refusal, _wrong(plan, refusal, before, after))


def _build(plan: Plan, ground: Ground, undo: ExitStack, image: bytes) -> dict[int, View]:
    """Make all layers: first those that need nothing of the user's, so that it has them in its namespaces, too."""
    views = ground.views()
    later = {
        at for at in range(len(plan.layers)) if any(plan.layers[one].theirs for one in chain(plan, at) if one >= 0)
    }
    user = None
    for at in sorted(range(len(plan.layers)), key=lambda at: (at in later, at)):
        layer = plan.layers[at]
        if at in later and user is None:
            user = _user(plan, ground, undo, image)
        if layer.theirs:
            assert user is not None
            views[at] = user.make(at, views[layer.parent])
            if views[at].node:
                undo.callback(os.close, kernel.lock_device(views[at].node))
        else:
            views[at] = make_layer(ground.folder, layer, at, views[layer.parent], undo)
    if plan.user:
        user = user or _user(plan, ground, undo, image)
        user.use(views[plan.user.at])
    return views


def _user(plan: Plan, ground: Ground, undo: ExitStack, image: bytes) -> UserProcess:
    assert plan.user is not None
    process = UserProcess(plan, plan.user, ground.folder, image)
    undo.callback(process.close)
    return process


def _named(plan: Plan, ground: Ground, views: dict[int, View]) -> str:
    path, named = views[plan.target].path, ground.folder / "name"
    if plan.made is Made.FILE:
        return str(named)
    if plan.name is Name.LINK:
        named.symlink_to(path)
    elif plan.name is Name.NODE:
        os.mknod(named, 0o600 | 0o060000, Path(path).stat().st_rdev)
    else:
        return path
    return str(named)


def _store_all(views: dict[int, View]) -> None:
    """Have what the devices keep in the page cache written to what is below them."""
    for at in sorted(views, reverse=True):
        if views[at].node:
            descriptor = os.open(views[at].node, os.O_RDONLY)
            os.fsync(descriptor)
            os.close(descriptor)


def _digest(ground: Ground, plan: Plan, views: dict[int, View], where: Bytes | None) -> str:
    """A checksum of bytes where they are stored; empty where a copy was not made."""
    if where is None or (plan.user and plan.user.use is Use.SWAP):
        # The kernel may swap.
        return ""
    try:
        descriptor = os.open(ground.stored(where.store, plan, views), os.O_RDONLY)
    except FileNotFoundError:
        return ""
    try:
        length = (where.end_mib - where.start_mib) * MIB
        return hashlib.blake2b(os.pread(descriptor, length, where.start_mib * MIB)).hexdigest()
    finally:
        os.close(descriptor)


def _once_others_are_seen(write: Callable[[], str]) -> str:
    """Try again while processes that have nothing to do with the plan, such as other tests, cannot be inspected."""
    deadline_s = time.monotonic() + _PATIENCE_S
    while _UNSEEN in (refusal := write()) and time.monotonic() < deadline_s:
        time.sleep(0.1)
    return refusal


def _by_guard(plan: Plan, path: str) -> str:
    """Write the target if the guard of this process allows it; why it does not."""
    spec = TargetSpec(None if plan.made is Made.SCRATCH else path)
    knobs = Knobs(read_pct=0.0, mode=_mode(plan))
    job = JobSpec((spec,), knobs, size_bytes=_MADE_BYTES if plan.made else None)
    allowed = frozenset([] if plan.made is Made.SCRATCH else [path])
    try:
        (target,) = open_targets(job, Permissions(allowed, destroy_data=plan.destroy))
        try:
            target.recheck()
            ClaimCheck([target]).run()
            if not _is_swap(plan):
                _overwrite(target)
        finally:
            target.close()
    except LunscopeError as error:
        return str(error)
    return ""


def _by_command(plan: Plan, path: str) -> str:
    """Have `lunscope run` write the target; why it does not."""
    words = ["run", "--headless", "--rw", "write", "--bs", "64k", "--loops", "1", "--mode", _mode(plan)]
    words += ["--size", str(_MADE_BYTES)] if plan.made else []
    words += [] if plan.made is Made.SCRATCH else ["--target", path, "--allow-write", path]
    words += ["--destroy-data"] if plan.destroy else []
    done = lunscope(*words)
    said = done.stderr.strip()
    assert done.returncode == 0 or said.startswith("lunscope: "), f"lunscope {' '.join(words)}: {said}"
    return said if done.returncode else ""


def _mode(plan: Plan) -> Mode:
    return Mode.BUFFERED if plan.made or is_file(plan, plan.target) else Mode.DIRECT


def _is_swap(plan: Plan) -> bool:
    """Whether what this machine has swapped out could be lost."""
    return plan.user is not None and plan.user.use is Use.SWAP and answer_of(plan) is not Answer.WRITTEN


def _overwrite(target: OpenTarget) -> None:
    """Write every byte, and make sure that it can be read there."""
    with mmap.mmap(-1, target.size_bytes) as data, mmap.mmap(-1, target.size_bytes) as found:
        data[:] = os.urandom(target.size_bytes)
        assert os.pwritev(target.fd, [data], 0) == target.size_bytes, "a write ended early"
        os.fsync(target.fd)
        assert os.preadv(target.fd, [found], 0) == target.size_bytes, "a read ended early"
        assert data[:] == found[:], "what was written is not there"
    if target.needs_fill:
        target.mark_filled()


def _wrong(plan: Plan, refusal: str, before: list[str], after: list[str]) -> str:
    """Say what is wrong with what was done; empty if nothing is."""
    answer, is_changed = answer_of(plan), [first != second for first, second in zip(before, after, strict=True)]
    if is_changed[0]:
        return f"the bytes of the user changed{f' although it was refused: {refusal}' * bool(refusal)}"
    if answer is Answer.WRITTEN:
        if refusal:
            return f"nobody uses the bytes, yet they are refused: {refusal}"
        if not (plan.made or is_changed[1] or (plan.user and plan.user.use is Use.SWAP)):
            return "nothing was written"
    if answer is Answer.REFUSED and not refusal:
        return "data was overwritten without --destroy-data"
    if answer is not Answer.WRITTEN and refusal and is_changed[1]:
        return f"the bytes of the target changed although it was refused: {refusal}"
    return _wrong_of_swap(plan, refusal)


def _wrong_of_swap(plan: Plan, refusal: str) -> str:
    if plan.user is None or plan.user.use is not Use.SWAP or refusal:
        return ""
    shared = bytes_of(plan, plan.user.at).overlaps(bytes_of(plan, plan.target))
    return "active swap would be overwritten" if shared else ""
