"""What families are measured from: the last sample, and what is added up over the life of the process."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import Struct

from collectors.derive.roles import Roles, roles
from collectors.metrics.family import Family, MetricPoint
from collectors.metrics.running_sums import LatencySums, PortSums
from collectors.model import Rows, Sample, Table


class MetricView(Struct, frozen=True, eq=False):
    """One moment; sums are valid until the next sample is added."""

    sample: Sample
    disk_latency: LatencySums
    port_latency: LatencySums
    port_sums: PortSums
    target_sums: PortSums
    cpu_ns: int
    """CPU time of sampling since the start."""

    def table(self, name: str) -> Table | None:
        """Return a raw table of the sample."""
        return self.sample.tables.get(name)

    @property
    def roles(self) -> Roles:
        """Roles of the rows of the disk table."""
        disks = self.table("disk")
        return roles(_NO_ROWS if disks is None else disks.rows, self.sample.topology.graph)


_NO_ROWS = Rows((), ())


class MetricLevel(Struct, frozen=True):
    """The families of one subject, exported or not."""

    id: str
    help: str
    families: tuple[Family, ...]
    measure: Callable[[MetricView], Iterator[MetricPoint]]
    default: bool = True
    of_process: bool = False
    """Whether its counters begin with the process, so that one short run says nothing."""
