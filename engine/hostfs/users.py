"""Who uses which devices and files, in words, to be asked about one of them."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from itertools import chain
from pathlib import Path

from msgspec import Struct, field

from engine.hostfs.kernel_files import read_text
from engine.hostfs.processes import Protected
from engine.hostfs.stored_file import IsOverlay, StoredFile, from_statx, same_bytes
from engine.syscalls import Statx

_NO_STORAGE = frozenset((1, 4, 5, 10, 13, 29, 116, 226, *range(136, 144)))
"""Majors of the character devices that most processes have open: memory, terminals, misc, input, sound, graphics."""


def process_words(folder: str) -> str:
    """Name a process by its folder in /proc: "qemu (pid 812)"."""
    return f"{read_text(Path(folder, 'comm')) or '?'} (pid {folder.rpartition('/')[2]})"


class _User(Struct, frozen=True):
    how: str
    process: str = ""
    """Folder in /proc; its name is read when a message needs it."""
    protected: Protected | None = None

    @property
    def words(self) -> str:
        return f"{self.how} {process_words(self.process)}" if self.process else self.how

    @property
    def is_real(self) -> bool:
        return self.protected is None or self.protected.may_be_written()


class Users(Struct):
    """Words such as "is open for writing by qemu (pid 812)", for each device and file."""

    _devices: dict[int, list[_User]] = field(default_factory=dict)
    _characters: dict[int, list[_User]] = field(default_factory=dict)
    _files: dict[tuple[int, int], list[_User]] = field(default_factory=dict)
    _by_birth: dict[int | None, list[StoredFile]] = field(default_factory=dict)

    def add(self, status: Statx, path: str, how: str, process: str = "", protected: Protected | None = None) -> None:
        """Note a use of what statx(2) says of a path, such as "is open for writing by"; nothing if it is no storage."""
        user = _User(how, process, protected)
        if stat.S_ISBLK(status.mode):
            self._devices.setdefault(status.rdev, []).append(user)
        elif stat.S_ISCHR(status.mode):
            if os.major(status.rdev) not in _NO_STORAGE:
                self._characters.setdefault(status.rdev, []).append(user)
        elif stat.S_ISREG(status.mode):
            file = from_statx(status, path)
            if (file.device, file.inode) not in self._files:
                self._by_birth.setdefault(file.birth_ns, []).append(file)
            self._files.setdefault((file.device, file.inode), []).append(user)

    def of_device(self, number: int) -> str | None:
        """Say what uses a device; None if nothing does."""
        return _first_real(self._devices.get(number, []))

    @property
    def has_character_devices(self) -> bool:
        """Whether any is used that may take commands for a disk."""
        return bool(self._characters)

    def of_character_device(self, number: int) -> str | None:
        """Say what uses a character device; None if nothing does."""
        return _first_real(self._characters.get(number, []))

    def of_file(self, file: StoredFile, is_overlay: IsOverlay) -> str | None:
        """Say what uses a file, by whatever overlay; None if nothing is known to."""
        return next((words for is_same, words in self._about(file, is_overlay) if is_same), None)

    def perhaps_of_file(self, file: StoredFile, is_overlay: IsOverlay) -> Iterator[str]:
        """Say what uses a file that may be the same through an overlay, where that cannot be found out."""
        return (words for is_same, words in self._about(file, is_overlay) if is_same is None)

    def _about(self, file: StoredFile, is_overlay: IsOverlay) -> Iterator[tuple[bool | None, str]]:
        if words := _first_real(self._files.get((file.device, file.inode), [])):
            yield True, words
        # All of these have attributes, so that those made at another time are other files.
        known = self._by_birth.get(file.birth_ns, []) if file.path else chain.from_iterable(self._by_birth.values())
        for other in known:
            is_same = same_bytes(file, other, is_overlay)
            if is_same is not False and (words := _first_real(self._files[other.device, other.inode])):
                yield is_same, words


def _first_real(users: list[_User]) -> str | None:
    return next((user.words for user in users if user.is_real), None)
