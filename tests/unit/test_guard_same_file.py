"""Which files are the same bytes, by device, inode and what an overlay takes over from the file in its layer."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from engine.hostfs.stored_file import StoredFile, from_statx, same_bytes
from engine.replacing import replace
from engine.syscalls import statx

OVERLAY, OTHER = 0x40, 0x801
NEW = 1_700_000_000_123_456_789


def is_overlay(file: StoredFile) -> bool | None:
    return {OVERLAY: True, 0x41: True, 0x99: None}.get(file.device, False)


def at(
    device: int, inode: int, birth_ns: int | None = NEW, size: int = 4096, path: str = "/proc/none/fd/1"
) -> StoredFile:
    return StoredFile(device, inode, size, birth_ns, path)


def unnamed(device: int, inode: int, size: int | None = 4096) -> StoredFile:
    return StoredFile(device, inode, size)


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        (at(OTHER, 5), at(OTHER, 5), True),
        (at(OTHER, 5), at(OTHER, 6), False),
        (at(OTHER, 5), at(0x802, 5), False),
        (at(OVERLAY, 5), at(OTHER, 5), True),
        (at(OVERLAY, 5 | 1 << 62), at(OTHER, 5), True),
        (at(OVERLAY, 5), at(OTHER, 5, NEW + 1), False),
        (at(OVERLAY, 5), at(OTHER, 5, None), False),
        (at(OVERLAY, 5, None), at(OTHER, 5, None), True),
        (at(OVERLAY, 5), at(0x41, 5), True),
        (at(OVERLAY, 5), at(0x41, 7), True),
        (at(0x99, 5), at(OTHER, 5), True),
        (unnamed(OVERLAY, 5), at(OTHER, 5), True),
        (unnamed(OVERLAY, 5), unnamed(OTHER, 6), None),
        (unnamed(OVERLAY, 5), unnamed(OTHER, 6, 8192), False),
        (unnamed(OVERLAY, 5, None), unnamed(OTHER, 6), None),
        (unnamed(OVERLAY, 5, 4096 + 511), unnamed(OTHER, 6), None),
        (unnamed(0x802, 5), unnamed(OTHER, 5), False),
        (replace(at(OVERLAY, 5), is_metadata=True), at(OTHER, 6, NEW + 1), None),
        (replace(at(OVERLAY, 5), is_metadata=True), unnamed(OTHER, 6, 8192), False),
    ],
)
def test_same_bytes(first: StoredFile, second: StoredFile, same: bool | None) -> None:
    assert same_bytes(first, second, is_overlay) is same
    assert same_bytes(second, first, is_overlay) is same


@pytest.mark.skipif(os.geteuid() != 0, reason="not root: attributes of overlays are not seen")
def test_a_file_that_was_copied_up_has_another_number_on_the_overlay(tmp_path: Path) -> None:
    path = tmp_path / "image"
    path.write_bytes(b"x")
    direct = from_statx(statx(str(path)), str(path))
    above = at(OVERLAY, direct.inode + 1, direct.birth_ns)
    assert same_bytes(direct, above, lambda file: file.device == OVERLAY) is False
    try:
        os.setxattr(path, "trusted.overlay.origin", b"x")
    except OSError as error:
        pytest.skip(f"no such attributes here: {error.strerror}")
    assert same_bytes(direct, above, lambda file: file.device == OVERLAY) is True
