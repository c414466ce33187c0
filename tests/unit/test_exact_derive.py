"""Exact figures from made counters: every field, resets, late readings, new rows, roll-ups to LUNs and ports."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from collectors.derive.percentiles import bucket_bounds_ns
from collectors.exact.tracer import SCALE
from collectors.graph import Graph, Lun, Path, Port, TargetPort
from collectors.model import MISSING, Device, Frame, Rows, Sample, Step, Tier, Topology
from collectors.rates import derive
from collectors.tables.block.averages import BlockAverages, TracedSum
from collectors.tables.block.derive.traced import traced
from collectors.tables.block.schema import NO_TAG_WAITS, TAG_WAITS_TIMED, TRACE
from tests.unit import raw_samples as raw
from tests.unit.traced_samples import bucket_of, traced_sample

SDA = Rows(("sda:8:0#1",), ("sda",))
US = 1_000
MS = 1_000_000


def figures(frame: Frame, row: int = 0, table: str = "disks") -> dict[str, float]:
    return {field_id: float(column[row]) for field_id, column in frame.tables[table].columns.items()}


def tier(frame: Frame, field_id: str, row: int = 0, table: str = "disks") -> Tier:
    return Tier(int(frame.tables[table].tiers[field_id][row]))


BUSY = {
    "reads": 900,
    "writes": 100,
    "read_bytes": 900 * 4096,
    "write_bytes": 100 * 8192,
    "queue_read_ns": 900 * 200 * US,
    "queue_write_ns": 100 * 700 * US,
    "service_read_ns": 900 * 100 * US,
    "service_write_ns": 100 * 300 * US,
    "tag_wait_ns": 1000 * 50 * US,
    "busy_ns": 250 * MS,
    "in_driver_peak": 7,
    "queue_max_ns": 4 * MS,
    "service_max_ns": 3 * MS,
    "latency_max_ns": 6 * MS,
}
"""One second: 1,000 I/Os."""

COUNTED = {"reads": 900, "writes": 100, "read_ms": 270, "write_ms": 100, "busy_ms": 900, "read_sectors": 7200}
CELLS = [
    (0, 2, bucket_of(100 * US), 900),
    (0, 3, bucket_of(300 * US), 98),
    (0, 3, bucket_of(3 * MS), 2),
    (0, 0, bucket_of(200 * US), 900),
    (0, 1, bucket_of(700 * US), 100),
]


def busy_frame(**options: int) -> Frame:
    before = traced_sample(0, SDA, {}, **options)  # type: ignore[arg-type]
    return derive(before, traced_sample(1, SDA, BUSY, disks=[COUNTED], cells=CELLS, **options))  # type: ignore[arg-type]


def test_every_exact_figure_of_a_disk() -> None:
    found = figures(busy_frame(tag_wait=1))
    assert found["queue_ms"] == pytest.approx((900 * 0.2 + 100 * 0.7) / 1000)
    assert found["service_ms"] == pytest.approx((900 * 0.1 + 100 * 0.3) / 1000)
    assert found["await_ms"] == pytest.approx(found["queue_ms"] + found["service_ms"])
    assert found["read_await_ms"] == pytest.approx(0.3)
    assert found["write_await_ms"] == pytest.approx(1.0)
    assert found["tag_wait_ms"] == pytest.approx(0.05)
    assert found["busy_pct"] == pytest.approx(25.0)
    assert found["in_flight_peak"] == 7
    assert (found["queue_max_ms"], found["service_max_ms"], found["max_ms"]) == (4.0, 3.0, 6.0)
    for field_id, truth_ms in (("p50_ms", 0.1), ("p99_ms", 0.3), ("queue_p99_ms", 0.7)):
        bucket = np.array([bucket_of(round(truth_ms * MS))], np.uint16)
        low, above = (float(bound[0]) / MS for bound in bucket_bounds_ns(SCALE, bucket))
        assert low <= found[field_id] < above, field_id
    assert found["p999_ms"] <= found["service_max_ms"]


def test_exact_figures_are_marked_and_counts_stay_the_kernels() -> None:
    frame = busy_frame()
    for field_id in ("queue_ms", "service_ms", "await_ms", "busy_pct", "p50_ms", "p99_ms", "p999_ms", "max_ms"):
        assert tier(frame, field_id) is Tier.EXACT, field_id
    assert figures(frame)["iops"] == 1000
    assert "iops" not in frame.tables["disks"].tiers


def test_busy_time_that_is_not_counted_is_that_of_the_next_tier() -> None:
    """As on kernels without results of atomic operations: nothing is made up of what is missing, all else is exact."""
    without = {"busy_ns": int(MISSING), "in_driver_peak": int(MISSING), "in_driver_peak_most": int(MISSING)}
    before = traced_sample(0, SDA, without)
    frame = derive(before, traced_sample(1, SDA, BUSY | without, disks=[COUNTED], cells=CELLS))
    assert figures(frame)["busy_pct"] == pytest.approx(90.0)
    assert tier(frame, "busy_pct") is Tier.KERNEL
    assert math.isnan(figures(frame)["in_flight_peak"])
    for field_id in ("queue_ms", "service_ms", "p99_ms", "max_ms"):
        assert tier(frame, field_id) is Tier.EXACT, field_id


def test_waits_for_tags_are_unknown_while_nobody_watches_them() -> None:
    assert math.isnan(figures(busy_frame(tag_wait=0))["tag_wait_ms"])


@pytest.mark.parametrize(
    ("before", "now", "is_known"),
    [
        (TAG_WAITS_TIMED, TAG_WAITS_TIMED, True),
        (0, TAG_WAITS_TIMED, False),
        (TAG_WAITS_TIMED, 0, False),
        (0, NO_TAG_WAITS, True),
        (NO_TAG_WAITS, 0, False),
        (NO_TAG_WAITS, TAG_WAITS_TIMED, False),
        (0, TAG_WAITS_TIMED | NO_TAG_WAITS, True),
    ],
)
def test_waits_for_tags_are_known_if_timed_or_if_none_began(before: int, now: int, *, is_known: bool) -> None:
    first = traced_sample(0, SDA, {}, tag_wait=before)
    found = figures(derive(first, traced_sample(1, SDA, BUSY, disks=[COUNTED], cells=CELLS, tag_wait=now)))
    assert math.isnan(found["tag_wait_ms"]) is not is_known


def test_busy_time_is_measured_on_the_readers_own_clock() -> None:
    before = traced_sample(0, SDA, {})
    after = traced_sample(1, SDA, BUSY | {"busy_ns": 1_250 * MS}, disks=[COUNTED], late_ns=250 * MS)
    assert figures(derive(before, after))["busy_pct"] == pytest.approx(100.0)


def test_an_idle_disk_is_known_to_be_idle() -> None:
    frame = derive(traced_sample(0, SDA, BUSY), traced_sample(1, SDA, BUSY | {"in_driver_peak": 0}))
    assert figures(frame)["busy_pct"] == 0.0
    assert tier(frame, "busy_pct") is Tier.EXACT
    assert math.isnan(figures(frame)["queue_ms"])
    assert math.isnan(figures(frame)["max_ms"])


def test_a_disk_whose_ios_hang_since_before_tracing_is_not_idle() -> None:
    """Nobody saw them begin: the kernel has them in flight at both ends."""
    hanging = [{"in_flight_now": 1}]
    before, now = (traced_sample(at, Rows((), ()), disk_rows=SDA, disks=hanging) for at in (0, 1))
    frame = derive(before, now)
    assert figures(frame)["in_flight"] == 1.0
    assert tier(frame, "busy_pct") is not Tier.EXACT


def test_p999_needs_a_thousand_ios() -> None:
    few = [(0, 2, bucket_of(100 * US), 999)]
    before = traced_sample(0, SDA, {})
    frame = derive(
        before, traced_sample(1, SDA, {"reads": 999, "service_max_ns": MS}, disks=[{"reads": 999}], cells=few)
    )
    assert math.isnan(figures(frame)["p999_ms"])
    assert figures(frame)["p99_ms"] > 0


def unmarked(frame: Frame) -> bool:
    return all((codes != Tier.EXACT).all() for codes in frame.tables["disks"].tiers.values())


def test_a_tracer_that_began_anew_gives_no_interval() -> None:
    before = traced_sample(0, SDA, {"reads": 5_000}, started_ns=1)
    assert unmarked(derive(before, traced_sample(1, SDA, BUSY, disks=[COUNTED], started_ns=2)))


@pytest.mark.parametrize(
    ("losses", "speaks"),
    [
        ({"unseen": 50, "stale": 0}, True),
        ({"unseen": 51}, False),
        ({"table_full": 40, "unseen": 40}, True),
        ({"unseen": 20, "stale": 20, "healed": 20}, False),
    ],
)
def test_of_an_interval_that_lost_too_much_only_lower_bounds_are_known(losses: dict[str, int], speaks: bool) -> None:
    """There are 1,000 I/Os; one that found no room is not seen to end either."""
    before = traced_sample(0, SDA, {}, losses=dict.fromkeys(losses, 7))
    after = {name: count + 7 for name, count in losses.items()}
    frame = derive(before, traced_sample(1, SDA, BUSY, disks=[COUNTED], cells=CELLS, losses=after))
    assert (tier(frame, "service_ms") is Tier.EXACT) is speaks
    for field_id in ("busy_pct", "service_max_ms"):
        assert tier(frame, field_id) is (Tier.EXACT if speaks else Tier.AT_LEAST)
    assert figures(frame)["busy_pct"] == pytest.approx(25.0)


@pytest.mark.parametrize(("lost_ns", "is_exact"), [(0, True), (2 * MS, True), (3 * MS, False), (900 * MS, False)])
def test_busy_time_beside_lost_ios_is_at_least_that_of_those_that_were_seen(lost_ns: int, *, is_exact: bool) -> None:
    """250 ms; never the 90 % of the kernel's ticks."""
    before = traced_sample(0, SDA, {"lost_in_driver_ns": 5 * MS})
    lossy = BUSY | {"lost_in_driver_ns": 5 * MS + lost_ns}
    frame = derive(before, traced_sample(1, SDA, lossy, disks=[COUNTED], cells=CELLS))
    assert tier(frame, "busy_pct") is (Tier.EXACT if is_exact else Tier.AT_LEAST)
    assert figures(frame)["busy_pct"] == pytest.approx(25.0)
    assert tier(frame, "service_max_ms") is (Tier.AT_LEAST if lost_ns else Tier.EXACT)
    assert tier(frame, "service_ms") is Tier.EXACT


