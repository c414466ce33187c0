"""What the guard would say of the targets of a job, for people who choose one: nothing is opened for writing.

A device is opened for reading only, as closing one that was open for writing makes udev probe it again. Its claim is
held for some microseconds, and only where nothing is known to use it. What it holds is seen
in samples (engine/guard/content.py).
"""

from __future__ import annotations

import os
from contextlib import ExitStack

from msgspec import Struct

from engine.errors import LunscopeError, UsageError
from engine.guard import permission
from engine.guard.claiming import note_claim
from engine.guard.duplicates import refuse_duplicates, refuse_strangers
from engine.guard.finding import Found, find, no_right, refuse_strange_kinds, reopen
from engine.guard.making import refuse_making
from engine.guard.sampling import TargetSampling
from engine.guard.unseen import refuse_unseen
from engine.guard.usage import block_use
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs import blockio
from engine.hostfs.kernel_files import Roots, read_text
from engine.hostfs.sysblock import look_up, parse_device_number
from engine.hostfs.writers import Writers
from engine.job.spec import JobSpec, Permissions, TargetSpec
from engine.job.target_text import format_target
from engine.replacing import replace
from engine.text import safe_text


class GuardAnswer(Struct, frozen=True):
    """What the guard says of one target; texts are safe to print, one line each."""

    name: str
    size_bytes: int | None = None
    """None for a file that is not made yet, and where it is not known."""
    reading: str = ""
    """Why it cannot be read; empty if it can."""
    writing: str = ""
    """Why it may not be written, whatever is confirmed; empty if it may once its name was typed."""
    holds: str = ""
    """What is on it, after its name; empty where it was not looked at."""
    is_own: bool = False
    """Whether lunscope makes it: nothing of it needs a confirmation."""


def guard_answers(job: JobSpec, permissions: Permissions) -> tuple[GuardAnswer, ...]:
    """Ask about each target of a job, with one snapshot of the host; blocks as long as a device does.

    Args:
        job: its targets, and whether files may be made (`size_bytes`).
        permissions: which files may be made, and whether targets that hold data may be written. Names that were not
            allowed for writing yet may be: the answer is about everything else.
    """
    usage = UsageSnapshot()
    with ExitStack() as stack:
        asking = _Asking(usage, job, permissions, stack)
        readable = [_look_up(asking, spec) for spec in job.targets]
        blocks = [pair for each in readable for pair in zip(each.nodes, each.sizes, strict=False) if pair[0].is_block]
        sampling = TargetSampling({found.status.st_rdev: (found, size_bytes) for found, size_bytes in blocks})
        stack.callback(sampling.close)
        answers = [_answer(asking, each, sampling) for each in readable]
        try:
            refuse_duplicates(usage, [each.nodes for each in readable if each.nodes])
        except (LunscopeError, OSError) as error:
            answers[0] = GuardAnswer(answers[0].name, answers[0].size_bytes, str(error), answers[0].writing)
        return tuple(answers)


def use_words(usage: UsageSnapshot, kernel_name: str) -> str:
    """Say what uses a block device or anything that shares its bytes, as in "is mounted on / (ext4)"; empty: nothing.

    Raises:
        OSError: mounts cannot be read.
    """
    number = parse_device_number(read_text(usage.roots.sysfs / "class" / "block" / kernel_name / "dev"))
    device = None if number is None else look_up(usage.roots.sysfs, number)
    use = None if device is None else block_use(usage, "", device)
    return "" if use is None else safe_text(use.text.strip())


def quick_snapshot(roots: Roots | None = None) -> UsageSnapshot:
    """Take a snapshot for lists: without a pass over all processes, so that open files of others are not in it."""
    return UsageSnapshot(roots, writers=Writers())


class _Asking(Struct, frozen=True):
    """What the questions about all targets of one job need."""

    usage: UsageSnapshot
    job: JobSpec
    permissions: Permissions
    stack: ExitStack

    def find(self, spec: TargetSpec) -> list[Found]:
        """Find every path of a target; none for a file that would be made.

        Raises:
            LunscopeError: there is none, and none would be made.
        """
        nodes = []
        for path in spec.nodes:
            found = find(path)
            if found is None:
                refuse_making(spec, path, self.job, self.permissions)
            else:
                self.stack.callback(found.close)
                nodes.append(found)
        if spec.paths:
            refuse_strangers(self.usage, nodes)
        return nodes


