"""A drill from its first reading to its last: paths go offline under the watchdog of tunables, and come back."""

from __future__ import annotations

import fcntl
import mmap
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from time import monotonic
from typing import Any, TypeAlias

from msgspec import Struct

from engine.background_call import BackgroundCall
from engine.drill.measure import DrillMeter, DrillPhase, PhaseFigures, read_counters
from engine.drill.paths import DrilledLun, HostPaths, PathDrill
from engine.errors import RefusedError, StoppedError, words_of
from engine.job.sizes import format_duration
from engine.text import safe_text
from engine.tune.change import TunableChange, make_change
from engine.tune.disks import Disk
from engine.tune.journal import Journal
from engine.tune.path_state import OFFLINE, RUNNING
from engine.tune.record import ChangeRecord
from engine.tune.tree import KernelTree

READ_EVERY_S = 0.01
"""Between two readings of the counters: a pause is known to within twice as much."""
LOOK_EVERY_S = 0.1
"""Between two looks at the paths that are left."""
ANSWER_S = 5.0
"""A path that is left has to answer a read within this time."""
_READ_BYTES = 4096
_AT_ONCE = 64
"""LUNs that are read from at once."""


Wait: TypeAlias = Callable[[float], str]
"""Waits for a time or the end of the drill, whichever is first; returns why it is to end, empty if it goes on."""


class DrillResult(Struct, frozen=True):
    """What happened."""

    drill: PathDrill
    figures: Mapping[tuple[str, DrillPhase], PhaseFigures]
    path_errors: Mapping[str, int]
    """I/Os that failed on paths that were taken, where SCSI counts them; a map sends them again by another path."""
    ending: str
    """Why the paths came back before their time; empty if they did not."""
    lost: str
    """The LUN that lost the paths it was to keep, which ended it; empty if none did."""
    problems: tuple[str, ...]
    """What was not restored."""

    def of(self, lun: DrilledLun, phase: DrillPhase) -> PhaseFigures | None:
        """Return what a LUN did in a phase; None where that is not known."""
        return self.figures.get((lun.name, phase))


