"""What a monitor meets in the field: resets, wraps, reused names, stalls, clock steps, devices without counters."""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np
import pytest

from collectors.derive.counter_deltas import wrap_limit
from collectors.model import Column, FrameTable, Kind, Rows, Sample, Schema, Table, Tier, Topology
from collectors.rates import derive
from tests.unit import raw_samples as raw

VDA = raw.rows("vda")
TOP = 1 << 32


def between(
    before: Mapping[str, int], after: Mapping[str, int], topology: Topology | None = None, elapsed_s: float = 1
) -> FrameTable:
    first = raw.sample(100, disks=raw.disks(VDA, before), topology=topology)
    second = raw.sample(100 + elapsed_s, disks=raw.disks(VDA, after), topology=topology)
    return derive(first, second).tables["disks"]


def all_missing(table: FrameTable, row: int = 0) -> bool:
    return all(math.isnan(column[row]) for column in table.columns.values()) and not any(
        codes[row] for codes in table.tiers.values()
    )


def test_the_first_sample_has_gauges_and_nothing_else() -> None:
    first = raw.sample(
        5, disks=raw.disks(VDA, {"reads": 9}), host=raw.host(memory_total_bytes=77, cpu_user_us=5, psi_io_some_us=5)
    )
    frame = derive(None, first)
    assert math.isnan(frame.elapsed_s)
    assert math.isnan(frame.cost_pct)
    assert all_missing(frame.tables["disks"])
    assert frame.tables["host"].value("memory_total_bytes", 0) == 77
    assert math.isnan(frame.tables["host"].value("cpu_user_pct", 0))
    assert math.isnan(frame.tables["host"].value("psi_io_some_pct", 0))


@pytest.mark.parametrize("elapsed_s", [0, -1])
def test_no_time_no_figures(elapsed_s: float) -> None:
    assert all_missing(between({}, {"reads": 5, "read_ms": 50}, elapsed_s=elapsed_s))


def test_a_step_of_the_wall_clock_changes_nothing() -> None:
    first, second = raw.sample(0, disks=raw.disks(VDA, {})), raw.sample(2, disks=raw.disks(VDA, {"reads": 10}))
    stepped = Sample(first.time_ns - 10**15, second.monotonic_ns, second.topology, second.tables)
    assert derive(first, stepped).tables["disks"].value("iops", 0) == 5.0


def test_rates_over_a_gap_are_right() -> None:
    assert between({}, {"reads": 7_200, "read_ms": 14_400}, elapsed_s=3_600).value("reads_per_s", 0) == 2.0


def test_rows_are_matched_by_key_when_devices_come_and_go() -> None:
    before = raw.disks(raw.rows("vda", "vdb", "vdc"), {"reads": 100}, {"reads": 200}, {"reads": 300})
    after = raw.disks(raw.rows("vdc", "vdd", "vda"), {"reads": 303}, {"reads": 9_999}, {"reads": 101})
    table = derive(raw.sample(0, disks=before), raw.sample(1, disks=after)).tables["disks"]
    assert table.rows.names == ("vdc", "vdd", "vda")
    assert table.value("iops", 0) == 3.0
    assert all_missing(table, 1)
    assert table.value("iops", 2) == 1.0


def test_a_name_that_returns_as_another_device_is_new() -> None:
    before = raw.disks(Rows(("sda:8:0:11",), ("sda",)), {"reads": 100})
    after = raw.disks(Rows(("sda:8:0:12",), ("sda",)), {"reads": 150, "read_ms": 80})
    assert all_missing(derive(raw.sample(0, disks=before), raw.sample(1, disks=after)).tables["disks"])


def test_equal_keys_in_another_object_are_the_same_rows() -> None:
    before, after = raw.disks(raw.rows("vda"), {"reads": 1}), raw.disks(raw.rows("vda"), {"reads": 4})
    assert derive(raw.sample(0, disks=before), raw.sample(1, disks=after)).tables["disks"].value("iops", 0) == 3.0


