"""What this process wrote itself and nobody since: a command may open it again without leave to destroy data.

A sweep opens its targets for each part that it measures, and a load is started again from the screen. A device is known
by its number, `diskseq` and size, and by the kernel's counters of its writes; a file by its inode and time of change.
What another process writes meanwhile changes them, unless it takes another path to the same bytes. Nothing of this
outlives the process.
"""

from __future__ import annotations

import os
import stat
import time

from engine.guard.finding import StorageKey, storage_key
from engine.hostfs.kernel_files import Roots, read_number, read_text
from engine.hostfs.sysblock import BlockDevice, disk_sequence, look_up

State = tuple[int | None, ...]

_SECTORS_WRITTEN, _IN_FLIGHT, _SECTORS_DISCARDED = 6, 8, 13
"""Columns of `stat` (Documentation/block/stat.rst). Sectors, as a flush counts as a write of none."""
_SETTLE_S, _ASK_AGAIN_S = 0.1, 0.005

_left: dict[StorageKey, State] = {}


def note_left(status: os.stat_result) -> None:
    """Note what is written no more by this process; everything that was written to it before was ours."""
    device = _device(status)
    if device is not None:
        _settle(device)
    state = _state(status, device)
    if state is not None:
        _left[storage_key(status)] = state


def writes_to(status: os.stat_result) -> State | None:
    """Return what changes with any write to a device; None where writes are not counted."""
    return _state(status, _device(status))


def is_as_left(status: os.stat_result) -> bool:
    """Whether this process wrote it and nothing seems to have done so since."""
    state = _state(status, _device(status))
    return state is not None and _left.get(storage_key(status)) == state


def _device(status: os.stat_result) -> BlockDevice | None:
    return look_up(Roots().sysfs, status.st_rdev) if stat.S_ISBLK(status.st_mode) else None


def _state(status: os.stat_result, device: BlockDevice | None) -> State | None:
    """Return what changes with another device or a write; None where writes are not counted."""
    if not stat.S_ISBLK(status.st_mode):
        return status.st_size, status.st_mtime_ns, status.st_ctime_ns
    if device is None or read_number(device.disk_folder / "queue" / "iostats") == 0:
        return None
    columns = _counters(device)
    if len(columns) <= _SECTORS_DISCARDED:
        return None
    counts = (int(columns[column]) for column in (_SECTORS_WRITTEN, _SECTORS_DISCARDED))
    return disk_sequence(device), device.start_bytes, device.end_bytes, *counts


def _counters(device: BlockDevice) -> list[str]:
    return (read_text(device.folder / "stat") or "").split()


def _settle(device: BlockDevice) -> None:
    """Wait a moment for the counters: the kernel completes an I/O before it counts it."""
    deadline_s = time.monotonic() + _SETTLE_S
    while time.monotonic() < deadline_s:
        columns = _counters(device)
        if len(columns) <= _IN_FLIGHT or columns[_IN_FLIGHT] == "0":
            return
        time.sleep(_ASK_AGAIN_S)
