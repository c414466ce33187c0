"""Size and speed of session files: bytes per active device and tick, cost of a tick, opening and seeking.

The recording is simulated: rates and latencies are random walks, arrivals are Poisson, and all 21 columns of the
disk table follow from them. Bytes are the file size divided by active devices and ticks.
"""

from __future__ import annotations

import random
import statistics
import tempfile
import time
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from collectors.model import Device, HostFacts, Rows, Sample, Table, Topology
from collectors.session.reader import SessionReader
from collectors.session.writer import SessionWriter
from collectors.tables.block.schema import DISK

_DAY_TICKS = 86_400
_SHAPES = ((200, 0.05, 7200), (200, 0.3, 3600), (200, 1.0, 1800), (2_000, 0.05, 1800), (19_200, 0.05, 300))
_COLUMN = {column.id: position for position, column in enumerate(DISK.columns)}


def main(*, quick: bool = False) -> None:
    with tempfile.TemporaryDirectory(prefix="lunscope-bench-") as folder:
        for devices, share, ticks in _SHAPES:
            size_and_cost(Path(folder), devices, share, ticks // 6 if quick else ticks)
        day(Path(folder), _DAY_TICKS // 12 if quick else _DAY_TICKS)


def size_and_cost(folder: Path, devices: int, share: float, ticks: int) -> None:
    path, costs_ms = folder / "size.lun", []
    with SessionWriter(path, overwrite=path.exists()) as writer:
        for sample in islice(simulated(devices, share), ticks):
            before = time.perf_counter()
            writer.write(sample)
            costs_ms.append((time.perf_counter() - before) * 1e3)
    active = round(devices * share)
    print(
        f"{devices:6,} devices, {share:4.0%} active, {ticks:5,} ticks: "
        f"{path.stat().st_size / active / ticks:5.1f} bytes per active device and tick (goal <= 40, next 25); "
        f"write {statistics.median(costs_ms):.3f} ms, p99 {np.percentile(costs_ms, 99):.2f}, first {costs_ms[0]:.1f}",
        flush=True,
    )


def day(folder: Path, ticks: int) -> None:
    """24 h of 200 devices: opening, and seeking to a random time, each with a new reader and a warm cache."""
    path, dice = folder / "day.lun", random.Random(1)
    with SessionWriter(path) as writer:
        for sample in islice(simulated(200, 0.05), ticks):
            writer.write(sample)
    open_ms: list[float] = []
    seek_ms: list[float] = []
    next_ms: list[float] = []
    back_ms: list[float] = []
    for _ in range(40):
        with measured(open_ms):
            reader = SessionReader(path)
        moment_ns = dice.randrange(reader.start_ns, reader.end_ns)
        with measured(seek_ms):
            index = reader.index_at(moment_ns)
            reader.step_at(index)
        with measured(next_ms):
            reader.step_at(min(index + 1, ticks - 1))
        with measured(back_ms):
            reader.step_at(max(index - 1, 0))
        reader.close()
    print(f"{ticks / 3600:.0f} h of 200 devices at 1 Hz, 5 % active: {path.stat().st_size / 1e6:.1f} MB")
    for name, times, goal in (
        ("open", open_ms, "100 ms"),
        ("seek to any moment", seek_ms, "50 ms to a painted frame"),
        ("step forward", next_ms, ""),
        ("step back", back_ms, ""),
    ):
        goal_text = f" (goal <= {goal})" if goal else ""
        print(f"  {name}: {statistics.median(times):.2f} ms, most {max(times):.2f} ms{goal_text}")


class measured:  # noqa: N801 reads as a word
    """Adds the time of a block to a list, in milliseconds."""

    def __init__(self, times_ms: list[float]) -> None:
        self._times_ms = times_ms

    def __enter__(self) -> None:
        self._before = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self._times_ms.append((time.perf_counter() - self._before) * 1e3)


def simulated(devices: int, share: float) -> Iterator[Sample]:
    """Yield samples one second apart, endlessly."""
    names = tuple(f"sd{number}" for number in range(devices))
    rows = Rows(tuple(f"{name}:8:{number}#{number}" for number, name in enumerate(names)), names)
    facts = zip(rows.keys, names, strict=True)
    topology = Topology(
        {key: Device(key, name, "disk", 8, place, serial=f"S{place:08}") for place, (key, name) in enumerate(facts)},
        HostFacts("bench"),
    )
    dice = np.random.default_rng(devices)
    for tick, values in enumerate(_counters(dice, devices, max(1, round(devices * share)))):
        late_ns, cost_ns = (int(number) for number in dice.integers(50_000, (150_000, 4_000_000)))
        times = (1_763_690_400_000_000_000 + tick * 10**9 + late_ns, 10**14 + tick * 10**9 + late_ns)
        yield Sample(*times, topology, {"disk": Table(DISK, rows, values)}, late_ns=late_ns, cost_ns=cost_ns)


def _counters(dice: np.random.Generator, devices: int, active: int) -> Iterator[NDArray[np.uint64]]:
    values = dice.integers(0, 10**8, (devices, len(DISK.columns))).astype(np.uint64)
    busy = np.sort(dice.choice(devices, active, replace=False))
    read_rate, write_rate = (dice.uniform(np.log(20), np.log(most), active) for most in (3000, 1500))
    read_ms, write_ms = (dice.uniform(np.log(0.1), np.log(5), active) for _ in range(2))
    read_sectors = dice.choice([8, 16, 32, 64, 128, 256], active)
    one_size = dice.random(active) < 0.5
    while True:
        yield values.copy()
        for walk, low, high in ((read_rate, 2, 8.5), (write_rate, 1, 8), (read_ms, -3, 3), (write_ms, -3, 3)):
            np.clip(walk + dice.normal(0, 0.1, active), low, high, out=walk)
        grown = _interval(dice, np.exp(read_rate), np.exp(write_rate), np.exp(read_ms), np.exp(write_ms))
        spread = dice.normal(0, 0.5, active) * np.sqrt(grown["reads"] + 1) * read_sectors
        mixed = np.maximum(grown["reads"] * 8, (grown["reads"] * read_sectors + spread) // 8 * 8)
        grown["read_sectors"] = np.where(one_size, grown["reads"] * read_sectors, mixed)
        for name, amounts in grown.items():
            values[busy, _COLUMN[name]] += np.maximum(amounts, 0).astype(np.uint64)
        in_flight = (grown["read_ms"] + grown["write_ms"]) / 1000
        for name, factor in (("in_flight_now", 1), ("driver_in_flight_peak", 2)):
            values[busy, _COLUMN[name]] = dice.poisson(in_flight * factor)


def _interval(
    dice: np.random.Generator,
    read_rate: NDArray[np.float64],
    write_rate: NDArray[np.float64],
    read_ms: NDArray[np.float64],
    write_ms: NDArray[np.float64],
) -> dict[str, NDArray[np.float64]]:
    """Draw the counters of the busy disks for one second, by column."""
    active = len(read_rate)
    reads, writes, flushes = (dice.poisson(rate, active).astype(float) for rate in (read_rate, write_rate, 2))
    read_time, write_time = (
        reads * read_ms * dice.normal(1, 0.05, active),
        writes * write_ms * dice.normal(1, 0.05, active),
    )
    flush_time, in_flight = flushes * dice.exponential(2, active), (read_time + write_time) / 1000
    used, sample_count = 1 - np.exp(-in_flight), float(dice.integers(950, 1000))
    return {
        "reads": reads,
        "reads_merged": dice.poisson(0.02 * reads).astype(float),
        "read_ms": read_time,
        "writes": writes,
        "writes_merged": dice.poisson(0.2 * writes).astype(float),
        "write_sectors": (writes * 24 + dice.normal(0, 16, active) * np.sqrt(writes + 1)) // 8 * 8,
        "write_ms": write_time,
        "busy_ms": np.clip(1000 * used * dice.normal(1, 0.02, active), 0, 1002),
        "weighted_ms": read_time + write_time + flush_time + dice.integers(0, 3, active),
        "flushes": flushes,
        "flush_ms": flush_time,
        "driver_in_flight_sum": dice.poisson(np.maximum(in_flight, 0) * sample_count * 0.8).astype(float),
        "driver_in_flight_samples": np.full(active, sample_count),
        "driver_busy_samples": dice.binomial(int(sample_count), np.clip(used, 0, 1) * 0.8).astype(float),
    }
