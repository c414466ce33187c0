"""CPU, memory and pressure of the host, one row per tick."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from collectors.model import MISSING, Rows, Table
from collectors.reading import Reading
from collectors.schemas import HOST

_ROWS = Rows(("host",), ("host",))
_PRESSURES = (("io", "some"), ("io", "full"), ("cpu", "some"), ("memory", "some"))
_MEMORY = {
    "MemTotal": "memory_total_bytes",
    "MemAvailable": "memory_available_bytes",
    "Dirty": "dirty_bytes",
    "Writeback": "writeback_bytes",
}


class HostCollector:
    """Reads PROCFS/stat, meminfo and pressure/*; what the kernel does not have stays missing."""

    def __init__(self, procfs: str = "/proc") -> None:
        self._procfs = Path(procfs)

    def read(self) -> Reading:
        """Read now."""
        found = {**self._cpu(), **self._memory(), **self._pressure()}
        values = np.array([[found.get(column.id, MISSING) for column in HOST.columns]], np.uint64)
        return Reading({HOST.name: Table(HOST, _ROWS, values)})

    def close(self) -> None:
        """Nothing stays open."""

    def _cpu(self) -> Mapping[str, int]:
        """Read the times of all CPUs (proc_stat(5)); guest time is part of user time already."""
        lines = self._text("stat").splitlines()
        if not lines or not lines[0].startswith("cpu "):
            return {}
        times = [int(ticks) * _TICK_US for ticks in lines[0].split()[1:] if ticks.isdigit()]
        user, nice, system, idle, iowait, irq, softirq, steal = (times + [0] * 8)[:8]
        return {
            "cpu_user_us": user + nice,
            "cpu_system_us": system,
            "cpu_idle_us": idle,
            "cpu_iowait_us": iowait,
            "cpu_irq_us": irq + softirq,
            "cpu_steal_us": steal,
            "cpus": sum(1 for line in lines if line.startswith("cpu") and line[3:4].isdigit()),
        }

    def _memory(self) -> Mapping[str, int]:
        found = {}
        for line in self._text("meminfo").splitlines():
            name, _, amount = line.partition(":")
            kilobytes = amount.split()[:1]
            if name in _MEMORY and kilobytes and kilobytes[0].isdigit():
                found[_MEMORY[name]] = int(kilobytes[0]) * 1024
        return found

    def _pressure(self) -> Mapping[str, int]:
        """Stall times (Documentation/accounting/psi.rst): "some avg10=0.00 avg60=0.00 avg300=0.00 total=1234"."""
        found = {}
        for resource, share in _PRESSURES:
            for line in self._text(f"pressure/{resource}").splitlines():
                total = line.rpartition("total=")[2]
                if line.startswith(share) and total.isdigit():
                    found[f"psi_{resource}_{share}_us"] = int(total)
        return found

    def _text(self, name: str) -> str:
        """Read a file; empty where this kernel has none or refuses it, as PSI that is switched off does."""
        try:
            return (self._procfs / name).read_text("utf-8", "replace")
        except OSError:
            return ""


_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")
