"""Which paths a drill takes: never the last usable one of a LUN, and none whose users or state are not known."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import pytest

from engine.drill.paths import HostPaths
from engine.errors import LunscopeError, RefusedError, UsageError
from engine.hostfs.dm_control import MapAnswer, Number
from engine.hostfs.kernel_files import Roots
from engine.tune.apply import apply_plan, restore
from engine.tune.path_state import MAP_STATE, SCSI_STATE
from engine.tune.planned_writes import parse_settings
from engine.tune.registry import TUNABLES
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests.fake_kernel import FakeDisk, FakeKernel
from tests.unit.tune.hosts import WWID, present, scsi
from tui.cli import run_cli

NAMES = ("sda", "sdb", "sdc", "sdd")
MAP = (252, 0)


class PathMaps:
    """One map whose paths fail and come back by messages, as dm-mpath has them."""

    def __init__(self, devices: dict[str, str], kind: str = "multipath") -> None:
        self.devices, self.kind, self.refuse = devices, kind, ""

    def refusal(self) -> str:
        return self.refuse

    def query(self, number: Number, *, table: bool, inactive: bool = False) -> MapAnswer | None:
        del table, inactive
        if number != MAP or self.refuse:
            return None
        paths = " ".join(f"{device} {state} 0 0 1" for device, state in self.devices.items())
        status = f"2 0 0 0 1 1 A 0 {len(self.devices)} 2 {paths} "
        return MapAnswer(0, 1, 0, 2048, self.kind, status)

    def send(self, number: Number, message: str) -> None:
        assert number == MAP
        word, device = message.split()
        self.devices[device] = {"fail_path": "F", "reinstate_path": "A"}[word]

    def load(self, number: Number, target: MapAnswer) -> None:
        raise AssertionError((number, target))

    def clear(self, number: Number) -> None:
        raise AssertionError(number)

    def resume(self, number: Number) -> None:
        raise AssertionError(number)


@pytest.fixture
def kernel(tmp_path: Path) -> FakeKernel:
    """One LUN with four paths through four hosts, and one of a single path."""
    kernel = FakeKernel(tmp_path / "host")
    for host, name in enumerate(NAMES):
        kernel.add(scsi(name, host, device__state="running\n"))
    kernel.add(scsi("sde", 0, WWID[:-2] + "ee", device__state="running\n"))
    (kernel.procfs / "self").mkdir()
    (kernel.procfs / "self/mountinfo").write_text("1 0 0:1 / / rw - tmpfs none rw\n")
    return kernel


@pytest.fixture
def tree(kernel: FakeKernel) -> Iterator[KernelTree]:
    with KernelTree(kernel.sysfs) as tree:
        yield tree


def host_paths(kernel: FakeKernel, tree: KernelTree) -> HostPaths:
    """Paths of the fake host, which shows all its processes as far as the test is concerned."""
    return HostPaths(Host(tree), Roots(kernel.procfs, kernel.sysfs), hidden=())


def add_map(kernel: FakeKernel, tree: KernelTree, uuid: str = "", **states: str) -> PathMaps:
    """Put a map over the four paths; states of paths by name, `A` by default."""
    kernel.add(
        FakeDisk("dm-0", *MAP, lean=True, attributes={"dm/name": "lab0\n", "dm/uuid": uuid}, at="virtual/block/dm-0")
    )
    folder = kernel.sysfs / kernel.disks["dm-0"].folder
    (folder / "slaves").mkdir(exist_ok=True)
    numbers = {}
    for name in NAMES:
        disk = kernel.sysfs / kernel.disks[name].folder
        (folder / "slaves" / name).symlink_to(disk)
        (disk / "holders").mkdir(exist_ok=True)
        (disk / "holders/dm-0").symlink_to(folder)
        numbers[(disk / "dev").read_text().strip()] = states.get(name, "A")
    maps = PathMaps(numbers)
    tree.maps = maps
    return maps


def refusal(paths: HostPaths, *scopes: str) -> str:
    with pytest.raises(LunscopeError) as error:
        paths.plan(scopes)
    assert isinstance(error.value, RefusedError | UsageError)
    assert "\n" not in str(error.value)
    return str(error.value)


def test_a_path_of_no_map_is_taken_by_its_scsi_state_and_restored(kernel: FakeKernel, tree: KernelTree) -> None:
    drill = host_paths(kernel, tree).plan(["sda"])
    (lun,) = drill.luns
    assert [disk.name for disk in lun.taken] == ["sda"]
    assert [disk.name for disk in lun.left] == ["sdb", "sdc", "sdd"]
    (write,) = apply_plan(tree, drill.plan).writes
    assert write.tunable is SCSI_STATE
    assert present(kernel, "device/state", "sda")[0] == "offline"
    restore(tree, drill.plan)
    assert present(kernel, "device/state", "sda")[0] == "running"


@pytest.mark.parametrize("used", list(product((True, False), repeat=4)))
@pytest.mark.parametrize("mapped", [False, True])
def test_the_last_usable_path_is_refused_whatever_the_states(
    kernel: FakeKernel, tree: KernelTree, used: tuple[bool, ...], *, mapped: bool
) -> None:
    """All states of four paths meet all sets of paths: one is planned only if it leaves a usable path."""
    if mapped:
        add_map(kernel, tree, **{name: "A" if usable else "F" for name, usable in zip(NAMES, used, strict=True)})
    else:
        for name, usable in zip(NAMES, used, strict=True):
            kernel.set(name, "device/state", "running\n" if usable else "offline\n")
    usable_names = {name for name, usable in zip(NAMES, used, strict=True) if usable}
    paths = host_paths(kernel, tree)
    for chosen in product((True, False), repeat=4):
        wanted = [name for name, is_chosen in zip(NAMES, chosen, strict=True) if is_chosen]
        if not wanted:
            continue
        if set(wanted) < usable_names:
            (lun,) = paths.plan(wanted).luns
            assert {disk.name for disk in lun.left} == usable_names - set(wanted)
        else:
            refusal(paths, *wanted)


def test_all_paths_and_the_only_path_of_a_lun_are_refused(kernel: FakeKernel, tree: KernelTree) -> None:
    paths = host_paths(kernel, tree)
    assert "sda, sdb, sdc and 1 more are all usable paths of LUN" in refusal(paths, "lun:sda")
    assert "sde is the last usable path of LUN" in refusal(paths, "sde")
    # All or nothing: a host with the only path of another LUN keeps all of its paths.
    assert "sde is the last usable path" in refusal(paths, "port:host0")
    assert paths.last_of(paths.chosen(["sde"])[0])
    assert not paths.last_of(paths.chosen(["sda"])[0])


def test_a_path_of_a_map_of_its_own_is_failed_there_and_reinstated(kernel: FakeKernel, tree: KernelTree) -> None:
    maps = add_map(kernel, tree)
    drill = host_paths(kernel, tree).plan(["sdb", "sdc"])
    assert {write.tunable for write in drill.plan.writes} == {MAP_STATE}
    assert (drill.luns[0].name, drill.luns[0].map_folder) == ("lab0", "devices/virtual/block/dm-0")
    apply_plan(tree, drill.plan)
    assert list(maps.devices.values()) == ["A", "F", "F", "A"]
    assert not restore(tree, drill.plan).left
    assert list(maps.devices.values()) == ["A"] * 4


def test_a_path_that_multipathd_looks_after_goes_by_its_state_and_is_reinstated(
    kernel: FakeKernel, tree: KernelTree
) -> None:
    maps = add_map(kernel, tree, uuid="mpath-36001\n")
    daemon = kernel.procfs / "77"
    daemon.mkdir()
    (daemon / "comm").write_text("multipathd\n")
    (write,) = host_paths(kernel, tree).plan(["sda"]).plan.writes
    assert (write.tunable, write.kept) == (SCSI_STATE, "252:0")
    drill = host_paths(kernel, tree).plan(["sda"])
    apply_plan(tree, drill.plan)
    maps.devices["8:0"] = "F"
    assert not restore(tree, drill.plan).left
    assert maps.devices["8:0"] == "A"
    (daemon / "comm").write_text("sleep\n")
    assert host_paths(kernel, tree).plan(["sda"]).plan.writes[0].tunable is MAP_STATE


Change = Callable[[FakeKernel, KernelTree], None]


def _set(name: str, attribute: str, text: str) -> Change:
    return lambda kernel, _tree: kernel.set(name, attribute, text)


def _mounted(kernel: FakeKernel, _tree: KernelTree) -> None:
    (kernel.procfs / "self/mountinfo").write_text("1 0 8:0 / /data rw - xfs /dev/sda rw\n")


def _built_on(kernel: FakeKernel, tree: KernelTree) -> None:
    add_map(kernel, tree).kind = "linear"


def _silent(kernel: FakeKernel, tree: KernelTree) -> None:
    add_map(kernel, tree).refuse = "/dev/mapper/control: Permission denied: run as root"


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (_set("sda", "device/state", "blocked\n"), "sda: it is blocked"),
        (_set("sda", "device/access_state", "standby\n"), "sda: its target says standby"),
        (_set("sda", "device/wwid", ""), "sda: it has no wwid"),
        (_mounted, "/dev/sda is mounted on /data (xfs): it has no other path there"),
        (_built_on, "dm-0 over it is no multipath map, or does not say which paths it uses"),
        (_silent, "dm-0"),
    ],
)
def test_what_is_unknown_or_has_no_other_path_is_refused(
    kernel: FakeKernel, tree: KernelTree, change: Change, says: str
) -> None:
    change(kernel, tree)
    assert says in refusal(host_paths(kernel, tree), "sda")


def test_paths_that_differ_or_may_not_be_used_do_not_count_as_left(kernel: FakeKernel, tree: KernelTree) -> None:
    kernel.set("sdb", "device/access_state", "unavailable\n")
    kernel.set("sdc", "size", "4096\n")
    kernel.set("sdd", "ro", "1\n")
    kernel.set("sda", "ro", "0\n")
    assert "sda is the last usable path" in refusal(host_paths(kernel, tree), "sda")
    kernel.set("sdd", "ro", "0\n")
    (lun,) = host_paths(kernel, tree).plan(["sda"]).luns
    assert [disk.name for disk in lun.left] == ["sdd"]


def test_others_and_hidden_processes_are_refused(kernel: FakeKernel, tree: KernelTree) -> None:
    kernel.add(FakeDisk("loop0", 7, 0, at="virtual/block/loop0"))
    kernel.add(FakeDisk("nvme0n1", 259, 0, at="pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1"))
    paths = host_paths(kernel, tree)
    assert "no SCSI device, and no multipath map is over it" in refusal(paths, "loop0")
    assert "the kernel can only remove paths of NVMe" in refusal(paths, "nvme0n1")
    assert "paths are disks" in refusal(paths, "cgroup:/x")
    assert "no such disk here" in refusal(paths, "port:host9")
    hidden = HostPaths(Host(tree), Roots(kernel.procfs, kernel.sysfs), hidden=("run on the host",))
    assert "sda: run on the host" in refusal(hidden, "sda")


def test_lost_paths_are_named(kernel: FakeKernel, tree: KernelTree) -> None:
    drill = host_paths(kernel, tree).plan(["sda", "sdb"])
    assert not host_paths(kernel, tree).left_without(drill.luns)
    kernel.set("sdc", "device/state", "transport-offline\n")
    assert not host_paths(kernel, tree).left_without(drill.luns)
    kernel.set("sdd", "device/state", "offline\n")
    assert host_paths(kernel, tree).left_without(drill.luns) == drill.luns[0].name


def test_states_of_paths_are_no_tunables_but_records_have_them(kernel: FakeKernel, tree: KernelTree) -> None:
    assert not {SCSI_STATE, MAP_STATE} & set(TUNABLES)
    with pytest.raises(UsageError, match=r"'path.scsi' is no tunable"):
        parse_settings(["path.scsi=offline"])
    del tree


def test_disks_that_are_never_paths_are_listed_only_by_name(
    kernel: FakeKernel, capsys: pytest.CaptureFixture[str]
) -> None:
    for number in range(3):
        kernel.add(FakeDisk(f"loop{number}", 7, number, at=f"virtual/block/loop{number}"))
    kernel.add(FakeDisk("nvme0n1", 259, 0, at="pci0000:00/0000:00:09.0/nvme/nvme0/nvme0n1"))
    options = ("--sysfs", str(kernel.sysfs), "--procfs", str(kernel.procfs))
    assert run_cli(["path", "list", *options]) == 0
    head, *rows, said = capsys.readouterr().out.splitlines()
    assert head.split()[:2] == ["PATH", "LUN"]
    assert {row.split()[0] for row in rows if row[:1].strip()} == {*NAMES, "sde", "nvme0n1"}
    assert said == "not listed: 3 other disks, neither SCSI nor NVMe, nor in a multipath map"
    assert run_cli(["path", "list", "loop1", *options]) == 0
    assert capsys.readouterr().out.splitlines()[1].split()[0] == "loop1"


def test_disks_of_other_kinds_below_a_map_may_be_paths(kernel: FakeKernel, tree: KernelTree) -> None:
    add_map(kernel, tree)
    loop = FakeDisk("loop0", 7, 0, at="virtual/block/loop0")
    kernel.add(loop)
    assert not host_paths(kernel, tree).may_be_path(Host(tree).disks["loop0"])
    (kernel.sysfs / "devices/virtual/block/loop0/holders").mkdir(exist_ok=True)
    (kernel.sysfs / "devices/virtual/block/loop0/holders/dm-0").symlink_to(kernel.sysfs / kernel.disks["dm-0"].folder)
    assert host_paths(kernel, tree).may_be_path(Host(tree).disks["loop0"])
