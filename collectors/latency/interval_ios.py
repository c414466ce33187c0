"""The slowest I/Os of intervals, as the kernel traced and as the load timed them, and which of them are the same."""

from __future__ import annotations

import heapq
import itertools
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from collectors.latency.load_ios import LoadIos, slow_load_ios
from collectors.latency.slow_ios import (
    NO_IOS,
    SlowIo,
    SlowIos,
    by_number,
    device_number,
    device_numbers,
    latencies_ns,
    slow_ios,
)
from collectors.latency.subjects import LatencySubject
from collectors.latency.waterfall import MatchedIo, match, matched
from collectors.model import Device, Sample, Topology
from collectors.tables.load.schema import LOAD


class IntervalIos(Struct, frozen=True, eq=False):
    """The slowest I/Os of one interval."""

    slow: SlowIos
    slow_before: SlowIos
    """I/Os of the interval before, in which one of the load can have completed in the kernel."""
    load: LoadIos
    matches: tuple[tuple[int, int], ...]
    """Positions of an I/O in `load` and of the same one in `slow_before` and `slow` together."""

    def matched(self, load_position: int, kernel_position: int) -> MatchedIo:
        """Make one of the matches."""
        before = len(self.slow_before)
        in_kernel = (
            self.slow[kernel_position - before] if kernel_position >= before else self.slow_before[kernel_position]
        )
        return matched(self.load[load_position], in_kernel)


class IoReader:
    """Selects the I/Os of samples, which are given in order; called by one thread."""

    def __init__(self) -> None:
        self._topology: Topology | None = None
        self._devices: Mapping[tuple[int, int], Device] = {}
        self._before = NO_IOS

    def read(self, sample: Sample) -> IntervalIos:
        """Select those of an interval of known length."""
        if sample.topology is not self._topology:
            self._topology, self._devices = sample.topology, by_number(sample.topology.devices)
        slow, load = slow_ios(sample, self._devices), slow_load_ios(sample)
        before, self._before = self._before, slow
        return IntervalIos(slow, before, load, tuple(match(load, [*before, *slow] if load else ())))


def slowest(intervals: Sequence[IntervalIos], most: int, subject: LatencySubject | None = None) -> list[SlowIo]:
    """Return the slowest I/Os that the kernel traced, the slowest first.

    For a subject only those on its devices; for the load all I/Os on the devices it drove then, of any process.
    """
    samples = [each.slow for each in intervals if each.slow]
    if not samples:
        return []
    values = np.concatenate([each.values for each in samples])
    wanted = np.flatnonzero(_is_wanted(values, samples, subject, intervals))
    # Those of other devices, mostly many times as many, need no place in the order.
    latency_ns = latencies_ns(values)[wanted]
    ends = np.cumsum([len(each) for each in samples])
    order = wanted[np.argsort(-latency_ns, kind="stable")[:most]]
    sample = np.searchsorted(ends, order, side="right")
    return [
        samples[which][position]
        for which, position in zip(sample.tolist(), (order - ends[sample]).tolist(), strict=True)
    ]


def driven_devices(intervals: Iterable[IntervalIos]) -> set[tuple[int, int]]:
    """Return major and minor of the devices that the load drove."""
    return {number for each in intervals for number in each.load.devices()}


def slowest_matched(intervals: Sequence[IntervalIos], most: int) -> list[MatchedIo]:
    """Return the slowest I/Os of the load that the kernel traced too, the slowest first."""
    every = ((each, pair) for each in intervals for pair in each.matches)
    found = heapq.nlargest(most, every, key=lambda one: one[0].load.latency_ns(one[1][0]))
    return [each.matched(*pair) for each, pair in found]


def _is_wanted(
    values: NDArray[np.uint64],
    samples: Sequence[SlowIos],
    subject: LatencySubject | None,
    intervals: Iterable[IntervalIos],
) -> NDArray[np.bool_]:
    """Return which of the I/Os of these samples are on devices of a subject."""
    if subject is not None and subject.source == LOAD.name:
        return _on(values, {number for each in intervals for number in each.load.devices(subject.keys)})
    if subject is None or not subject.keys:
        return np.ones(len(values), np.bool_)
    parts, first = [], 0
    for _, group in itertools.groupby(samples, key=lambda each: id(each.devices)):
        same = list(group)
        after = first + sum(map(len, same))
        devices = same[0].devices
        numbers = {number for number, device in devices.items() if device.key in subject.keys}
        parts.append(_on(values[first:after], numbers))
        first = after
    return np.concatenate(parts)


def _on(values: NDArray[np.uint64], devices: Iterable[tuple[int, int]]) -> NDArray[np.bool_]:
    numbers = np.fromiter((device_number(*each) for each in devices), np.int64)
    return np.isin(device_numbers(values), numbers)