def test_one_counter_that_fell_blanks_its_row_only() -> None:
    who = raw.rows("vda", "vdb")
    before = raw.disks(who, {"reads": 100, "writes": 50}, {"reads": 5})
    after = raw.disks(who, {"reads": 900, "writes": 49}, {"reads": 6})
    table = derive(raw.sample(0, disks=before), raw.sample(1, disks=after)).tables["disks"]
    assert all_missing(table, 0)
    assert table.value("iops", 1) == 1.0


def test_millisecond_counters_wrap_at_32_bits() -> None:
    table = between({"read_ms": TOP - 100, "busy_ms": TOP - 1}, {"reads": 10, "read_ms": 400, "busy_ms": 499})
    assert table.value("read_await_ms", 0) == 50.0
    assert table.value("busy_pct", 0) == pytest.approx(50.0)


def test_a_millisecond_counter_that_steps_back_is_missing() -> None:
    table = between({"read_ms": 500}, {"reads": 10, "read_ms": 400})
    assert table.value("reads_per_s", 0) == 10.0
    assert math.isnan(table.value("read_await_ms", 0))
    assert math.isnan(table.value("in_flight", 0))


def test_counters_wrap_where_the_kernels_long_has_32_bits() -> None:
    before, after = {"reads": TOP - 5, "read_sectors": TOP - 8}, {"reads": 5, "read_sectors": 72}
    wrapped = between(before, after, raw.topology(VDA, long_bits=32))
    assert wrapped.value("reads_per_s", 0) == 10.0
    assert wrapped.value("read_bytes_per_s", 0) == 80 * 512
    assert all_missing(between(before, after, raw.topology(VDA, long_bits=64)))


def test_a_reset_on_a_32_bit_kernel_is_no_wrap() -> None:
    narrow = raw.topology(VDA, long_bits=32)
    assert all_missing(between({"reads": 1_000}, {"reads": 5}, narrow))
    assert all_missing(between({"read_sectors": 3_000_000_000}, {"read_sectors": 5}, narrow))


def test_the_limit_of_a_wrap() -> None:
    assert wrap_limit(64, 1.0) == 0.0
    assert wrap_limit(32, 0.5) == float(1 << 26)
    assert wrap_limit(32, 1e9) == float(1 << 31)


def test_columns_an_older_kernel_lacks_are_missing_and_cost_nothing_else() -> None:
    lacking = dict.fromkeys(
        ("discards", "discards_merged", "discard_sectors", "discard_ms", "flushes", "flush_ms"), raw.RAW_MISSING
    )
    moved = between(lacking, {**lacking, "reads": 100, "read_ms": 500})
    assert math.isnan(moved.value("discards_per_s", 0))
    assert math.isnan(moved.value("flushes_per_s", 0))
    assert (moved.value("await_ms", 0), moved.value("in_flight", 0)) == (5.0, 0.5)
    idle = between(lacking, lacking)
    assert math.isnan(idle.value("discards_per_s", 0))
    assert idle.value("iops", 0) == 0.0


def test_an_idle_disk_is_zero_where_that_is_known_and_missing_elsewhere() -> None:
    counters = {"reads": 5, "read_ms": 9, "busy_ms": 9}
    table = between(counters, counters)
    zero = {field_id for field_id, column in table.columns.items() if column[0] == 0}
    assert zero == {
        *(f for f in table.columns if f.endswith("_per_s") and f != "whole_per_s"),
        *("heat", "iops", "in_flight", "busy_pct", "stalled_ms"),
    }
    assert table.tiers["busy_pct"][0] == Tier.KERNEL


def test_a_stall_shows_what_is_held_and_full_busy() -> None:
    held = {"reads": 500, "read_ms": 900, "in_flight_now": 32}
    table = between(held, held)
    assert (table.value("in_flight", 0), table.value("busy_pct", 0), table.value("iops", 0)) == (32.0, 100.0, 0.0)
    assert math.isnan(table.value("await_ms", 0))
    assert table.value("heat", 0) == pytest.approx(100.0)


def test_one_request_just_issued_is_no_stall() -> None:
    table = between({"in_flight_now": 0}, {"in_flight_now": 1})
    assert (table.value("in_flight", 0), table.value("busy_pct", 0)) == (0.0, 0.0)


