"""`lunscope scan`: the tree and the document, of live trees and recordings."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from collectors.graph import Graph, Layer, Lun
from collectors.model import Topology
from collectors.reports.scan_document import scan_document
from collectors.reports.scan_tree import tree_lines
from collectors.session.writer import SessionWriter
from collectors.topology.scanner import read_topology
from collectors.topology.state_age import state_age_tables
from engine.replacing import replace
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import FakeScsi
from tests.session_samples import Machine
from tui.cli import run_cli


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    kernel = FakeKernel(tmp_path)
    FakeScsi(kernel, hosts=2, luns=1, access=("active/optimized", "standby")).build()
    lvm = {"dm/name": "vg-\x1b[2Jdata\n", "dm/uuid": "LVM-abc\n"}
    kernel.add(FakeDisk("dm-9", 253, 9, attributes=lvm, at="virtual/block/dm-9", slaves=["dm-0"]))
    kernel.write_proc("1/mountinfo", "30 1 253:9 / /srv rw - xfs /dev/mapper/x rw\n")
    return kernel


def test_the_tree_goes_from_port_to_mount(kernel: FakeKernel) -> None:
    lines = list(tree_lines(read_topology(kernel.procfs, kernel.sysfs)))
    assert lines == [
        "host0  scsi  fake  0000:00:03.0  running  limit 256",
        "  target0:0:0  1 path",
        "host1  scsi  fake  0000:00:04.0  running  limit 256",
        "  target1:0:0  1 path",
        "",
        "mpath0 (dm-0)  1 MiB  3600000000000  1 of 2 paths usable",
        "  path sda  0:0:0:0  host0 -> target0:0:0  running  active/optimized  limit 32",
        "  path sdb  1:0:0:0  host1 -> target1:0:0  running  standby  limit 32",
        "  lvm  vg-\\x1b[2Jdata (dm-9)  1 MiB  /srv (xfs)",
    ]


def test_paths_stand_in_columns_and_one_that_is_down_is_marked(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    scsi = FakeScsi(kernel, hosts=11, targets=3, luns=1).build()
    kernel.set(scsi.names[10, 0, 0], "device/state", "offline\n")
    lines = [line for line in tree_lines(read_topology(kernel.procfs, kernel.sysfs)) if line[2:6] == "path"]
    assert len(lines) == 33
    assert len({line.index("host") for line in lines}) == len({line.index("  limit") for line in lines}) == 1
    assert [line.split()[-4] for line in lines[::3]] == [f"target{host}:0:0" for host in range(11)]
    assert [line[:15] for line in lines if line.startswith("!")] == ["! path sdae  10"]


def test_the_verb_prints_one_document(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    roots = ["--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]
    assert run_cli(["scan", "--json", *roots]) == 0
    document = json.loads(capsys.readouterr().out)
    assert next(iter(document)) == "schema"
    assert document["schema"] == "lunscope.scan/1"
    (lun,) = document["luns"]
    assert (lun["name"], lun["label"], lun["paths"]) == ("dm-0", "mpath0", ["sda", "sdb"])
    assert [(path["name"], path["usable"]) for path in document["paths"]] == [("sda", True), ("sdb", False)]
    assert document["layers"][0]["below"] == [lun["key"]]
    assert document["mounts"] == [{"key": document["layers"][0]["key"], "point": "/srv", "filesystem": "xfs"}]
    assert document["states_age_s"] >= 0


def test_a_recording_shows_the_graph_it_ended_with(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine()
    with SessionWriter(tmp_path / "a.lun") as writer:
        writer.write(machine.sample())
    assert run_cli(["scan", "--from", str(tmp_path / "a.lun"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert {lun["in_use"] for lun in document["luns"]} == {None}
    assert len(document["paths"]) == len(machine.rows)
    assert document["targets"][0]["name"] == "\\x1b[2J"
    assert document["states_age_s"] is None, "an earlier version wrote it"


def test_a_recording_says_how_old_its_states_were(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    sample = Machine().sample()
    tables = {**sample.tables, **state_age_tables(time.monotonic_ns() - 90_000_000_000)}
    with SessionWriter(tmp_path / "a.lun") as writer:
        writer.write(replace(sample, tables=tables))
    assert run_cli(["scan", "--from", str(tmp_path / "a.lun"), "--json"]) == 0
    assert 90 <= json.loads(capsys.readouterr().out)["states_age_s"] < 150


def test_a_recording_without_a_graph_says_so(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    machine = Machine()
    machine.topology = Topology(machine.topology.devices)
    with SessionWriter(tmp_path / "a.lun") as writer:
        writer.write(machine.sample())
    assert run_cli(["scan", "--from", str(tmp_path / "a.lun")]) == 2
    assert "no device graph" in capsys.readouterr().err


def test_circles_and_what_stands_on_nothing_end() -> None:
    layers = (
        Layer("a", "dm-1", "dm", below=("b",)),
        Layer("b", "dm-2", "dm", below=("a",)),
        Layer("c", "md0", "md", below=("c",)),
        Layer("d", "dm-3", "dm"),
        Layer("e", "dm-4", "dm", below=("lun", "f")),
        Layer("f", "dm-5", "dm", below=("e",)),
    )
    topology = Topology(graph=Graph(luns=(Lun("lun", "sda"),), layers=layers))
    text = "\n".join(tree_lines(topology))
    for name in ("dm-1", "dm-2", "md0", "dm-3", "dm-4", "dm-5"):
        assert name in text
    assert len(scan_document(topology)["layers"]) == len(layers)  # type: ignore[arg-type] # a list


def test_what_uses_a_lun_is_said_unless_the_tree_shows_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    kernel = FakeKernel(tmp_path)
    for minor, name in enumerate(("sda", "sdb")):
        disk = FakeDisk(name, 8, 16 * minor, attributes={"device/wwid": "naa.1\n"})
        kernel.add(disk)
        (kernel.sysfs / "dev/block").mkdir(parents=True, exist_ok=True)
        (kernel.sysfs / f"dev/block/8:{disk.minor}").symlink_to(f"../../{disk.folder}")
    kernel.write_proc("self/mountinfo", "30 1 8:0 / /srv rw - xfs /dev/sda rw\n")
    kernel.write_proc("1/mountinfo", "30 1 8:0 / /srv rw - xfs /dev/sda rw\n")
    roots = ["--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]
    words = "is in use: the same LUN by another path, /dev/sda is mounted on /srv (xfs)"
    assert run_cli(["scan", "--json", *roots]) == 0
    luns = json.loads(capsys.readouterr().out)["luns"]
    assert {lun["name"]: lun["in_use"] for lun in luns} == {"sda": "is mounted on /srv (xfs)", "sdb": words}
    assert run_cli(["scan", *roots]) == 0
    text = capsys.readouterr().out
    assert text.count(words) == 1
    assert text.count("/srv") == 2
