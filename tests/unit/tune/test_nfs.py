"""How many transports of an NFS client are online: as net/sunrpc/sysfs.c shows and takes it."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from engine.errors import LunscopeError, UsageError
from engine.hostfs.sunrpc import SWITCHES, TRANSPORT
from engine.replacing import replace
from engine.tune.apply import apply_plan, restore
from engine.tune.change import TunableChange
from engine.tune.held import combine_plans
from engine.tune.journal import Journal
from engine.tune.nfs import ADD_ENV, NFS, OnlineTransports, nfs_targets
from engine.tune.planned_writes import make_plan
from engine.tune.record import from_json, to_json
from engine.tune.scope import Host
from engine.tune.tree import KernelTree
from tests.unit.tune.hosts import change

(TRANSPORTS,) = NFS
SERVER = "192.0.2.7"
MOUNTS = f"""\
40 24 0:33 / /var/lib/nfs/rpc_pipefs rw - rpc_pipefs rpc_pipefs rw
42 24 0:34 / /mnt/four rw - nfs4 {SERVER}:/ rw,vers=4.2,proto=tcp,nconnect=4,addr={SERVER}
43 24 0:35 / /mnt/one rw - nfs {SERVER}:/x rw,vers=3,proto=tcp,addr={SERVER}
"""


class SunrpcTree(KernelTree):
    """Regular files that answer as the kernel does."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.refused_after: int | None = None
        """So many transports more are made, and then none."""
        self._inodes: dict[str, int] = {}

    def inode(self, path: str) -> int | None:
        """Ascending and never used twice, as in sysfs."""
        if not TRANSPORT.fullmatch(path.rpartition("/")[2]) or not (self.root / path).exists():
            self._inodes.pop(path, None)
            return super().inode(path)
        return self._inodes.setdefault(path, max(self._inodes.values(), default=0) + 1)

    def write(self, path: str, text: str) -> None:
        folder, file = path.rsplit("/", 1)
        if file == "add_xprt":
            self._add(folder)
            return
        assert file == "xprt_state"
        assert text in {"online", "offline", "remove"}
        state = self.read(path)
        assert state is not None
        if text != "online" and "main_xprt=1" in (self.read(f"{folder}/xprt_info") or ""):
            raise LunscopeError(f"{path}: Invalid argument")
        if text == "remove":
            assert "OFFLINE" in state, "the kernel removes what is offline only"
            shutil.rmtree(self.root / folder)
            return
        word = " OFFLINE" if text == "offline" else ""
        (self.root / path).write_text(f"state= CONNECTED   BOUND      {word}\n")

    def _add(self, switch: str) -> None:
        if self.refused_after is not None:
            if not self.refused_after:
                raise LunscopeError(f"{switch}/add_xprt: Cannot allocate memory")
            self.refused_after -= 1
        taken = {int(match[1]) for name in self.names(switch) if (match := TRANSPORT.fullmatch(name))}
        # The lowest number that is free, as ida_alloc gives it.
        number = next(each for each in itertools.count(20) if each not in taken)
        add_transport(self.root / switch, number, is_main=False)


def add_transport(switch: Path, number: int, *, is_main: bool, port: int = 2049) -> None:
    folder = switch / f"xprt-{number}-tcp"
    folder.mkdir(parents=True)
    (folder / "dstaddr").write_text(f"{SERVER}\n")
    (folder / "xprt_info").write_text(f"main_xprt={int(is_main)}\ndst_port={port}\n")
    (folder / "xprt_state").write_text("state= CONNECTED   BOUND       \n")


def add_switch(sysfs: Path, number: int, transports: list[int], port: int = 2049) -> None:
    for order, transport in enumerate(transports):
        add_transport(sysfs / SWITCHES / f"switch-{number}", transport, is_main=not order, port=port)


@pytest.fixture
def tree(tmp_path: Path) -> Iterator[SunrpcTree]:
    (tmp_path / "mountinfo").write_text(MOUNTS)
    (tmp_path / "sys").mkdir()
    add_switch(tmp_path / "sys", 0, [0], port=0)
    add_switch(tmp_path / "sys", 1, [11, 2, 3, 4])
    add_switch(tmp_path / "sys", 2, [5])
    with SunrpcTree(tmp_path / "sys") as found:
        yield found


