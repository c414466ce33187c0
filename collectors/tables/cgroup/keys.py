"""Names and keys of the rows of control groups."""

from __future__ import annotations


def row_key(number: int, disk: str, path: str) -> str:
    """Key of a group's row: the number of the group, the key of the disk, the path of the group."""
    return f"{number} {disk} {path}"


def parts_of(key: str) -> tuple[str, str]:
    """Return the disk's key and the group's path from a key made by `row_key`."""
    _, _, rest = key.partition(" ")
    disk, _, path = rest.partition(" ")
    return disk, path


def row_name(path: str, disk: str) -> str:
    """Name of a group's row."""
    return f"{path} {disk}"


def short_name(name: str, width: int) -> str:
    """Shorten a name from the front: the last folders of a long path distinguish groups."""
    return name if len(name) <= width else f"+{name[1 - width :]}"