@pytest.mark.parametrize(
    ("lost_ns", "busy_pct", "is_exact"),
    [(0, 25.0, True), (2 * MS, 24.8, True), (3 * MS, 24.7, False), (100 * MS, 15.0, False), (400 * MS, 0.0, False)],
)
def test_busy_time_of_sessions_that_have_lost_ios_in_it_is_what_is_left(
    lost_ns: int, busy_pct: float, *, is_exact: bool
) -> None:
    samples = [
        raw.without_column(traced_sample(at_s, SDA, values, disks=[counted]), TRACE.name, "in_driver_peak_most")
        for at_s, values, counted in ((0, {}, {}), (1, BUSY | {"lost_in_driver_ns": lost_ns}, COUNTED))
    ]
    frame = derive(*samples)
    assert figures(frame)["busy_pct"] == pytest.approx(busy_pct)
    assert tier(frame, "busy_pct") is (Tier.EXACT if is_exact else Tier.AT_LEAST)


@pytest.mark.parametrize("lost_ns", [0, 1])
def test_a_lost_io_leaves_the_peak_in_the_driver_to_the_next_tier(lost_ns: int) -> None:
    """It may have been one of them, however short."""
    before = traced_sample(0, SDA, {"lost_in_driver_ns": 5 * MS})
    lossy = BUSY | {"lost_in_driver_ns": 5 * MS + lost_ns}
    frame = derive(before, traced_sample(1, SDA, lossy, disks=[COUNTED], cells=CELLS))
    assert math.isnan(figures(frame)["in_flight_peak"]) is bool(lost_ns)


