"""Badges: remarks that figures are less than they seem, in a word for screens and a line for summaries."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from msgspec import Struct

from engine.replacing import replace


class BadgeKind(StrEnum):
    """Kind of a badge; the value is the id in documents."""

    UNWRITTEN = "unwritten"
    """Never written, so that reads never reach a medium."""
    ZEROS = "zeros"
    """Zeros, which thin or compressing storage need not keep."""
    COMPRESSIBLE = "compressible"
    """Data that compressing storage keeps smaller."""
    PAGE_CACHE = "page_cache"
    """Data in memory, where buffered reads find it."""
    WRITE_CACHE = "write_cache"
    """Whether writes are acknowledged from a volatile cache."""
    DRIVER_BOUND = "driver_bound"
    """The generator of the load was the limit."""
    HOST_BUSY = "host_busy"
    """The host's processors were busy, or the load waited for them."""
    FEW_SAMPLES = "few_samples"
    """Too few I/Os for the percentiles."""
    SHORT = "short"
    """Measured for too short a time."""
    STEADY_STATE = "steady_state"
    """Whether a steady state was reached, by the rule of SNIA."""
    SLOWER = "slower"
    """The storage got slower over time."""


class Badge(Struct, frozen=True):
    """One thing to know before believing a figure."""

    kind: BadgeKind
    label: str
    """A few words, as `unwritten 75 %`."""
    text: str
    """A line that says what it means, without the target's name."""
    targets: tuple[str, ...] = ()
    """Targets that it is about; none is the whole run."""
    share: float | None = None
    """Share of what was sampled, 0 to 1."""

    @property
    def line(self) -> str:
        """The text with whom it is about in front."""
        if not self.targets:
            return self.text
        more = f" and {len(self.targets) - 1} more" if len(self.targets) > 1 else ""
        return f"{self.targets[0]}{more}: {self.text}"


def percent_text(share: float) -> str:
    """Write a share so that neither something becomes 0 nor not-all becomes 100."""
    percent = 100 * share
    if 0 < percent < 0.1:
        return "< 0.1"
    if 99.9 < percent < 100:
        return "> 99.9"
    return f"{percent:.1f}" if 0 < percent < 1 or 99 < percent < 100 else f"{percent:.0f}"


def gathered(badges: Iterable[Badge]) -> tuple[Badge, ...]:
    """Make one badge of those that say the same of several targets."""
    seen: dict[Badge, list[str]] = {}
    for badge in badges:
        seen.setdefault(replace(badge, targets=()), []).extend(badge.targets)
    return tuple(replace(badge, targets=tuple(dict.fromkeys(targets))) for badge, targets in seen.items())
