"""In-flight samples of whole HBA ports, and of NVMe heads for which the kernel counts no I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
from numpy.typing import NDArray

from collectors.derive.roles import Roles, roles
from collectors.graph import Graph, Path, Port
from collectors.kernel.identity import sysfs_name
from collectors.model import Rows, Table
from collectors.sampling.reading import Reading
from collectors.tables.block.schema import DISK, GROUP
from engine._native import InflightSampler

RATE_HZ = 1000.0
CPU_SHARE = 0.02
"""Share of one core; the sampler slows down if samples are expensive."""
MAX_FILES = 48
"""Most files per sample: with more, the rate falls below some hundred samples per second, too few for a tick."""
KEEP_TICKS = 5
"""Idle ticks after which a sampled group is dropped."""

_WEIGHTED = DISK.index("weighted_ms")
_WRAP = np.uint64(0xFFFF_FFFF)

_Files = tuple[str, tuple[str, ...]]


class GroupWatch:
    """Samples the ports with the most I/O time; the sums are the GROUP table.

    A SCSI host reports its number of commands (`host_busy`, Documentation/ABI/testing/sysfs-class-scsi_host); for NVMe
    and virtio all disks of the port are read in direct succession. Several hosts and controllers of one WWPN are one
    sample, so the busy time is their union.
    """

    def __init__(self, sampler: InflightSampler, disks: Callable[[], Table | None], graph: Callable[[], Graph]) -> None:
        """Start without groups.

        Args:
            sampler: owned by this object from here on.
            disks: the latest DISK table; its active rows select the ports.
            graph: the latest device graph.
        """
        self._sampler = sampler
        self.paused = False
        """Whether to take no samples, since exact figures need none."""
        self._disks = disks
        self._graph = graph
        self._rows = Rows((), ())
        self._roles: Roles | None = None
        self._groups: tuple[_Files, ...] = ()
        self._members: tuple[NDArray[np.intp], ...] = ()
        self._weighted: NDArray[np.uint64] = np.empty(0, np.uint64)
        self._idle_ticks: dict[str, int] = {}
        self._files_changed = False

    @property
    def cpu_ns(self) -> int:
        """CPU time of the sampler thread."""
        return self._sampler.cpu_ns

    def close(self) -> None:
        """Stop the sampler."""
        self._sampler.close()

    def read(self) -> Reading:
        """Return the sums since sampling began, then choose groups for the next tick.

        Raises:
            OSError: sysfs cannot be opened.
        """
        disks, graph = self._disks(), self._graph()
        names, sums = self._sampler.read()
        keys = tuple(names)
        if keys != self._rows.keys:
            self._rows = Rows(keys, keys)
        chosen = [] if disks is None or self.paused else self._choose(disks, graph)
        if [name for name, _ in chosen] != names or self._files_changed:
            self._sampler.watch_groups(chosen)
            self._files_changed = False
        return Reading({GROUP.name: Table(GROUP, self._rows, sums[:, : len(GROUP.columns)])} if keys else {})

    def _follow(self, part: Roles, graph: Graph) -> None:
        """Update files and members of every group when the topology changed; the sampler drops vanished ones."""
        if part is self._roles:
            return
        self._roles, self._files_changed = part, True
        found = list(_groups(part, graph))
        self._groups = tuple(files for files, _ in found)
        self._members = tuple(members for _, members in found)

    def _moved_ms(self, disks: Table, part: Roles) -> NDArray[np.uint64]:
        """I/O time of each row since the last tick; 0 if rows were added or removed."""
        weighted = disks.values[:, _WEIGHTED].copy()
        same = part is self._roles and len(weighted) == len(self._weighted)
        before, self._weighted = (self._weighted if same else weighted), weighted
        moved: NDArray[np.uint64] = (weighted - before) & _WRAP
        return moved

    def _choose(self, disks: Table, graph: Graph) -> list[_Files]:
        """Choose the busiest groups whose files fit the limit, in the order of the graph."""
        part = roles(disks.rows, graph)
        moved_ms = self._moved_ms(disks, part)
        self._follow(part, graph)
        spent = np.array([moved_ms[members].sum() for members in self._members], np.uint64)
        self._idle_ticks = {
            name: 0 if ms else self._idle_ticks.get(name, KEEP_TICKS) + 1
            for (name, _), ms in zip(self._groups, spent.tolist(), strict=True)
        }
        room, taken = MAX_FILES, set()
        for position in np.argsort(-spent.astype(np.float64), kind="stable").tolist():
            name, files = self._groups[position]
            if self._idle_ticks[name] <= KEEP_TICKS and len(files) <= room:
                room -= len(files)
                taken.add(name)
        return [group for group in self._groups if group[0] in taken]


def _groups(part: Roles, graph: Graph) -> Iterator[tuple[_Files, NDArray[np.intp]]]:
    """Yield name and files of each port and NVMe head, with the rows of its paths; skips those with too many files."""
    ports = {port.key: port for port in graph.ports}
    paths_of: dict[str, list[Path]] = {}
    for path in graph.paths:
        paths_of.setdefault(path.port, []).append(path)
    for position, key in enumerate(part.ports.keys):
        files = _files_of_port(ports[key], paths_of[key])
        if len(files) <= MAX_FILES:
            yield (key, files), np.flatnonzero(part.port_of_row == position)
    rows_of_lun = part.lun_of_row
    for head in part.nvme_heads.tolist():
        members = np.flatnonzero(rows_of_lun == head)
        lun = part.disks.keys[int(np.searchsorted(part.disk_at, head))]
        files = tuple(_inflight(graph.paths[position].name) for position in graph.paths_of[lun])
        if len(files) <= MAX_FILES:
            yield (lun, files), members


def _files_of_port(port: Port, paths: list[Path]) -> tuple[str, ...]:
    hosts = tuple(f"class/scsi_host/{host}/host_busy" for host in port.scsi_hosts)
    of_others = tuple(_inflight(path.name) for path in paths if not hosts or not path.is_scsi)
    return (*hosts, *of_others)


def _inflight(name: str) -> str:
    return f"block/{sysfs_name(name)}/inflight"


def start_group_watch(sysfs: str, disks: Callable[[], Table | None], graph: Callable[[], Graph]) -> GroupWatch:
    """Start a sampler without groups.

    Raises:
        OSError: no thread can be started.
    """
    return GroupWatch(InflightSampler(sysfs, RATE_HZ, CPU_SHARE), disks, graph)
