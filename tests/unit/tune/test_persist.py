"""Values as configuration: udev rules, systemd drop-ins, options of modules."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from engine.errors import LunscopeError
from engine.tune.groups_caches import GROUPS
from engine.tune.persist import Configuration, SavedSetting, configuration, write_files
from engine.tune.registry import BY_ID
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, TunedKind
from tests import needs
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.unit.tune.hosts import WWID, make_host, scsi

RULE = re.compile(r'[A-Z]+(\{[\w/.-]+\})?(==|=)"[^"\\]*"(, [A-Z]+(\{[\w/.-]+\})?(==|=)"[^"\\]*")*')
"""A line of udev(7): keys with an operator and a quoted value, separated by commas."""


def saved(kernel: FakeKernel, values: dict[str, str], *scopes: str) -> Configuration:
    with KernelTree(kernel.sysfs) as tree:
        host = Host(tree)
        selection = host.select(scopes)
        settings = [
            SavedSetting(BY_ID[name], target, value)
            for name, value in values.items()
            for target in host.targets(BY_ID[name], selection)
        ]
        return configuration(tree, settings)


def test_paths_of_a_lun_have_one_rule_by_its_wwid_with_the_scheduler_first(tmp_path: Path) -> None:
    files = saved(make_host(tmp_path), {"nr_requests": "64", "queue_depth": "32", "scheduler": "none"}, "sda", "sdb")
    (rules,) = files.files
    lines = [line for line in rules.text.splitlines() if not line.startswith("#")]
    assert lines == [
        'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk", '
        f'ATTR{{device/wwid}}=="{WWID}", ATTR{{queue/scheduler}}="none", ATTR{{queue/nr_requests}}="64", '
        'ATTR{device/queue_depth}="32"'
    ]
    assert all(RULE.fullmatch(line) for line in lines)
    assert rules.belongs == "/etc/udev/rules.d/99-lunscope-tune.rules"


def test_maps_go_by_their_name_and_disks_without_identity_by_theirs(tmp_path: Path) -> None:
    text = saved(make_host(tmp_path), {"read_ahead_kb": "512"}, "mpatha", "loop0").files[0].text
    assert 'ATTR{dm/name}=="mpatha", ATTR{queue/read_ahead_kb}="512"' in text
    assert 'KERNEL=="loop0", ATTR{queue/read_ahead_kb}="512"' in text


@pytest.mark.parametrize("wwid", ['naa"", RUN="rm', "naa*", "naa\\x", "na[a-z]", "naa|b", "naa{x}", "na$a"])
def test_identities_that_udev_would_read_as_more_are_not_written(tmp_path: Path, wwid: str) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add(scsi("sda", 0, wwid))
    text = saved(kernel, {"nr_requests": "64"}, "sda").files[0].text
    assert 'KERNEL=="sda"' in text
    assert "naa" not in text


def test_a_subsystem_goes_by_its_nqn(tmp_path: Path) -> None:
    kernel = FakeKernel(tmp_path)
    kernel.add(FakeDisk("nvme0n1", 259, 0, at="virtual/nvme-subsystem/nvme-subsys0/nvme0n1"))
    kernel.add_class(
        "nvme-subsystem",
        "nvme-subsys0",
        "virtual/nvme-subsystem/nvme-subsys0",
        iopolicy="numa",
        subsysnqn="nqn.2024-01.x:y",
    )
    text = saved(kernel, {"iopolicy": "round-robin"}, "nvme0n1").files[0].text
    assert 'SUBSYSTEM=="nvme-subsystem", ATTR{subsysnqn}=="nqn.2024-01.x:y", ATTR{iopolicy}="round-robin"' in text


def limit(name: str, value: str, group: str, device: str = "8:0", holder: str = "sda") -> SavedSetting:
    folder = f"fs/cgroup{group}"
    if device:
        return SavedSetting(
            BY_ID[name], Target(TunedKind.GROUP_DEVICE, f"{group} {holder}", folder, device, holder), value
        )
    return SavedSetting(BY_ID[name], Target(TunedKind.GROUP, group, folder), value)


def test_groups_become_drop_ins_of_their_units(tmp_path: Path) -> None:
    kernel = make_host(tmp_path)
    with KernelTree(kernel.sysfs) as tree:
        found = configuration(
            tree,
            [
                limit("io.max.rbps", "1048576", "/system.slice/db.service"),
                limit("io.latency", "5000", "/system.slice/db.service"),
                limit("io.max.wiops", "max", "/system.slice/db.service"),
                limit("io.weight", "50", "/batch.slice", ""),
                limit("blkio.throttle.write_iops", "9", "/batch.slice"),
                limit("io.weight", "50", "/lab", ""),
            ],
        )
    texts = {file.name: file.text.splitlines()[1:] for file in found.files}
    assert texts == {
        "db.service.d/50-lunscope-tune.conf": [
            "[Service]",
            "IOReadBandwidthMax=/dev/sda 1048576",
            "IODeviceLatencyTargetSec=/dev/sda 5000us",
        ],
        "batch.slice.d/50-lunscope-tune.conf": ["[Slice]", "IOWeight=50", "IOWriteIOPSMax=/dev/sda 9"],
    }
    assert found.left_out == ("/lab: no service, slice, mount, socket or swap of systemd: not saved",)


@needs.systemd_analyze
def test_systemd_knows_every_setting(tmp_path: Path) -> None:
    limits = [
        limit(tunable.id, "100", "/system.slice/db.service", "8:0" if tunable.subject is TunedKind.GROUP_DEVICE else "")
        for tunable in GROUPS
    ]
    with KernelTree(make_host(tmp_path / "host").sysfs) as tree:
        (file,) = configuration(tree, limits).files
    folder = tmp_path / "units"
    (folder / file.name).parent.mkdir(parents=True)
    (folder / "db.service").write_text("[Service]\nExecStart=/bin/true\n")

    def complaints(text: str) -> str:
        (folder / file.name).write_text(text)
        command = ["systemd-analyze", "verify", "--man=no", str(folder / "db.service")]
        environment = os.environ | {"SYSTEMD_UNIT_PATH": f"{folder}:"}
        return subprocess.run(command, capture_output=True, text=True, check=False, env=environment).stderr

    assert "Unknown key" in complaints(file.text + "IOBogus=1\n")
    assert complaints(file.text) == ""


def test_parameters_of_modules(tmp_path: Path) -> None:
    kernel = make_host(tmp_path)
    text = saved(kernel, {"zfs_arc_max": "1073741824"}, "all").files[0].text
    assert text.splitlines()[1] == "options zfs zfs_arc_max=1073741824"


def test_files_are_new_or_not_written(tmp_path: Path) -> None:
    files = saved(make_host(tmp_path / "host"), {"nr_requests": "64", "zfs_arc_max": "0"}, "all").files
    assert len(files) == 2
    with pytest.raises(LunscopeError, match="no such folder"):
        write_files(tmp_path / "absent", files)
    folder = tmp_path / "new"
    folder.mkdir()
    (folder / files[1].name).symlink_to("/nonexistent")
    with pytest.raises(LunscopeError, match="nothing is replaced"):
        write_files(folder, files)
    assert not (folder / files[0].name).exists()
    (folder / files[1].name).unlink()
    assert write_files(folder, files) == [folder / file.name for file in files]
    assert (folder / files[0].name).read_text() == files[0].text
