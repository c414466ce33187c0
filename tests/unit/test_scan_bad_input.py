"""`scan` and `report` on trees that are half there, broken or closed: shown, never fatal."""

from __future__ import annotations

import builtins
import json
import os
import random
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from collectors.kernel.devices import read_udev_properties
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import (
    FakeScsi,
    add_fc_disk,
    add_fc_host,
    add_nvme_controller,
    add_nvme_namespace,
    add_tape,
)
from tui.cli import run_cli


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def everything(kernel: FakeKernel) -> FakeKernel:
    """Some of all there is."""
    FakeScsi(kernel, hosts=2, luns=2, access=("active/optimized", "standby")).build()
    folder = add_fc_host(kernel, 7, "0x10000090fa000001")
    add_fc_disk(kernel, "sdx", folder, 7, target_wwpn="0x5000000000000aaa", minor=208)
    folders = [add_nvme_controller(kernel, number) for number in range(2)]
    add_nvme_namespace(kernel, 1, folders, ("optimized", "inaccessible"))
    kernel.add_partition("sdx", 1)
    kernel.add(FakeDisk("md0", 9, 0, attributes={"md/level": "raid0\n"}, at="virtual/block/md0", slaves=["sdx1"]))
    kernel.write_proc("1/mountinfo", "30 1 9:0 / /srv rw - xfs /dev/md0 rw\n")
    add_tape(kernel, 0)
    return kernel


def roots(kernel: FakeKernel) -> list[str]:
    return ["--procfs", str(kernel.procfs), "--sysfs", str(kernel.sysfs)]


