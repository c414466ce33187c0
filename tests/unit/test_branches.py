"""The device graph branch by branch, from HBA ports to mounts, whatever hangs in it."""

from __future__ import annotations

from collections.abc import Iterator

from collectors.graph import Graph, Layer, Lun, MountedFilesystem, Path, Port, TargetPort
from collectors.model import Device, Topology
from collectors.paths.branches import Branches, Node, NodeKind


def device(key: str, size_bytes: int = 1 << 30) -> Device:
    return Device(key, key, "disk", 8, 0, size_bytes=size_bytes)


def topology() -> Topology:
    graph = Graph(
        ports=(Port("p0", "host0", "fc"), Port("p1", "host1", "fc"), Port("n0", "nvme0", "nvme-pcie")),
        targets=(TargetPort("t0", "0x50", "fc"), TargetPort("tn", "nvme0", "nvme-pcie")),
        luns=(Lun("dm-0", "dm-0", "dm"), Lun("nvme0n1", "nvme0n1"), Lun("loop0", "loop0"), Lun("loop1", "loop1")),
        paths=(
            Path("sda", "sda", "dm-0", "p0", "t0", "0:0:0:0"),
            Path("sdb", "sdb", "dm-0", "p0", "t0", "0:0:0:1"),
            Path("nvme0n1", "nvme0n1", "nvme0n1", "n0", "tn"),
        ),
        layers=(
            Layer("dm-1", "dm-1", "lvm", "vg-home", None, ("dm-0",)),
            Layer("md0", "md0", "raid0", "", None, ("md1",)),
            Layer("md1", "md1", "raid0", "", None, ("md0",)),
            Layer("md9", "md9", "raid1", "", None, ("sdlost",)),
        ),
        mounts=(MountedFilesystem("dm-1", "/home", "xfs"), MountedFilesystem("loop0", "/snap\x1b", "squashfs")),
    )
    return Topology({"dm-0": device("dm-0"), "loop0": device("loop0"), "loop1": device("loop1", 0)}, graph=graph)


def lines(branches: Branches, node: Node, depth: int = 0) -> Iterator[str]:
    yield f"{'  ' * depth}{node.name}"
    children = list(branches.children(node)) if node.branch else []
    for child in children:
        yield from lines(branches, child, depth + 1)


def whole(about: Topology) -> list[str]:
    branches = Branches(about)
    return [line for root in branches.roots() for line in lines(branches, root)]


def test_the_whole_tree() -> None:
    assert whole(topology()) == [
        "host0 fc",
        "  0x50",
        "    sda 0:0:0:0",
        "      dm-0",
        "        dm-1 vg-home lvm",
        "          /home (xfs)",
        "    sdb 0:0:0:1",
        "      dm-0",
        "        dm-1 vg-home lvm",
        "          /home (xfs)",
        "nvme0 nvme-pcie",
        "  nvme0n1",
        "host1 fc",
        "virtual devices: loop, zram and others",
        "  loop0",
        "    /snap\\x1b (squashfs)",
        "  md9 raid1",
        "  md0 raid0",
        "    md1 raid0",
        "      md0 is built on itself",
    ]


def test_keys_are_unique_though_luns_stand_below_each_of_their_paths() -> None:
    branches = Branches(topology())
    seen: list[str] = []
    waiting = list(branches.roots())
    while waiting:
        node = waiting.pop()
        seen.append(node.key)
        waiting += branches.children(node) if node.branch else []
    assert len(seen) == len(set(seen))


def test_a_branch_is_drawn_by_whether_anything_hangs_on_it() -> None:
    branches = Branches(topology())
    waiting = list(branches.roots())
    while waiting:
        node = waiting.pop()
        children = list(branches.children(node))
        assert bool(children) == node.branch, node
        waiting += children if node.kind is not NodeKind.MOUNT else []


def test_a_circle_is_not_followed() -> None:
    graph = Graph(
        luns=(Lun("sda", "sda"),),
        layers=(
            Layer("md0", "md0", "raid0", "", None, ("sda", "md1")),
            Layer("md1", "md1", "raid0", "", None, ("md0",)),
        ),
    )
    found = whole(Topology({"sda": device("sda")}, graph=graph))
    assert found[-3:] == ["    md0 raid0", "      md1 raid0", "        md0 is built on itself"]


def test_nothing_is_a_tree_too() -> None:
    assert whole(Topology()) == []
