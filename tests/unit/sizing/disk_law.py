"""Disks of a known law behind a common limit: what a sweep over them measures, and what sizes are true."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import dataclass

from engine.sizing.measured import DiskLoad
from engine.sweep.plan import Search
from engine.sweep.trial import SearchStage, Trial

LADDER = (1, 2, 4, 8, 16, 32, 64)
BLOCK_BYTES = 8192


@dataclass(frozen=True)
class DiskLaw:
    """Each disk serves so many I/Os at a time, each in S; all disks together are limited by their port."""

    servers: int = 12
    service_s: float = 0.0005
    port_iops: float = math.inf
    p99_times: float = 3.0
    """The 99th percentile as a multiple of the mean."""

    def iops(self, disks: int, depth: float) -> float:
        return min(disks * min(depth, self.servers) / self.service_s, self.port_iops)

    def mean_s(self, disks: int, depth: float) -> float:
        return disks * depth / self.iops(disks, depth)

    def true_size(self, iops: float, p99_s: float = math.inf, most: int = 512) -> tuple[int, int] | None:
        """The fewest disks, and the lowest depth of each, by looking at them one by one."""
        for disks in range(1, most + 1):
            for depth in range(1, 257):
                if self.p99_times * self.mean_s(disks, depth) > p99_s * (1 + 1e-9):
                    break
                if self.iops(disks, depth) >= iops * (1 - 1e-9):
                    return disks, depth
        return None

    def trial(self, disks: int, depth: int, stage: str, factor: float = 1.0, start_s: float = 0.0) -> Trial:
        """Measure one point; `factor` is its noise."""
        iops = self.iops(disks, depth) * factor
        mean_ns = disks * depth / iops * 1e9
        return Trial(
            load=depth,
            in_flight=disks * depth,
            iops=iops,
            latency_ns=mean_ns,
            latencies_ns={"p50": mean_ns, "p99": self.p99_times * mean_ns},
            half_width=0.01,
            bytes_per_s=iops * BLOCK_BYTES,
            start_s=start_s,
            duration_s=2.0,
            ios=100_000,
            stage=stage,
        )

    def measured(
        self, widths: Sequence[int], noise: float = 0.0, seed: int = 1, loads: Sequence[int] = LADDER
    ) -> DiskLoad:
        """Sweep the depth of each number of disks as the runner does."""
        return DiskLoad("", tuple((disks, tuple(self._swept(disks, noise, seed, loads))) for disks in widths))

    def _swept(self, disks: int, noise: float, seed: int, loads: Sequence[int]) -> list[Trial]:
        chance, search, trials = random.Random(seed * 1000 + disks), Search(tuple(loads), seed=seed), list[Trial]()
        for stage in SearchStage:
            for depth in tuple(search.wanted(stage, trials)):
                factor = math.exp(chance.gauss(0, noise)) if noise else 1.0
                trials.append(self.trial(disks, depth, stage, factor, start_s=2.0 * len(trials)))
        return trials