@pytest.mark.parametrize(("most", "is_known"), [(7, True), (12, False)])
def test_the_peak_in_the_driver_is_known_where_its_bounds_are_equal(most: int, *, is_known: bool) -> None:
    counts = BUSY | {"in_driver_peak_most": most}
    frame = derive(traced_sample(0, SDA, {}), traced_sample(1, SDA, counts, disks=[COUNTED], cells=CELLS))
    assert math.isnan(figures(frame)["in_flight_peak"]) is not is_known


def test_percentiles_are_missing_where_no_histogram_had_room_for_a_time() -> None:
    before, counts = traced_sample(0, SDA, {"uncounted": 3}), BUSY | {"uncounted": 4}
    found = figures(derive(before, traced_sample(1, SDA, counts, disks=[COUNTED], cells=CELLS)))
    assert math.isnan(found["p99_ms"])
    assert math.isnan(found["queue_p99_ms"])
    assert (found["service_max_ms"], found["max_ms"]) == (3.0, 6.0)


def test_the_doubt_of_busy_time_is_extrapolated_as_busy_time_is() -> None:
    """8 % of what was known of it; of the second interval nothing is, as the counters fell."""
    samples = [
        traced_sample(0, SDA, {}),
        traced_sample(1, SDA, BUSY | {"lost_in_driver_ns": 20 * MS}),
        traced_sample(2, SDA, BUSY | {"busy_ns": 100 * MS}),
    ]
    report = TracedSum()
    for before, now in itertools.pairwise(samples):
        interval = traced(before, now)
        assert interval is not None
        report.add(interval)
    total = report.total()
    assert total is not None
    assert total.values["busy_ns"].tolist() == [500 * MS]
    assert total.values["lost_in_driver_ns"].tolist() == [40 * MS]


