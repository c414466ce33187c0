"""CPU, memory and pressure of the host, one row per tick."""

from __future__ import annotations

import math
import mmap
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import psutil

from collectors.model import MISSING, Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.host.schema import HOST
from engine.hostfs.kernel_files import read_text
from engine.text import whole_number

_ROWS = Rows(("host",), ("host",))
_PRESSURES = (("io", "some"), ("io", "full"), ("cpu", "some"), ("memory", "some"))
_SWAP_TOTAL, _SWAP_FREE = "swap_total_bytes", "swap_free_bytes"
_MEMORY = {
    "MemTotal": "memory_total_bytes",
    "MemAvailable": "memory_available_bytes",
    "Dirty": "dirty_bytes",
    "Writeback": "writeback_bytes",
    "SwapTotal": _SWAP_TOTAL,
    "SwapFree": _SWAP_FREE,
}
_PAGED = {"pswpin": "swap_in_bytes", "pswpout": "swap_out_bytes"}


class HostCollector:
    """Reads PROCFS/stat, meminfo, pressure/*, of hosts that swap vmstat; what the kernel does not have is missing."""

    def __init__(self, procfs: str = "/proc") -> None:
        self._procfs = Path(procfs)

    def read(self) -> Reading:
        """Read now."""
        # The root of psutil is global to the process, and another reader may have set it.
        psutil.PROCFS_PATH = str(self._procfs)
        found = {**self._cpu(), **self._memory(), **self._pressure()}
        found |= self._paging(found)
        values = np.array([[_counter(found.get(column.id)) for column in HOST.columns]], np.uint64)
        return Reading({HOST.name: Table(HOST, _ROWS, values)})

    def close(self) -> None:
        """Do nothing: no file stays open."""

    def _cpu(self) -> Mapping[str, int]:
        """Read the times of all CPUs (proc_stat(5)); guest time is part of user time already."""
        try:
            times, cpus = psutil.cpu_times(), len(psutil.cpu_times(percpu=True))
        except (OSError, ValueError, IndexError, TypeError, OverflowError):
            return {}
        spent = {
            "cpu_user_us": times.user + times.nice,
            "cpu_system_us": times.system,
            "cpu_idle_us": times.idle,
            "cpu_iowait_us": times.iowait,
            "cpu_irq_us": times.irq + times.softirq,
            "cpu_steal_us": getattr(times, "steal", 0.0),
        }
        finite = {column: seconds for column, seconds in spent.items() if math.isfinite(seconds)}
        return {column: round(seconds * 1e6) for column, seconds in finite.items()} | {"cpus": cpus}

    def _memory(self) -> Mapping[str, int]:
        """Read meminfo (proc_meminfo(5)); MemAvailable since 3.14."""
        found = {}
        for line in self._text("meminfo").splitlines():
            name, _, amount = line.partition(":")
            kilobytes = amount.split()[:1]
            count = whole_number(kilobytes[0]) if name in _MEMORY and kilobytes else None
            if count is not None:
                found[_MEMORY[name]] = count * 1024
        return found

    def _paging(self, memory: Mapping[str, int]) -> Mapping[str, int]:
        """Read the pages that were swapped, in all areas (mm/vmstat.c); nothing on a host without swap."""
        total, free = memory.get(_SWAP_TOTAL), memory.get(_SWAP_FREE)
        if not total or free is None:
            return {}
        found = {"swap_used_bytes": max(total - free, 0)}
        for line in self._text("vmstat").splitlines():
            name, _, amount = line.partition(" ")
            count = whole_number(amount) if name in _PAGED else None
            if count is not None:
                found[_PAGED[name]] = count * mmap.PAGESIZE
        return found

    def _pressure(self) -> Mapping[str, int]:
        """Stall times (Documentation/accounting/psi.rst): "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234"."""
        found = {}
        for resource, share in _PRESSURES:
            for line in self._text(f"pressure/{resource}").splitlines():
                total = whole_number(line.rpartition("total=")[2])
                if line.startswith(share) and total is not None:
                    found[f"psi_{resource}_{share}_us"] = total
        return found

    def _text(self, name: str) -> str:
        """Read a file; empty if the kernel has none or refuses it, as with PSI disabled."""
        return read_text(self._procfs / name) or ""


def _counter(value: int | None) -> int:
    """Return a valid counter value or MISSING; a fake procfs may contain anything."""
    return value if value is not None and 0 <= value < MISSING else int(MISSING)
