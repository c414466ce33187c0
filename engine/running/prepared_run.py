"""What is set up for one run: open targets with the badges of what was found on them, and an engine over them."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine._native import FlowShare, LoadEngine, uring_refusal
from engine.backend.outstanding import Outstanding, Waits
from engine.backend.protocol import LoadBackend
from engine.errors import RefusedError, StoppedError
from engine.guard import OpenTarget, SharedTargets, TargetKind, fill_scratch, open_targets
from engine.guard.facts import TargetFacts
from engine.hostfs.storage import storage_numbers
from engine.job.spec import JobSpec, Knobs, Permissions
from engine.results.badge import Badge, BadgeKind, gathered, percent_text
from engine.results.caveats import live_badges
from engine.running.counter_reader import PEAKS, KeptPeaks
from engine.running.select import BackendChoice, blocking_target, build, choose, notices_of
from engine.running.stall_watch import WaitLimit
from engine.syscalls import cached_bytes
from engine.verify.journal import Journals, forget_journals

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
    if knobs.mode.is_direct or knobs.read_pct == 0 or target.fd < 0:
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
    flushed = knobs.mode.is_synchronous
    means = (
        "each write waits for a flush of it"
        if flushed
        else "writes return before they are on the medium: --mode dsync or --fsync-every waits for it"
    )
    yield Badge(BadgeKind.WRITE_CACHE, "write cache on", f"volatile write cache on ({facts.write_cache}): {means}")


class Beside(Struct, frozen=True, eq=False):
    """What a load has in common with those that run at the same time."""

    shared: SharedTargets
    """Targets that others may have open too."""
    flow: FlowShare | None = None
    """Part of the I/Os that this load has."""


_DRAIN_STEP_S = 0.02
_LEAVE_S = 10.0
"""How long workers without any I/O may take to end."""


class PreparedRun(Struct, frozen=True, eq=False):
    """Owns descriptors and engine until `close`."""

    targets: list[OpenTarget]
    names: tuple[str, ...]
    choice: BackendChoice
    engine: LoadBackend
    counters: KeptPeaks
    journals: Journals | None = None
    """Journals of a verified load; None for others."""

    @property
    def verifying(self) -> LoadEngine | None:
        """The engine, if it verifies."""
        return self.engine if self.journals is not None and isinstance(self.engine, LoadEngine) else None

    @property
    def path_names(self) -> tuple[tuple[str, ...], ...]:
        """The paths of every target, none for one with a single path."""
        return _path_names(self.targets)

    def devices(self) -> tuple[tuple[int, ...], ...]:
        """Read the numbers of the devices that each target is or is stored on, all of its paths."""
        return tuple(
            tuple(number for node in target.nodes for number in storage_numbers(node.fd)) for target in self.targets
        )

    @property
    def solid_state(self) -> bool:
        """Whether a target is a device that does not rotate."""
        return any(target.facts.rotational is False for target in self.targets)

    def notices(self, knobs: Knobs) -> tuple[str, ...]:
        """Say what a reader of the numbers must know, one line each."""
        own = notices_of(self.choice, knobs, self.targets)
        return own if self.journals is None else (*own, *self.journals.notices)

    def badges(self, knobs: Knobs) -> tuple[Badge, ...]:
        """Return badges of the targets in use and of the data that reads returned so far."""
        return target_badges(self.targets, knobs, self.engine.contents())

    def live_badges(self, knobs: Knobs) -> tuple[Badge, ...]:
        """Return the same, with the badges of the open epoch."""
        epochs = self.engine.epochs()
        own = live_badges(self.choice.backend, epochs[-1], time.monotonic_ns()) if epochs else ()
        return (*self.badges(knobs), *own)

    def written(self, knobs: Knobs) -> list[OpenTarget]:
        """Return the targets that these knobs write to, none for reads only."""
        return self.targets[: knobs.stripe_width] if knobs.read_pct < 100 else []

    def require_writable(self, knobs: Knobs) -> list[OpenTarget]:
        """Return the targets that these knobs write to.

        Raises:
            RefusedError: one was not opened for writing.
        """
        written = self.written(knobs)
        for target in written:
            if not target.writable:
                raise RefusedError(
                    f"{target.name}: opened for reading only: stop, and start again with --allow-write {target.path}"
                )
        return written

    def keep_journals(self) -> None:
        """Have the journals ready before the first write: those of this load, and none of one before it."""
        if self.journals is not None:
            self.journals.keep()
        else:
            forget_journals(self.targets)

    def outstanding(self, at_least_s: float = 0.0) -> tuple[Outstanding, ...]:
        """Return what the engine has had outstanding for a time."""
        rows = zip(self.names, self.engine.outstanding(at_least_s).tolist(), strict=True)
        return tuple(Outstanding(name, ios, since_ns) for name, (ios, since_ns) in rows if ios)

    def stop(self, wait_limit: WaitLimit) -> bool:
        """Stop the engine, and wait for what is outstanding as long as wait_limit lasts; whether all I/Os completed."""
        while not self.engine.drain(min(_DRAIN_STEP_S, wait_limit.left_s)):
            if wait_limit.over or not any(self.engine.outstanding()[:, 0]):
                break
        return self.engine.stop(0.0 if wait_limit.over else _LEAVE_S)

    def close(self, waits: Waits, *, cached_writes: bool) -> None:
        """Let go of the targets, scratch files included; blocks while a device takes `cached_writes`."""
        try:
            # The kernel writes them back in close(2) of the last descriptor, where the wait cannot be shown.
            for node in [node for target in self.targets for node in target.nodes] if cached_writes else ():
                if node.writable and node.kind is TargetKind.BLOCK:
                    with waits.on(node.name, "fsync"), suppress(OSError):
                        os.fsync(node.fd)
        finally:
            close_all(self.targets)
            if self.journals is not None:
                self.journals.close()


def _path_names(targets: Sequence[OpenTarget]) -> tuple[tuple[str, ...], ...]:
    nodes = (target.nodes if target.others else () for target in targets)
    return tuple(tuple(node.path or node.name for node in each) for each in nodes)


def close_all(targets: Sequence[OpenTarget]) -> None:
    """Close targets, each one even if another cannot be closed."""
    for position, target in enumerate(targets):
        try:
            target.close()
        except OSError:
            close_all(targets[position + 1 :])
            raise


def set_up(
    job: JobSpec,
    permissions: Permissions,
    progress: Callable[[float], None],
    stop: threading.Event,
    waits: Waits,
    *,
    beside: Beside | None = None,
) -> PreparedRun:
    """Open and check the targets, fill scratch files, choose an engine and build it; blocks.

    Raises:
        UsageError: the job cannot be meant.
        RefusedError: the guard refuses a target.
        StoppedError: `stop` was set.
        LunscopeError: the disk is full, or the kernel refuses what the engine needs.
    """
    targets = open_targets(job, permissions, None if beside is None else beside.shared, waits)
    journals = Journals(targets) if job.verify else None
    try:
        fill_scratch(targets, job.seed, progress, stop, waits)
        if stop.is_set():
            raise StoppedError("stopped before the load began")
        wanted = choose(job, uring_refusal=uring_refusal(), blocking=blocking_target(job.knobs, targets))
        flow = None if beside is None else beside.flow
        choice, engine = build(wanted, job, targets, None if journals is None else journals.fds, flow)
    except BaseException:
        close_all(targets)
        if journals is not None:
            journals.close()
        raise
    names = tuple(target.name for target in targets)
    return PreparedRun(targets, names, choice, engine, KeptPeaks(engine.counters, PEAKS), journals)
