"""May this be written? The rules, in the order in which they refuse.

1. The path must be in `allow_write` exactly as the target was given; nothing is normalised, so that what was typed
   twice is what is meant.
2. Whatever the flags: nothing else may use it (engine/guard/usage.py).
3. Without `destroy_data`: a device must be blank (engine/guard/content.py), and a file must not exist yet. Content of a
   device that nobody knows, and an existing file, empty or not, with one name or several hard links, count as valuable
   until the operator says otherwise; what this very process left there does not (engine/guard/own_writes.py).
"""

from __future__ import annotations

import os
import stat
import time
from collections.abc import Callable, Collection, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from engine.errors import RefusedError
from engine.guard.claims import Ask, Relative, below, claimed_relative, node_of, probes_of, stays_claimed
from engine.guard.content import Content, content_of
from engine.guard.finding import READ_ONLY, Found, reopen
from engine.guard.own_writes import is_as_left
from engine.guard.usage import Use, block_use, claimed_use, file_use
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs import blockio
from engine.hostfs.kernel_files import device_text
from engine.hostfs.stored_file import stored_file
from engine.hostfs.sysblock import BlockDevice, look_up, title
from engine.hostfs.writers import has_unseen_writer
from engine.job.sizes import human_size
from engine.job.spec import Permissions
from engine.syscalls import statx
from engine.text import safe_text

_RELEASE_S, _ASK_AGAIN_S = 1.0, 0.01


def refuse_unpermitted(path: str, permissions: Permissions) -> None:
    """Refuse a write that was not allowed.

    Raises:
        RefusedError: names the flag, and what was allowed instead.
    """
    if path in permissions.allow_write:
        return
    others = ", ".join(map(safe_text, sorted(permissions.allow_write)))
    instead = f" (it was given for {others}, which is not exactly this name)" if others else ""
    raise RefusedError(
        f"{safe_text(path)}: writing is not allowed: add --allow-write {safe_text(path)} to allow it{instead}, "
        "or read only (--read-pct 100)"
    )


def subject(name: str, node: str) -> str:
    """Name a device for a sentence: as it was given, and its node if that is another name."""
    return safe_text(name) if name == node else f"{safe_text(name)} ({node})"


def _block_finding(usage: UsageSnapshot, name: str, number: int) -> Use | None:
    device = look_up(usage.roots.sysfs, number)
    if device is None:
        text = f"{safe_text(name)}: sysfs does not show device {device_text(number)}, so its users are unknown"
        return Use(text, "run where /sys is mounted")
    return block_use(usage, subject(name, device.node), device)


def _file_finding(usage: UsageSnapshot, name: str, fd: int) -> Use | None:
    file = stored_file(fd)
    ask: Ask = partial(stays_claimed, devices=usage.roots.devices)
    use = file_use(usage, file) or claimed_use(usage, file, ask)
    return Use(f"{safe_text(name)} {use.text}", use.fix) if use else None


def refuse_used(usage: UsageSnapshot, name: str, fd: int) -> None:
    """Refuse what anything else uses, by the open descriptor.

    Raises:
        RefusedError: names the use and the fix, or says that the host cannot be checked.
    """
    status = os.fstat(fd)
    try:
        if stat.S_ISBLK(status.st_mode):
            use = _block_finding(usage, name, status.st_rdev)
        else:
            use = _file_finding(usage, name, fd)
    except OSError as error:
        raise RefusedError(
            f"{safe_text(name)}: cannot see what is mounted ({error}): nothing is written blindly: mount /proc"
        ) from None
    if use:
        raise RefusedError(f"{safe_text(use.text)}: never written to: {use.fix}")


def refuse_claimed_elsewhere(usage: UsageSnapshot, name: str, fd: int, held: Collection[int]) -> None:
    """Refuse a device that we hold by O_EXCL while another device with the same bytes is claimed.

    `held` is the numbers of all devices this job has claimed. Files are not concerned: loop devices over them are
    refused as such.

    Raises:
        RefusedError: names the device that is claimed, or the one that cannot be checked.
    """
    status = os.fstat(fd)
    device = look_up(usage.roots.sysfs, status.st_rdev) if stat.S_ISBLK(status.st_mode) else None
    if device is None:
        return
    ask: Ask = partial(stays_claimed, devices=usage.roots.devices)
    for probe in probes_of(usage, device, held):
        try:
            relative = claimed_relative(probe, held, ask)
        except OSError as error:
            raise cannot_ask(subject(name, device.node), probe.asked[0], error) from None
        if relative:
            raise claimed_relative_refusal(subject(name, device.node), relative)


def cannot_ask(shown: str, device: BlockDevice, error: OSError) -> RefusedError:
    """Build the refusal for a device with an unknown claim."""
    return RefusedError(
        f"{shown}: the kernel cannot be asked whether {device.node}, which shares its bytes, is in use "
        f"({error.strerror}): never written to: run as root where {node_of(device, Path('/dev'))} is there"
    )


def claimed_relative_refusal(shown: str, relative: Relative) -> RefusedError:
    """Build the refusal for a claim of a device that shares the target's bytes."""
    device = safe_text(title(relative.device))
    return RefusedError(
        f"{shown} is in use: {relative.relation} {device} is claimed by the kernel (O_EXCL: busy): mounted where it "
        "cannot be seen, or held by another program or volume: never written to: release it first"
    )


