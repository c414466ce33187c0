"""Every field of every table against numbers worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from collectors.model import FrameTable, Histograms, HistogramScale, Rows, Tier
from collectors.rates import derive
from collectors.registry import fields_of
from tests.unit import raw_samples as raw

VDA = raw.rows("vda")

BEFORE = {
    "reads": 1_000,
    "reads_merged": 10,
    "read_sectors": 8_000,
    "read_ms": 5_000,
    "writes": 500,
    "writes_merged": 20,
    "write_sectors": 16_000,
    "write_ms": 7_000,
    "in_flight_now": 3,
    "busy_ms": 9_000,
    "weighted_ms": 12_000,
    "discards": 4,
    "discard_ms": 40,
    "flushes": 2,
    "flush_ms": 8,
}
GROWTH = {
    "reads": 400,
    "reads_merged": 6,
    "read_sectors": 3_200,
    "read_ms": 800,
    "writes": 100,
    "writes_merged": 8,
    "write_sectors": 6_400,
    "write_ms": 600,
    "busy_ms": 1_500,
    "weighted_ms": 1_500,
    "discards": 2,
    "discard_ms": 60,
    "flushes": 10,
    "flush_ms": 40,
}
AFTER = {name: value + GROWTH.get(name, 0) for name, value in BEFORE.items()}


def the_row(table: FrameTable, row: int = 0) -> dict[str, float]:
    return {field_id: float(column[row]) for field_id, column in table.columns.items()}


def test_every_disk_field_of_the_kernel_tier_over_two_seconds() -> None:
    frame = derive(raw.sample(10, disks=raw.disks(VDA, BEFORE)), raw.sample(12, disks=raw.disks(VDA, AFTER)))
    found = the_row(frame.tables["disks"])
    expected = {
        "iops": 250.0,
        "reads_per_s": 200.0,
        "writes_per_s": 50.0,
        "bytes_per_s": 9_600 * 512 / 2,
        "read_bytes_per_s": 3_200 * 512 / 2,
        "write_bytes_per_s": 6_400 * 512 / 2,
        "discards_per_s": 1.0,
        "flushes_per_s": 5.0,
        "read_merges_per_s": 3.0,
        "write_merges_per_s": 4.0,
        "await_ms": 1_400 / 500,
        "read_await_ms": 2.0,
        "write_await_ms": 6.0,
        "in_flight": 1.5 / 2,
        "stalled_ms": 0.0,
        "busy_pct": 75.0,
        "read_bytes_per_io": 3_200 * 512 / 400,
        "write_bytes_per_io": 6_400 * 512 / 100,
        "heat": 75.0,
    }
    missing = {"queue_ms", "service_ms", "in_flight_peak", "p50_ms", "p99_ms", "p999_ms", "max_ms"}
    missing |= {"tag_wait_ms", "service_max_ms", "queue_p99_ms", "queue_max_ms", "whole_per_s", "parts_per_io"}
    missing |= {"ios_below_ratio", "bytes_below_ratio"}
    assert set(found) == {field.id for field in fields_of("disks")} == set(expected) | missing
    assert {field_id: found[field_id] for field_id in expected} == pytest.approx(expected)
    assert all(math.isnan(found[field_id]) for field_id in missing)
    tiers = {field_id: Tier(int(codes[0])) for field_id, codes in frame.tables["disks"].tiers.items()}
    assert tiers == {
        "queue_ms": Tier.NONE,
        "service_ms": Tier.NONE,
        "busy_pct": Tier.KERNEL,
        "in_flight_peak": Tier.NONE,
    }


def sampled(**driver: int) -> FrameTable:
    """One second, 10,000 reads of 8 ms each: 80 outstanding, with what the sampler saw."""
    idle = {f"driver_{name}": 0 for name in ("in_flight_sum", "in_flight_samples", "busy_samples", "in_flight_peak")}
    before = raw.disks(VDA, idle)
    after = raw.disks(VDA, {"reads": 10_000, "read_ms": 80_000, "busy_ms": 999, **idle, **driver})
    return derive(raw.sample(0, disks=before), raw.sample(1, disks=after)).tables["disks"]


def test_queue_and_service_come_from_the_samples_by_littles_law() -> None:
    table = sampled(
        driver_in_flight_sum=20_000,
        driver_in_flight_samples=1_000,
        driver_busy_samples=900,
        driver_in_flight_peak=32,
    )
    found = the_row(table)
    assert found["await_ms"] == pytest.approx(8.0)
    assert found["service_ms"] == pytest.approx(20 / 10_000 * 1e3)
    assert found["queue_ms"] == pytest.approx(6.0)
    assert found["busy_pct"] == pytest.approx(90.0)
    assert found["in_flight_peak"] == 32
    assert found["heat"] == pytest.approx(90 * (0.4 + 0.3 * 0.75 + 0.3))
    assert {field_id: int(codes[0]) for field_id, codes in table.tiers.items()} == dict.fromkeys(
        ("queue_ms", "service_ms", "busy_pct", "in_flight_peak"), Tier.SAMPLED
    )


def test_a_queue_within_the_noise_is_no_queue() -> None:
    within = the_row(sampled(driver_in_flight_sum=64_000, driver_in_flight_samples=1_000, driver_busy_samples=1_000))
    assert within["queue_ms"] == 0.0
    assert within["service_ms"] == pytest.approx(8.0)
    beyond = the_row(sampled(driver_in_flight_sum=63_000, driver_in_flight_samples=1_000, driver_busy_samples=1_000))
    assert beyond["queue_ms"] == pytest.approx(1.7)


def test_service_is_never_more_than_the_await() -> None:
    found = the_row(sampled(driver_in_flight_sum=90_000, driver_in_flight_samples=1_000, driver_busy_samples=1_000))
    assert found["queue_ms"] == 0.0
    assert found["service_ms"] == pytest.approx(8.0)


def test_too_few_samples_fall_back_to_the_kernel_tier() -> None:
    table = sampled(driver_in_flight_sum=2_000, driver_in_flight_samples=99, driver_busy_samples=99)
    found = the_row(table)
    assert math.isnan(found["queue_ms"])
    assert math.isnan(found["service_ms"])
    assert found["busy_pct"] == pytest.approx(99.9)
    assert table.tiers["busy_pct"][0] == Tier.KERNEL
    few_busy = the_row(sampled(driver_in_flight_sum=60, driver_in_flight_samples=1_000, driver_busy_samples=29))
    assert math.isnan(few_busy["service_ms"])
    assert few_busy["busy_pct"] == pytest.approx(2.9)


def test_heat_shares_the_io_time_among_the_disks() -> None:
    who = raw.rows("vda", "vdb", "vdc")
    before = raw.disks(who, {}, {}, {})
    after = raw.disks(
        who, {"reads": 100, "read_ms": 900, "busy_ms": 500}, {"reads": 100, "read_ms": 100, "busy_ms": 500}, {}
    )
    heat = derive(raw.sample(0, disks=before), raw.sample(1, disks=after)).tables["disks"].columns["heat"]
    assert heat.tolist() == pytest.approx([50 * (0.4 + 0.27) / 0.7, 50 * (0.4 + 0.03) / 0.7, 0.0])


def test_every_host_field() -> None:
    before = raw.host(
        cpu_user_us=1_000_000, cpu_idle_us=5_000_000, cpu_iowait_us=300_000, psi_io_some_us=50, psi_cpu_some_us=7
    )
    after = raw.host(
        cpu_user_us=1_600_000,
        cpu_system_us=200_000,
        cpu_idle_us=6_000_000,
        cpu_iowait_us=400_000,
        cpu_irq_us=40_000,
        cpu_steal_us=60_000,
        cpus=4,
        memory_total_bytes=1 << 33,
        memory_available_bytes=1 << 32,
        dirty_bytes=4_096,
        writeback_bytes=8_192,
        psi_io_some_us=250_050,
        psi_io_full_us=100_000,
        psi_cpu_some_us=500_007,
        psi_memory_some_us=raw.RAW_MISSING,
        swap_in_bytes=500,
        swap_out_bytes=250,
        swap_used_bytes=7_000,
    )
    found = the_row(derive(raw.sample(0, host=before), raw.sample(0.5, host=after)).tables["host"])
    missing = found.pop("psi_memory_some_pct")
    assert math.isnan(missing)
    assert found == pytest.approx(
        {
            "cpu_user_pct": 30.0,
            "cpu_system_pct": 10.0,
            "cpu_iowait_pct": 5.0,
            "cpu_irq_pct": 2.0,
            "cpu_steal_pct": 3.0,
            "cpu_idle_pct": 50.0,
            "memory_available_bytes": float(1 << 32),
            "memory_total_bytes": float(1 << 33),
            "dirty_bytes": 4_096.0,
            "writeback_bytes": 8_192.0,
            "swap_in_bytes_per_s": 1_000.0,
            "swap_out_bytes_per_s": 500.0,
            "swap_used_bytes": 7_000.0,
            "psi_io_some_pct": 50.0,
            "psi_io_full_pct": 20.0,
            "psi_cpu_some_pct": 100.0,
        }
    )
    assert set(found) | {"psi_memory_some_pct"} == {field.id for field in fields_of("host")}


def test_iowait_that_steps_back_counts_as_none() -> None:
    before = raw.host(cpu_user_us=100, cpu_idle_us=1_000, cpu_iowait_us=500)
    after = raw.host(cpu_user_us=400, cpu_idle_us=1_700, cpu_iowait_us=490)
    found = the_row(derive(raw.sample(0, host=before), raw.sample(1, host=after)).tables["host"])
    assert (found["cpu_iowait_pct"], found["cpu_user_pct"], found["cpu_idle_pct"]) == (0.0, 30.0, 70.0)


def test_process_rates_go_over_their_own_span() -> None:
    who = Rows(("7:1", "8:1", "9:1"), ("fio", "cp", "dd"))
    grown = {"read_bytes": 3_000, "write_bytes": 6_000, "syscalls_read": 30, "syscalls_write": 60}
    after = raw.processes(
        who,
        {"pid": 7, "span_us": 3_000_000, **grown},
        {"pid": 8, "span_us": 0},
        {"pid": 9, "span_us": 1_000_000, "read_bytes": raw.RAW_MISSING},
    )
    table = derive(None, raw.sample(1, processes=after)).tables["processes"]
    assert the_row(table) == {
        "pid": 7.0,
        "read_bytes_per_s": 1_000.0,
        "write_bytes_per_s": 2_000.0,
        "syscalls_read_per_s": 10.0,
        "syscalls_write_per_s": 20.0,
    }
    assert table.value("pid", 1) == 8.0
    assert math.isnan(table.value("read_bytes_per_s", 1))
    assert math.isnan(table.value("read_bytes_per_s", 2))
    assert table.value("write_bytes_per_s", 2) == 0.0


TARGETS = Rows(("load:1:0", "load:1:1", "load:1:2"), ("a", "b", "c"))


def load_frame(histograms: Histograms | None = None) -> dict[str, FrameTable]:
    knobs = {"queue_depth": 8, "active": 1}
    before = raw.load(TARGETS, {"read_ios": 50, "in_flight_now": 8, **knobs}, knobs, {"queue_depth": 99})
    after = raw.load(
        TARGETS,
        {
            "read_ios": 1_050,
            "read_bytes": 4_096_000,
            "read_latency_ns": 2_000_000_000,
            "read_peak_ns": 7_000_000,
            "write_ios": 500,
            "write_bytes": 2_048_000,
            "write_latency_ns": 2_500_000_000,
            "write_peak_ns": 9_000_000,
            "errors": 3,
            "in_flight_now": 8,
            **knobs,
        },
        {"read_ios": 500, "read_bytes": 1_000, "read_latency_ns": 500_000_000, "read_peak_ns": 2_500_000, **knobs},
        {"queue_depth": 99},
    )
    return dict(derive(raw.sample(0, load=before), raw.sample(2, load=after, histograms=histograms)).tables)


def test_every_load_field_of_a_target() -> None:
    found = the_row(load_frame()["load"])
    assert set(found) == {field.id for field in fields_of("load")}
    unknown = ("p50_ms", "p99_ms", "p999_ms", "service_ms", "service_p99_ms")
    percentiles = [found.pop(field_id) for field_id in unknown]
    assert all(math.isnan(value) for value in percentiles)
    assert found == pytest.approx(
        {
            "iops": 750.0,
            "reads_per_s": 500.0,
            "writes_per_s": 250.0,
            "bytes_per_s": 3_072_000.0,
            "read_bytes_per_s": 2_048_000.0,
            "write_bytes_per_s": 1_024_000.0,
            "await_ms": 3.0,
            "read_await_ms": 2.0,
            "write_await_ms": 5.0,
            "max_ms": 9.0,
            "in_flight": 2.25,
            "queue_depth": 8.0,
            "errors_per_s": 1.5,
            "errors": 3.0,
            "skipped_per_s": 0.0,
        }
    )


def test_the_load_total_adds_targets_and_takes_the_largest_peak() -> None:
    found = the_row(load_frame()["load_total"])
    assert set(found) == {field.id for field in fields_of("load_total")}
    assert found["iops"] == pytest.approx(1_000.0)
    assert found["bytes_per_s"] == pytest.approx(3_072_500.0)
    assert found["await_ms"] == pytest.approx(2.5)
    assert found["max_ms"] == pytest.approx(9.0)
    assert found["in_flight"] == pytest.approx(2.5)
    assert found["queue_depth"] == 8.0
    assert found["errors"] == 3.0


def test_load_percentiles_per_target_and_over_all_of_them() -> None:
    cells = Histograms(
        HistogramScale(1, 6),
        Rows(TARGETS.keys[::-1], TARGETS.names[::-1]),
        ("read", "write"),
        np.array([2, 2, 1, 7], np.uint32),
        np.array([0, 1, 0, 0], np.uint8),
        np.array([10, 20, 30, 5], np.uint16),
        np.array([900, 100, 500, 10**6], np.uint64),
    )
    tables = load_frame(cells)
    nanoseconds = {row: [tables["load"].value(f"{p}_ms", row) * 1e6 for p in ("p50", "p99", "p999")] for row in (0, 1)}
    assert nanoseconds[0] == pytest.approx([10, 20, 20])
    assert nanoseconds[1][:2] == pytest.approx([30, 30])
    assert math.isnan(nanoseconds[1][2])
    assert math.isnan(tables["load"].value("p50_ms", 2))
    total = [tables["load_total"].value(f"{p}_ms", 0) * 1e6 for p in ("p50", "p99", "p999")]
    assert total == pytest.approx([10, 30, 30])


def test_a_percentile_is_never_above_the_exact_peak() -> None:
    scale = HistogramScale(1, 6)
    bucket_of_9_ms = next(b for b in range(1 << 12) if (64 + b % 64) << (b // 64 - 1 if b >= 64 else 0) > 9_000_000)
    cells = Histograms(
        scale,
        TARGETS,
        ("read",),
        np.zeros(1, np.uint32),
        np.zeros(1, np.uint8),
        np.array([bucket_of_9_ms], np.uint16),
        np.array([1_500], np.uint64),
    )
    assert load_frame(cells)["load"].value("p999_ms", 0) == pytest.approx(9.0)


def test_what_the_frame_says_of_the_monitor_itself() -> None:
    first, second = raw.sample(1), raw.sample(3)
    late = type(second)(second.time_ns, second.monotonic_ns, second.topology, late_ns=25_000_000, cost_ns=40_000_000)
    frame = derive(first, late)
    assert (frame.elapsed_s, frame.late_s) == (2.0, 0.025)
    assert frame.cost_pct == pytest.approx(2.0)
