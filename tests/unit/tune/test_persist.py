"""Values as configuration: udev rules, systemd drop-ins, options of modules."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from engine.errors import LunscopeError
from engine.replacing import replace
from engine.tune.groups_caches import GROUPS
from engine.tune.persist import Configuration, configuration, write_files
from engine.tune.registry import BY_ID
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from engine.tune.tunable import Target, TunedKind
from engine.tune.udev_rules import SavedSetting
from tests import needs
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import add_fc_disk, add_fc_host
from tests.unit.tune.hosts import QUEUE, WWID, make_host, scsi

EVENTS = 'ACTION=="add|change", SUBSYSTEM=="block", ENV{DEVTYPE}=="disk"'
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
        f'{EVENTS}, ATTR{{device/wwid}}=="{WWID}", ATTR{{queue/scheduler}}="none", ATTR{{queue/nr_requests}}="64", '
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
    (line,) = rules_of(saved(kernel, {"nr_requests": "64"}, "sda"))
    place = "/devices/pci0000:00/0000:00:00.0/host*/target*:0:0/*:0:0:97/block/*"
    assert line == f'{EVENTS}, DEVPATH=="{place}", ATTR{{queue/nr_requests}}="64"'


def rules_of(found: Configuration) -> list[str]:
    return [line for file in found.files for line in file.text.splitlines() if not line.startswith("#")]


def comments_of(found: Configuration) -> list[str]:
    return [line for file in found.files for line in file.text.splitlines()[1:] if line.startswith("#")]


def give_id_paths(kernel: FakeKernel, paths: dict[str, str]) -> None:
    """Write the database of udev beside the tree."""
    folder = kernel.sysfs.parent / "run/udev/data"
    folder.mkdir(parents=True, exist_ok=True)
    for name, path in paths.items():
        number = f"{kernel.disks[name].major}:{kernel.disks[name].minor}"
        (folder / f"b{number}").write_text(f"S:disk/by-path/x\nI:1\nE:ID_SERIAL=1\nE:ID_PATH={path}\nG:systemd\n")


FC_PATHS = {
    name: f"pci-0000:00:0{host}.0-fc-0x50000000000000{host}1-lun-{lun}"
    for name, host, lun in (("sda", 0, 0), ("sdb", 1, 0), ("sdc", 0, 1), ("sdd", 1, 1))
}


def test_some_paths_of_a_lun_have_a_rule_each_by_id_path(tmp_path: Path) -> None:
    kernel = make_host(tmp_path)
    give_id_paths(kernel, FC_PATHS)
    found = saved(kernel, {"queue_depth": "33"}, "port:host1")
    assert rules_of(found) == [
        f'{EVENTS}, ENV{{ID_PATH}}=="{FC_PATHS[name]}", ATTR{{device/queue_depth}}="33"' for name in ("sdb", "sdd")
    ]
    assert [line.rpartition(": ")[2] for line in comments_of(found)] == ["sdb", "sdd"]
    assert all(RULE.fullmatch(line) for line in rules_of(found))


def test_two_values_of_one_lun_have_a_rule_each(tmp_path: Path) -> None:
    kernel = make_host(tmp_path)
    settings = settings_on(kernel, ("queue_depth", "128", "sda"), ("queue_depth", "33", "sdb"))
    with KernelTree(kernel.sysfs) as tree:
        first, second = rules_of(configuration(tree, settings))
    assert "host*/target*:0:0/*:0:0:97/" in first
    assert first.endswith('="128"')
    assert "host*/target*:0:0/*:0:0:98/" in second
    assert second.endswith('="33"')


def settings_on(kernel: FakeKernel, *wanted: tuple[str, str, str]) -> list[SavedSetting]:
    with KernelTree(kernel.sysfs) as tree:
        host = Host(tree)
        return [
            SavedSetting(BY_ID[name], target, value)
            for name, value, scope in wanted
            for target in host.targets(BY_ID[name], host.select([scope]))
        ]


def test_paths_that_have_the_value_already_let_a_rule_be_by_lun_and_are_named(tmp_path: Path) -> None:
    kernel = make_host(tmp_path)
    kernel.set("sdb", "device/queue_depth", "33\n")
    found = saved(kernel, {"queue_depth": "33"}, "sda")
    assert rules_of(found) == [f'{EVENTS}, ATTR{{device/wwid}}=="{WWID}", ATTR{{device/queue_depth}}="33"']
    assert comments_of(found) == [
        "# By LUN, every path of it, also a later one: sda",
        "# It also matches sdb, alike already.",
    ]


def test_a_scheduler_by_lun_comes_before_what_it_resets_by_path(tmp_path: Path) -> None:
    kernel = make_host(tmp_path)
    settings = settings_on(
        kernel, ("nr_requests", "64", "sda"), ("scheduler", "none", "sda"), ("scheduler", "none", "sdb")
    )
    with KernelTree(kernel.sysfs) as tree:
        first, second = rules_of(configuration(tree, settings))
    assert first.endswith(f'=="{WWID}", ATTR{{queue/scheduler}}="none"')
    assert second.endswith('ATTR{queue/nr_requests}="64"')
    assert "DEVPATH" in second


def test_values_that_no_rule_can_tell_apart_are_refused_with_their_devices(tmp_path: Path) -> None:
    """Numbers below a remote port are those of this boot, and two sessions of iSCSI may have one ID_PATH."""
    kernel = FakeKernel(tmp_path)
    for number, name in enumerate(("sda", "sdb", "sdc")):
        at = f"pci0000:00/0000:00:05.0/host{number}/rport-{number}:0-1/target{number}:0:0/{number}:0:0:1/block/{name}"
        kernel.add(replace(scsi(name, number), at=at))
    give_id_paths(kernel, dict.fromkeys(("sda", "sdb", "sdc"), "pci-0000:00:05.0-fc-0x5000-lun-1"))
    settings = settings_on(kernel, ("queue_depth", "33", "sdb"), ("queue_depth", "128", "sda"))
    with KernelTree(kernel.sysfs) as tree, pytest.raises(LunscopeError) as refused:
        configuration(tree, settings)
    lines = str(refused.value).split("; ")
    assert lines[0].startswith("queue_depth: no rule of udev tells sdb (33) from sda (128), sdc (64): give them one")
    assert lines[1].startswith("queue_depth: no rule of udev tells sda (128) from sdb (33), sdc (64): give them one")


def test_virtual_ports_of_one_adapter_are_told_apart_by_wwpn(tmp_path: Path) -> None:
    """Those of NPIV are of one PCI function, so that disks behind them have one ID_PATH."""
    kernel = FakeKernel(tmp_path)
    folder = add_fc_host(kernel, 3, "0x10000090fa000003")
    hosts = {
        3: folder,
        **{host: add_fc_host(kernel, host, f"0x20010090fa00000{host}", below=folder) for host in (4, 5)},
    }
    for number, (host, at) in enumerate(hosts.items()):
        add_fc_disk(kernel, f"sd{'abc'[number]}", at, host, target_wwpn="0x50000000000000aa", minor=number)
    give_id_paths(kernel, dict.fromkeys(("sda", "sdb", "sdc"), "pci-0000:00:03.0-fc-0x50000000000000aa-lun-0"))
    found = saved(kernel, {"queue_depth": "33"}, "sdb")
    ports = 'KERNELS=="host*", PROGRAM=="/bin/cat /sys/class/fc_host/%b/port_name", RESULT=="0x20010090fa000004"'
    path = 'ENV{ID_PATH}=="pci-0000:00:03.0-fc-0x50000000000000aa-lun-0"'
    assert rules_of(found) == [f'{EVENTS}, {path}, {ports}, ATTR{{device/queue_depth}}="33"']


def test_what_is_gone_or_hidden_is_said(tmp_path: Path) -> None:
    kernel = make_host(tmp_path)
    kernel.add(FakeDisk("nvme0c1n1", 259, 9, attributes=QUEUE | {"hidden": "1\n"}, at="virtual/nvme1/nvme0c1n1"))
    settings = settings_on(kernel, ("nr_requests", "64", "nvme0c1n1"), ("nr_requests", "64", "sda"))
    with KernelTree(kernel.sysfs) as tree:
        found = configuration(tree, [settings[0], replace(settings[1], inode=1)])
    assert found.files == ()
    assert found.left_out == (
        "sda nr_requests: it is gone, or another: not saved",
        "nvme0c1n1 nr_requests: a hidden path, of which udev has no events: not saved",
    )


@pytest.mark.parametrize("all_of_them", [True, False])
def test_a_controller_goes_by_its_subsystem_if_all_of_that_are_alike(tmp_path: Path, all_of_them: bool) -> None:
    kernel = FakeKernel(tmp_path)
    for number in (0, 1):
        address = f"traddr=10.0.0.{number},trsvcid=4420"
        kernel.add_class("nvme", f"nvme{number}", f"virtual/nvme-fabrics/ctl/nvme{number}", subsysnqn="nqn.x:y",
                         address=address, reconnect_delay=10)  # fmt: skip
    tunable = BY_ID["reconnect_delay"]
    targets = [Target(TunedKind.CONTROLLER, f"nvme{number}", f"class/nvme/nvme{number}") for number in (0, 1)]
    with KernelTree(kernel.sysfs) as tree:
        settings = [SavedSetting(tunable, target, "5") for target in targets[: 1 + all_of_them]]
        (line,) = rules_of(configuration(tree, settings))
    by_address = "" if all_of_them else ', ATTR{address}=="traddr=10.0.0.0,trsvcid=4420"'
    assert line == (
        'ACTION=="add|change", SUBSYSTEM=="nvme", '
        f'ATTR{{subsysnqn}}=="nqn.x:y"{by_address}, ATTR{{reconnect_delay}}="5"'
    )


@pytest.mark.parametrize("all_of_them", [True, False])
def test_a_remote_port_goes_by_its_wwpn_and_the_hba_if_others_see_it_too(tmp_path: Path, all_of_them: bool) -> None:
    kernel = FakeKernel(tmp_path)
    for host in (3, 4):
        at = f"pci0000:00/0000:00:0{host}.0/host{host}/rport-{host}:0-2/fc_remote_ports/rport-{host}:0-2"
        kernel.add_class("fc_remote_ports", f"rport-{host}:0-2", at, port_name="0x5000", dev_loss_tmo=30)
    names = [f"rport-{host}:0-2" for host in (3, 4)]
    targets = [Target(TunedKind.REMOTE_PORT, name, f"class/fc_remote_ports/{name}") for name in names]
    with KernelTree(kernel.sysfs) as tree:
        settings = [SavedSetting(BY_ID["dev_loss_tmo"], target, "99") for target in targets[: 1 + all_of_them]]
        (line,) = rules_of(configuration(tree, settings))
    place = "/devices/pci0000:00/0000:00:03.0/host*/rport-*/fc_remote_ports/rport-*"
    by_place = "" if all_of_them else f', DEVPATH=="{place}"'
    assert line == (
        'ACTION=="add|change", SUBSYSTEM=="fc_remote_ports", '
        f'ATTR{{port_name}}=="0x5000"{by_place}, ATTR{{dev_loss_tmo}}="99"'
    )


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
