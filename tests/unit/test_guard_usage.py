"""Relations between devices that this kernel may not have (dm, md, multipath, NVMe), on fake kernel trees."""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from engine.guard.facts import filesystem_notice
from engine.guard.usage import Use, block_use
from engine.guard.usage_snapshot import UsageSnapshot
from engine.hostfs.kernel_files import Roots
from engine.hostfs.mounts import parse_mountinfo, pooled_devices
from engine.hostfs.sysblock import look_up, parse_device_number
from engine.syscalls import Statx

MIB_SECTORS = 2048


@dataclass
class FakeHost:
    """Writes the few files of /proc and /sys that the guard reads."""

    folder: Path
    mounts: list[str] = field(default_factory=list)
    swaps: list[str] = field(default_factory=list)
    count: int = 0

    def __post_init__(self) -> None:
        for name in ("proc/self/ns", "sys/dev/block", "sys/class/block", "sys/block", "dev"):
            (self.folder / name).mkdir(parents=True)

    @property
    def sysfs(self) -> Path:
        return self.folder / "sys"

    def _device(self, folder: Path, size_mib: int) -> None:
        self.count += 1
        number = f"240:{self.count}"
        (folder / "holders").mkdir(parents=True)
        (folder / "slaves").mkdir()
        (folder / "dev").write_text(number + "\n")
        (folder / "size").write_text(f"{size_mib * MIB_SECTORS}\n")
        (self.sysfs / "dev/block" / number).symlink_to(folder)
        (self.sysfs / "class/block" / folder.name).symlink_to(folder)

    def disk(
        self, name: str, *, wwid: str = "", on: tuple[str, ...] = (), dm_name: str = "", size_mib: int = 100
    ) -> str:
        folder = self.sysfs / "devices" / name
        self._device(folder, size_mib)
        (self.sysfs / "block" / name).symlink_to(folder)
        if wwid:
            (folder / "device").mkdir()
            (folder / "device/wwid").write_text(wwid + "\n")
        if dm_name:
            (folder / "dm").mkdir()
            (folder / "dm/name").write_text(dm_name + "\n")
        for lower in on:
            self._link(lower, name)
        return name

    def _link(self, lower: str, upper: str) -> None:
        below, above = (self.sysfs / "class/block" / name for name in (lower, upper))
        (below.resolve() / "holders" / upper).symlink_to(above.resolve())
        (above.resolve() / "slaves" / lower).symlink_to(below.resolve())

    def partition(self, disk: str, name: str, start_mib: int, size_mib: int) -> str:
        folder = self.sysfs / "devices" / disk / name
        self._device(folder, size_mib)
        (folder / "partition").write_text("1\n")
        (folder / "start").write_text(f"{start_mib * MIB_SECTORS}\n")
        return name

    def number(self, name: str) -> str:
        return (self.sysfs / "class/block" / name / "dev").read_text().strip()

    def mount(self, name: str, point: str, filesystem: str = "xfs") -> None:
        line = f"{30 + len(self.mounts)} 1 {self.number(name)} / {point} rw - {filesystem} /dev/{name} rw"
        self.mounts.append(line)

    def usage(self) -> UsageSnapshot:
        (self.folder / "proc/self/mountinfo").write_text("\n".join(self.mounts) + "\n")
        return UsageSnapshot(Roots(self.folder / "proc", self.sysfs, self.folder / "dev"))

    def use(self, name: str) -> str | None:
        device = look_up(self.sysfs, parse_device_number(self.number(name)) or 0)
        assert device is not None
        found = block_use(self.usage(), name, device)
        return found.text if found else None


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


def test_a_free_disk_is_free_beside_busy_ones(host: FakeHost) -> None:
    host.disk("sda", wwid="naa.1")
    host.mount("sda", "/data")
    host.disk("sdb", wwid="naa.2")
    assert host.use("sdb") is None


def test_a_physical_volume_of_a_running_volume_group(host: FakeHost) -> None:
    host.disk("sda")
    host.partition("sda", "sda1", 1, 50)
    host.disk("dm-0", on=("sda1",), dm_name="vg-root")
    host.mount("dm-0", "/")
    held = "is held by /dev/dm-0 (vg-root), which is mounted on / (xfs)"
    assert host.use("sda1") == f"sda1 {held}"
    assert host.use("sda") == f"sda is in use: its partition /dev/sda1 {held}"


