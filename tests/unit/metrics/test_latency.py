"""Histograms: merged exactly, cumulative, and never less than before."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from collectors.derive.percentiles import bucket_bounds_ns
from collectors.exact.tracer import SCALE
from collectors.metrics.running_sums import PER_OCTAVE, border_buckets
from collectors.model import Rows, Step
from engine.replacing import replace
from tests.unit import raw_samples as raw
from tests.unit.metrics.test_families import exposed, multipath, series
from tests.unit.traced_samples import bucket_of, traced_sample

WHO = raw.rows("sda", "sdb")
LATENCY = st.integers(1, 60_000_000_000)


@pytest.mark.parametrize("per_octave", PER_OCTAVE)
def test_borders_are_borders_of_ours(per_octave: int) -> None:
    buckets = border_buckets(SCALE, per_octave)
    _, above = bucket_bounds_ns(SCALE, buckets)
    assert len(buckets) == 20 * per_octave + 1
    assert (above[0], above[-1]) == (1 << 13, 1 << 33)
    assert np.allclose(above[per_octave:] / above[:-per_octave], 2.0)


@pytest.mark.slow
@given(st.lists(st.tuples(st.integers(0, 1), st.integers(0, 3), LATENCY), max_size=40))
def test_every_bucket_counts_exactly_the_ios_up_to_its_border(ios: list[tuple[int, int, int]]) -> None:
    cells = [(row, which, bucket_of(latency_ns), 1) for row, which, latency_ns in ios]
    half = len(cells) // 2
    steps = [
        Step(None, traced_sample(at, WHO, {}, {}, cells=part)) for at, part in ((1, cells[:half]), (2, cells[half:]))
    ]
    found = series(exposed(*steps, level="latency"))
    for row, device in enumerate(WHO.names):
        for which, (stage, operation) in enumerate(
            (stage, operation) for stage in ("queue", "service") for operation in ("read", "write")
        ):
            mine = [latency_ns for one, series_at, latency_ns in ios if (one, series_at) == (row, which)]
            labels = f'device="{device}",operation="{operation}"'
            assert found[f"lunscope_disk_{stage}_seconds_count{{{labels}}}"] == len(mine)
            start = f"lunscope_disk_{stage}_seconds_bucket{{{labels},le="
            buckets = {name.split('le="')[1][:-2]: value for name, value in found.items() if name.startswith(start)}
            assert [float(border) for border in buckets] == sorted(map(float, buckets))
            assert buckets == {
                border: sum(latency_ns <= round(float(border) * 1e9) for latency_ns in mine)
                if border != "+Inf"
                else len(mine)
                for border in buckets
            }


def test_sums_survive_another_tracer() -> None:
    name = 'lunscope_disk_service_seconds_sum{device="sda",operation="read"}'
    at = [
        traced_sample(1, WHO, {"service_read_ns": 3_000_000_000}, {}, started_ns=1),
        traced_sample(2, WHO, {"service_read_ns": 4_000_000_000}, {}, started_ns=1),
        traced_sample(3, WHO, {"service_read_ns": 500_000_000}, {}, started_ns=9),
        traced_sample(4, WHO, {"service_read_ns": 750_000_000}, {}, started_ns=9),
    ]
    steps = [Step(None, at[0]), *(Step(before, now) for before, now in pairwise(at))]
    assert [series(exposed(*steps[:count], level="latency"))[name] for count in range(1, 5)] == [3, 4, 4.5, 4.75]


def test_a_gap_without_exact_time_loses_nothing_counted_before() -> None:
    name = 'lunscope_disk_service_seconds_count{device="sda",operation="write"}'
    traced = traced_sample(1, WHO, {}, {}, cells=[(0, 3, 200, 5)])
    without = raw.sample(2, disks=raw.disks(WHO, {}, {}))
    steps = [Step(None, traced), Step(traced, without)]
    assert series(exposed(*steps, level="latency"))[name] == 5


def test_ios_of_paths_count_for_their_nvme_head_and_for_their_ports() -> None:
    who, topology = multipath()
    traced = Rows(("nvme0c1n1", "nvme0c2n1", "sda"), ("nvme0c1n1", "nvme0c2n1", "sda"))
    cells = [(0, 2, 200, 3), (1, 2, 200, 4), (2, 2, 200, 5)]
    sample = traced_sample(1, traced, cells=cells, disks=[{}] * 6, disk_rows=who, topology=topology)
    found = series(exposed(Step(None, sample), level="latency,port-latency"))
    counts = {name: value for name, value in found.items() if "service_seconds_count" in name and value}
    assert counts == {
        'lunscope_disk_service_seconds_count{device="nvme0n1",operation="read"}': 7,
        'lunscope_port_service_seconds_count{port="nvme1",operation="read"}': 3,
        'lunscope_port_service_seconds_count{port="nvme2",operation="read"}': 4,
        'lunscope_port_service_seconds_count{port="host1",operation="read"}': 5,
    }


def test_a_disk_that_is_gone_has_no_series() -> None:
    first = traced_sample(1, WHO, {}, {}, cells=[(0, 2, 200, 3)])
    rows = raw.rows("sdb")
    second = replace(traced_sample(2, rows, {}), topology=raw.topology(rows))
    assert '"sda"' not in exposed(Step(None, first), Step(first, second))
