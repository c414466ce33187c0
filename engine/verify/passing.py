"""Running passes over targets, with progress and a way to end early."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable

from msgspec import Struct

from engine._native import VerifyPass
from engine.background_call import BackgroundCall
from engine.verify.damage import Damage, damage_of, damaged_bytes_by_kind

_POLL_S = 0.05
_THREADS = 4
_CANCEL_S = 1.0
"""How long a read may be outstanding after the pass was cancelled."""
_FOREVER_S = 1e9


class PassResult(Struct, frozen=True):
    """What a pass over one target found."""

    name: str
    good_bytes: int
    journal_bytes: int
    """Part of the good bytes that the run of the journal wrote."""
    foreign_bytes: int
    """Bytes that no verified load wrote."""
    elsewhere_bytes: int
    """Bytes that one wrote to something stored here, such as a file on this disk."""
    skipped_bytes: int
    """Bytes that were not read, as the run wrote nothing there."""
    damaged_bytes: int
    damage: tuple[Damage, ...]
    """Damage by offset; beyond 10,000 ranges they are only counted."""
    latest_run_ns: int | None
    """Start of the latest load with data here, since 1970."""

    @property
    def by_kind(self) -> dict[str, int]:
        """Damaged bytes by kind, of the ranges that are listed."""
        return damaged_bytes_by_kind(self.damage)


def run_pass(
    target_pass: VerifyPass,
    name: str,
    progress: Callable[[float], None],
    stop: threading.Event,
    give_up_s: float = math.inf,
) -> PassResult | None:
    """Run one pass; None if `stop` was set before it was done, or a read did not return for `give_up_s`.

    Raises:
        OSError: no memory or no thread.
    """
    running = BackgroundCall(lambda: target_pass.run(_THREADS), "lunscope-verify")
    while not running.done.wait(_POLL_S):
        progress(target_pass.progress)
        if stop.is_set():
            target_pass.cancel()
        if target_pass.outstanding(_CANCEL_S if stop.is_set() else min(give_up_s, _FOREVER_S))[0]:
            target_pass.cancel()
            return None
    progress(target_pass.progress)
    if not running.result():
        return None
    good, journal, foreign, elsewhere, skipped, damaged = target_pass.sums()
    return PassResult(
        name=name,
        good_bytes=good,
        journal_bytes=journal,
        foreign_bytes=foreign,
        elsewhere_bytes=elsewhere,
        skipped_bytes=skipped,
        damaged_bytes=damaged,
        damage=tuple(map(damage_of, target_pass.damage())),
        latest_run_ns=target_pass.latest_run or None,
    )