def transports(tree: KernelTree, switch: int = 1) -> list[Path]:
    return sorted((tree.root / SWITCHES / f"switch-{switch}").glob("xprt-*"))


def offline(tree: KernelTree, switch: int = 1) -> list[str]:
    return [folder.name for folder in transports(tree, switch) if "OFFLINE" in (folder / "xprt_state").read_text()]


def test_a_change_and_its_end(tree: KernelTree, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    for wanted, names in ((1, 3), (3, 1)):
        held = change(tree, journal, [f"nfs.transports={wanted}"], "nfs:switch-1")
        assert [write.before for write in held.record.plan.writes] == ["4"]
        assert len(offline(tree)) == names
        assert "xprt-11-tcp" not in offline(tree)
        held.end()
        assert not offline(tree)


def test_how_many_there_can_be(tree: KernelTree) -> None:
    (target,) = nfs_targets(tree, "switch-1")
    assert TRANSPORTS.present(tree, target) == "4"
    assert TRANSPORTS.legal(tree, target).text == "1..4"
    assert "more need the mount option nconnect" in TRANSPORTS.legal(tree, target).refusal("5")
    assert TRANSPORTS.default(tree, target) == "4"
    assert not TRANSPORTS.refusal(tree, target)


@pytest.fixture
def newer(tree: SunrpcTree, monkeypatch: pytest.MonkeyPatch) -> SunrpcTree:
    """A kernel that makes transports: written, as none here has it."""
    monkeypatch.setenv(ADD_ENV, "1")
    (tree.root / SWITCHES / "switch-1/add_xprt").write_text("# add one xprt to this xprt_switch\n")
    return tree


def end(tree: KernelTree, held: TunableChange) -> None:
    """Restore from the record as the watchdog does, which has the files of this tree but not its answers."""
    record = from_json(to_json(held.record), "record")
    assert record.plan == held.record.plan
    assert restore(tree, record.plan).back == 1
    held.end()


def test_more_than_the_mount_made_are_made_and_removed_at_the_end(newer: SunrpcTree, tmp_path: Path) -> None:
    journal = Journal(tmp_path / "state")
    (target,) = nfs_targets(newer, "switch-1")
    assert TRANSPORTS.legal(newer, target).text == "1..16"
    before = transports(newer)
    held = change(newer, journal, ["nfs.transports=7"], "nfs:switch-1")
    assert TRANSPORTS.present(newer, target) == "7"
    assert len(transports(newer)) == 7
    (mount,) = nfs_targets(newer, "/mnt/four", tmp_path / "mountinfo")
    assert mount.folder == target.folder
    end(newer, held)
    assert transports(newer) == before
    assert TRANSPORTS.present(newer, target) == "4"
    assert not offline(newer)


def test_offline_ones_of_the_mount_stay_when_those_that_were_made_go(newer: SunrpcTree, tmp_path: Path) -> None:
    before = transports(newer)
    for name in ("xprt-3-tcp", "xprt-4-tcp"):
        newer.write(f"{SWITCHES}/switch-1/{name}/xprt_state", "offline")
    held = change(newer, Journal(tmp_path / "state"), ["nfs.transports=6"], "nfs:switch-1")
    assert (len(transports(newer)), offline(newer)) == (6, [])
    end(newer, held)
    assert transports(newer) == before
    assert offline(newer) == ["xprt-3-tcp", "xprt-4-tcp"]


def test_changes_on_top_of_each_other_restore_what_was_there_before_all(newer: SunrpcTree) -> None:
    host = Host(newer)
    before = transports(newer)
    first = apply_plan(newer, make_plan(host, {TRANSPORTS: "6"}, host.select(["nfs:switch-1"])))
    latest = make_plan(host, {TRANSPORTS: "8"}, host.select(["nfs:switch-1"]))
    assert [(write.before, write.kept) for write in latest.writes] == [("6", "6")]
    both = combine_plans([first], latest)
    assert [(write.before, write.kept) for write in both.writes] == [("4", "4")]
    restore(newer, first)
    assert transports(newer) == before
    restore(newer, apply_plan(newer, both))
    assert transports(newer) == before


def test_none_are_left_where_the_kernel_makes_fewer(newer: SunrpcTree, tmp_path: Path) -> None:
    before = transports(newer)
    newer.refused_after = 2
    with pytest.raises(LunscopeError, match="Cannot allocate memory"):
        change(newer, Journal(tmp_path / "state"), ["nfs.transports=8"], "nfs:switch-1")
    assert (transports(newer), offline(newer)) == (before, [])


def test_transports_that_are_being_removed_are_none(newer: SunrpcTree) -> None:
    (target,) = nfs_targets(newer, "switch-1")
    state = newer.root / SWITCHES / "switch-1/xprt-2-tcp/xprt_state"
    state.write_text("state= BOUND OFFLINE REMOVE \n")
    assert TRANSPORTS.present(newer, target) == "3"
    assert not TRANSPORTS.refusal(newer, target)
    assert TRANSPORTS.kept(newer, target) == "3"


@pytest.mark.parametrize(("release", "most"), [("6.19.4-generic", 4), ("7.1.0", 4), ("7.2.0-rc3", 16), ("8.0", 16)])
def test_no_transport_is_made_where_that_may_crash_the_kernel(
    newer: SunrpcTree, monkeypatch: pytest.MonkeyPatch, release: str, most: int
) -> None:
    monkeypatch.delenv(ADD_ENV)
    value = OnlineTransports(lambda: release)
    (target,) = nfs_targets(newer, "switch-1")
    legal = value.legal(newer, target)
    assert legal.most == most
    if most == 4:
        assert "may crash Linux before 7.2" in legal.refusal("5")
        with pytest.raises(LunscopeError, match=r"may crash Linux before 7\.2"):
            value.write(newer, target, "5")
        assert len(transports(newer)) == 4


def test_what_others_took_offline_is_not_brought_back(tree: KernelTree) -> None:
    (target,) = nfs_targets(tree, "switch-1")
    tree.write(f"{target.folder}/xprt-2-tcp/xprt_state", "offline")
    assert TRANSPORTS.present(tree, target) == "3"
    assert "xprt-2-tcp was taken offline by others" in TRANSPORTS.refusal(tree, target)
    with pytest.raises(LunscopeError, match="bring it online first"):
        TRANSPORTS.set(tree, target, "2")
    assert offline(tree) == ["xprt-2-tcp"]


@pytest.mark.parametrize("folder", ["kernel/others/switch-1", f"{SWITCHES}/switch-1/..", f"{SWITCHES}/other", SWITCHES])
def test_only_transports_of_a_switch_are_written(tree: KernelTree, folder: str) -> None:
    (target,) = nfs_targets(tree, "switch-1")
    (tree.root / "kernel/others").mkdir()
    (tree.root / target.folder).rename(tree.root / "kernel/others/switch-1")
    (tree.root / SWITCHES / "other").symlink_to(tree.root / "kernel/others/switch-1")
    other = replace(target, folder=folder)
    assert TRANSPORTS.present(tree, other) is None
    with pytest.raises(LunscopeError, match="it is gone"):
        TRANSPORTS.set(tree, other, "1")
    assert "OFFLINE" not in (tree.root / "kernel/others/switch-1/xprt-2-tcp/xprt_state").read_text()


def test_scopes(tree: KernelTree, tmp_path: Path) -> None:
    mounts = tmp_path / "mountinfo"

    def named(scope: str) -> list[str]:
        return [target.name for target in nfs_targets(tree, scope, mounts)]

    assert named(SERVER) == [f"{SERVER} (switch-1)", f"{SERVER} (switch-2)"]
    assert named("switch-2") == [f"{SERVER} (switch-2)"]
    assert named("/mnt/four") == ["/mnt/four (switch-1)"]
    assert named("/mnt/one") == ["/mnt/one (switch-2)"]
    with pytest.raises(UsageError, match="no NFS is mounted there"):
        named("/mnt")
    with pytest.raises(UsageError, match="no such client; there are nfs:switch-1"):
        named("switch-0")
    add_switch(tree.root, 3, [6])
    with pytest.raises(UsageError, match="any of these may be its client"):
        named("/mnt/one")
    assert len(Host(tree).select(["all"]).nfs_clients) == 3