def test_a_negative_in_flight_count_printed_as_unsigned_is_not_believed() -> None:
    held = {"in_flight_now": TOP - 1}
    assert not between(held, held).value("in_flight", 0) > 0


def test_an_io_that_outlived_the_interval_counts_for_the_interval_only() -> None:
    """Until when in it is not known: half of it, on average."""
    table = between({"in_flight_now": 1}, {"reads": 1, "read_ms": 30_000})
    assert table.value("in_flight", 0) == 0.5
    assert table.value("read_await_ms", 0) == 30_000.0


def test_ios_that_take_longer_than_the_interval_are_outstanding_all_the_time() -> None:
    """Those that complete are fewer than those outstanding: as iostat says, IOPS times await."""
    table = between({"in_flight_now": 32}, {"reads": 10, "read_ms": 32_000, "in_flight_now": 32})
    assert table.value("in_flight", 0) == 32.0
    drained = between({"in_flight_now": 32}, {"reads": 32, "read_ms": 102_400, "in_flight_now": 0})
    assert drained.value("in_flight", 0) == 16.0


def test_ios_that_do_not_complete_are_outstanding_while_others_do() -> None:
    table = between({"in_flight_now": 32}, {"reads": 20, "read_ms": 20, "in_flight_now": 32})
    assert table.value("in_flight", 0) == 12.0, "at least"


@pytest.mark.parametrize("unknown", [0, TOP - 1])
def test_long_ios_are_counted_by_littles_law_where_those_in_flight_are_not_known(unknown: int) -> None:
    table = between({"in_flight_now": unknown}, {"reads": 10, "read_ms": 32_000, "in_flight_now": unknown})
    assert table.value("in_flight", 0) == 32.0


def in_flight_samples(total: int, samples: int = 1_000, busy: int = 1_000, peak: int = 32) -> dict[str, int]:
    return {
        "driver_in_flight_sum": total,
        "driver_in_flight_samples": samples,
        "driver_busy_samples": busy,
        "driver_in_flight_peak": peak,
    }


DEEP = {"reads": 10_000, "read_ms": 80_000, "busy_ms": 1_000}


def test_ios_held_through_a_stall_are_not_taken_for_queueing() -> None:
    ended = {"reads": 10_032, "read_ms": 32 * 30_000 + 10_000, **in_flight_samples(20_000)}
    table = between({**raw.NO_SAMPLES, "in_flight_now": 32}, ended)
    assert math.isnan(table.value("queue_ms", 0))
    assert math.isnan(table.value("service_ms", 0))
    assert table.value("await_ms", 0) == pytest.approx(970_000 / 10_032)
    assert table.tiers["busy_pct"][0] == Tier.SAMPLED


def test_ios_longer_than_half_the_interval_are_not_split() -> None:
    table = between(raw.NO_SAMPLES, {"reads": 10, "read_ms": 6_000, **in_flight_samples(3_000, peak=6)})
    assert math.isnan(table.value("service_ms", 0))


def test_bio_based_devices_have_a_total_only() -> None:
    table = between(raw.NO_SAMPLES, {**DEEP, **in_flight_samples(20_000)}, raw.topology(VDA, bio_based=True))
    assert table.value("await_ms", 0) == 8.0
    assert math.isnan(table.value("queue_ms", 0))
    assert table.tiers["service_ms"][0] == Tier.NONE
    assert table.value("busy_pct", 0) == 100.0


def test_bio_based_times_count_in_ticks_and_need_more_of_them() -> None:
    few = {"reads": 100, "read_ms": 19}
    assert math.isnan(between({}, few, raw.topology(VDA, bio_based=True)).value("await_ms", 0))
    assert between({}, few, raw.topology(VDA)).value("await_ms", 0) == pytest.approx(0.19)


def test_one_truncated_millisecond_is_no_latency() -> None:
    assert math.isnan(between({}, {"reads": 1, "read_ms": 1}).value("await_ms", 0))
    assert math.isnan(between({}, {"reads": 1_000}).value("read_await_ms", 0))
    assert between({}, {"reads": 1, "read_ms": 2}).value("await_ms", 0) == 2.0


