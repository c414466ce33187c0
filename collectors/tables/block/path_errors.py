"""Errors, timeouts and retries of paths, where the kernel counts them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import aligned
from collectors.graph import Graph, Path
from collectors.kernel.device_names import label_of
from collectors.kernel.identity import sysfs_name
from collectors.model import MISSING, Device, Rows, Table
from collectors.sampling.slow_counters import SlowPace
from collectors.tables.block.schema import PATH_ERRORS
from engine._native import read_attributes
from engine.events import Event, EventKind
from engine.text import safe_text

PACE = SlowPace(least_s=1.0, share=0.01, longest_s=60.0)
"""A host with thousands of paths is read every half minute."""
MOST_EVENTS = 16
"""More paths than this that fail at once (a port that is down) are told in one event."""

_THREADS = 2
_SCSI = ("device/ioerr_cnt", "device/iotmo_cnt")
"""Commands that ended with anything but good, and that timed out (drivers/scsi/scsi_sysfs.c; timeouts from 6.1)."""
_NVME = ("diag/command_error_count", "diag/command_retry_count", "diag/multipath_failover_count")
"""Below the hidden path devices, from 7.2 (drivers/nvme/host/multipath.c)."""
_COLUMNS = tuple(column.id for column in PATH_ERRORS.columns)
_SCSI_AT = [_COLUMNS.index("errors"), _COLUMNS.index("timeouts")]
_NVME_AT = [_COLUMNS.index("errors"), _COLUMNS.index("retries"), _COLUMNS.index("failovers")]


class PathErrors:
    """Makes PATH_ERRORS tables; paths of which the kernel counts nothing are left out."""

    def __init__(self, sysfs: str) -> None:
        self._folder = f"{sysfs}/block"
        self._rows = Rows((), ())

    def take(self, graph: Graph) -> Table | None:
        """Read the counters of all paths; None if there is none."""
        scsi = [path for path in graph.paths if path.address.count(":") == 3]
        nvme = [path for path in graph.paths if path.address.startswith("nvme")]
        found = [*self._read(scsi, _SCSI, _SCSI_AT), *self._read(nvme, _NVME, _NVME_AT)]
        if not found:
            return None
        keys = tuple(path.key for path, _ in found)
        if keys != self._rows.keys:
            self._rows = Rows(keys, tuple(path.name for path, _ in found))
        return Table(PATH_ERRORS, self._rows, np.array([values for _, values in found], np.uint64))

    def _read(
        self, paths: Sequence[Path], attributes: Sequence[str], at: Sequence[int]
    ) -> Iterator[tuple[Path, list[int]]]:
        """Yield paths with a value per column of the table, those that have any."""
        try:
            entries = [sysfs_name(path.name) for path in paths]
            texts = read_attributes(self._folder, entries, attributes, threads=_THREADS)
        except OSError:
            return
        for path, found in zip(paths, texts, strict=True):
            values = [int(MISSING)] * len(_COLUMNS)
            for place, text in zip(at, found, strict=True):
                values[place] = counted(text)
            if any(value != MISSING for value in values):
                yield path, values


def counted(text: bytes | None) -> int:
    """Read a count as drivers print it, 0x1f or 31; MISSING where there is none, or all bits say "not supported"."""
    try:
        value = int(text or b"", 0)
    except ValueError:
        return int(MISSING)
    return value if 0 <= value < MISSING else int(MISSING)


def path_error_events(devices: Callable[[], Mapping[str, Device]]) -> Callable[[Table, Table, Graph], Iterator[Event]]:
    """Make the function that tells of paths with new errors; `devices` names their LUNs."""

    def tell(before: Table, now: Table, graph: Graph) -> Iterator[Event]:
        grown = _new_counts(before, now)
        if len(grown) > MOST_EVENTS:
            text = f"paths: {len(grown):,} with new errors: {_words(np.array(list(grown.values())).sum(axis=0))}"
            yield Event.now(EventKind.PATH, text, paths=len(grown))
            return
        luns = {path.key: path.lun for path in graph.paths if path.key in grown}
        for key, counts in grown.items():
            name = safe_text(now.rows.names[now.rows.positions[key]])
            lun = luns.get(key, key)
            label = safe_text(label_of(devices().get(lun), ""))
            of_lun = f" of {label}" if label and lun != key else ""
            told = dict(zip(_COLUMNS, counts.tolist(), strict=True))
            yield Event.now(EventKind.PATH, f"path {name}{of_lun}: {_words(counts)}", path=name, lun=label, **told)

    return tell


def _new_counts(before: Table, now: Table) -> dict[str, NDArray[np.int64]]:
    """How much each path's counters grew, for those of which any did."""
    old, new = aligned(before, now), now.values
    known = (old != MISSING) & (new != MISSING) & (new > old)
    counts = np.where(known, new - old, 0).astype(np.int64)
    return {now.rows.keys[row]: counts[row] for row in np.flatnonzero(counts.any(axis=1)).tolist()}


def _words(counts: NDArray[np.int64]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in zip(_COLUMNS, counts.tolist(), strict=True) if count)
