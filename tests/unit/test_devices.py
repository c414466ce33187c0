"""Facts of devices from sysfs trees, whole and broken."""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from collectors.kernel.devices import device_kind, with_udev
from collectors.model import Device
from collectors.tables.block.counters import BlockCollector
from collectors.tables.host.facts import device_notices
from collectors.topology.scanner import TopologyScanner
from tests.fake_kernel import FakeDisk, FakeKernel


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    return FakeKernel(tmp_path)


def scan(kernel: FakeKernel) -> dict[str, Device]:
    collector = BlockCollector(str(kernel.procfs), str(kernel.sysfs))
    rows = collector.read().tables["disk"].rows
    devices, _ = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    assert set(devices) == set(rows.keys)
    return {device.name: device for device in devices.values()}


def test_facts_of_a_scsi_disk(kernel: FakeKernel) -> None:
    page = b"\x00\x80\x00\x08  SN1234"
    attributes: dict[str, str | bytes | None] = {
        "device/model": "HSV400          \n",
        "device/vendor": "HP      \n",
        "device/wwid": "naa.600508b4000c1ec80000500000a10000\n",
        "device/vpd_pg80": page,
        "device/queue_depth": "32\n",
        "queue/scheduler": "none [bfq] kyber\n",
        "queue/rotational": "1\n",
        "ro": "1\n",
    }
    kernel.add(FakeDisk("sda", sectors=1 << 21, diskseq=7, attributes=attributes))
    device = scan(kernel)["sda"]
    assert device == Device(
        key="sda:8:0#7",
        name="sda",
        kind="disk",
        major=8,
        minor=0,
        diskseq=7,
        persistent_id="naa.600508b4000c1ec80000500000a10000",
        size_bytes=1 << 30,
        model="HSV400",
        vendor="HP",
        serial="SN1234",
        rotational=True,
        scheduler="bfq",
        logical_block_bytes=512,
        physical_block_bytes=4096,
        nr_requests=256,
        queue_limit=32,
        write_cache="write back",
        iostats=True,
        read_only=True,
        removable=False,
        bio_based=False,
    )


def test_stacked_devices_name_their_slaves_and_these_their_holders(kernel: FakeKernel) -> None:
    bio_based: dict[str, str | bytes | None] = {"mq/0/nr_tags": None, "queue/scheduler": "none\n"}
    names: dict[str, str | bytes | None] = {
        "dm/name": "vg-data\n",
        "dm/uuid": "LVM-abc\n",
        "slaves/sda": "",
        "slaves/sdb": "",
    }
    kernel.add(FakeDisk("sda"), FakeDisk("sdb", minor=16), FakeDisk("dm-0", 252, attributes=bio_based | names))
    devices = scan(kernel)
    assert devices["dm-0"].slaves == ("sda", "sdb")
    assert devices["sda"].holders == devices["sdb"].holders == ("dm-0",)
    assert (devices["dm-0"].friendly_name, devices["dm-0"].persistent_id) == ("vg-data", "LVM-abc")
    assert devices["dm-0"].bio_based
    assert not devices["sda"].bio_based


