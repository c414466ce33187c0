"""What is known of the far end of a path and of links: VPD page 83h, controllers, rates, names."""

from __future__ import annotations

from pathlib import Path as FilePath

import pytest

from collectors.graph import Path
from collectors.kernel.device_ids import NO_IDS, plain_wwid, target_ids, vendor_name
from collectors.model import Rows
from collectors.paths.groups import GroupBy, path_groups
from collectors.paths.state import access_mix
from collectors.reports.scan_document import scan_document
from collectors.reports.scan_tree import tree_lines
from collectors.topology.scanner import read_topology
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.fake_storage import FakeScsi, add_nvme_controller, add_nvme_namespace


def designator(association: int, kind: int, value: bytes, codes: int = 1) -> bytes:
    return bytes((codes, 0x80 | association << 4 | kind, 0, len(value))) + value


def page_83(*designators: bytes) -> bytes:
    body = b"".join(designators)
    return b"\0\x83" + len(body).to_bytes(2, "big") + body


PORT = designator(1, 3, bytes.fromhex("5000000000011000"))
PAGE = page_83(
    designator(0, 3, bytes.fromhex("6001405ab30000000000000000000000")),
    PORT,
    designator(1, 4, b"\0\0\0\7"),
    designator(1, 5, b"\0\0\1\2"),
    designator(2, 8, b"iqn.2001-04.com.example\0\0", 3),
)


def test_a_page_names_port_number_group_and_target() -> None:
    found = target_ids(PAGE)
    assert (found.port, found.relative_port, found.group) == ("naa.5000000000011000", 7, 0x102)
    assert found.device == "iqn.2001-04.com.example"


@pytest.mark.parametrize("page", [None, b"", b"\0\x80\0\4abcd", b"\0\x83\0\0", page_83(designator(0, 3, bytes(8)))])
def test_pages_that_say_nothing_of_ports(page: bytes | None) -> None:
    assert target_ids(page) == NO_IDS


def test_a_page_cut_anywhere_says_less_and_never_fails() -> None:
    for length in range(len(PAGE)):
        found = target_ids(PAGE[:length])
        assert found.port in {"", "naa.5000000000011000"}
        assert found.group in {None, 0x102}


def test_a_scsi_name_stands_for_a_port_without_a_number() -> None:
    page = page_83(designator(1, 8, b"iqn.2001-04.com.example,t,0x0001\0", 3))
    assert target_ids(page).port == "iqn.2001-04.com.example,t,0x0001"


@pytest.mark.parametrize(
    ("identity", "plain"),
    [
        ("mpath-36001405ab3", "36001405ab3"),
        ("naa.6001405ab3", "36001405ab3"),
        ("uuid.12", "uuid.12"),
        ("eui.0025", "eui.0025"),
        ("", ""),
    ],
)
def test_wwids_as_multipath_prints_them(identity: str, plain: str) -> None:
    assert plain_wwid(identity) == plain


def test_virtio_has_a_name() -> None:
    assert vendor_name("0x1af4") == "Red Hat (virtio)"
    assert vendor_name("LIO-ORG") == "LIO-ORG"


def test_paths_that_are_not_alike_are_listed_apart() -> None:
    def paths(*access: str) -> list[Path]:
        return [Path(str(place), str(place), "lun", access=one) for place, one in enumerate(access)]

    mixed = paths("active/non-optimized", "active/optimized", "active/optimized", "active/optimized", "standby")
    assert access_mix(mixed) == "3 optimized + 1 non-optimized"
    assert access_mix(paths("active/optimized", "active/optimized")) == ""
    assert access_mix([]) == ""


@pytest.fixture
def kernel(tmp_path: FilePath) -> FakeKernel:
    return FakeKernel(tmp_path)


