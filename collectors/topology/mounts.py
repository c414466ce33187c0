"""Filesystems and swap on block devices."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from collectors.kernel.identity import storable_name
from collectors.topology.graph import Mount
from engine.kernel_names import unescape_octal
from engine.numbers import whole_number
from engine.text import safe_text

Numbers = Mapping[tuple[int, int], str]


def read_mounts(procfs: str, by_number: Numbers, by_name: Mapping[str, str]) -> tuple[Mount, ...]:
    """Mounts of the host and its swap areas, on the devices given, each point once.

    Args:
        procfs: the first process's mounts are the host's also when this runs in a container.
        by_number: keys of devices by major and minor.
        by_name: keys of devices by path below /dev, with dm names as /dev/mapper/NAME: what tells of filesystems whose
            number in mountinfo is not a device's (btrfs, overlay lower ones are not devices at all).
    """
    text = _read(procfs, "1/mountinfo") or _read(procfs, "self/mountinfo")
    mounts = dict.fromkeys((*_mounts(text, by_number, by_name), *_swaps(_read(procfs, "swaps"), by_name)))
    return tuple(mounts)


def _mounts(text: str, by_number: Numbers, by_name: Mapping[str, str]) -> Iterator[Mount]:
    """Lines of mountinfo (proc(5)): the fields after the separator are filesystem and source."""
    for line in text.splitlines():
        before, separator, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if not separator or len(fields) < 5 or len(rest) < 2:
            continue
        key = by_number.get(_number(fields[2])) or by_name.get(unescape_octal(rest[1]))
        if key:
            yield Mount(key, safe_text(unescape_octal(fields[4])), safe_text(rest[0]))


def _swaps(text: str, by_name: Mapping[str, str]) -> Iterator[Mount]:
    for line in text.splitlines()[1:]:
        key = by_name.get(unescape_octal(line.split(maxsplit=1)[0])) if line.strip() else None
        if key:
            yield Mount(key, "[swap]", "swap")


def _number(text: str) -> tuple[int, int]:
    major, _, minor = text.partition(":")
    numbers = whole_number(major), whole_number(minor)
    return (-1, -1) if numbers[0] is None or numbers[1] is None else (numbers[0], numbers[1])


def _read(procfs: str, name: str) -> str:
    try:
        return storable_name(Path(procfs, name).read_text("utf-8", "surrogateescape"))
    except OSError:
        return ""
