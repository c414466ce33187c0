"""What devices below do for each I/O of the one above, from the figures of both."""

from __future__ import annotations

import numpy as np
import pytest

from collectors.graph import Graph, Layer, MountedFilesystem
from collectors.model import Device, FrameTable, Rows, Topology
from collectors.tables.block.derive.layers import layer_figures


def below(iops: dict[str, float], built_on: dict[str, tuple[str, ...]]) -> dict[str, tuple[float, float]]:
    """I/Os and bytes below, by device; each I/O has 4 KiB."""
    rows = Rows(tuple(f"{name}:9:0#1" for name in iops), tuple(iops))
    holders = {name: tuple(upper for upper, lower in built_on.items() if name in lower) for name in iops}
    devices = {
        key: Device(key, name, "md", 9, 0, slaves=built_on.get(name, ()), holders=holders[name])
        for key, name in zip(rows.keys, rows.names, strict=True)
    }
    values = np.array(list(iops.values()))
    found = layer_figures(FrameTable(rows, {"iops": values, "bytes_per_s": values * 4096}), Topology(devices))
    return dict(zip(iops, zip(found["ios_below_ratio"], found["bytes_below_ratio"], strict=True), strict=True))


def test_a_mirror_doubles_writes_and_a_disk_has_nothing_below() -> None:
    found = below({"md0": 100.0, "sda": 100.0, "sdb": 100.0}, {"md0": ("sda", "sdb")})
    assert found["md0"] == (2.0, 2.0)
    assert np.isnan(found["sda"]).all()


@pytest.mark.parametrize(
    ("iops", "built_on"),
    [
        ({"dm-0": 10.0, "dm-1": 10.0, "sda": 20.0}, {"dm-0": ("sda",), "dm-1": ("sda",)}),
        ({"dm-0": 10.0}, {"dm-0": ("sda1",)}),
        ({"dm-0": 0.0, "sda": 20.0}, {"dm-0": ("sda",)}),
        ({"dm-0": 10.0, "sda": float("nan")}, {"dm-0": ("sda",)}),
    ],
    ids=["shared", "partition", "idle", "not counted"],
)
def test_where_it_is_not_known_it_is_missing(iops: dict[str, float], built_on: dict[str, tuple[str, ...]]) -> None:
    assert np.isnan(below(iops, built_on)["dm-0"]).all()


def test_a_stack_has_a_figure_at_each_level() -> None:
    found = below({"dm-0": 10.0, "md0": 80.0, "sda": 40.0, "sdb": 40.0}, {"dm-0": ("md0",), "md0": ("sda", "sdb")})
    assert (found["dm-0"], found["md0"]) == ((8.0, 8.0), (1.0, 1.0))


@pytest.mark.parametrize(
    ("mounted", "is_known"), [((), True), (("sda2",), False)], ids=["alone", "beside a filesystem"]
)
def test_a_partition_is_its_disk_if_nothing_else_is_on_it(mounted: tuple[str, ...], *, is_known: bool) -> None:
    partitions = tuple(Layer(f"sda:8:0#1/{name}", name, "partition", below=("sda:8:0#1",)) for name in ("sda1", "sda2"))
    mounts = tuple(MountedFilesystem(f"sda:8:0#1/{name}", "/", "ext4") for name in mounted)
    rows = Rows(("sda:8:0#1", "dm-0:9:0#1"), ("sda", "dm-0"))
    devices = {
        "sda:8:0#1": Device("sda:8:0#1", "sda", "disk", 8, 0),
        "dm-0:9:0#1": Device("dm-0:9:0#1", "dm-0", "dm", 9, 0, slaves=("sda1",)),
    }
    figures = {name: np.array([40.0, 10.0]) for name in ("iops", "bytes_per_s")}
    found = layer_figures(FrameTable(rows, figures), Topology(devices, graph=Graph(layers=partitions, mounts=mounts)))
    assert np.isnan(found["ios_below_ratio"][0])
    assert (found["ios_below_ratio"][1] == 4.0) == is_known


@pytest.mark.parametrize(("backing", "is_known"), [("/dev/sda", True), ("/data/image", False)])
def test_a_loop_device_over_a_disk_and_over_a_file(backing: str, *, is_known: bool) -> None:
    rows = Rows(("sda:8:0#1", "loop0:7:0#1"), ("sda", "loop0"))
    devices = {
        "sda:8:0#1": Device("sda:8:0#1", "sda", "disk", 8, 0),
        "loop0:7:0#1": Device("loop0:7:0#1", "loop0", "loop", 7, 0, friendly_name=backing),
    }
    figures = {name: np.array([40.0, 10.0]) for name in ("iops", "bytes_per_s")}
    found = layer_figures(FrameTable(rows, figures), Topology(devices))
    assert (found["ios_below_ratio"][1] == 4.0) == is_known
