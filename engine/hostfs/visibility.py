"""Whether every process of the host can be seen: one that cannot may write to a target unnoticed."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from engine.hostfs.mounts import MountEntry
from engine.hostfs.processes import descriptors_in_flight
from engine.hostfs.roots import Roots
from engine.hostfs.sysblock import read_text
from engine.hostfs.writers import Writers

_FIRST_PID_NAMESPACE = 0xEFFFFFFC
"""PROC_PID_INIT_INO in linux/proc_ns.h."""
_CAP_SYS_PTRACE = 19


def writer_notices(roots: Roots, mounts: Sequence[MountEntry], writers: Writers) -> tuple[str, ...]:
    """Say why writers may go unseen; for targets that are to be written."""
    reasons = [*_reasons(roots, mounts, writers), *_in_flight(roots)]
    if not reasons:
        return ()
    return (f"not every process that may write to it is visible ({'; '.join(reasons)}): make sure that none does",)


def _reasons(roots: Roots, mounts: Sequence[MountEntry], writers: Writers) -> Iterator[str]:
    procfs = roots.procfs
    try:
        if (procfs / "self/ns/pid").stat().st_ino != _FIRST_PID_NAMESPACE:
            yield "this is a pid namespace of its own: run on the host"
    except OSError:
        yield "/proc shows other processes than ours: mount the /proc of this namespace"
    if _hides_processes(mounts) and not _may_see_all(procfs.joinpath("self/status").read_text()):
        yield "/proc is mounted with hidepid: run as root"
    if writers.unreadable:
        yield f"{writers.unreadable} processes belong to others: run as root"


def _hides_processes(mounts: Sequence[MountEntry]) -> bool:
    options = [mount.options for mount in mounts if mount.point == "/proc" and not mount.namespace]
    return any(
        option.startswith("hidepid=") and option not in ("hidepid=0", "hidepid=off")
        for text in options
        for option in text.split(",")
    )


def _may_see_all(status: str) -> bool:
    effective = next((line.split()[1] for line in status.splitlines() if line.startswith("CapEff:")), "0")
    return bool(int(effective, 16) >> _CAP_SYS_PTRACE & 1)


def _in_flight(roots: Roots) -> Iterator[str]:
    for name in os.listdir(roots.procfs):  # noqa: PTH208 - as in kernel_files
        if not name.isdigit():
            continue
        try:
            count = descriptors_in_flight(f"{roots.procfs}/{name}")
        except PermissionError:
            continue
        if count:
            process = f"{read_text(roots.procfs / name / 'comm') or '?'} (pid {name})"
            yield f"{count} descriptors are on their way to {process} in a unix socket"
