"""Names from devices, processes and files, safe to print, in an exact number of cells; labels of disks and targets."""

from __future__ import annotations

import functools
import unicodedata
from collections.abc import Mapping

from rich.cells import cell_len, set_cell_size

from collectors.kernel.device_ids import both_names
from collectors.model import FrameTable, Topology
from engine.text import safe_text


@functools.lru_cache(maxsize=4)
def disk_labels(topology: Topology) -> Mapping[str, str]:
    """Name by key: the kernel name, then the alias of the device; for a file its last path component."""
    return {
        key: both_names(device)
        for key, device in topology.devices.items()
        if device.friendly_name and device.friendly_name != device.name
    }


@functools.lru_cache(maxsize=2)
def labels_with_badges(topology: Topology) -> Mapping[str, str]:
    """Labels of disks, and a badge on those that the kernel does not count: their figures stand still."""
    labels = disk_labels(topology)
    uncounted = (topology.devices[key] for key in topology.uncounted)
    return {**labels, **{one.key: f"{labels.get(one.key) or safe_text(one.name)} [iostats off]" for one in uncounted}}


@functools.lru_cache(maxsize=2)
def short_labels(topology: Topology) -> Mapping[str, str]:
    """Likewise, short: without the kernel name of a map or volume (dm-7), which says little."""
    devices = topology.devices
    return {
        key: devices[key].friendly_name if devices[key].kind == "dm" else label
        for key, label in disk_labels(topology).items()
    }


def target_labels(targets: FrameTable | None) -> Mapping[str, str]:
    """Label of a target by key, without the remark in brackets that scratch files have."""
    if targets is None:
        return {}
    return {key: name.partition(" (")[0] for key, name in zip(targets.rows.keys, targets.rows.names, strict=True)}


@functools.lru_cache(maxsize=4)
def luns_of_paths(topology: Topology) -> Mapping[str, str]:
    """Name of the LUN by key of a path, if the LUN has several."""
    luns = {lun.key: lun.name for lun in topology.graph.luns if lun.multipath}
    return {path.key: luns[path.lun] for path in topology.graph.paths if path.lun in luns}


_STACKING = frozenset({"Mn", "Me"})
_LEAST_MIDDLE = 8
"""Width below which cutting in the middle is useless."""


@functools.lru_cache(maxsize=65_536)
def cell_text(text: str) -> str:
    """Make a name safe to print, with every character in its own cells.

    Marks that do not compose with the letter before them become "?": stacked, they spill over other lines.
    """
    if text.isascii() and text.isprintable():
        return text
    composed = unicodedata.normalize("NFC", safe_text(text))
    return "".join("?" if unicodedata.category(char) in _STACKING else char for char in composed)


def fit(text: str, width: int, ellipsis: str = "…") -> str:
    """Cut or pad a name on the right to exactly `width` cells; `ellipsis` (one cell) shows a cut."""
    text = cell_text(text)
    if text.isascii():
        if len(text) <= width:
            return text.ljust(width)
        return text[: width - 1] + ellipsis if width > 1 else text[:width]
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, width - 1) + ellipsis if width > 1 else set_cell_size(text, width)


def fit_name(text: str, width: int, ellipsis: str = "…") -> str:
    """Like `fit`, but cut in the middle: names of ports, targets and volumes differ at their ends."""
    text = cell_text(text)
    if width_of(text) <= width or width < _LEAST_MIDDLE:
        return fit(text, width, ellipsis)
    end = ""
    for char in reversed(text):
        if width_of(char + end) > width // 3:
            break
        end = char + end
    return set_cell_size(text, width - 1 - width_of(end)) + ellipsis + end


def width_of(text: str) -> int:
    """Width of a name in cells."""
    text = cell_text(text)
    return len(text) if text.isascii() else cell_len(text)
