"""Findings about I/Os that the kernel cuts, because a device on their way takes no larger ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Sequence

from msgspec import Struct

from collectors.advice.finding import Confidence, Evidence, Finding, FindingKind, tune_command
from collectors.model import Device
from engine.text import safe_text

_LEAST_IOPS = 20.0
"""Requests per second: of fewer nothing is said."""
_CUT = 1.05
"""Requests per I/O: from here on more than one I/O in twenty is cut."""
_NEAR = 0.05
"""Share by which the size of a request may differ from the limit that made it, and bytes below from those above."""

Figures = Callable[[str, str], float]
"""One figure of a disk by key and field, NaN where it is not known."""


class _Cut(Struct, frozen=True):
    """What I/Os became."""

    per_s: float
    """Requests per second."""
    parts: float
    """Requests per I/O."""
    part_bytes: float
    """Mean size of a request."""
    source: str
    """How it was counted."""

    def is_made_by(self, device: Device) -> bool:
        """Whether requests are as large as max_sectors_kb admits; rests make the mean up to half smaller."""
        limit = device.max_sectors_kb
        return limit is not None and 0.5 < self.part_bytes / 1024 / limit <= 1 + _NEAR


def split_findings(device: Device, devices: Collection[Device], figures: Figures) -> Iterator[Finding]:
    """Find that I/Os of a device are cut; `devices` are those of the host.

    The kernel counts the cuts of devices with requests. Of others, as md and dm, the I/Os below are compared with those
    above, where nobody else sends any there and nothing is written more than once. Only what max_sectors_kb makes is
    said, requests about as large as that: by means, what segments and borders cut and a few large I/Os among small ones
    look alike.
    """
    if device.bio_based:
        yield from _cut_above(device, devices, figures)
        return
    iops, parts = figures(device.key, "iops"), figures(device.key, "parts_per_io")
    if not parts >= _CUT or not iops >= _LEAST_IOPS:
        return
    cut = _Cut(iops, parts, figures(device.key, "bytes_per_s") / iops, "exact")
    if cut.is_made_by(device):
        yield _finding(device, cut, (device,))


def _cut_above(device: Device, devices: Collection[Device], figures: Figures) -> Iterator[Finding]:
    """Compare a device without requests with those it is built on."""
    iops, parts = figures(device.key, "iops"), figures(device.key, "ios_below_ratio")
    if (
        not parts >= _CUT
        or not iops * parts >= _LEAST_IOPS
        or abs(figures(device.key, "bytes_below_ratio") - 1) > _NEAR
    ):
        return
    cut = _Cut(iops * parts, parts, figures(device.key, "bytes_per_s") / (iops * parts), "kernel")
    if cut.is_made_by(device):
        members = [each for each in devices if each.name in device.slaves]
        smallest = [each for each in members if each.max_sectors_kb == device.max_sectors_kb]
        yield _finding(device, cut, (device, *smallest))


def _finding(device: Device, cut: _Cut, limiting: Sequence[Device]) -> Finding:
    """Name the limit and its owners: the device, and the members whose limit it has taken over."""
    name, raised_kb = safe_text(device.name), _raised_kb(cut, limiting)
    owners = " and ".join(safe_text(each.name) for each in limiting[1:3]) or name
    raised = f"raise it to {raised_kb}, or " if raised_kb else ""
    scopes = [safe_text(each.name) for each in reversed(limiting)]
    return Finding(
        FindingKind.SPLIT,
        Confidence.CERTAIN if cut.source == "exact" else Confidence.LIKELY,
        f"I/Os of {_size(cut.parts * cut.part_bytes)} become {cut.parts:.2f} requests of {_size(cut.part_bytes)} at "
        f"{name}, by max_sectors_kb of {owners}: {raised}use smaller I/Os",
        (
            Evidence("requests per I/O", cut.parts, "", cut.source),
            Evidence("I/Os", cut.per_s / cut.parts, "/s", cut.source),
            Evidence("max_sectors_kb", device.max_sectors_kb or 0, "", "topology"),
        ),
        (name,),
        command=tune_command(f"max_sectors_kb={raised_kb}", scopes) if raised_kb else "",
    )


def _raised_kb(cut: _Cut, limiting: Sequence[Device]) -> int:
    """Return the max_sectors_kb under which I/Os stay whole, or the most that may be set; 0 where none is larger.

    Sizes are known as means: where they are mixed, the power of two above holds the larger ones, too.
    """
    wanted_kb = 1 << math.ceil(math.log2(cut.parts * cut.part_bytes / 1024))
    raised_kb = min(wanted_kb, *(each.max_hw_sectors_kb or 0 for each in limiting))
    return raised_kb if raised_kb > (limiting[0].max_sectors_kb or 0) else 0


def _size(size_bytes: float) -> str:
    return f"{size_bytes / 1024:.0f} KiB"
