"""Error counters of HBA ports: FC, SAS and NVMe fabrics; read rarely, since a reading may involve the firmware."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collectors.graph import Graph, Port
from collectors.kernel.sysfs import class_entries
from collectors.model import MISSING, Rows, Table
from collectors.sampling.slow_counters import SlowPace
from collectors.tables.block.path_errors import counted
from collectors.tables.block.schema import PORT_ERRORS
from engine._native import read_attributes
from engine.events import Event, EventKind
from engine.text import safe_text

PORT_PACE = SlowPace(least_s=30.0, share=0.002, longest_s=600.0)
"""A port that takes 0.1 s to answer is read every 50 s, a slower one less often."""

_COLUMNS = tuple(column.id for column in PORT_ERRORS.columns)

_SOURCES: dict[str, dict[str, tuple[str, ...]]] = {
    "fc_host": {
        "link_errors": (
            "statistics/link_failure_count",
            "statistics/loss_of_sync_count",
            "statistics/loss_of_signal_count",
        ),
        "frame_errors": (
            "statistics/error_frames",
            "statistics/invalid_crc_count",
            "statistics/invalid_tx_word_count",
            "statistics/dumped_frames",
        ),
    },
    "sas_phy": {
        "link_errors": ("loss_of_dword_sync_count", "phy_reset_problem_count"),
        "frame_errors": ("invalid_dword_count", "running_disparity_error_count"),
    },
    "nvme": {
        "command_errors": ("diag/command_error_count",),
        "resets": ("diag/reset_count",),
        "reconnects": ("diag/reconnect_count",),
    },
}
"""Files by class and column: Documentation/ABI/testing/sysfs-class-fc_host, scsi_transport_{fc,sas}.c, nvme/host."""


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
        for name, columns in _SOURCES.items():
            for column, files in columns.items():
                counts = [count for count in self._read(name, entries[name], files) if count != MISSING]
                if counts:
                    total[column] = total.get(column, 0) + sum(counts)
        return total

    def _read(self, name: str, entries: Sequence[str], files: Sequence[str]) -> Iterator[int]:
        if entries:
            try:
                for texts in read_attributes(f"{self._sysfs}/class/{name}", entries, files):
                    yield from map(counted, texts)
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
        deltas = {name: new - old for name, old, new in pairs if MISSING not in {old, new} and new > old}
        if deltas:
            words = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in deltas.items())
            name = safe_text(now.rows.names[row])
            yield Event.now(EventKind.PATH, f"port {name}: {words}", port=name, **deltas)
