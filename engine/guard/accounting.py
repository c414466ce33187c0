"""Files of process accounting (acct(2)): the kernel writes to them itself, and nothing in /proc or /sys names them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress

from engine.guard.claims import below
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.sysblock import look_up
from engine.syscalls import statx


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