def test_averages_add_up_what_was_seen_beside_lost_ios() -> None:
    """250 ms of the first second, 650 ms of the second."""
    lossy = {name: 2 * value for name, value in BUSY.items()} | {"lost_in_driver_ns": 400 * MS, "busy_ns": 900 * MS}
    samples = [
        traced_sample(at, SDA, values, disks=[{name: at * value for name, value in COUNTED.items()}])
        for at, values in enumerate(({}, BUSY, lossy))
    ]
    report = BlockAverages()
    for before, now in itertools.pairwise(samples):
        report.add(Step(before, now))
    disks = report.tables()["disks"]
    assert disks.columns["busy_pct"][0] == pytest.approx(45.0)
    assert disks.tiers["busy_pct"][0] == Tier.AT_LEAST
    assert np.isnan(disks.columns["in_flight_peak"][0])


def test_a_report_of_which_much_was_lost_has_lower_bounds_only() -> None:
    """One of two intervals lost a tenth of its I/Os: means are those of the kernel's counters."""
    twice = {name: 2 * value for name, value in BUSY.items()}
    samples = [
        traced_sample(at, SDA, values, losses={"unseen": unseen}, disks=[{n: at * v for n, v in COUNTED.items()}])
        for at, (values, unseen) in enumerate((({}, 0), (BUSY, 0), (twice, 100)))
    ]
    report = BlockAverages()
    for before, now in itertools.pairwise(samples):
        report.add(Step(before, now))
    disks = report.tables()["disks"]
    assert disks.columns["busy_pct"][0] == pytest.approx(25.0)
    assert Tier(int(disks.tiers["busy_pct"][0])) is Tier.AT_LEAST
    assert Tier(int(disks.tiers["service_ms"][0])) is not Tier.EXACT


def test_busy_time_of_a_session_without_the_time_of_lost_ios_is_exact() -> None:
    samples = [
        raw.without_column(traced_sample(at_s, SDA, values, disks=[counted]), TRACE.name, "lost_in_driver_ns")
        for at_s, values, counted in ((0, {}, {}), (1, BUSY, COUNTED))
    ]
    assert tier(derive(*samples), "busy_pct") is Tier.EXACT


def test_counters_that_fell_give_no_figure() -> None:
    before = traced_sample(0, SDA, BUSY | {"reads": 10_000})
    assert unmarked(derive(before, traced_sample(1, SDA, BUSY, disks=[COUNTED], cells=CELLS)))


def test_without_a_sample_before_nothing_is_exact() -> None:
    assert unmarked(derive(None, traced_sample(1, SDA, BUSY, disks=[COUNTED], cells=CELLS)))


def test_figures_change_tier_when_the_tracer_comes_and_goes() -> None:
    plain = raw.sample(0, disks=raw.disks(SDA, {}), topology=raw.topology(SDA))
    started = traced_sample(1, SDA, {}, disks=[COUNTED])
    running = traced_sample(2, SDA, BUSY, disks=[{name: 2 * value for name, value in COUNTED.items()}])
    gone = raw.sample(3, disks=raw.disks(SDA, {name: 3 * value for name, value in COUNTED.items()}))
    tiers = [
        Tier(int(derive(before, after).tables["disks"].tiers["busy_pct"][0]))
        for before, after in ((plain, started), (started, running), (running, gone))
    ]
    assert tiers == [Tier.KERNEL, Tier.EXACT, Tier.KERNEL]


