"""Error counters of paths and HBA ports; read rarely, since a reading may involve the firmware."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import chain, compress

import numpy as np
from numpy.typing import NDArray

from collectors.derive.counter_deltas import aligned
from collectors.graph import Graph, Path, Port
from collectors.kernel.device_ids import label_of
from collectors.kernel.identity import sysfs_name
from collectors.kernel.sysfs import class_entries
from collectors.model import MISSING, Device, Rows, Table
from collectors.sampling.slow_counters import SlowPace
from collectors.tables.block.schema import PATH_ERRORS, PORT_ERRORS
from engine._native import read_attributes
from engine.events import Event, EventKind
from engine.text import safe_text

PATH_PACE = SlowPace(least_s=1.0, share=0.01, longest_s=60.0)
"""Pace of readings: with thousands of paths one every half minute."""
MOST_EVENTS = 16
"""More failing paths than this at once (a port that is down) are reported in one event."""

_THREADS = 2
_SCSI = ("device/ioerr_cnt", "device/iotmo_cnt")
"""Commands that failed, and that timed out (drivers/scsi/scsi_sysfs.c; timeouts from 6.1)."""
_NVME = ("diag/command_error_count", "diag/command_retry_count", "diag/multipath_failover_count")
"""Attributes of the hidden path devices, from 7.2 (drivers/nvme/host/multipath.c)."""
_PATH_COLUMNS = tuple(column.id for column in PATH_ERRORS.columns)
_SCSI_AT = [_PATH_COLUMNS.index("errors"), _PATH_COLUMNS.index("timeouts")]
_NVME_AT = [_PATH_COLUMNS.index("errors"), _PATH_COLUMNS.index("retries"), _PATH_COLUMNS.index("failovers")]


class PathErrors:
    """Reads PATH_ERRORS tables; paths without any error counter are left out."""

    def __init__(self, sysfs: str) -> None:
        self._folder = f"{sysfs}/block"
        self._rows = Rows((), ())

    def take(self, graph: Graph) -> Table | None:
        """Read the counters of all paths; None if there are none."""
        scsi = [path for path in graph.paths if path.is_scsi]
        nvme = [path for path in graph.paths if path.address.startswith("nvme")]
        values = np.concatenate((self._read(scsi, _SCSI, _SCSI_AT), self._read(nvme, _NVME, _NVME_AT)))
        counts = (values != MISSING).any(axis=1)
        if not counts.any():
            return None
        found = list(compress(chain(scsi, nvme), counts))
        keys = tuple(path.key for path in found)
        if keys != self._rows.keys:
            self._rows = Rows(keys, tuple(path.name for path in found))
        return Table(PATH_ERRORS, self._rows, values[counts])

    def _read(self, paths: Sequence[Path], attributes: Sequence[str], at: Sequence[int]) -> NDArray[np.uint64]:
        """Return a value per path and column of the table, MISSING where there is no counter."""
        values = np.full((len(paths), len(_PATH_COLUMNS)), MISSING, np.uint64)
        try:
            entries = [sysfs_name(path.name) for path in paths]
            texts = read_attributes(self._folder, entries, attributes, threads=_THREADS)
        except OSError:
            return values
        for position, column in zip(at, zip(*texts, strict=True), strict=False):
            values[:, position] = np.fromiter(map(counted, column), np.uint64, len(paths))
        return values


@lru_cache(maxsize=1024)
def counted(text: bytes | None) -> int:
    """Parse a count, 0x1f or 31; MISSING if there is none, or if all bits are set ("not supported")."""
    try:
        value = int(text or b"", 0)
    except ValueError:
        return int(MISSING)
    return value if 0 <= value < MISSING else int(MISSING)


def path_error_events(devices: Callable[[], Mapping[str, Device]]) -> Callable[[Table, Table, Graph], Iterator[Event]]:
    """Return the function that yields events of paths with new errors; `devices` names their LUNs."""

    def new_error_events(before: Table, now: Table, graph: Graph) -> Iterator[Event]:
        deltas = _new_counts(before, now)
        if len(deltas) > MOST_EVENTS:
            text = f"paths: {len(deltas):,} with new errors: {_words(np.array(list(deltas.values())).sum(axis=0))}"
            yield Event.now(EventKind.PATH, text, paths=len(deltas))
            return
        luns = {path.key: path.lun for path in graph.paths if path.key in deltas}
        for key, counts in deltas.items():
            name = safe_text(now.rows.names[now.rows.positions[key]])
            lun = luns.get(key, key)
            label = safe_text(label_of(devices().get(lun), ""))
            of_lun = f" of {label}" if label and lun != key else ""
            counts_by_column = dict(zip(_PATH_COLUMNS, counts.tolist(), strict=True))
            yield Event.now(
                EventKind.PATH, f"path {name}{of_lun}: {_words(counts)}", path=name, lun=label, **counts_by_column
            )

    return new_error_events


def _new_counts(before: Table, now: Table) -> dict[str, NDArray[np.int64]]:
    """Increase of the counters of each path with new errors."""
    old, new = aligned(before, now), now.values
    known = (old != MISSING) & (new != MISSING) & (new > old)
    counts = np.where(known, new - old, 0).astype(np.int64)
    return {now.rows.keys[row]: counts[row] for row in np.flatnonzero(counts.any(axis=1)).tolist()}


def _words(counts: NDArray[np.int64]) -> str:
    return ", ".join(f"{count:,} {name}" for name, count in zip(_PATH_COLUMNS, counts.tolist(), strict=True) if count)


PORT_PACE = SlowPace(least_s=30.0, share=0.002, longest_s=600.0)
"""A port that takes 0.1 s to answer is read every 50 s, a slower one less often."""

_COLUMNS = tuple(column.id for column in PORT_ERRORS.columns)

_FILES: dict[str, dict[str, str]] = {
    "fc_host": {
        "link_failures": "statistics/link_failure_count",
        "sync_losses": "statistics/loss_of_sync_count",
        "signal_losses": "statistics/loss_of_signal_count",
        "error_frames": "statistics/error_frames",
        "invalid_crcs": "statistics/invalid_crc_count",
        "invalid_words": "statistics/invalid_tx_word_count",
        "dumped_frames": "statistics/dumped_frames",
    },
    "sas_phy": {
        "dword_sync_losses": "loss_of_dword_sync_count",
        "phy_reset_problems": "phy_reset_problem_count",
        "invalid_dwords": "invalid_dword_count",
        "disparity_errors": "running_disparity_error_count",
    },
    "nvme": {
        "command_errors": "diag/command_error_count",
        "resets": "diag/reset_count",
        "reconnects": "diag/reconnect_count",
    },
}
"""File of each column by class: Documentation/ABI/testing/sysfs-class-fc_host, scsi_transport_{fc,sas}.c, nvme/host."""
_SUMS = {
    "link_errors": ("link_failures", "sync_losses", "signal_losses", "dword_sync_losses", "phy_reset_problems"),
    "frame_errors": (
        "error_frames",
        "invalid_crcs",
        "invalid_words",
        "dumped_frames",
        "invalid_dwords",
        "disparity_errors",
    ),
}
_REPORTED = ("command_errors", "link_errors", "frame_errors", "resets", "reconnects")
"""Columns whose increase is an event; the others are parts of these."""


class PortErrors:
    """Reads PORT_ERRORS tables; ports without any error counter are left out."""

    def __init__(self, sysfs: str) -> None:
        self._sysfs = sysfs
        self._rows = Rows((), ())

    def take(self, graph: Graph) -> Table | None:
        """Read the counters of all ports; None if there are none."""
        found = [(port, counts) for port in graph.ports if (counts := self._counts(port))]
        if not found:
            return None
        keys = tuple(port.key for port, _ in found)
        if keys != self._rows.keys:
            self._rows = Rows(keys, tuple(port.name for port, _ in found))
        values = [[counts.get(column, int(MISSING)) for column in _COLUMNS] for _, counts in found]
        return Table(PORT_ERRORS, self._rows, np.array(values, np.uint64))

    def _counts(self, port: Port) -> dict[str, int]:
        """Add up the counters of the members of a port, by column; empty if no driver has any.

        For FC only the first host is read: virtual ones (NPIV) repeat the counters of the physical port.
        """
        entries = {
            "fc_host": list(port.scsi_hosts[:1]) if port.transport == "fc" else [],
            "sas_phy": list(self._phys(port)) if port.transport == "sas" else [],
            "nvme": [member for member in port.members if member.startswith("nvme")],
        }
        total: dict[str, int] = {}
        for name, files in _FILES.items():
            for counts in self._read(name, entries[name], tuple(files.values())):
                for column, count in zip(files, counts, strict=True):
                    if count != MISSING:
                        total[column] = total.get(column, 0) + count
        for column, parts in _SUMS.items():
            known = [total[part] for part in parts if part in total]
            if known:
                total[column] = sum(known)
        return total

    def _read(self, name: str, entries: Sequence[str], files: Sequence[str]) -> Iterator[list[int]]:
        """Yield the counts of each entry, by file."""
        if entries:
            try:
                for texts in read_attributes(f"{self._sysfs}/class/{name}", entries, files):
                    yield list(map(counted, texts))
            except OSError:
                return

    def _phys(self, port: Port) -> Iterator[str]:
        """Yield the phys of a SAS host, phy-HOST:N; those of expanders have one more number."""
        numbers = {host.removeprefix("host") for host in port.scsi_hosts}
        for entry in class_entries(self._sysfs, "sas_phy"):
            parts = entry.removeprefix("phy-").split(":")
            if len(parts) == 2 and parts[0] in numbers:
                yield entry


def port_error_events(before: Table, now: Table, _graph: Graph) -> Iterator[Event]:
    """Yield an event per port with new errors."""
    for key, row in now.rows.positions.items():
        old_row = before.rows.positions.get(key)
        if old_row is None:
            continue
        pairs = zip(_COLUMNS, before.values[old_row].tolist(), now.values[row].tolist(), strict=True)
        deltas = {
            name: new - old for name, old, new in pairs if name in _REPORTED and MISSING not in {old, new} and new > old
        }
        if deltas:
            words = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in deltas.items())
            name = safe_text(now.rows.names[row])
            yield Event.now(EventKind.PATH, f"port {name}: {words}", port=name, **deltas)
