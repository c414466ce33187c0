"""The waterfall of the load beside its devices: when there is a mean, and why not."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.graph import Graph, Layer
from collectors.latency.load_waterfall import LoadWaterfall, load_waterfall
from collectors.latency.waterfall import Stage
from collectors.model import Frame, FrameTable, Rows, Sample, Step, Table, Tier, Topology
from collectors.tables.cgroup.schema import row_key
from collectors.tables.load.schema import LOAD, SLOW_LOAD
from engine.replacing import replace
from tests.app.sources import SECOND_NS, START_NS, make_topology, table
from tests.unit.latency_ticks import histograms
from tui.history.charts import History

TICKS = 10
UNKNOWN = float("nan")
Groups = dict[str, tuple[float, float, float, float]]
"""IOPS, share of the limit, I/Os held per second, milliseconds each, by path."""
EXACT, SAMPLED = int(Tier.EXACT), int(Tier.SAMPLED)


def _found(
    *,
    device_iops: float = 1_000.0,
    queue_ms: float = 7.0,
    service_ms: float = 2.0,
    number: tuple[int, int] = (8, 0),
    tier: int = EXACT,
    graph: Graph | None = None,
    groups: Groups | None = None,
) -> LoadWaterfall:
    """A load of 1,000 IOPS and 10 ms on a device with these figures."""
    topology = make_topology(("sda",))
    if graph is not None:
        topology = replace(topology, graph=graph)
    history, previous = History(), _sample(0, topology, number)
    for tick in range(1, TICKS):
        sample = _sample(tick, topology, number)
        history.add(_with_groups(_frame(sample, device_iops, queue_ms, service_ms, tier), groups))
        history.latencies.add(Step(previous, sample))
        previous = sample
    frame = _with_groups(_frame(previous, device_iops, queue_ms, service_ms, tier), groups)
    return load_waterfall(history.latencies, history.series, frame, START_NS, previous.time_ns)


def _sample(tick: int, topology: Topology, number: tuple[int, int]) -> Sample:
    rows = Rows(("load:1:0",), ("/dev/sda",))
    load = table(LOAD, rows, read_ios=1_000 * tick, read_peak_ns=1)
    own = [0, 0, 4096, 4096, tick * SECOND_NS, 10_000_000, *number]
    slow = Table(SLOW_LOAD, Rows(("0",), ("0",)), np.array([own], np.uint64))
    tables = {"load": load, "slow_load": slow}
    cells = {"load": histograms([], rows)}
    return Sample(START_NS + tick * SECOND_NS, tick * SECOND_NS, topology, tables, cells)


def _frame(sample: Sample, device_iops: float, queue_ms: float, service_ms: float, tier: int) -> Frame:
    disks = Rows(tuple(sample.topology.devices), ("sda",))
    figures = {"iops": device_iops, "queue_ms": queue_ms, "service_ms": service_ms}
    columns = {name: np.array([value]) for name, value in figures.items()}
    total = {"iops": np.array([1_000.0]), "await_ms": np.array([10.0])}
    tables = {
        "disks": FrameTable(disks, columns, {"service_ms": np.array([tier], np.uint8)}),
        "load_total": FrameTable(Rows(("load",), ("all targets",)), total),
    }
    return Frame(sample.time_ns, sample.monotonic_ns, 1.0, tables, sample.topology)


def _with_groups(frame: Frame, groups: Groups | None) -> Frame:
    if not groups:
        return frame
    names = ("iops", "limit_pct", "throttled_per_s", "throttle_wait_ms")
    columns = dict(zip(names, np.array(list(groups.values())).T, strict=True))
    (disk,) = frame.tables["disks"].rows.keys
    rows = Rows(tuple(row_key(number, disk, path) for number, path in enumerate(groups)), tuple(groups))
    return replace(frame, tables={**frame.tables, "cgroups": FrameTable(rows, columns)})


def test_the_mean_names_its_owner() -> None:
    found = _found()
    assert found.mean is not None
    assert found.mean.total_ns == pytest.approx(10e6)
    assert found.mean.share(Stage.QUEUE) == pytest.approx(0.7)
    assert found.caveat == ""


def test_estimates_and_company_are_reported() -> None:
    found = _found(device_iops=1_250.0, tier=SAMPLED)
    assert found.mean is not None
    assert "20 % of its I/Os" in found.caveat
    assert "sampled estimates" in found.caveat


@pytest.mark.parametrize(
    ("figures", "caveat"),
    [
        ({"device_iops": 300.0}, "only 30 % of its I/Os"),
        ({"device_iops": 4_000.0}, "4.0 times its I/Os"),
        ({"queue_ms": float("nan")}, "not known"),
        ({"service_ms": 12.0}, "exceed its own"),
    ],
)
def test_where_a_mean_would_be_wrong_there_is_none(figures: dict[str, float], caveat: str) -> None:
    found = _found(**figures)  # type: ignore[arg-type]
    assert found.mean is None
    assert caveat in found.caveat


def test_a_partition_is_its_disk_and_a_device_nobody_knows_none() -> None:
    partition = Layer("sda1:8:1#7", "sda1", "partition", below=("sda@0",))
    assert _found(number=(8, 1), graph=Graph(layers=(partition,))).mean is not None
    assert "not known here" in _found(number=(8, 1)).caveat


def test_the_wait_for_limits_is_a_stage_of_its_own() -> None:
    # 100 of 1,000 I/Os are held, 60 ms each: 6 ms per I/O.
    groups: Groups = {
        "/": (1_600.0, UNKNOWN, 100.0, 60.0),
        "/lab": (1_000.0, UNKNOWN, 100.0, 60.0),
        "/lab/one": (1_000.0, 99.0, 100.0, 60.0),
        "/lab/two": (600.0, UNKNOWN, 0.0, UNKNOWN),
    }
    found = _found(device_iops=1_080.0, queue_ms=1.0, service_ms=2.0, groups=groups)
    assert found.mean is not None
    assert [stage for stage, _ in found.mean.parts] == [Stage.THROTTLE, Stage.QUEUE, Stage.SERVICE, Stage.OUTSIDE]
    assert found.mean.share(Stage.THROTTLE) == pytest.approx(0.6)
    assert "60 % waits for limits of its control group" in found.mean.verdict()


def test_groups_with_as_many_ios_beside_each_other_name_none() -> None:
    groups: Groups = {
        "/": (2_000.0, UNKNOWN, 0.0, UNKNOWN),
        "/a": (1_000.0, 99.0, 9.0, 9.0),
        "/b": (1_000.0, 1, 9.0, 9),
    }
    found = _found(queue_ms=1.0, groups=groups)
    assert found.mean is not None
    assert Stage.THROTTLE not in dict(found.mean.parts)


def test_a_limit_whose_wait_is_not_timed_is_said_to_be_outside() -> None:
    groups: Groups = {"/": (1_000.0, UNKNOWN, UNKNOWN, UNKNOWN), "/a": (1_000.0, 98.0, UNKNOWN, UNKNOWN)}
    found = _found(queue_ms=1.0, groups=groups)
    assert found.mean is not None
    assert Stage.THROTTLE not in dict(found.mean.parts)
    assert found.mean.share(Stage.OUTSIDE) == pytest.approx(0.7)
    assert found.caveat == "~ outside contains the wait for limits: /a uses 98 % of one"
