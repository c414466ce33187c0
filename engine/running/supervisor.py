"""Supervises a running load: reports targets that fail and recover, and detects its end."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from engine.errors import RefusedError, describe_error
from engine.events import EventKind
from engine.job.rate_floor import RateFloor
from engine.running.counter_reader import ACTIVE, ERRORS, FAILING, IOS, PATH_FAILED, SKIPPED
from engine.running.status import StatusStore
from engine.text import three_digits

if TYPE_CHECKING:
    from engine.running.driver import LoadDriver


_MOST_EVENTS = 50
"""Further damage is only counted: a target that is all wrong would drown everything else."""


class DamageWatch:
    """Compares what is damaged with what was reported before."""

    def __init__(self) -> None:
        self._reported = 0

    def observe(self, driver: LoadDriver, status_store: StatusStore) -> None:
        """Check once; new damage is an event and counted in the status."""
        if driver.damaged_ranges() == self._reported:
            return
        verified = driver.verified()
        found = [] if verified is None else [(target.name, one) for target in verified.targets for one in target.damage]
        status_store.change(damaged=len(found))
        for name, one in found[self._reported : _MOST_EVENTS]:
            status_store.note(
                EventKind.LOAD, f"{name}: {one.text}", {"damaged": name, "damage": one.kind.value, "offset": one.offset}
            )
        self._reported = len(found)


class PathCounterWatch:
    """Compares the path counters of one moment with those of the moment before, and notes what changed."""

    def __init__(self) -> None:
        self._failed: frozenset[int] = frozenset()

    def observe(self, counters: NDArray[np.uint64], names: Sequence[str], status_store: StatusStore) -> None:
        """Note paths that failed or recovered since the last call."""
        if not len(counters):
            return
        before, self._failed = self._failed, frozenset(np.flatnonzero(counters[:, PATH_FAILED]).tolist())
        for index in sorted(self._failed - before):
            text = f"path {names[index]} failed: its I/Os go over the others until it answers"
            status_store.note(EventKind.LOAD, text, {"failed_path": names[index]})
        for index in sorted(before - self._failed):
            status_store.note(EventKind.LOAD, f"path {names[index]} answers again", {"recovered_path": names[index]})


GIVE_UP_S = 5.0
"""How long all targets may fail before the load ends."""


class FailureNews(Struct, frozen=True):
    """Targets, by index, that changed state since the last check."""

    began: tuple[int, ...] = ()
    recovered: tuple[int, ...] = ()


class FailureWatch:
    """Compares the counters of one moment with those of the moment before."""

    def __init__(self) -> None:
        self._failing: frozenset[int] = frozenset()
        self._all_since_ns: int | None = None

    def observe(self, counters: NDArray[np.uint64], now_ns: int) -> FailureNews:
        """Compare; targets outside the stripe width are neither failing nor recovered."""
        active = counters[:, ACTIVE] > 0
        failing = active & (counters[:, FAILING] > 0)
        if not active.any() or (failing != active).any():
            self._all_since_ns = None
        elif self._all_since_ns is None:
            self._all_since_ns = now_ns
        before, self._failing = self._failing, frozenset(np.flatnonzero(failing).tolist())
        recovered = (index for index in sorted(before - self._failing) if active[index])
        return FailureNews(tuple(sorted(self._failing - before)), tuple(recovered))

    def hopeless(self, now_ns: int) -> bool:
        """Whether every active target has failed for longer than GIVE_UP_S."""
        return self._all_since_ns is not None and now_ns - self._all_since_ns > GIVE_UP_S * 1e9


_SETTLE_S = 2.0
"""Time from the start, or the end of the ramp, as in fio (check_min_rate in libfio)."""
_GAP_NS = 2_000_000_000
"""A longer time without a poll means that the process or the machine was stopped, and is no rate of the load."""
_BYTES = [1, 5]
"""Positions in the raw table load, of reads and writes."""


class RateWatch:
    """Ends a load whose rate falls below the least that its job allows, as fio does (rate_min of fio(1))."""

    def __init__(self, floor: RateFloor | None, ramp_s: float, block_bytes: int) -> None:
        """Watch over a floor; one I/O of `block_bytes`, the largest, may be about to complete."""
        self._floor, self._settle_s = floor, ramp_s + _SETTLE_S
        self._under_way = block_bytes if floor is not None and floor.in_bytes else 1
        self._begun: tuple[int, int] | None = None
        """Time at which the cycle began, and what was counted then."""
        self._observed_ns = 0

    def observe(self, counters: NDArray[np.uint64], now_ns: int, elapsed_s: float) -> str:
        """Take the counters; returns why the load must end, or nothing."""
        floor = self._floor
        if floor is None or elapsed_s < self._settle_s:
            return ""
        count = int(counters[:, _BYTES if floor.in_bytes else IOS].sum())
        was_stopped, self._observed_ns = now_ns - self._observed_ns > _GAP_NS, now_ns
        if self._begun is None or was_stopped:
            self._begun = now_ns, count
            return ""
        begun_ns, before = self._begun
        spent_s = (now_ns - begun_ns) / 1e9
        if spent_s < floor.cycle_s:
            return ""
        per_s = (count - before) / spent_s
        if per_s >= floor.per_s:
            self._begun = now_ns, count
            return ""
        if (count + self._under_way - before) / spent_s >= floor.per_s:
            # A cycle ends with an I/O, as in fio: slow loads have less than one in each.
            return ""
        found, least = floor.words(per_s), floor.words(floor.per_s)
        return f"{found} over the last {three_digits(spent_s)} s, below the {least} of --rate-min"


POLL_S = 0.05
"""Interval of the checks."""
_REPORT_NS = 1_000_000_000
"""How often it judges what is known of the figures, and says what the fan-out costs."""


def supervise(driver: LoadDriver, status_store: StatusStore, ended: threading.Event) -> str | None:
    """Watch until the load is over; blocks.

    Returns:
        Why it must end or has ended by itself, "" if it is over or steady, None if `ended` was set elsewhere.
    """
    watch, paths, next_report_ns = FailureWatch(), PathCounterWatch(), time.monotonic_ns() + _REPORT_NS
    damage, rates = DamageWatch(), driver.rate_watch()
    while not ended.wait(POLL_S):
        counters = driver.peek()
        if counters is None:
            return None
        now_ns = time.monotonic_ns()
        errors, skipped = (int(counters[:, column].sum()) for column in (ERRORS, SKIPPED))
        status_store.change(errors=errors, skipped=skipped, waits=driver.waits)
        if now_ns >= next_report_ns:
            next_report_ns = now_ns + _REPORT_NS
            status_store.change(badges=driver.badges, tail=driver.tail())
        driver.observe_steadiness(counters, now_ns)
        _report(driver, status_store, watch.observe(counters, now_ns))
        paths.observe(*driver.observe_paths(), status_store)
        damage.observe(driver, status_store)
        try:
            driver.check_users()
        except RefusedError as refusal:
            return str(refusal)
        if not driver.running:
            return driver.fault
        if driver.ends_steady:
            return ""
        trouble = rates.observe(counters, now_ns, driver.elapsed_s)
        if watch.hopeless(now_ns):
            trouble = f"every I/O failed for more than {GIVE_UP_S:g} s ({_first_error(driver)})"
        if trouble:
            return trouble
    return None


def _report(driver: LoadDriver, status_store: StatusStore, news: FailureNews) -> None:
    for index in news.began:
        name = driver.target_names[index]
        text = f"{name}: I/Os fail ({_first_error(driver, name)}); it is only probed until it answers"
        status_store.note(EventKind.LOAD, text, {"failing": name})
    for index in news.recovered:
        name = driver.target_names[index]
        status_store.note(EventKind.LOAD, f"{name}: answers again", {"recovered": name})


def _first_error(driver: LoadDriver, name: str | None = None) -> str:
    for error in driver.errors():
        if name is None or error.target == name:
            return describe_error(error.errno, error.direction, error.first_offset)
    return "no error is known"
