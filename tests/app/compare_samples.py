"""Samples of a load whose epochs differ by known amounts, for the Compare screen."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from collectors.model import Sample
from engine.replacing import replace
from tests.app.sources import START_NS, make_samples
from tests.unit.load_steps import Stretch, recorded_run

QUIET, FASTER = (2000, 1_000_000), (2600, 1_200_000)
"""IOPS and latency in ns."""


@functools.cache
def epochs(
    *figures: tuple[int, int], seconds: int = 120, noise: float = 0.02, start_ns: int = START_NS
) -> tuple[Sample, ...]:
    """A load with these epochs one after another, beside idle and busy disks."""
    random = np.random.default_rng(1)
    stretches = []
    for iops, latency_ns in figures:
        for second in range(seconds):
            now = [int(figure * (1 + noise * random.standard_normal())) for figure in (iops, latency_ns)]
            stretches.append(Stretch(1.0, now[0], now[1], turns=second == 0))
    run = recorded_run(stretches, idle=0)
    loads = [_with_job(step.current) for step in run.steps]
    return tuple(_beside_disks(loads, start_ns))


def _with_job(sample: Sample) -> Sample:
    events = [
        replace(event, data={**event.data, "job": "x"}) if event.data.get("backend") else event
        for event in sample.events
    ]
    return replace(sample, events=tuple(events))


def _beside_disks(loads: Sequence[Sample], start_ns: int) -> list[Sample]:
    disks = make_samples(count=len(loads), events=False)
    shift_ns = start_ns - loads[0].time_ns
    merged = []
    for load, disk in zip(loads, disks, strict=True):
        events = tuple(replace(event, time_ns=event.time_ns + shift_ns) for event in load.events)
        merged.append(
            replace(
                load,
                time_ns=load.time_ns + shift_ns,
                topology=disk.topology,
                tables={**disk.tables, **load.tables},
                events=events,
            )
        )
    return merged
