"""Histograms of queue and service time, of disks and of HBA ports."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from collectors.metrics.family import Family, FamilyKind, MetricPoint, label
from collectors.metrics.running_sums import LatencySums
from collectors.metrics.view import MetricLevel, MetricView
from collectors.tables.block.schema import TRACE_SERIES

_HELP = {
    "queue": "Queue time of I/Os: from their accounted start until they were handed to the driver.",
    "service": "Service time of I/Os: from when they were handed to the driver until they completed.",
}


def _families(subject: str, label_name: str) -> dict[str, Family]:
    return {
        stage: Family(f"lunscope_{subject}_{stage}_seconds", FamilyKind.HISTOGRAM, help_, (label_name, "operation"))
        for stage, help_ in _HELP.items()
    }


_OF_DISKS = _families("disk", "device")
_OF_PORTS = _families("port", "port")


def _histograms(
    families: dict[str, Family], sums: LatencySums, chosen: Sequence[tuple[str, str]]
) -> Iterator[MetricPoint]:
    for stage, family in families.items():
        distributions = tuple(
            distribution
            for series in TRACE_SERIES
            if series.startswith(f"{stage}_")
            for rendered in (label("operation", series.removeprefix(f"{stage}_")),)
            if (distribution := sums.distribution(series, [(key, f"{one},{rendered}") for key, one in chosen])).labels
        )
        if distributions:
            yield MetricPoint(family, distributions=distributions)


def _of_disks(view: MetricView) -> Iterator[MetricPoint]:
    disks = view.roles.disks
    # One key per label: a name may be reused while its former device is still listed.
    named = {label("device", name): key for key, name in zip(disks.keys, disks.names, strict=True)}
    return _histograms(_OF_DISKS, view.disk_latency, [(key, rendered) for rendered, key in named.items()])


def _of_ports(view: MetricView) -> Iterator[MetricPoint]:
    ports = view.roles.ports
    named = {label("port", name): key for key, name in zip(ports.keys, ports.names, strict=True)}
    return _histograms(_OF_PORTS, view.port_latency, [(key, rendered) for rendered, key in named.items()])


LATENCY_LEVEL = MetricLevel(
    "latency", "histograms of queue and service time of disks", tuple(_OF_DISKS.values()), _of_disks, of_process=True
)
PORT_LATENCY_LEVEL = MetricLevel(
    "port-latency", "the same of HBA ports", tuple(_OF_PORTS.values()), _of_ports, of_process=True
)
