"""Reads what runs beneath: /proc/mdstat and maps of the device mapper; says when work begins and ends."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from collectors.kernel.identity import storable_name
from collectors.kernel.mapped_targets import MappedTargets
from collectors.model import MISSING, Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.background.freezes import FrozenFilesystems
from collectors.tables.background.mapped_works import mapped_work
from collectors.tables.background.schema import BACKGROUND, FILL, ArrayWork, work_of
from engine.events import Event, EventKind
from engine.hostfs.kernel_files import read_text
from engine.replacing import replace

_WORK = "check|resync|recovery|reshape"
"""As the kernel names it (drivers/md/md.c, status_resync); a repair reads resync."""
_ARRAY = re.compile(r"(md[\w./-]{1,60}) : (?:active|inactive)\b", re.ASCII)
_MEMBERS = re.compile(r"\[(\d{1,5})/(\d{1,5})\] \[[U_]+\]", re.ASCII)
_PROGRESS = re.compile(rf"({_WORK}) =\s*[\d.]+% \((\d{{1,15}})/(\d{{1,15}})\)", re.ASCII)
_WAITING = re.compile(rf"({_WORK})=(?:DELAYED|PENDING)", re.ASCII)
_COPIES = re.compile(r" (\d{1,3}) (?:near|far|offset)-copies", re.ASCII)
"""Copies of the data of raid10 (raid10_status, drivers/md/raid10.c)."""
_KIB = 1024
_NO_DISKS = Rows((), ())


def parse_mdstat(text: str) -> Iterator[ArrayWork]:
    """Yield the work under way; the lines of an array end with an empty one."""
    for lines in text.split("\n\n"):
        begin = next((found for line in lines.splitlines() if (found := _ARRAY.match(line))), None)
        members, progress, waiting = (pattern.search(lines) for pattern in (_MEMBERS, _PROGRESS, _WAITING))
        work = progress or waiting
        if begin is None or work is None:
            continue
        done, total = (_KIB * int(part) for part in progress.group(2, 3)) if progress else (None, None)
        wanted, present = (int(part) for part in members.groups()) if members else (0, 0)
        if done is not None and total is not None and work[1] != "recovery" and " raid10 " in lines:
            # Of raid10 these are of the array: each member has its part of all copies.
            copies = math.prod(int(count) for count in _COPIES.findall(lines))
            done, total = (count * copies // max(wanted, 1) for count in (done, total))
        missing = max(wanted - present, 0)
        yield ArrayWork(storable_name(begin[1]), work[1], progress is None, done, total, wanted, missing)


class BackgroundCollector:
    """Reads the BACKGROUND table; returns none on a host without md and without maps that do such work."""

    def __init__(
        self,
        procfs: str = "/proc",
        disks: Callable[[], Table | None] = lambda: None,
        mapped: MappedTargets | None = None,
        frozen: FrozenFilesystems | None = None,
    ) -> None:
        """Read nothing yet.

        Args:
            procfs: root of procfs.
            disks: the latest table of block counters, which names the devices.
            mapped: reader of the device mapper; None without the rights.
            frozen: reader of frozen filesystems, likewise.
        """
        self._path = f"{procfs}/mdstat"
        self._disks, self._mapped, self._frozen = disks, mapped, frozen
        self._rows = Rows((), ())
        self._since_s: dict[str, float] | None = None

    def read(self) -> Reading:
        """Read what is under way now, and what has begun and ended since the last time."""
        text = read_text(self._path)
        sampled_ns = time.monotonic_ns()
        works = [*(replace(work, sampled_ns=sampled_ns) for work in parse_mdstat(text or "")), *self._on_maps()]
        frozen, of_frozen = ([], []) if self._frozen is None else self._frozen.read()
        events, shown = (*self._events(works), *of_frozen), [*map(self._lasting, works), *frozen]
        if text is None and not (shown or events or len(self._rows)):
            return Reading()
        return Reading({BACKGROUND.name: self._tabled(shown)}, events=events)

    def close(self) -> None:
        """Close the control device of the device mapper, and detach programs."""
        if self._frozen is not None:
            self._frozen.close()
        if self._mapped is not None:
            self._mapped.close()

    def _on_maps(self) -> Iterator[ArrayWork]:
        table = self._disks()
        if self._mapped is not None:
            states = self._mapped.states(_NO_DISKS if table is None else table.rows)
            for target, status in states:
                sampled_ns = time.monotonic_ns()
                if (work := mapped_work(target, status)) is not None:
                    yield replace(work, sampled_ns=sampled_ns)

    def _lasting(self, work: ArrayWork) -> ArrayWork:
        """Add how long it has lasted, if it began after the first reading."""
        since_s = (self._since_s or {}).get(work.key, 0.0)
        return replace(work, lasts_ms=round(1e3 * (time.monotonic() - since_s))) if since_s else work

    def _tabled(self, works: Sequence[ArrayWork]) -> Table:
        keys = tuple(work.key for work in works)
        if keys != self._rows.keys:
            self._rows = Rows(keys, keys)
        values = [
            [
                MISSING if count is None else count
                for count in (
                    *(int(each.waits), each.done_bytes, each.total_bytes),
                    *(each.members, each.missing_members, each.lasts_ms, each.sampled_ns),
                )
            ]
            for each in works
        ]
        return Table(BACKGROUND, self._rows, np.array(values, np.uint64).reshape(-1, len(BACKGROUND.columns)))

    def _events(self, works: Sequence[ArrayWork]) -> Iterator[Event]:
        """Say what has begun and ended; what ran before the first reading has no begin here."""
        now_s, busy = time.monotonic(), {work.key for work in works if not work.waits and work.action != FILL}
        before, self._since_s = self._since_s, self._since_s or {}
        for key in self._since_s.keys() - busy:
            took_s = now_s - self._since_s.pop(key)
            took = f" after {took_s:.0f} s" if took_s < now_s else ""
            yield _event(key, f"ended{took}")
        for key in busy - self._since_s.keys():
            self._since_s[key] = 0.0 if before is None else now_s
            if before is not None:
                yield _event(key, "began")


def _event(key: str, what: str) -> Event:
    array, action = work_of(key)
    return Event.now(EventKind.BACKGROUND, f"{array}: {action} {what}", name=array, action=action)
