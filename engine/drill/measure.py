"""What LUNs do before, during and after a drill: throughput, and the longest time in which nothing completed.

The counters are those of Documentation/block/stat.rst.
"""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from enum import StrEnum

from msgspec import Struct

from engine.drill.paths import DrilledLun
from engine.text import whole_number
from engine.tune.tree import KernelTree

_SECTOR_BYTES = 512
_IOS, _SECTORS, _IN_FLIGHT = (0, 4, 11), (2, 6), 8
"""Columns: completed reads, writes and discards; sectors read and written; outstanding I/Os."""


_HEX = re.compile(r"0x[0-9a-f]{1,8}")
"""atomic_t as scsi_sysfs.c prints it."""


class DrillPhase(StrEnum):
    """Parts of a drill."""

    BEFORE = "before"
    OFFLINE = "offline"
    AFTER = "after"


class Counters(Struct, frozen=True):
    """Counters of a LUN at one moment."""

    time_ns: int
    ios: int
    bytes: int
    in_flight: int


class PhaseFigures(Struct, frozen=True):
    """What a LUN did in one phase."""

    duration_s: float
    ios: int
    bytes: int
    pause_s: float | None
    """Longest time in which nothing completed though I/Os were outstanding, at most; None if none completed."""

    @property
    def iops(self) -> float:
        """I/Os completed per second."""
        return self.ios / self.duration_s

    @property
    def bytes_per_s(self) -> float:
        """Bytes read and written per second."""
        return self.bytes / self.duration_s


class PhaseMeter:
    """Follows the counters of one LUN through a phase.

    I/Os are seen to complete between two readings: a pause is taken from the reading before the last ones that
    completed to the one after the next ones, so that it is never shorter than the true one. It ends where nothing is
    outstanding: nobody waits then.
    """

    def __init__(self, first: Counters, since_ns: int | None = None) -> None:
        """Begin; `since_ns` is when I/Os completed last, where that was in the phase before."""
        self._first = self._last = first
        self._since_ns = first.time_ns if since_ns is None else since_ns
        self._pause_ns = 0

    def next_phase(self) -> PhaseMeter:
        """Return the meter of the phase that begins with the last reading."""
        return PhaseMeter(self._last, self._since_ns)

    def add(self, now: Counters) -> None:
        """Take the next reading."""
        before, self._last = self._last, now
        self._pause_ns = max(self._pause_ns, now.time_ns - self._since_ns)
        if now.ios != before.ios or not now.in_flight:
            self._since_ns = before.time_ns if now.in_flight else now.time_ns

    @property
    def figures(self) -> PhaseFigures | None:
        """Figures up to now; None without any time."""
        duration_ns = self._last.time_ns - self._first.time_ns
        if duration_ns <= 0:
            return None
        ios = self._last.ios - self._first.ios
        return PhaseFigures(
            duration_ns / 1e9, ios, self._last.bytes - self._first.bytes, self._pause_ns / 1e9 if ios else None
        )


def read_counters(tree: KernelTree, lun: DrilledLun, time_ns: int) -> Counters | None:
    """Read the counters of the map of a LUN, of all its paths where none is over them; None if one is gone."""
    folders = [lun.map_folder] if lun.map_folder else [disk.folder for disk in (*lun.taken, *lun.left)]
    ios = sectors = in_flight = 0
    for folder in folders:
        words = [whole_number(word) for word in (tree.read(f"{folder}/stat") or "").split()]
        if len(words) <= _IN_FLIGHT or None in words:
            return None
        numbers = [word or 0 for word in words]
        ios += sum(numbers[at] for at in _IOS if at < len(numbers))
        sectors += sum(numbers[at] for at in _SECTORS)
        in_flight += numbers[_IN_FLIGHT]
    return Counters(time_ns, ios, sectors * _SECTOR_BYTES, in_flight)


class DrillMeter:
    """Follows all LUNs of a drill through its phases."""

    def __init__(self, tree: KernelTree, luns: Sequence[DrilledLun]) -> None:
        self._tree, self._luns = tree, luns
        self._phase = DrillPhase.BEFORE
        self._meters: dict[str, PhaseMeter] = {}
        self._figures: dict[tuple[str, DrillPhase], PhaseFigures] = {}
        self._errors = self._read_errors()
        self.read()

    def read(self) -> None:
        """Read all counters once; a LUN of which some are gone has no figures of this phase."""
        for lun in self._luns:
            now = read_counters(self._tree, lun, time.monotonic_ns())
            meter = self._meters.get(lun.name)
            if now is None:
                self._meters.pop(lun.name, None)
            elif meter is None:
                self._meters[lun.name] = PhaseMeter(now)
            else:
                meter.add(now)

    def begin(self, phase: DrillPhase) -> None:
        """End one phase and begin the next at the last reading; a pause goes on in it."""
        self._note()
        self._phase = phase
        self._meters = {name: meter.next_phase() for name, meter in self._meters.items()}

    def end(self) -> None:
        """Take the last reading of the last phase."""
        self.read()
        self._note()

    def _note(self) -> None:
        for name, meter in self._meters.items():
            if (figures := meter.figures) is not None:
                self._figures[name, self._phase] = figures

    @property
    def all_figures(self) -> Mapping[tuple[str, DrillPhase], PhaseFigures]:
        """What each LUN, by name, did in each phase that is over."""
        return self._figures

    @property
    def path_errors(self) -> dict[str, int]:
        """I/Os that failed on each path that was taken (ioerr_cnt), since the begin; only where they are counted."""
        return {name: count - self._errors[name] for name, count in self._read_errors().items() if name in self._errors}

    def _read_errors(self) -> dict[str, int]:
        texts = {
            disk.name: self._tree.read(f"{disk.folder}/device/ioerr_cnt") for lun in self._luns for disk in lun.taken
        }
        return {name: int(text, 16) for name, text in texts.items() if text and _HEX.fullmatch(text)}