def test_volumes_beside_each_other_on_one_member_are_independent(host: FakeHost) -> None:
    host.disk("sda")
    host.disk("dm-0", on=("sda",), dm_name="vg-root")
    host.disk("dm-1", on=("sda",), dm_name="vg-test")
    host.mount("dm-0", "/")
    assert host.use("dm-1") is None


def test_a_volume_beside_a_multipath_map_on_one_of_its_paths(host: FakeHost) -> None:
    host.disk("sda", wwid="naa.1")
    host.disk("dm-0", on=("sda",), dm_name="mpatha")
    host.disk("dm-1", on=("sda",), dm_name="wrong")
    assert host.use("dm-0") is None
    (host.sysfs / "devices/dm-0/dm/uuid").write_text("mpath-3600a\n")
    assert host.use("dm-0") == "dm-0 is in use: the device under it, /dev/sda is held by /dev/dm-1 (wrong)"


def test_the_mount_is_found_through_several_layers(host: FakeHost) -> None:
    host.disk("nvme0n1")
    host.disk("nvme1n1")
    host.disk("md127", on=("nvme0n1", "nvme1n1"))
    host.partition("md127", "md127p1", 1, 40)
    host.disk("dm-3", on=("md127p1",), dm_name="luks-data")
    host.mount("dm-3", "/srv")
    assert host.use("nvme1n1") == "nvme1n1 is held by /dev/md127, which is mounted on /srv (xfs)"


def test_an_array_without_any_mount_still_holds_its_members(host: FakeHost) -> None:
    host.disk("sda")
    host.disk("md0", on=("sda",))
    assert host.use("sda") == "sda is held by /dev/md0"
    assert host.use("md0") is None


def test_another_path_to_a_mounted_lun(host: FakeHost) -> None:
    host.disk("sda", wwid="naa.600a")
    host.disk("sdb", wwid="naa.600a")
    host.mount("sda", "/oradata")
    assert host.use("sdb") == "sdb is in use: the same LUN by another path, /dev/sda is mounted on /oradata (xfs)"


def test_partitions_on_another_path_count_where_they_overlap(host: FakeHost) -> None:
    for disk in ("sda", "sdb"):
        host.disk(disk, wwid="naa.600a")
        host.partition(disk, f"{disk}1", 1, 40)
        host.partition(disk, f"{disk}2", 41, 40)
    host.mount("sda1", "/boot")
    assert host.use("sdb1") == "sdb1 is in use: the same LUN by another path, /dev/sda1 is mounted on /boot (xfs)"
    assert host.use("sdb") is not None
    assert host.use("sdb2") is None


def test_a_path_outside_a_running_multipath_map(host: FakeHost) -> None:
    for disk in ("sda", "sdb", "sdc"):
        host.disk(disk, wwid="naa.600a")
    host.disk("dm-0", on=("sda", "sdb"), dm_name="mpatha")
    assert host.use("dm-0") is None
    assert host.use("sda") == "sda is held by /dev/dm-0 (mpatha)"
    assert host.use("sdc") == "sdc is in use: the same LUN by another path, /dev/sda is held by /dev/dm-0 (mpatha)"


def test_a_map_over_a_lun_that_is_used_by_a_path_outside_it(host: FakeHost) -> None:
    for disk in ("sda", "sdb"):
        host.disk(disk, wwid="naa.600a")
    host.disk("dm-0", on=("sda",), dm_name="mpatha")
    host.disk("md1", on=("sdb",))
    assert host.use("dm-0") == "dm-0 is in use: the same LUN by another path, /dev/sdb is held by /dev/md1"


def test_the_disk_under_a_volume_mounted_by_another_path(host: FakeHost) -> None:
    for disk in ("sda", "sdb"):
        host.disk(disk, wwid="naa.600a")
    host.disk("dm-0", on=("sda",), dm_name="vg-lv")
    host.mount("sdb", "/wrong")
    assert host.use("dm-0") == "dm-0 is in use: the same LUN by another path, /dev/sdb is mounted on /wrong (xfs)"


