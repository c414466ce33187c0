"""The graph of captured real hosts against multipath -ll, nvme list -v, lsscsi, dmsetup and lsblk on the same hosts."""

from __future__ import annotations

import re

import pytest

from collectors.graph import Graph
from collectors.model import Device, Rows, Topology
from collectors.paths.groups import GroupBy, path_groups
from collectors.reports.scan_document import scan_document
from collectors.reports.scan_tree import tree_lines
from collectors.topology.device_mapper import parse_map
from tests import needs
from tests.lab.fixtures import Capture, names, unpack

pytestmark = needs.lab


@pytest.fixture(scope="module", params=names() or ["none"])
def capture(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Capture:
    if request.param == "none":
        pytest.skip("no captures in the lab")
    return unpack(request.param, tmp_path_factory.mktemp(request.param))


@pytest.fixture(scope="module")
def scanned(capture: Capture) -> tuple[dict[str, Device], Graph]:
    return capture.scan()


def need(capture: Capture, command: str) -> None:
    if not (capture.commands / command).exists() or not capture.text(command).strip():
        pytest.skip(f"this host said nothing for {command}")


def test_maps_and_paths_as_multipath_lists_them(capture: Capture, scanned: tuple[dict[str, Device], Graph]) -> None:
    need(capture, "multipath-ll")
    _, graph = scanned
    expected: dict[str, set[tuple[str, str]]] = {}
    for line in capture.text("multipath-ll").splitlines():
        if found := re.match(r"\S+ \(.*\) (dm-\d+) |\S+ (dm-\d+) ", line):
            paths = expected.setdefault(found[1] or found[2], set())
        elif found := re.search(r"[|`]- (\d+:\d+:\d+:\d+) (\S+) +\d+:\d+", line):
            paths.add((found[2], found[1]))
    ours = {
        lun.name: {(graph.paths[place].name, graph.paths[place].address) for place in graph.paths_of[lun.key]}
        for lun in graph.luns
        if lun.multipath == "dm"
    }
    assert ours == expected
    assert expected


def test_namespaces_and_controllers_as_nvme_lists_them(
    capture: Capture, scanned: tuple[dict[str, Device], Graph]
) -> None:
    need(capture, "nvme-list-v")
    _, graph = scanned
    expected: dict[str, set[str]] = {}
    for line in capture.text("nvme-list-v").splitlines():
        controller = re.match(r"nvme\d+(?= )", line)
        for namespace in re.findall(r"\bnvme\d+n\d+\b", line) if controller else ():
            expected.setdefault(namespace, set()).add(line.split()[0])
    assert expected
    ours = {
        lun.name: {graph.paths[place].address.split()[0] for place in graph.paths_of[lun.key]}
        for lun in graph.luns
        if lun.name.startswith("nvme")
    }
    assert ours == expected


def test_addresses_and_targets_as_lsscsi_lists_them(capture: Capture, scanned: tuple[dict[str, Device], Graph]) -> None:
    need(capture, "lsscsi")
    _, graph = scanned
    targets = {target.key: target for target in graph.targets}
    ours = {path.name: (path.address, targets[path.target].name) for path in graph.paths if path.name.startswith("sd")}
    listed = 0
    for line in capture.text("lsscsi").splitlines():
        found = re.match(r"\[(\d+:\d+:\d+:\d+)\] +disk +(\S*) *.*/dev/(sd[a-z]+) ", line)
        if found is None:
            continue
        listed += 1
        address, target = ours.pop(found[3])
        assert address == found[1]
        if found[2].startswith("fc"):
            assert found[2].partition(":")[2].split(",")[0] == target
        elif found[2].startswith("iqn"):
            assert found[2].partition(",")[0] == target.partition(",")[0]
    assert not ours or not listed


def test_stacks_and_mounts_as_lsblk_lists_them(capture: Capture, scanned: tuple[dict[str, Device], Graph]) -> None:
    devices, graph = scanned
    names_of = {key: device.name for key, device in devices.items()} | {one.key: one.name for one in graph.layers}
    ours = {(names_of[below], layer.name) for layer in graph.layers for below in layer.below}
    ours |= {(path.name, names_of[path.lun]) for path in graph.paths if path.key != path.lun}
    expected: set[tuple[str, str]] = set()
    mounted: set[tuple[str, str]] = set()

    def walk(node: dict[str, object]) -> None:
        name = str(node["kname"])
        points = node.get("mountpoints")
        assert isinstance(points, list)
        mounted.update((name, str(point)) for point in points if point)
        children = node.get("children", [])
        assert isinstance(children, list)
        for child in children:
            expected.add((name, str(child["kname"])))
            walk(child)

    for disk in capture.json("lsblk.json")["blockdevices"]:
        walk(disk)
    hidden = {path.name for path in graph.paths if re.fullmatch(r"nvme\d+c\d+n\d+", path.name)}
    assert {pair for pair in ours if pair[0] not in hidden} == expected
    assert {(names_of[mount.key], mount.point) for mount in graph.mounts} == mounted


def test_map_lines_as_dmsetup_prints_them(capture: Capture, scanned: tuple[dict[str, Device], Graph]) -> None:
    need(capture, "dmsetup-table")
    devices, graph = scanned
    status = dict(line.split(": ", 1) for line in capture.text("dmsetup-status").splitlines() if ": " in line)
    failed = set()
    numbers = {(device.major, device.minor): device.name for device in devices.values()}
    for line in capture.text("dmsetup-table").splitlines():
        name, _, rest = line.partition(": ")
        if " multipath " not in rest:
            continue
        state = parse_map(rest.split(" multipath ", 1)[1], status[name].split(" multipath ", 1)[1])
        assert state is not None
        lun = next(lun for lun in graph.luns if devices[lun.key].friendly_name == name)
        ours = {graph.paths[place].name for place in graph.paths_of[lun.key]}
        assert {numbers[number] for number in state.paths} == ours
        failed |= {numbers[number] for number, path in state.paths.items() if path.state == "failed"}
    if (capture.commands / "multipath-ll").exists():
        assert failed == set(re.findall(r" (sd[a-z]+) +\S+ +failed ", capture.text("multipath-ll")))


def test_wwids_and_makers_as_multipath_lists_them(capture: Capture, scanned: tuple[dict[str, Device], Graph]) -> None:
    need(capture, "multipath-ll")
    devices, graph = scanned
    expected = {}
    for line in capture.text("multipath-ll").splitlines():
        if found := re.match(r"(?:\S+ \((?P<wwid>.*)\)|(?P<bare>\S+)) (?P<name>dm-\d+) (?P<maker>\S.*)", line):
            expected[found["name"]] = (found["wwid"] or found["bare"], found["maker"].strip())
    document = scan_document(Topology(devices, graph=graph))
    luns = document["luns"]
    assert isinstance(luns, list)
    maps = [lun for lun in luns if lun["multipath"] == "dm"]
    assert {lun["name"]: (lun["wwid"], f"{lun['vendor']},{lun['model']}") for lun in maps} == expected
    serials = {device.name: device.serial for device in devices.values()}
    assert {lun["name"]: lun["serial"] for lun in maps} == {lun["name"]: serials[lun["paths"][0]] for lun in maps}
    assert all(lun["id"] in {device.persistent_id for device in devices.values()} for lun in maps)


def test_subsystems_and_hosts_as_nvme_lists_them(capture: Capture, scanned: tuple[dict[str, Device], Graph]) -> None:
    need(capture, "nvme-list-subsys.json")
    devices, graph = scanned
    expected = {
        path["Name"]: (subsystem["NQN"], host.get("HostNQN", ""))
        for host in capture.json("nvme-list-subsys.json")
        for subsystem in host["Subsystems"]
        for path in subsystem["Paths"]
        if path["Transport"] != "pcie"
    }
    ours = {
        member: (port.subsystem, port.host_nqn) for port in graph.ports for member in port.members if member in expected
    }
    assert ours == expected
    text = "\n".join(tree_lines(Topology(devices, graph=graph)))
    for subsystem, host in expected.values():
        assert subsystem in text
        assert host in text


CONTROLLERS = {
    # As scsi_debug makes them up: one target of which each host has a port group of its own.
    "scsi-debug-mp-stable": {(host, f"naa.32222220000007cd group {256 * (host + 1)}") for host in range(4)},
    # As QEMU was given them (port_wwn): a port for each HBA, and no groups.
    "scsi-mp-stable": {(host, f"naa.500000000001100{host}") for host in range(4)},
}


def test_controllers_by_what_page_83h_says(capture: Capture, scanned: tuple[dict[str, Device], Graph]) -> None:
    expected = CONTROLLERS.get(capture.commands.parent.name)
    if expected is None:
        pytest.skip("nothing is known of the controllers of this host")
    paths = [path for path in scanned[1].paths if path.target_port]
    assert {(int(path.address.partition(":")[0]), path.controller) for path in paths} == expected
    groups = path_groups(Rows(*zip(*((path.key, path.name) for path in paths), strict=True)),
                         Topology(scanned[0], graph=scanned[1]), GroupBy.CONTROLLER)  # fmt: skip
    assert set(groups.rows.names) == {controller for _, controller in expected}


def test_virtio_disks_have_a_vendor_with_a_name(scanned: tuple[dict[str, Device], Graph]) -> None:
    vendors = {device.vendor for device in scanned[0].values() if device.name.startswith("vd")}
    assert vendors <= {"Red Hat (virtio)"}