@pytest.mark.parametrize(("kernel", "split"), [("4.19.0-27", False), ("5.0.0", True), ("10.1", True), ("", True)])
def test_kernels_whose_inflight_may_hold_queued_requests_are_not_split(kernel: str, split: bool) -> None:
    table = between(raw.NO_SAMPLES, {**DEEP, **in_flight_samples(20_000)}, raw.topology(VDA, kernel=kernel))
    assert math.isnan(table.value("queue_ms", 0)) is not split


def test_a_disk_whose_accounting_is_off_is_not_idle() -> None:
    topology = raw.topology(VDA, iostats=False)
    assert all_missing(between({"reads": 5}, {"reads": 5}, topology))
    assert all_missing(between({"reads": 5}, {"reads": 9, **in_flight_samples(5)}, topology))


def test_a_restarted_sampler_takes_the_split_but_not_the_counters() -> None:
    table = between(in_flight_samples(50_000, 9_000, 9_000), {**DEEP, **in_flight_samples(20_000)})
    assert table.value("iops", 0) == 10_000.0
    assert math.isnan(table.value("queue_ms", 0))
    assert table.tiers["busy_pct"][0] == Tier.KERNEL


def test_a_disk_the_sampler_just_began_to_watch_has_no_split_yet() -> None:
    table = between({}, {**DEEP, **in_flight_samples(20_000)})
    assert math.isnan(table.value("queue_ms", 0))
    assert math.isnan(table.value("in_flight_peak", 0))


def test_busy_beyond_the_interval_is_clamped_or_distrusted() -> None:
    assert between({}, {"reads": 9, "busy_ms": 1_190}).value("busy_pct", 0) == 100.0
    distrusted = between({}, {"reads": 9, "busy_ms": 18_000})
    assert math.isnan(distrusted.value("busy_pct", 0))
    assert distrusted.tiers["busy_pct"][0] == Tier.NONE


def test_queue_peak_counts_what_waits_before_the_driver_too() -> None:
    table = between(raw.NO_SAMPLES, {**DEEP, **in_flight_samples(20_000, peak=32), "in_flight_now": 256})
    assert table.value("in_flight_peak", 0) == 256.0


def test_a_table_of_an_older_version_gives_what_it_has() -> None:
    schema = Schema("disk", (Column("reads", Kind.COUNTER), Column("writes", Kind.COUNTER)))
    first, second = (Table(schema, VDA, np.array([[reads, 5]], np.uint64)) for reads in (10, 30))
    table = derive(raw.sample(0, disks=first), raw.sample(2, disks=second)).tables["disks"]
    assert table.value("reads_per_s", 0) == 10.0
    assert math.isnan(table.value("await_ms", 0))
    grown = Table(Schema("disk", schema.columns[:1]), VDA, np.array([[50]], np.uint64))
    assert all_missing(derive(raw.sample(0, disks=first), raw.sample(2, disks=grown)).tables["disks"])


def test_tables_without_rows() -> None:
    nobody = Rows((), ())
    empty = raw.sample(0, disks=raw.disks(nobody), load=raw.load(nobody), processes=raw.processes(nobody))
    again = raw.sample(1, disks=raw.disks(nobody), load=raw.load(nobody), processes=raw.processes(nobody))
    frame = derive(empty, again)
    assert len(frame.tables["disks"].rows) == 0
    assert math.isnan(frame.tables["load_total"].value("iops", 0))


def test_a_new_run_does_not_continue_the_last_one() -> None:
    old, new = Rows(("load:1:0",), ("a",)), Rows(("load:2:0",), ("a",))
    before = raw.load(old, {"read_ios": 10})
    after = raw.load(new, {"read_ios": 90, "read_latency_ns": 90, "read_peak_ns": 5, "queue_depth": 4, "active": 1})
    table = derive(raw.sample(0, load=before), raw.sample(1, load=after)).tables["load_total"]
    assert math.isnan(table.value("iops", 0))
    assert math.isnan(table.value("max_ms", 0))
    assert table.value("queue_depth", 0) == 4.0