def _refuse_hidden_writer(found: Found) -> None:
    """Refuse a file that something has open for writing which the process list does not show.

    It is asked again for a moment: the kernel releases the files of an io_uring after the process that used them has
    closed it, or ended (io_ring_exit_work in io_uring/io_uring.c), as that of the load before this one.

    Raises:
        RefusedError: names the file.
    """
    fd = reopen(found, os.O_RDONLY)
    deadline_s = time.monotonic() + _RELEASE_S
    try:
        while has_unseen_writer(fd):
            if time.monotonic() < deadline_s:
                time.sleep(_ASK_AGAIN_S)
                continue
            raise RefusedError(
                f"{safe_text(found.path)} is open for writing elsewhere (another container, a kernel service): "
                "never written to: close it there first"
            )
    finally:
        os.close(fd)


def claimed(found: Found, device: BlockDevice | None) -> RefusedError:
    """Build the refusal for a device the kernel did not let us claim (O_EXCL, EBUSY), with what it carries."""
    name = subject(found.path, device.node) if device else safe_text(found.path)
    content = content_of(found, device.end_bytes - device.start_bytes) if device else Content()
    carries = f"; it {content.words}" if content.formats else ""
    return RefusedError(
        f"{name} is claimed by the kernel (O_EXCL: busy): mounted where we cannot see it, or a member of a running "
        f"volume or pool{carries}: never written to: release it first"
    )


def refuse_device(
    usage: UsageSnapshot, found: Found, fd: int, permissions: Permissions, see: Callable[[], Content]
) -> None:
    """Make the checks of a device that nothing uses, in their order, for a load and for those who only ask.

    `see` says what it holds, and is asked if that matters.

    Raises:
        LunscopeError: of the first check that fails.
    """
    _refuse_read_only(found.path, fd)
    _refuse_accounted(usage, found)
    if not permissions.destroy_data:
        _refuse_data(found, see())


def refuse_file(found: Found, permissions: Permissions) -> None:
    """Make the checks of an existing file that nothing is known to use, in their order, for both as well.

    Raises:
        RefusedError: of the first check that fails.
    """
    _refuse_hidden_writer(found)
    _refuse_existing_file(found, permissions)


def _refuse_read_only(name: str, fd: int) -> None:
    """Refuse a device that takes no writes, before a run of nothing but errors.

    Raises:
        LunscopeError: says how to change that.
    """
    if blockio.is_read_only(fd):
        raise RefusedError(f"{safe_text(name)}: {READ_ONLY}: make it writable (blockdev --setrw), or read only")


def _refuse_accounted(usage: UsageSnapshot, found: Found) -> None:
    """Refuse a device on a file to which the kernel appends what it notes of processes.

    Raises:
        RefusedError: names the file.
    """
    if file := accounted_file(usage, found.status.st_rdev):
        raise RefusedError(
            f"{safe_text(found.path)} is in use: its backing file {safe_text(file)} grows whenever a process ends, as "
            "that of process accounting does: never written to: run accton off first"
        )


def _refuse_data(found: Found, content: Content) -> None:
    """Refuse a device that is not known to be blank, unless this process itself wrote to it.

    Raises:
        RefusedError: names what it carries, or where data was found.
    """
    if content.is_blank or (not content.formats and is_as_left(found.status)):
        return
    earlier = "" if content.formats or content.unseen else "; what an earlier load wrote counts, too"
    raise RefusedError(f"{safe_text(found.path)} {content.words}{earlier}: add --destroy-data if all of it may be lost")


def _refuse_existing_file(found: Found, permissions: Permissions) -> None:
    """Refuse to write into a file that existed before, unless its data may be destroyed.

    Raises:
        RefusedError: says how large it is and under how many names it is known.
    """
    if permissions.destroy_data or is_as_left(os.fstat(found.fd)):
        return
    raise RefusedError(
        f"{safe_text(found.path)} {file_words(found)}: add --destroy-data if all of it may be lost, or give a new name "
        "and --size"
    )


def file_words(found: Found) -> str:
    """Say how large an existing file is, and under how many names it is known, after its name."""
    status = found.status
    names = f", known under {status.st_nlink} names (hard links)" if status.st_nlink > 1 else ""
    return f"is an existing file of {human_size(status.st_size)}{names}"


def accounted_file(usage: UsageSnapshot, number: int) -> str | None:
    """Name a file behind a device that grows when a process ends, as that of accounting does; None if there is none.

    It sees files that are known by a path, and accounting of our own pid namespace and those above it.
    """
    files = dict(_files_below(usage, number))
    before = _sizes(files)
    if not before:
        return None
    with suppress(OSError):
        # A process that ends at once, since no folder can be executed.
        os.posix_spawn("/", ["/"], {})
    after = _sizes(files)
    return next((files[path] for path in before if after.get(path, 0) > before[path]), None)


def _files_below(usage: UsageSnapshot, number: int) -> Iterator[tuple[str, str]]:
    """List the files a device is stored on: how they are reached, and what they are called."""
    device = look_up(usage.roots.sysfs, number)
    for each in () if device is None else (device, *below(usage, device)):
        loop = usage.loop_at(each)
        yield from ((file.path, loop.backing_path) for file in loop.files if file.path) if loop else ()


def _sizes(paths: dict[str, str]) -> dict[str, int]:
    found = {}
    for path in paths:
        with suppress(OSError):
            found[path] = statx(path).size_bytes
    return found
