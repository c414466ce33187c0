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
_CLEARLY_CUT = 1.25
"""Likewise, where the limit cannot be named: more than one in four, as write-back has large I/Os now and then."""
_NEAR = 0.05
"""Share by which the size of a request may differ from the limit that made it, and bytes below from those above."""
_COUNTED = 0.01
"""Share by which requests and I/Os may differ, as those are counted when they end and these when they begin."""
_PAGE_KB = 4
"""Memory that is not contiguous has a segment for each page."""

Figures = Callable[[str, str], float]
"""One figure of a disk by key and field, NaN where it is not known."""


class _Cut(Struct, frozen=True):
    """What I/Os became."""

    per_s: float
    """Requests per second."""
    parts: float
    """Requests per I/O."""
    part_kb: float
    """Mean size of a request, in units of 1024 bytes."""
    source: str
    """How it was counted."""

    @property
    def io_kb(self) -> float:
        """Mean size of an I/O."""
        return self.parts * self.part_kb

    def is_made_by(self, limit_kb: float | None) -> bool:
        """Whether requests are as large as a limit admits; rests make the mean up to half smaller."""
        return limit_kb is not None and 0.5 < self.part_kb / limit_kb <= 1 + _NEAR

    def is_made_by_chunks(self, chunk_kb: float | None) -> bool:
        """Whether I/Os cross borders of chunks; parts that follow each other on a member may be merged again."""
        return chunk_kb is not None and chunk_kb * (1 + _NEAR) < self.io_kb and self.part_kb > 0.5 * chunk_kb


def split_findings(device: Device, devices: Collection[Device], figures: Figures) -> Iterator[Finding]:
    """Find that I/Os of a device are cut; `devices` are those of the host.

    The kernel counts the cuts of devices with requests. Of others, as md and dm, the I/Os below are compared with those
    above, where nobody else sends any there and nothing is written more than once. A limit is named if requests are
    about as large as that: by means, what borders of memory cut and a few large I/Os among small ones look alike.
    """
    if device.bio_based:
        yield from _cut_above(device, devices, figures)
        return
    iops, parts = figures(device.key, "iops"), figures(device.key, "parts_per_io")
    if not parts >= _CUT or not iops >= _LEAST_IOPS:
        return
    cut = _Cut(iops, parts, figures(device.key, "bytes_per_s") / iops / 1024, "exact")
    found = _named(device, cut, (device,))
    if found is not None or parts >= _CLEARLY_CUT:
        yield found or _one_of(device, cut)


def _cut_above(device: Device, devices: Collection[Device], figures: Figures) -> Iterator[Finding]:
    """Compare a device without requests with those it is built on."""
    iops, parts = figures(device.key, "iops"), figures(device.key, "ios_below_ratio")
    if (
        not parts >= _CUT
        or not iops * parts >= _LEAST_IOPS
        or abs(figures(device.key, "bytes_below_ratio") - 1) > _NEAR
    ):
        return
    cut = _Cut(iops * parts, parts, figures(device.key, "bytes_per_s") / (iops * parts) / 1024, "kernel")
    members = [each for each in devices if each.name in device.slaves]
    smallest = [each for each in members if each.max_sectors_kb == device.max_sectors_kb]
    if (found := _named(device, cut, (device, *smallest))) is not None:
        yield found


def _named(device: Device, cut: _Cut, limiting: Sequence[Device]) -> Finding | None:
    """Name the limit that made the cuts; `limiting` are the device and the members whose max_sectors_kb it has."""
    largest_kb, chunk_kb = device.max_sectors_kb, device.chunk_kb
    if cut.is_made_by_chunks(chunk_kb) and (largest_kb is None or (chunk_kb or 0) <= largest_kb):
        whose = f"the chunk of {safe_text(device.name)}, {chunk_kb} KiB: its borders cut; use I/Os within one, aligned"
        return _finding(device, cut, whose, ("chunk", chunk_kb or 0))
    if cut.is_made_by(largest_kb):
        return _by_max_sectors(device, cut, limiting)
    if device.max_segments is not None and cut.is_made_by(device.max_segments * _PAGE_KB):
        whose = (
            f"max_segments of {safe_text(device.name)}, {device.max_segments} pieces of memory: use buffers in huge "
            "pages, or smaller I/Os"
        )
        return _finding(device, cut, whose, ("max_segments", device.max_segments))
    return None


def _by_max_sectors(device: Device, cut: _Cut, limiting: Sequence[Device]) -> Finding:
    """Name the owners of the limit: the device, and the members whose limit it has taken over."""
    name, raised_kb = safe_text(device.name), _raised_kb(cut, limiting)
    owners = " and ".join(safe_text(each.name) for each in limiting[1:3]) or name
    raised = f"raise it to {raised_kb}, or " if raised_kb else ""
    scopes = [safe_text(each.name) for each in reversed(limiting)]
    return _finding(
        device,
        cut,
        f"max_sectors_kb of {owners}: {raised}use smaller I/Os",
        ("max_sectors_kb", device.max_sectors_kb or 0),
        command=tune_command(f"max_sectors_kb={raised_kb}", scopes) if raised_kb else "",
    )


def _one_of(device: Device, cut: _Cut) -> Finding:
    """Say which limits the device has, where the sizes of the parts do not tell which of them cuts."""
    limits = [
        f"{name} ({limit})"
        for name, limit in (
            ("max_sectors_kb", device.max_sectors_kb),
            ("max_segments", device.max_segments),
            ("chunk in KiB", device.chunk_kb),
            ("virt_boundary_mask", device.virt_boundary_mask),
        )
        if limit
    ]
    known = f"one of {', '.join(limits)}" if len(limits) > 1 else "".join(limits) or "a limit that is not known"
    whose = f"{known}, which the mean size of the parts does not tell: use smaller I/Os"
    return _finding(device, cut, whose, confidence=Confidence.HINT)


def _finding(
    device: Device,
    cut: _Cut,
    whose: str,
    *limits: tuple[str, float],
    command: str = "",
    confidence: Confidence | None = None,
) -> Finding:
    sure = Confidence.CERTAIN if cut.source == "exact" else Confidence.LIKELY
    return Finding(
        FindingKind.SPLIT,
        sure if confidence is None else confidence,
        f"I/Os of {cut.io_kb:.0f} KiB become {cut.parts:.2f} requests of {cut.part_kb:.0f} KiB at "
        f"{safe_text(device.name)}, by {whose}",
        (
            Evidence("requests per I/O", cut.parts, "", cut.source),
            Evidence("I/Os", cut.per_s / cut.parts, "/s", cut.source),
            *(Evidence(name, limit, "", "topology") for name, limit in limits),
        ),
        (safe_text(device.name),),
        command=command,
    )


def _raised_kb(cut: _Cut, limiting: Sequence[Device]) -> int:
    """Return the max_sectors_kb under which I/Os stay whole, or the most that may be set; 0 where none is larger.

    Sizes are known as means: where they are mixed, the power of two above holds the larger ones, too.
    """
    wanted_kb = 1 << math.ceil(math.log2(cut.io_kb / (1 + _COUNTED)))
    raised_kb = min(wanted_kb, *(each.max_hw_sectors_kb or 0 for each in limiting))
    return raised_kb if raised_kb > (limiting[0].max_sectors_kb or 0) else 0
