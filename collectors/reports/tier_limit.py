"""A recording limited to a lower tier, to compare the tiers over the same time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace

from collectors.exact.live_tier import HostTier
from collectors.model import MISSING, Sample, Step, Table, Tier
from collectors.registry import SUBJECTS
from collectors.tables.block.schema import DISK

_EXACT = frozenset(schema.name for subject in SUBJECTS for schema in subject.exact_raw)
_SAMPLED = frozenset(schema.name for subject in SUBJECTS for schema in subject.sampled_raw)


def with_tier(steps: Iterable[Step], tier: Tier) -> Iterator[Step]:
    """Yield steps without the data of tiers above `tier`."""
    if tier is Tier.EXACT:
        yield from steps
        return
    host_tier = HostTier()
    for step in steps:
        previous = None if step.previous is None else _limited(step.previous, tier, host_tier)
        yield Step(previous, _limited(step.current, tier, host_tier))


def _limited(sample: Sample, tier: Tier, host_tier: HostTier) -> Sample:
    dropped = _EXACT if tier is Tier.SAMPLED else _EXACT | _SAMPLED
    tables = {name: table for name, table in sample.tables.items() if name not in dropped}
    if tier is Tier.KERNEL and DISK.name in tables:
        tables[DISK.name] = _without_samples(tables[DISK.name])
    histograms = {name: cells for name, cells in sample.histograms.items() if name not in dropped}
    topology = host_tier.apply(sample.topology, min(tier, sample.topology.host.tier), "")
    return replace(sample, tables=tables, histograms=histograms, topology=topology)


def _without_samples(table: Table) -> Table:
    values = table.values.copy()
    values[:, [position for position, column in enumerate(table.schema.columns) if column.id.startswith("driver_")]] = (
        MISSING
    )
    return Table(table.schema, table.rows, values)
