"""CPU time of deriving a frame, heat included, at 2,000 and 19,200 devices: idle, some active, all active.

Each figure is the median of interleaved runs, so that all cases have the same noise. Of two intervals of a case the
second counts: as on a host, what the last interval leaves to be freed is of the same size.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable

import numpy as np

from collectors.model import MISSING, Device, HostFacts, Rows, Sample, Table, Topology
from collectors.rates import derive
from collectors.tables.block.schema import DISK, DISKSTATS_COLUMNS

DEVICES = (2_000, 19_200)
SHARES_ACTIVE = {"idle": 0.0, "5 % active": 0.05, "all active": 1.0}
WATCHED = 64
"""Disks of the in-flight sampler."""
ROUNDS, QUICK_ROUNDS = 41, 7
BUDGET_MS = 5.0
"""Share of derivation in the 10 ms for parsing and deriving 19,200 devices."""


def samples(devices: int, share_active: float) -> tuple[Sample, Sample, Sample]:
    """Three samples a second apart with a share of the devices having done I/O."""
    random = np.random.default_rng(devices)
    rows = Rows(tuple(f"sd{i}:8:{i}:{i}" for i in range(devices)), tuple(f"sd{i}" for i in range(devices)))
    before = random.integers(0, 1 << 31, (devices, len(DISK.columns)), np.uint64)
    before[:, DISK.index("in_flight_now")] = 0
    before[WATCHED:, len(DISKSTATS_COLUMNS) :] = MISSING
    active = random.permutation(devices)[: round(devices * share_active)]
    grown = np.zeros_like(before)
    grown[active, : len(DISKSTATS_COLUMNS)] = random.integers(1, 900, (len(active), len(DISKSTATS_COLUMNS)), np.uint64)
    grown[:WATCHED, DISK.index("driver_in_flight_samples")] = 500
    topology = Topology(
        {key: Device(key, name, "disk", 8, 0, iostats=True) for key, name in zip(rows.keys, rows.names, strict=True)},
        HostFacts(kernel="6.18.0", cpus=4),
    )
    first, second, third = (
        Sample(0, seconds * 10**9, topology, {"disk": Table(DISK, rows, before + seconds * grown)})
        for seconds in range(3)
    )
    return first, second, third


def renamed(sample: Sample) -> Sample:
    """Return a sample with new row objects in another order, as after hot-plug: rows must be matched by key."""
    table = sample.tables["disk"]
    rows = Rows(table.rows.keys[::-1], table.rows.names[::-1])
    return Sample(
        sample.time_ns, sample.monotonic_ns, sample.topology, {"disk": Table(DISK, rows, table.values[::-1].copy())}
    )


def cpu_ms(work: Callable[[], object]) -> float:
    """CPU time of one call in milliseconds."""
    start = time.process_time_ns()
    work()
    return (time.process_time_ns() - start) / 1e6


def cases() -> dict[str, tuple[Sample, Sample, Sample]]:
    """Name of each case and its three samples."""
    found = {}
    for devices in DEVICES:
        for name, share in SHARES_ACTIVE.items():
            found[f"{devices:>6,} devices, {name}"] = samples(devices, share)
        first, second, third = samples(devices, 1.0)
        found[f"{devices:>6,} devices, all active, after hot-plug"] = first, second, renamed(third)
    return found


def main(*, quick: bool = False) -> None:
    """Measure and print every case."""
    measured: dict[str, list[float]] = {}
    of_case = cases()
    for _ in range(QUICK_ROUNDS if quick else ROUNDS):
        for name, (first, second, third) in of_case.items():
            derive(first, second)
            measured.setdefault(name, []).append(cpu_ms(lambda a=second, b=third: derive(a, b)))  # type: ignore[misc]
    for name, times in measured.items():
        median = statistics.median(times)
        verdict = "" if median <= BUDGET_MS or "hot-plug" in name else f"  above {BUDGET_MS:.0f} ms"
        print(f"derive {name:<48} {median:7.2f} ms (min {min(times):.2f}){verdict}")


if __name__ == "__main__":
    main()
