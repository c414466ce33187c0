"""Synthetic samples with the latencies of a load beside them, and the kernel's slowest I/Os."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collectors.model import Histograms, Rows, Sample, Table
from collectors.sources.load import SCALE, SERIES
from collectors.tables.block.schema import SLOW_IO
from collectors.tables.load.schema import SLOW_LOAD
from engine.replacing import replace
from tests.app.sources import SECOND_NS, table, with_load

LOAD_ROWS = Rows(("load:1:0", "load:1:1"), ("/dev/vdb", "/dev/sdc"))
SLOW_EVERY = 10
"""Every so many ticks a few I/Os take far longer."""


def with_latencies(samples: Sequence[Sample]) -> list[Sample]:
    """The samples with a load whose latencies double half way, with rare peaks and the slow I/Os behind them."""
    turn = len(samples) // 2
    return [_with_latencies(sample, tick, turn) for tick, sample in enumerate(with_load(samples))]


def _with_latencies(sample: Sample, tick: int, turn: int) -> Sample:
    generator = np.random.default_rng(tick)
    middle_ns = 100_000 if tick < turn else 230_000
    ios = [(row, 0, generator.lognormal(np.log(middle_ns), 0.3, 800)) for row in range(2)]
    ios.append((1, 1, generator.lognormal(np.log(900_000), 0.15, 200)))
    slow = tick % SLOW_EVERY == 4
    if slow:
        ios.append((1, 0, np.array([20e6 + tick * 1e5, 31e6])))
    peaks = {"read_peak_ns": [0, 0], "write_peak_ns": [0, 0]}
    for row, series, latency_ns in ios:
        peak = peaks[f"{SERIES[series]}_peak_ns"]
        peak[row] = max(peak[row], int(latency_ns.max()))
    load = sample.tables["load"]
    for column, values in peaks.items():
        load.values[:, load.schema.index(column)] = values
    load = replace(load, rows=LOAD_ROWS)
    tables = {
        **sample.tables,
        "load": load,
        "slow_io": _slow_ios(sample, tick, slow=slow),
        "slow_load": _slow_load_ios(sample, tick, slow=slow),
    }
    return replace(sample, tables=tables, histograms={"load": _histograms(ios)})


def _histograms(ios: Sequence[tuple[int, int, np.ndarray[tuple[int], np.dtype[np.float64]]]]) -> Histograms:
    codes = np.concatenate([(row << 24 | series << 16) + _buckets(latency_ns) for row, series, latency_ns in ios])
    code, count = np.unique(codes, return_counts=True)
    row, series, bucket = code >> 24, code >> 16 & 0xFF, code & 0xFFFF
    return Histograms(
        SCALE,
        LOAD_ROWS,
        SERIES,
        row.astype(np.uint32),
        series.astype(np.uint8),
        bucket.astype(np.uint16),
        count.astype(np.uint64),
    )


def _buckets(latency_ns: np.ndarray[tuple[int], np.dtype[np.float64]]) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """The definition in HistogramScale for latencies of 64 ns and more."""
    octave = np.floor(np.log2(latency_ns)).astype(np.int64) - SCALE.sub_bits
    return ((octave + 1) << SCALE.sub_bits) + (latency_ns.astype(np.int64) >> octave) - (1 << SCALE.sub_bits)


def _slow_ios(sample: Sample, tick: int, *, slow: bool) -> Table:
    ranks = ("0", "1") if slow else ()
    command = int.from_bytes(b"postgres", "little")
    device = list(sample.topology.devices.values())[-1]
    return table(
        SLOW_IO,
        Rows(ranks, ranks),
        completed_ns=[sample.monotonic_ns - SECOND_NS // 4, sample.monotonic_ns - SECOND_NS // 2][: len(ranks)],
        major=device.major,
        minor=device.minor,
        operation=0,
        sector=[123_456_789, 42][: len(ranks)],
        bytes=8192,
        tag_wait_ns=0,
        queue_ns=[1_500_000, 200_000][: len(ranks)],
        service_ns=[29_000_000, 20_000_000 + tick * 100_000][: len(ranks)],
        pid=[4711, 4712][: len(ranks)],
        cgroup=99,
        command_low=command,
        command_high=0,
    )


def _slow_load_ios(sample: Sample, tick: int, *, slow: bool) -> Table:
    """The slow I/Os as the load saw them: they came back some time after the kernel had done with them."""
    ranks = ("0", "1") if slow else ("0",) if tick else ()
    device = list(sample.topology.devices.values())[-1]
    done_ns = [sample.monotonic_ns - SECOND_NS // 4, sample.monotonic_ns - SECOND_NS // 2]
    latency_ns = [31_000_000, 20_300_000 + tick * 100_000]
    kernel_ns = [30_500_000, 20_200_000 + tick * 100_000]
    return table(
        SLOW_LOAD,
        Rows(ranks, ranks),
        target=1,
        direction=0,
        offset=[123_456_789 * 512, 42 * 512][: len(ranks)],
        bytes=8192,
        issued_ns=[done - kernel - 20_000 for done, kernel in zip(done_ns, kernel_ns, strict=True)][: len(ranks)],
        latency_ns=latency_ns[: len(ranks)],
        major=device.major,
        minor=device.minor,
    )