class _Readable(Struct, frozen=True):
    """A target that was looked up."""

    name: str
    nodes: list[Found]
    """Every path of it; none for a file that would be made."""
    sizes: list[int]
    trouble: str = ""
    """Why it cannot be read."""


def _look_up(asking: _Asking, spec: TargetSpec) -> _Readable:
    name, nodes = safe_text(format_target(spec)), list[Found]()
    if spec.path is None:
        return _Readable(name, [], [])
    try:
        nodes += asking.find(spec)
        sizes = [_size_when_readable(asking.usage, found) for found in nodes]
    except (LunscopeError, OSError) as error:
        return _Readable(name, nodes, [], _line(name, error))
    return _Readable(name, nodes, sizes)


def _answer(asking: _Asking, target: _Readable, sampling: TargetSampling) -> GuardAnswer:
    if target.trouble:
        return GuardAnswer(target.name, None, target.trouble, "it cannot be read")
    if not target.nodes:
        return GuardAnswer(target.name, asking.job.size_bytes, is_own=True)
    asked = [_write_answer(asking, found, sampling) for found in target.nodes]
    refusal = next((refusal for refusal, _ in asked if refusal), "")
    return GuardAnswer(target.name, min(target.sizes), "", refusal, holds=asked[0][1])


def _size_when_readable(usage: UsageSnapshot, found: Found) -> int:
    """Return the size of a target that can be read.

    Raises:
        LunscopeError: it is no storage, may not be read, or is empty.
    """
    refuse_strange_kinds(found, usage.filesystems)
    fd = reopen(found, os.O_RDONLY | os.O_NONBLOCK)
    try:
        size_bytes = blockio.size_bytes(fd) if found.is_block else os.fstat(fd).st_size
    finally:
        os.close(fd)
    if not size_bytes:
        raise UsageError(f"{safe_text(found.path)}: its size is 0: nothing to read or write there")
    return size_bytes


def _write_answer(asking: _Asking, found: Found, sampling: TargetSampling) -> tuple[str, str]:
    """Say why it may not be written, and what it holds as far as it was looked at."""
    permissions = replace(asking.permissions, allow_write=frozenset((found.path,)))
    holds: list[str] = []
    try:
        if not os.access(f"/proc/self/fd/{found.fd}", os.W_OK):
            raise no_right(found.path, "write")
        if found.is_block:
            _check_block(asking.usage, found, permissions, holds, sampling)
        else:
            _check_file(asking.usage, found, permissions, holds)
    except (LunscopeError, OSError) as error:
        return _line(found.path, error), "".join(holds)
    return "", "".join(holds)


def _check_block(
    usage: UsageSnapshot, found: Found, permissions: Permissions, holds: list[str], sampling: TargetSampling
) -> None:
    """Check as before a device is opened for writing, in the same order; adds to `holds` what it carries."""
    permission.refuse_used(usage, found.path, found.fd)
    number = found.status.st_rdev
    try:
        note_claim(number)
        # Held for so short a time that no other load, which checks claims several times, takes it for a use.
        os.close(reopen(found, os.O_RDONLY | os.O_EXCL | os.O_NONBLOCK))
    except BlockingIOError:
        raise permission.claimed(found, look_up(usage.roots.sysfs, number)) from None
    permission.refuse_claimed_elsewhere(usage, found.path, found.fd, {number})
    fd = reopen(found, os.O_RDONLY | os.O_NONBLOCK)
    try:
        content = sampling.of(number)
        holds.append(content.words)
        permission.refuse_device(usage, found, fd, permissions, lambda: content)
        refuse_unseen(usage, safe_text(found.path), number, permissions)
    finally:
        os.close(fd)


def _check_file(usage: UsageSnapshot, found: Found, permissions: Permissions, holds: list[str]) -> None:
    holds.append(permission.file_words(found))
    permission.refuse_used(usage, found.path, found.fd)
    permission.refuse_file(found, permissions)


def _line(name: str, error: Exception) -> str:
    if isinstance(error, OSError):
        return safe_text(f"{name}: {error.strerror or error}")
    return str(error)
