"""What looking costs: measured by the kernel, or estimated; and exact time that is stopped where it costs too much."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
import pytest

from collectors.exact.live_tier import CALM_S, LONGEST_CALM_S, OVER_S, CostRuling, Governor
from collectors.exact.losses import tracer_table
from collectors.model import Looking, Rows, Sample, Table
from collectors.tables.block.derive.looking import ESTIMATED_NS, added_up, looking_lines, looking_of
from collectors.tables.block.schema import TRACE
from engine.replacing import replace
from tests.unit import raw_samples as raw

SDA = Rows(("sda:8:0#1",), ("sda",))
SECOND_NS = 1_000_000_000


def traced_at(
    at_s: int, ios: int, *, runs: int = 0, time_ns: int = 0, cpu_s: float = 0.0, started_ns: int = 1, counted: int = 0
) -> Sample:
    """A sample after so many I/Os, with what the kernel says of the programs and of its CPUs."""
    values = [[ios if column.id == "reads" else 0 for column in TRACE.columns]]
    sample = raw.sample(at_s, disks=raw.disks(SDA, {"reads": counted}), host=raw.host(cpu_user_us=round(cpu_s * 1e6)))
    losses = {"program_runs": runs, "program_time_ns": time_ns}
    tables = {
        TRACE.name: Table(TRACE, SDA, np.array(values, np.uint64)),
        "tracer": tracer_table(started_ns, sample.monotonic_ns, losses, 0),
    }
    return replace(sample, tables={**sample.tables, **tables})


def cost_of(before: Sample, now: Sample) -> Looking:
    found = looking_of(before, now, 1.0)
    assert found is not None
    return found


def test_what_the_kernel_measured_is_taken() -> None:
    cost = cost_of(traced_at(0, 0, runs=5, time_ns=700), traced_at(1, 100_000, runs=300_005, time_ns=25_000_700))
    assert cost.is_measured
    assert cost.ns_per_io == pytest.approx(250)
    assert cost.programs_pct == pytest.approx(2.5)
    assert "250 ns per I/O (measured by the kernel)" in " ".join(looking_lines(cost))


def test_without_statistics_of_the_kernel_it_is_a_stated_figure_per_io() -> None:
    cost = cost_of(traced_at(0, 0, runs=7, time_ns=9), traced_at(1, 100_000, runs=7, time_ns=9))
    assert not cost.is_measured
    assert cost.ns_per_io == pytest.approx(ESTIMATED_NS)
    assert "stated figure" in " ".join(looking_lines(cost))


def test_statistics_that_the_kernel_kept_for_a_part_of_the_interval_are_left_out() -> None:
    cost = cost_of(traced_at(0, 0), traced_at(1, 100_000, runs=200_000, time_ns=10_000_000))
    assert not cost.is_measured
    assert cost.ns_per_io == pytest.approx(ESTIMATED_NS)


def test_a_tracer_that_began_in_the_interval_has_no_cost() -> None:
    cost = cost_of(traced_at(0, 0), traced_at(1, 100_000, started_ns=2))
    assert math.isnan(cost.programs_s)
    assert math.isnan(cost_of(raw.sample(0), raw.sample(1)).programs_s)


def test_intervals_add_up_and_one_without_tracing_does_not_count() -> None:
    measured = Looking(1.0, 0.02, 0.01, 50_000.0, is_measured=True)
    untraced = Looking(1.0, 0.04, math.nan, math.nan, is_measured=False)
    total = added_up([measured, untraced, measured])
    assert total is not None
    assert (total.elapsed_s, total.ios, total.is_measured) == (3.0, 100_000, True)
    assert total.sampling_s == pytest.approx(0.08)
    assert total.ns_per_io == pytest.approx(200)


def test_intervals_that_the_kernel_measured_speak_for_the_others() -> None:
    measured = Looking(1.0, 0.0, 0.02, 50_000.0, is_measured=True)
    stated = Looking(1.0, 0.0, 0.015, 50_000.0, is_measured=False)
    total = added_up([stated, measured, stated])
    assert total is not None
    assert (total.is_measured, total.ios) == (True, 150_000)
    assert total.ns_per_io == pytest.approx(400)


def busy_host(share_pct: float, iops: int = 1_000_000, ns_per_io: int = 300) -> Iterator[Sample]:
    """Samples of a host on which the programs take a share of the CPU time."""
    programs_s = iops * ns_per_io / 1e9
    for at in range(100_000):
        yield traced_at(
            at,
            at * iops,
            runs=at * 3 * iops,
            time_ns=at * iops * ns_per_io,
            cpu_s=at * programs_s * 100.0 / share_pct,
            counted=at * iops,
        )


def stopped_at(governor: Governor, samples: Iterator[Sample], most: int) -> int | None:
    """Number of the sample at which it stopped exact time."""
    for number in range(most):
        if governor.judge(next(samples), is_stopped=False) is CostRuling.STOP:
            return number
    return None


def test_exact_time_that_costs_too_much_is_stopped_after_some_seconds() -> None:
    governor = Governor(5.0)
    assert stopped_at(governor, busy_host(10.0), 20) == OVER_S
    assert "30.0 % of a CPU, 10.0 % of the CPU time of the host (measured, 300 ns per I/O)" in governor.reason


@pytest.mark.parametrize(
    ("most_pct", "share_pct", "iops"),
    [(5.0, 4.0, 1_000_000), (5.0, 50.0, 100_000), (0.0, 50.0, 1_000_000)],
    ids=["little of what is spent", "little of a CPU", "no limit"],
)
def test_what_costs_little_goes_on(most_pct: float, share_pct: float, iops: int) -> None:
    assert stopped_at(Governor(most_pct), busy_host(share_pct, iops), 60) is None


def test_a_burst_stops_nothing() -> None:
    governor, ios = Governor(5.0), 0
    for at in range(40):
        ios += 1_000_000 if at % 5 else 0
        assert governor.judge(traced_at(at, ios, cpu_s=float(at)), is_stopped=False) is CostRuling.GO_ON


def test_it_begins_again_when_the_load_is_gone_and_waits_longer_each_time() -> None:
    governor, at, ios = Governor(5.0), 0, 0
    waits = []
    for _ in range(9):
        verdict = CostRuling.GO_ON
        while verdict is not CostRuling.STOP:
            at, ios = at + 1, ios + 1_000_000
            verdict = governor.judge(traced_at(at, ios, cpu_s=float(at), counted=ios), is_stopped=False)
        stopped = at
        for _ in range(10):  # the load goes on: nothing changes
            at, ios = at + 1, ios + 1_000_000
            assert governor.judge(traced_at(at, 0, counted=ios), is_stopped=True) is CostRuling.GO_ON
        while verdict is not CostRuling.BEGIN_AGAIN:
            at += 1
            verdict = governor.judge(traced_at(at, 0, counted=ios), is_stopped=True)
        waits.append(at - stopped - 10)
    assert waits == [min(CALM_S * 2**turn, LONGEST_CALM_S) for turn in range(9)]
