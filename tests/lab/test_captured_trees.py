"""Captured /proc and /sys of real kernels, with what lsblk said of the same moment."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from collectors.kernel.devices import HIDDEN_PATH
from collectors.model import Device
from collectors.tables.block.counters import BlockCollector
from collectors.topology.scanner import TopologyScanner
from tests.lab.fixtures import unpack_tree

LAB = os.environ.get("LUNSCOPE_LAB", "")
CAPTURES = sorted(path.parent for path in Path(LAB, "fixtures").glob("*/sys.tar.xz")) if LAB else []

pytestmark = pytest.mark.skipif(not CAPTURES, reason="needs captured trees: set LUNSCOPE_LAB to the lab's folder")


@pytest.fixture(params=CAPTURES, ids=lambda path: path.name)
def capture(request: pytest.FixtureRequest) -> Path:
    return Path(request.param)


@pytest.fixture
def devices(capture: Path, tmp_path: Path) -> dict[str, Device]:
    unpack_tree(capture / "sys.tar.xz", tmp_path)
    collector = BlockCollector(str(capture / "proc"), str(tmp_path / "sys"))
    rows = collector.read().tables["disk"].rows
    return {
        device.name: device
        for device in TopologyScanner(str(tmp_path / "proc"), str(tmp_path / "sys")).scan(rows)[0].values()
    }


def listed(nodes: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    for node in nodes:
        yield node
        yield from listed(node.get("children", []))


def test_lsblk_says_the_same(capture: Path, devices: dict[str, Device]) -> None:
    answer = json.loads((capture / "commands/lsblk.json").read_text(errors="replace"))
    disks = {node["kname"]: node for node in listed(answer["blockdevices"]) if node["type"] != "part"}
    assert devices
    compared = 0
    for name, node in disks.items():
        if name not in devices:
            assert not node["size"], f"{name} is missing"
            continue
        device = devices[name]
        assert f"{device.major}:{device.minor}" == node["maj:min"], name
        assert device.size_bytes == node["size"], name
        assert device.rotational == node["rota"], name
        assert device.read_only == node["ro"], name
        assert device.logical_block_bytes == node["log-sec"], name
        if node["sched"]:
            assert device.scheduler == node["sched"], name
        assert device.nr_requests == node["rq-size"], name
        if node["model"]:
            assert device.model == node["model"].strip(), name
        if name.startswith(("nvme", "vd")) and node["serial"]:
            assert device.serial == node["serial"].strip(), name
        compared += 1
    assert compared


def test_stacked_devices_are_bio_based_and_drivers_are_not(devices: dict[str, Device]) -> None:
    for device in devices.values():
        if device.kind in {"md", "zram"}:
            assert device.bio_based, device.name
        if device.name.startswith(("sd", "vd")) or device.kind == HIDDEN_PATH:
            assert not device.bio_based, device.name