def test_a_device_seen_for_the_first_time_has_counted_from_zero() -> None:
    both = Rows(("sda:8:0#1", "sdb:8:16#2"), ("sda", "sdb"))
    before = traced_sample(0, SDA, {}, disk_rows=both)
    frame = derive(before, traced_sample(1, both, {}, BUSY, disks=[{}, COUNTED]))
    assert figures(frame, 1)["service_ms"] == pytest.approx(0.12)


def test_a_device_the_kernel_does_not_count_is_shown() -> None:
    topology = raw.topology(SDA, iostats=False)
    before = traced_sample(0, SDA, {}, topology=topology)
    unstamped = {"unstamped": 1_000, "queue_read_ns": 0, "queue_write_ns": 0, "queue_max_ns": 0}
    found = figures(derive(before, traced_sample(1, SDA, BUSY | unstamped, topology=topology)))
    assert found["iops"] == pytest.approx(1000)
    assert found["read_bytes_per_io"] == 4096
    assert found["service_ms"] == pytest.approx(0.12)
    assert found["service_max_ms"] == 3.0
    for unknown in ("queue_ms", "queue_max_ms", "await_ms", "max_ms", "in_flight"):
        assert math.isnan(found[unknown]), unknown


def test_bits_the_kernel_counts_and_nobody_traced_stay_the_kernels() -> None:
    frame = derive(traced_sample(0, SDA, {}), traced_sample(1, SDA, {}, disks=[COUNTED]))
    assert figures(frame)["busy_pct"] == pytest.approx(90.0)
    assert tier(frame, "busy_pct") is Tier.KERNEL


NVME = Rows(("nvme0n1:259:0#1", "nvme0c0n1:259:1#", "nvme0c1n1:259:2#"), ("nvme0n1", "nvme0c0n1", "nvme0c1n1"))
PATHS = Rows(NVME.keys[1:], NVME.names[1:])


def nvme_topology() -> Topology:
    graph = Graph(
        ports=(Port("p0", "nvme0", "nvme-tcp"), Port("p1", "nvme1", "nvme-tcp")),
        targets=(TargetPort("t0", "10.0.0.1", "nvme-tcp"),),
        luns=(Lun(NVME.keys[0], "nvme0n1", "nvme"),),
        paths=tuple(
            Path(key, name, NVME.keys[0], port, "t0")
            for key, name, port in zip(PATHS.keys, PATHS.names, ("p0", "p1"), strict=True)
        ),
    )
    devices = {key: Device(key, name, "disk", 259, 0) for key, name in zip(NVME.keys, NVME.names, strict=True)}
    return Topology(devices, graph=graph)


def multipath(at_s: float, first: dict[str, int], second: dict[str, int], groups: dict[str, int]) -> Sample:
    cells = [(0, 2, bucket_of(100 * US), 500), (1, 2, bucket_of(2 * MS), 500)] if first else []
    disks = [{}, {"reads": first.get("reads", 0)}, {"reads": second.get("reads", 0)}]
    return traced_sample(
        at_s, PATHS, first, second, disk_rows=NVME, disks=disks, groups=groups, topology=nvme_topology(), cells=cells
    )


def multipath_frame() -> Frame:
    fast = {
        "reads": 500,
        "service_read_ns": 500 * 100 * US,
        "busy_ns": 400 * MS,
        "service_max_ns": MS,
        "latency_max_ns": MS,
    }
    slow = {
        "reads": 500,
        "service_read_ns": 500 * 2 * MS,
        "busy_ns": 500 * MS,
        "service_max_ns": 9 * MS,
        "latency_max_ns": 9 * MS,
    }
    names = (f"lun {NVME.keys[0]}", "hba p0", "hba p1", "target t0")
    before = multipath(0, {}, {}, dict.fromkeys(names, 0))
    return derive(
        before, multipath(1, fast, slow, dict(zip(names, (700 * MS, 400 * MS, 500 * MS, 700 * MS), strict=True)))
    )


