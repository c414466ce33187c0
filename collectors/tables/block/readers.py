"""Readers of paths and HBA ports besides the block counters."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.model import Tier
from collectors.sampling.reading import Collector
from collectors.subject import SampledHost


def path_readers(host: SampledHost) -> Iterator[Collector]:
    """Yield the reader of path error counters."""
    from collectors.sampling.slow_counters import SlowCounters  # noqa: PLC0415
    from collectors.tables.block import error_readers as errors  # noqa: PLC0415 (see collectors.subject.Readers)

    take, events_of = errors.PathErrors(host.sysfs).take, errors.path_error_events(host.devices)
    yield SlowCounters("path errors", host.graph, take, errors.PATH_PACE, events_of)


def port_readers(host: SampledHost) -> Iterator[Collector]:
    """Yield the reader of port error counters, if enabled, and the in-flight sampler of ports, if it can start."""
    from collectors.sampling.slow_counters import SlowCounters  # noqa: PLC0415
    from collectors.tables.block import error_readers as errors  # noqa: PLC0415 (see collectors.subject.Readers)
    from collectors.tables.block.group_watch import start_group_watch  # noqa: PLC0415

    if host.settings.fabric_counters:
        take = errors.PortErrors(host.sysfs).take
        yield SlowCounters("port errors", host.graph, take, errors.PORT_PACE, errors.port_error_events)
    if host.tier >= Tier.SAMPLED:
        try:
            yield start_group_watch(host.sysfs, host.disks, host.graph)
        except OSError:  # No thread can be started; the counters still work.
            return