@contextmanager
def only_drill(journal: Journal) -> Iterator[None]:
    """Be the only drill of this host: two at once would count on each other's paths.

    Raises:
        RefusedError: there is another.
    """
    journal.open()
    descriptor = os.open(journal.folder / "drill.lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
    try:
        _lock(descriptor)
        yield
    finally:
        os.close(descriptor)


def _lock(descriptor: int) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise RefusedError("another drill takes paths offline now: wait for its end") from None


def require_answers(luns: Sequence[DrilledLun]) -> None:
    """Read from the paths that are left: one that nobody has used for long may be dead without anybody's knowing.

    Raises:
        RefusedError: of a LUN none answers.
    """
    for at in range(0, len(luns), _AT_ONCE):
        waiting = {lun.name: list(lun.left) for lun in luns[at : at + _AT_ONCE]}
        while waiting:
            calls = {
                name: BackgroundCall(partial(read_path, disks[0]), f"read-{name}") for name, disks in waiting.items()
            }
            deadline_s = monotonic() + ANSWER_S
            failed = {name: text for name, call in calls.items() if (text := _failure(call, deadline_s))}
            waiting = {name: waiting[name][1:] for name in failed}
            for name, disks in waiting.items():
                if not disks:
                    raise RefusedError(f"LUN {safe_text(name)}: no path that is left answers a read: {failed[name]}")


def read_path(disk: Disk) -> str:
    """Read the first block of a path past the page cache; returns what went wrong."""
    node = f"/dev/{disk.name.replace('!', '/')}"
    try:
        descriptor = os.open(node, os.O_RDONLY | os.O_DIRECT | os.O_CLOEXEC)
        try:
            with mmap.mmap(-1, _READ_BYTES) as buffer:
                return "" if os.preadv(descriptor, [buffer], 0) == _READ_BYTES else f"{node} is too small"
        finally:
            os.close(descriptor)
    except OSError as error:
        return f"{node}: {words_of(error)}"


def _failure(call: BackgroundCall[str], deadline_s: float) -> str:
    if not call.done.wait(max(deadline_s - monotonic(), 0)):
        return f"no answer within {ANSWER_S:g} s"
    return call.result()


class DrillRun:
    """One drill; `run` once."""

    def __init__(
        self,
        tree: KernelTree,
        look: Callable[[], HostPaths],
        journal: Journal,
        wait: Wait,
        say: Callable[[str], None],
        *,
        require: Callable[[Sequence[DrilledLun]], None] = require_answers,
    ) -> None:
        self._tree, self._look, self._journal = tree, look, journal
        self._wait, self._say, self._require = wait, say, require
        self._ending = self._lost = ""

    def run(
        self, scopes: Sequence[str], offline_s: float, around_s: float, *, awaits_load: bool = False
    ) -> DrillResult:
        """Measure, take the paths offline, bring them back, and measure again.

        Args:
            scopes: which paths.
            offline_s: how long they are offline.
            around_s: how long is measured before and after.
            awaits_load: whether nothing begins before the first I/O of the LUNs has completed.

        Raises:
            LunscopeError: it is refused; nothing has changed, or the message says what has.
        """
        with only_drill(self._journal):
            drill = self._look().plan(scopes)
            self._require(drill.luns)
            if awaits_load:
                self._await_load(drill.luns)
            meter = DrillMeter(self._tree, drill.luns)
            if self._measure(meter, around_s):
                raise StoppedError(f"{self._ending}: no path was taken offline")
            # What is known of the other paths is as old as the measurement.
            drill = _same(drill, self._look().plan(scopes))
            change = self._take(drill, meter, offline_s)
            try:
                self._hold(drill, meter, change)
            except BaseException:
                change.end()
                raise
            record, ending, self._ending = self._restore(drill, meter, change), self._ending, ""
            self._measure(meter, around_s)
            meter.end()
        return DrillResult(drill, meter.all_figures, meter.path_errors, ending, self._lost, record.problems)

    def _await_load(self, luns: Sequence[DrilledLun]) -> None:
        """Wait for the first I/O that completes, or the end."""
        first = [_completed(self._tree, lun) for lun in luns]
        while not self._ending and first == [_completed(self._tree, lun) for lun in luns]:
            self._ending = self._wait(READ_EVERY_S)

    def _measure(self, meter: DrillMeter, duration_s: float) -> str:
        """Read for a time; returns why the drill is to end, if it is."""
        until_s = monotonic() + duration_s
        while not self._ending and monotonic() < until_s:
            meter.read()
            self._ending = self._wait(READ_EVERY_S)
        return self._ending

    def _take(self, drill: PathDrill, meter: DrillMeter, offline_s: float) -> TunableChange:
        """Take the paths offline; the phase begins with the last reading before the first one is."""
        settings = dict.fromkeys((write.tunable for write in drill.plan.writes), OFFLINE)
        call = BackgroundCall(
            lambda: make_change(self._tree, drill.plan, settings, duration_s=offline_s, journal=self._journal),
            "offline",
        )
        self._read_until(call, meter, drill, OFFLINE, DrillPhase.OFFLINE)
        change = call.result()
        self._say(
            f"{'; '.join(change.record.summary)} for {format_duration(offline_s)}; Ctrl-C brings them back at once"
        )
        return change

    def _hold(self, drill: PathDrill, meter: DrillMeter, change: TunableChange) -> None:
        """Wait for the end of the time; end it where a LUN loses the paths that it was to keep."""
        look_s = 0.0
        while not self._ending and not change.has_ended(0):
            if _is(self._tree, drill, RUNNING):
                return
            meter.read()
            if monotonic() >= look_s:
                look_s = monotonic() + LOOK_EVERY_S
                self._lost = self._look().left_without(drill.luns)
                if self._lost:
                    self._ending = f"LUN {safe_text(self._lost)} lost the paths that it was to keep"
                    return
            self._ending = self._wait(READ_EVERY_S)

    def _restore(self, drill: PathDrill, meter: DrillMeter, change: TunableChange) -> ChangeRecord:
        call = BackgroundCall(change.end, "online")
        self._read_until(call, meter, drill, RUNNING, DrillPhase.AFTER)
        record = call.result()
        if not record.left:
            self._say("the paths are back")
        return record

    def _read_until(
        self, call: BackgroundCall[Any], meter: DrillMeter, drill: PathDrill, state: str, phase: DrillPhase
    ) -> None:
        """Read until a call has returned; the phase begins where the first path has the state, or with the return."""
        begun = False
        while True:
            is_over = call.done.wait(READ_EVERY_S)
            if not begun and (is_over or _is(self._tree, drill, state)):
                meter.begin(phase)
                begun = True
            meter.read()
            if is_over:
                return


def _completed(tree: KernelTree, lun: DrilledLun) -> int | None:
    counters = read_counters(tree, lun, 0)
    return None if counters is None else counters.ios


def _is(tree: KernelTree, drill: PathDrill, state: str) -> bool:
    """Whether the first path of a drill has a state."""
    first = drill.plan.writes[0]
    return first.tunable.present(tree, first.target) == state


def _same(planned: PathDrill, now: PathDrill) -> PathDrill:
    """Return the newer of two plans.

    Raises:
        RefusedError: other paths belong to the scope now.
    """
    if [write.target for write in planned.plan.writes] != [write.target for write in now.plan.writes]:
        raise RefusedError("the paths of the scope have just changed: nothing was taken offline; try again")
    return now
