"""Badges of what was found on targets when they were opened, and of the data that reads return."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from engine.guard import OpenTarget
from engine.guard.facts import TargetFacts
from engine.job.spec import Knobs, Mode
from engine.results.badge import Badge, BadgeKind, gathered, percent_text
from engine.syscalls import cached_bytes

_WORTH_SAYING = 0.05
_LEAST_READS = 16
"""Least number of sampled reads for which a share is reported."""
_WRITE_BACK = "write back"


def target_badges(targets: Sequence[OpenTarget], knobs: Knobs, contents: NDArray[np.uint64]) -> tuple[Badge, ...]:
    """Judge the targets in use; `contents` is LoadBackend.contents, and wins over what was sampled before."""
    found: list[Badge] = []
    for target, row in zip(targets[: knobs.stripe_width], contents.tolist(), strict=False):
        badges = [
            *_content_badges(target.facts, row, knobs),
            *_page_cache_badges(target, knobs),
            *_cache_badges(target.facts, knobs),
        ]
        found += [_about(badge, target.name) for badge in badges]
    return gathered(found)


def _about(badge: Badge, name: str) -> Badge:
    return Badge(badge.kind, badge.label, badge.text, (name,), badge.share)


def _content_badges(facts: TargetFacts, contents: Sequence[int], knobs: Knobs) -> Iterator[Badge]:
    if facts.unwritten_share > 0:
        share = percent_text(facts.unwritten_share)
        text = f"{share} % never written: reads of it are memory, not storage"
        yield Badge(BadgeKind.UNWRITTEN, f"unwritten {share} %", text, share=facts.unwritten_share)
    sampled, compressible, zeros = contents
    if sampled >= _LEAST_READS:
        yield from _share_badges(zeros / sampled, compressible / sampled, f"of {sampled:,} reads sampled")
    elif facts.samples and knobs.read_pct > 0 and not facts.unwritten_share:
        yield from _share_badges(facts.zero_share, facts.compressible_share, f"of {facts.samples} sampled blocks")


def _share_badges(zeros: float, compressible: float, of_what: str) -> Iterator[Badge]:
    if zeros > _WORTH_SAYING:
        share = percent_text(zeros)
        text = f"{share} % {of_what} are zeros: they may never reach storage"
        yield Badge(BadgeKind.ZEROS, f"zeros {share} %", text, share=zeros)
    if compressible > _WORTH_SAYING:
        share = percent_text(compressible)
        text = f"{share} % {of_what} compress: storage that compresses moves less than is counted"
        yield Badge(BadgeKind.COMPRESSIBLE, f"compressible {share} %", text, share=compressible)


def _page_cache_badges(target: OpenTarget, knobs: Knobs) -> Iterator[Badge]:
    """Judge as it is now: a load fills the cache it reads through."""
    if knobs.mode is Mode.DIRECT or knobs.read_pct == 0 or target.fd < 0:
        return
    cached = (cached_bytes(target.fd, target.size_bytes) or 0) / target.size_bytes
    if cached > _WORTH_SAYING:
        share = percent_text(cached)
        text = f"{share} % of it is in the page cache: reads of that are memory, not storage"
        yield Badge(BadgeKind.PAGE_CACHE, f"page cache {share} %", text, share=cached)


def _cache_badges(facts: TargetFacts, knobs: Knobs) -> Iterator[Badge]:
    if facts.write_cache is None or knobs.read_pct >= 100:
        return
    if facts.write_cache != _WRITE_BACK:
        text = f"no volatile write cache ({facts.write_cache}): a write that returned is on the medium"
        yield Badge(BadgeKind.WRITE_CACHE, "write cache off", text)
        return
    flushed = knobs.mode in {Mode.SYNC, Mode.DSYNC}
    means = (
        "each write waits for a flush of it"
        if flushed
        else "writes return before they are on the medium: --mode dsync or --fsync-every waits for it"
    )
    yield Badge(BadgeKind.WRITE_CACHE, "write cache on", f"volatile write cache on ({facts.write_cache}): {means}")