def test_nvme_paths_under_a_native_multipath_head_do_not_block_it(host: FakeHost) -> None:
    host.disk("nvme0n1")
    (host.sysfs / "devices/nvme0n1/wwid").write_text("eui.5cd2\n")
    hidden = host.sysfs / "devices/nvme0c0n1"
    hidden.mkdir()
    (hidden / "wwid").write_text("eui.5cd2\n")
    (host.sysfs / "block/nvme0c0n1").symlink_to(hidden)
    assert host.use("nvme0n1") is None
    host.disk("nvme1n1")
    (host.sysfs / "devices/nvme1n1/wwid").write_text("eui.5cd2\n")
    host.mount("nvme1n1", "/scratch")
    assert host.use("nvme0n1") == (
        "nvme0n1 is in use: the same LUN by another path, /dev/nvme1n1 is mounted on /scratch (xfs)"
    )


def test_every_member_of_a_mounted_btrfs_is_named(host: FakeHost) -> None:
    host.disk("sdc")
    link = host.sysfs / "fs/btrfs/8f1a/devices/sdc"
    link.parent.mkdir(parents=True)
    link.symlink_to(host.sysfs / "devices/sdc")
    assert host.use("sdc") == "sdc is a member of a mounted btrfs filesystem (8f1a)"
    assert [text for _, text in pooled_devices(host.sysfs)] == ["is a member of a mounted btrfs filesystem (8f1a)"]


def test_mountinfo_is_parsed_with_optional_fields_and_escapes() -> None:
    text = (
        "36 35 98:0 /mnt1 /mnt\\0402 rw,noatime master:1 shared:7 - ext3 /dev/root rw,errors=continue\n"
        "damaged line\n"
        "40 35 0:25 / /run rw - tmpfs tmpfs\\040x rw\n"
    )
    first, second = parse_mountinfo(text, "of pid 7 (x)")
    assert (first.number, first.point, first.filesystem, first.source) == (
        os.makedev(98, 0),
        "/mnt 2",
        "ext3",
        "/dev/root",
    )
    assert first.text == "is mounted on /mnt 2 (ext3) in the mount namespace of pid 7 (x)"
    assert (second.point, second.source) == ("/run", "tmpfs x")


@pytest.mark.parametrize("device", ["scsi_generic/sg3", "bsg/0:0:0:1"])
def test_who_can_send_commands_to_a_disk(host: FakeHost, device: str) -> None:
    host.disk("sda")
    folder = host.sysfs / "devices/sda"
    part = host.partition("sda", "sda1", 1, 50)
    (folder / "device" / device).mkdir(parents=True)
    (folder / "device" / device / "dev").write_text("21:3\n")
    usage = host.usage()
    sent = Statx(stat.S_IFCHR, 5, 9, os.makedev(21, 3), 0, None, None, None)
    usage.writers.certain.add(sent, "/proc/812/fd/3", "is open for writing by", "/proc/none/812")
    words = "has a device for commands (sg, bsg, ng) that is open for writing by ? (pid 812)"
    whole, of_part = (look_up(host.sysfs, parse_device_number(host.number(name)) or 0) for name in ("sda", part))
    assert whole is not None
    assert of_part is not None
    assert (block_use(usage, "sda", whole) or Use("", "")).text == f"sda {words}"
    assert (block_use(usage, "sda1", of_part) or Use("", "")).text == f"sda1 is in use: its disk /dev/sda {words}"


def test_without_mountinfo_nothing_can_be_said(tmp_path: Path) -> None:
    usage = UsageSnapshot(Roots(tmp_path, tmp_path, tmp_path))
    with pytest.raises(FileNotFoundError):
        usage.mounted  # noqa: B018


@pytest.mark.parametrize("filesystem", ["nfs", "nfs4"])
def test_a_file_of_an_nfs_mount_is_announced(tmp_path: Path, filesystem: str) -> None:
    usage = UsageSnapshot(Roots(tmp_path, tmp_path, tmp_path))
    with (tmp_path / "file").open("w") as file:
        usage.__dict__["filesystems"] = {os.fstat(file.fileno()).st_dev: filesystem}
        (notice,) = filesystem_notice(usage, file.fileno())
        assert notice.startswith(f"on {filesystem}: measures network and server, too; ")
        usage.__dict__["filesystems"] = {os.fstat(file.fileno()).st_dev: "xfs"}
        assert not list(filesystem_notice(usage, file.fileno()))