def test_what_a_device_lacks_is_missing_not_zero(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda"))
    shutil.rmtree(kernel.sysfs / "devices/sda/queue")
    for attribute in ("size", "ro", "removable"):
        kernel.set("sda", attribute, None)
    device = scan(kernel)["sda"]
    assert device.size_bytes is device.rotational is device.read_only is device.iostats is device.nr_requests is None
    assert (device.scheduler, device.write_cache, device.bio_based) == ("", "", False)


def test_a_device_that_vanishes_before_the_scan_is_not_fatal(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda"), FakeDisk("sdb", minor=16))
    collector = BlockCollector(str(kernel.procfs), str(kernel.sysfs))
    rows = collector.read().tables["disk"].rows
    kernel.remove("sda")
    devices, _ = TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)
    assert devices["sda:8:0#1"].size_bytes is None
    assert devices["sdb:8:16#1"].size_bytes == 2048 * 512


def test_facts_of_a_successor_are_not_taken_for_those_of_the_device(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda", diskseq=1))
    rows = BlockCollector(str(kernel.procfs), str(kernel.sysfs)).read().tables["disk"].rows
    kernel.set("sda", "diskseq", "2\n")
    kernel.set("sda", "device/model", "OTHER\n")
    assert TopologyScanner(str(kernel.procfs), str(kernel.sysfs)).scan(rows)[0]["sda:8:0#1"].model == ""


def test_dangling_links_and_cycles_are_not_fatal(kernel: FakeKernel) -> None:
    loop = {"slaves/dm-0": ""}
    kernel.add(FakeDisk("dm-0", 252, attributes=loop), FakeDisk("dm-1", 252, 1, attributes=loop))
    (kernel.sysfs / "devices/dm-1/slaves/gone").symlink_to("../../nowhere")
    (kernel.sysfs / "block/sdz").symlink_to("../devices/nowhere")
    assert scan(kernel)["dm-1"].slaves == ("dm-0", "gone")


def test_texts_that_are_not_utf8_are_escaped_and_control_sequences_kept_as_data(kernel: FakeKernel) -> None:
    kernel.add(FakeDisk("sda", attributes={"device/model": b"\x1b[31m[b]\xfe\n", "device/vendor": b"\xff" * 8}))
    device = scan(kernel)["sda"]
    assert device.model == "\x1b[31m[b]\\xfe"
    assert device.vendor == "\\xff" * 8


def test_the_first_identity_that_is_set_counts(kernel: FakeKernel) -> None:
    empty = "00000000-0000-0000-0000-000000000000\n"
    kernel.add(
        FakeDisk("nvme0n1", 259, 0, attributes={"uuid": empty, "nguid": "ace42e00-0001\n", "device/serial": "S1 \n"}),
        FakeDisk("nvme1n1", 259, 1, attributes={"wwid": "eui.0025385b71b0aa11\n"}),
        FakeDisk("vda", 254, 0, attributes={"serial": "disk-1"}),
        FakeDisk("ram0", 1, 0),
    )
    devices = scan(kernel)
    ids = {name: device.persistent_id for name, device in devices.items()}
    assert ids == {"nvme0n1": "ace42e00-0001", "nvme1n1": "eui.0025385b71b0aa11", "vda": "disk-1", "ram0": ""}
    assert devices["nvme0n1"].serial == "S1"


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("sda", "disk"),
        ("nvme0n1", "disk"),
        ("nvme0c1n1", "nvme-path"),
        ("loop12", "loop"),
        ("zram0", "zram"),
        ("dm-3", "dm"),
        ("md127", "md"),
        ("md_data", "md"),
        ("sr0", "cdrom"),
        ("mmcblk0", "disk"),
    ],
)
def test_kinds(name: str, kind: str) -> None:
    assert device_kind(name) == kind


def test_devices_that_do_not_count_are_reported(kernel: FakeKernel) -> None:
    kernel.add(
        *(FakeDisk(f"sd{n}", minor=n, attributes={"queue/iostats": "0\n"}) for n in range(7)), FakeDisk("vda", 254)
    )
    (notice,) = device_notices(scan(kernel).values())
    assert notice.startswith("sd0, sd1, sd2, sd3, sd4 and 2 more: ")
    assert device_notices([]) == ()


def test_udev_completes_what_sysfs_tells_in_part() -> None:
    disks = {
        "a": Device("a", "sda", "disk", 8, 0, vendor="ATA", model="Samsung SSD 870", persistent_id="naa.5"),
        "b": Device("b", "sdb", "disk", 8, 16, vendor="HP", model="HSV400", persistent_id="naa.6"),
        "c": Device("c", "sdc", "disk", 8, 32, model="Flash"),
        "d": Device("d", "sdd", "disk", 8, 48),
    }
    asked: list[str] = []

    def udev(names: Sequence[str]) -> Mapping[str, Mapping[str, str]]:
        asked.extend(names)
        return {
            "sda": {"ID_MODEL": "Samsung_SSD_870_EVO_1TB", "ID_SERIAL_SHORT": "S6", "ID_WWN": "0x5"},
            "sdc": {"ID_WWN": "0x7", "ID_MODEL": "Fl"},
        }

    found = with_udev(disks, udev)
    assert asked == ["sda", "sdc", "sdd"]
    assert (found["a"].model, found["a"].serial, found["a"].persistent_id) == ("Samsung SSD 870 EVO 1TB", "S6", "naa.5")
    assert (found["c"].model, found["c"].persistent_id) == ("Flash", "0x7")
    assert found["b"] is disks["b"]
    assert found["d"] == disks["d"]