def scanned(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> tuple[str, dict[str, Any]]:
    """The tree and the document; both verbs must succeed."""
    assert run_cli(["scan", *roots(kernel)]) == 0
    tree = capsys.readouterr().out
    assert run_cli(["scan", "--json", *roots(kernel)]) == 0
    return tree, json.loads(capsys.readouterr().out)


def test_no_block_device_at_all(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    tree, document = scanned(kernel, capsys)
    assert tree == ""
    assert document["luns"] == document["paths"] == document["ports"] == []


def test_no_path(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    kernel.add(FakeDisk("loop0", 7, 0, at="virtual/block/loop0"))
    tree, document = scanned(kernel, capsys)
    assert "loop0" in tree
    assert document["paths"] == []
    assert run_cli(["report", "-L", "-H", "0.1", "1", *roots(kernel)]) == 0
    printed = capsys.readouterr().out
    assert "(no paths known)" in printed
    assert "(no HBA ports known)" in printed


def test_a_lun_with_one_path(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    FakeScsi(kernel, hosts=1, luns=1).build()
    tree, document = scanned(kernel, capsys)
    assert "1 of 1 paths usable" in tree
    assert document["luns"][0]["paths"] == ["sda"]
    assert run_cli(["report", "-L", "--all", "--json", "0.1", "1", *roots(kernel)]) == 0
    (path,) = json.loads(capsys.readouterr().out)["paths"]
    assert (path["name"], path["lun"], path["port"]) == ("sda", "mpath0", "host0")


def test_names_and_texts_that_are_not_utf8_or_are_hostile(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile = b"\x1b[2J\xff[red]\n"
    kernel.add(FakeDisk(os.fsdecode(b"sd\xff\x1b[2J"), attributes={"device/model": hostile, "device/vendor": hostile}))
    FakeScsi(kernel, hosts=1, luns=1).build()
    kernel.set("dm-0", "dm/name", hostile)
    kernel.set_class("scsi_host", "host0", "proc_name", "\x1b[31m")
    tree, document = scanned(kernel, capsys)
    assert "\x1b" not in tree
    assert "sd\\xff\\x1b[2J" in tree
    assert "\\x1b[31m" in tree
    assert "\x1b" not in json.dumps(document, ensure_ascii=False)


def test_cycles(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    mpath = {"dm/uuid": "mpath-3600\n"}
    kernel.add(FakeDisk("dm-0", 253, 0, attributes=mpath, at="virtual/block/dm-0", slaves=["dm-1", "dm-0"]))
    kernel.add(FakeDisk("dm-1", 253, 1, attributes=mpath, at="virtual/block/dm-1", slaves=["dm-0"]))
    kernel.add(FakeDisk("md0", 9, 0, at="virtual/block/md0", slaves=["md0"]))
    (kernel.sysfs / "devices/loop").symlink_to("loop")
    tree, _ = scanned(kernel, capsys)
    for name in ("dm-0", "dm-1", "md0"):
        assert name in tree


def test_links_that_lead_nowhere(kernel: FakeKernel, capsys: pytest.CaptureFixture[str]) -> None:
    everything(kernel)
    for link in (
        "block/sda",
        "class/scsi_host/host0",
        "class/nvme/nvme0",
        "class/scsi_tape/st0",
        "class/fc_host/host7",
    ):
        (kernel.sysfs / link).unlink()
        (kernel.sysfs / link).symlink_to("../../devices/nowhere")
    tree, document = scanned(kernel, capsys)
    assert "sda" in tree
    assert {"sda", "sdb"} <= {path["name"] for path in document["paths"]}
    assert "st0" in {tape["name"] for tape in document["tapes"]}


@pytest.mark.parametrize("seed", range(8))
def test_a_tree_of_which_half_vanished(kernel: FakeKernel, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is gone when it is read: the rest is shown."""
    everything(kernel)
    chance = random.Random(seed)
    for place in sorted(kernel.sysfs.rglob("*"), key=str):
        if chance.random() < 0.3 and os.path.lexists(place):
            if place.is_dir() and not place.is_symlink():
                shutil.rmtree(place)
            elif place not in {kernel.sysfs / "block"}:
                place.unlink()
    (kernel.sysfs / "block").mkdir(exist_ok=True)
    _, document = scanned(kernel, capsys)
    keys = {lun["key"] for lun in document["luns"]}
    assert all(path["lun"] in keys for path in document["paths"])
    assert run_cli(["report", "-d", "-L", "-H", "-t", "--all", "0.1", "1", *roots(kernel)]) == 0


@pytest.mark.parametrize("seed", range(4))
def test_attributes_that_hold_anything(kernel: FakeKernel, seed: int, capsys: pytest.CaptureFixture[str]) -> None:
    everything(kernel)
    chance = random.Random(seed)
    for place in sorted(kernel.sysfs.rglob("*"), key=str):
        if place.is_file() and not place.is_symlink() and chance.random() < 0.5:
            place.write_bytes(chance.randbytes(chance.choice((0, 1, 40, 5000))))
    scanned(kernel, capsys)
    assert run_cli(["report", "-d", "-L", "-H", "-t", "--all", "--json", "0.1", "1", *roots(kernel)]) == 0


def test_without_libudev(
    kernel: FakeKernel, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    everything(kernel)
    imported: Callable[..., Any] = builtins.__import__

    def refuse(name: str, *rest: Any, **named: Any) -> Any:
        if name == "pyudev":
            raise ImportError("libudev.so.1: cannot open shared object file")
        return imported(name, *rest, **named)

    monkeypatch.setattr(builtins, "__import__", refuse)
    assert read_udev_properties(["sda"]) == {}
    _, document = scanned(kernel, capsys)
    assert len(document["paths"]) == 7
    assert run_cli(["report", "-L", "--all", "0.1", "1", *roots(kernel)]) == 0


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to give its rights up")
def test_without_permission(kernel: FakeKernel) -> None:
    """A process that may list but not read most of it shows what it may."""
    everything(kernel)
    kernel.sysfs.parent.chmod(0o755)
    for folder in (*kernel.sysfs.parents,):
        if str(folder).startswith("/tmp/pytest"):
            folder.chmod(0o755)
    for name in ("sda", "nvme0n1"):
        for place in (kernel.sysfs / kernel.disks[name].folder).rglob("*"):
            if place.is_file() and place.name not in {"stat", "dev"}:
                place.chmod(0)
    (kernel.sysfs / "class/scsi_host").chmod(0)
    (kernel.procfs / "1/mountinfo").chmod(0)
    script = (
        "import os, sys; import tui.commands.scan; from tui.cli import run_cli; os.setgid(65534); os.setuid(65534);"
        f"sys.exit(run_cli(['scan', '--json', *{roots(kernel)!r}]))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    document = json.loads(done.stdout)
    assert {"sda", "sdb"} <= {path["name"] for path in document["paths"]}
    assert document["mounts"] == []
