"""What the host swaps to, and on which disks that is."""

from __future__ import annotations

from collections.abc import Iterator

from msgspec import Struct

from engine.hostfs.kernel_files import read_text, unescape_octal
from engine.hostfs.storage import path_storage_numbers
from engine.text import whole_number


class SwapArea(Struct, frozen=True):
    """One device or file in use as swap."""

    name: str
    used_bytes: int
    numbers: tuple[int, ...]
    """Numbers of the devices that it is or is stored on; none where its path leads to nothing here."""


def read_swap_areas(procfs: str = "/proc") -> Iterator[SwapArea]:
    """Yield the areas of /proc/swaps (proc(5)), whose paths are of this namespace."""
    for line in (read_text(f"{procfs}/swaps") or "").splitlines()[1:]:
        name, _, _, used_kib, *_ = (*line.split(), "", "", "")
        path = unescape_octal(name)
        yield SwapArea(path, (whole_number(used_kib) or 0) << 10, path_storage_numbers(path))