def test_an_nvme_head_is_its_paths_together() -> None:
    frame = multipath_frame()
    found = figures(frame)
    assert found["iops"] == pytest.approx(1000)
    assert found["service_ms"] == pytest.approx(1.05)
    assert found["busy_pct"] == pytest.approx(70.0)
    assert found["max_ms"] == 9.0
    assert found["p50_ms"] == pytest.approx(0.1, rel=0.07)
    assert found["p99_ms"] == pytest.approx(2.0, rel=0.07)
    assert tier(frame, "busy_pct") is Tier.EXACT


def test_a_port_is_busy_while_any_of_its_paths_is_and_has_percentiles() -> None:
    frame = multipath_frame()
    ports = frame.tables["hbas"]
    assert ports.columns["busy_pct"].tolist() == pytest.approx([40.0, 50.0])
    assert ports.columns["busy_low_pct"].tolist() == ports.columns["busy_high_pct"].tolist()
    assert ports.columns["p99_ms"][1] == pytest.approx(2.0, rel=0.07)
    paths = frame.tables["paths"]
    assert paths.columns["service_ms"].tolist() == pytest.approx([0.1, 2.0])


def test_a_target_port_is_busy_while_any_path_to_it_is_and_the_host_within_bounds() -> None:
    frame = multipath_frame()
    target, host = frame.tables["target_ports"], frame.tables["whole_host"]
    assert target.columns["busy_pct"].tolist() == pytest.approx([70.0])
    assert Tier(int(target.tiers["busy_pct"][0])) is Tier.EXACT
    assert target.columns["p99_ms"][0] == pytest.approx(2.0, rel=0.07)
    for table in (target, host):
        assert table.columns["iops"].tolist() == pytest.approx([1000])
        assert table.columns["max_ms"].tolist() == [9.0]
    # No group has the union of all paths of the host: it is at least that of the busiest, and never above 100 %.
    assert host.columns["busy_low_pct"].tolist() == pytest.approx([50.0])
    assert host.columns["busy_high_pct"].tolist() == pytest.approx([90.0])


def test_ports_and_luns_have_both_bounds_of_busy_time_beside_lost_ios() -> None:
    """The group of a LUN may have the 100 ms of the lost I/O in its 700 ms, or not."""
    lossy = {"reads": 500, "service_read_ns": 500 * 100 * US, "busy_ns": 400 * MS, "lost_in_driver_ns": 100 * MS}
    whole = {"reads": 500, "service_read_ns": 500 * 2 * MS, "busy_ns": 500 * MS}
    names = (f"lun {NVME.keys[0]}", "hba p0", "hba p1", "target t0")
    groups = dict(zip(names, (700 * MS, 400 * MS, 500 * MS, 700 * MS), strict=True))
    frame = derive(multipath(0, {}, {}, dict.fromkeys(names, 0)), multipath(1, lossy, whole, groups))
    ports = frame.tables["hbas"]
    assert ports.columns["busy_low_pct"].tolist() == pytest.approx([40.0, 50.0])
    assert ports.columns["busy_high_pct"].tolist() == pytest.approx([50.0, 50.0])
    assert ports.tiers["busy_pct"].tolist() == [Tier.AT_LEAST, Tier.EXACT]
    assert figures(frame)["busy_pct"] == pytest.approx(60.0)
    assert tier(frame, "busy_pct") is Tier.AT_LEAST


def test_a_group_whose_devices_changed_has_no_busy_time_of_its_own() -> None:
    one_port = nvme_topology()
    graph = Graph(
        ports=one_port.graph.ports[:1],
        luns=one_port.graph.luns,
        paths=tuple(Path(path.key, path.name, path.lun, "p0") for path in one_port.graph.paths),
    )
    topology = Topology(one_port.devices, graph=graph)
    before = traced_sample(0, PATHS, {}, {}, disk_rows=NVME, groups={"hba p0": raw.RAW_MISSING}, topology=topology)
    after = traced_sample(
        1,
        PATHS,
        {"reads": 1, "busy_ns": MS},
        {"reads": 1, "busy_ns": MS},
        disk_rows=NVME,
        disks=[{}, {"reads": 1}, {"reads": 1}],
        groups={"hba p0": 2 * MS},
        topology=topology,
    )
    busy = derive(before, after).tables["hbas"]
    assert Tier(int(busy.tiers["busy_pct"][0])) is not Tier.EXACT