def test_the_portals_of_one_controller_are_one_group(kernel: FakeKernel) -> None:
    FakeScsi(kernel, hosts=4, luns=2, access=("active/optimized",) * 2 + ("active/non-optimized",) * 2).build()
    for name in [disk for disk in kernel.disks if disk.startswith("sd")]:
        host = int(kernel.disks[name].at.split("target")[1][0])
        page = page_83(
            designator(1, 3, bytes((0x50, 0, 0, 0, 0, 0, 0, host))),
            designator(1, 5, bytes((0, 0, 0, host // 2))),
            designator(2, 3, bytes.fromhex("5000000000000aaa")),
        )
        kernel.set(name, "device/vpd_pg83", page)
        kernel.set(name, "device/vendor", "ACME\n")
        kernel.set(name, "device/model", "Array\n")
        kernel.set(name, "device/vpd_pg80", b"\0\x80\0\4S123")
    topology = read_topology(kernel.procfs, kernel.sysfs)
    paths = topology.graph.paths

    groups = path_groups(
        Rows(tuple(path.key for path in paths), tuple(path.name for path in paths)), topology, GroupBy.CONTROLLER
    )
    assert groups.rows.names == ("naa.5000000000000aaa group 0", "naa.5000000000000aaa group 1")
    assert [int((groups.group_of_row == group).sum()) for group in (0, 1)] == [4, 4]
    luns = scan_document(topology)["luns"]
    assert isinstance(luns, list)
    for lun in luns:
        assert (lun["vendor"], lun["model"], lun["serial"]) == ("ACME", "Array", "S123")
        assert (lun["id"], lun["wwid"]) == (f"mpath-{lun['wwid']}", f"3{lun['wwid'][1:]}")
    text = "\n".join(tree_lines(topology))
    assert "4 of 4 paths usable, 2 optimized + 2 non-optimized" in text
    assert "port group 1  to naa.5000000000000003" in text


def test_rates_of_sas_and_sata_links(kernel: FakeKernel) -> None:
    sas, ata = "pci0000:00/0000:00:04.0/host6", "pci0000:00/0000:00:05.0/ata3/host7"
    for number, folder in ((6, sas), (7, ata)):
        kernel.add_class("scsi_host", f"host{number}", f"{folder}/scsi_host/host{number}",
                         proc_name="fake", can_queue=32, state="running")  # fmt: skip
    kernel.add_class("sas_host", "host6", f"{sas}/sas_host/host6")
    for phy, rate in enumerate(("12.0 Gbit", "12.0 Gbit", "6.0 Gbit", "Unknown", "Phy disabled")):
        kernel.add_class("sas_phy", f"phy-6:{phy}", f"{sas}/phy-6:{phy}/sas_phy/phy-6:{phy}", negotiated_linkrate=rate)
    kernel.add_class("sas_phy", "phy-6:0:1", f"{sas}/phy-6:0:1/sas_phy/phy-6:0:1", negotiated_linkrate="3.0 Gbit")
    for link, speed in ((3, "6.0 Gbps"), (4, "<unknown>")):
        kernel.add_class("ata_link", f"link{link}", f"{ata}/link{link}/ata_link/link{link}", sata_spd=speed)
    kernel.add(FakeDisk("sda", diskseq=1))
    ports = {port.name: port for port in read_topology(kernel.procfs, kernel.sysfs).graph.ports}
    assert ports["host6"].speed == "2 x 12.0 Gbit, 6.0 Gbit"
    assert (ports["host7"].transport, ports["host7"].speed) == ("ata", "6.0 Gbps")


def test_an_nvme_controller_is_listed_with_serial_subsystem_and_host(kernel: FakeKernel) -> None:
    folder = add_nvme_controller(kernel, 0, "tcp", "traddr=10.0.1.1,trsvcid=4420,src_addr=10.0.1.9")
    for attribute, value in (("serial", "SN7"), ("hostnqn", "nqn.host")):
        (kernel.sysfs / "devices" / folder / attribute).write_text(f"{value}\n")
    add_nvme_namespace(kernel, 1, [folder])
    topology = read_topology(kernel.procfs, kernel.sysfs)
    (port,) = topology.graph.ports
    assert (port.serial, port.subsystem, port.host_nqn) == ("SN7", "nqn.test", "nqn.host")
    text = "\n".join(tree_lines(topology))
    assert "serial SN7  subsystem nqn.test  host nqn.host" in text
    assert "10.0.1.1:4420 of nqn.test  1 path" in text
